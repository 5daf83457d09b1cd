//! modprobe.d and the module index, read as libkmod reads them: names are those of files, which
//! need not be the kernel's.

use std::collections::BTreeSet;

use super::Node;
use crate::host::simulated::scenario::ModuleEntry;
use crate::model::ModuleName;

/// Something that a probe does, in the order of libkmod.
#[derive(Clone, Debug)]
pub(super) struct ProbeStep {
    pub(super) action: Action,
    /// Its failure is the failure of the whole.
    pub(super) required: bool,
    /// It is what was asked for, not a dependency.
    pub(super) target: bool,
}

/// How a module is brought in.
#[derive(Clone, Debug)]
pub(super) enum Action {
    /// By its file; kernel name and options.
    File(ModuleName, String),
    /// By an `install` command.
    Command(String),
}

/// A directive with its place.
#[derive(Debug)]
pub(super) struct Directive<'a> {
    pub(super) keyword: &'a str,
    pub(super) module: ModuleName,
    pub(super) rest: &'a str,
    pub(super) origin: String,
}

/// The name that modules.dep knows a file by: its base name up to the suffix.
pub(super) fn file_name(entry: &ModuleEntry) -> Option<ModuleName> {
    let path = entry.file.as_deref()?;
    let leaf = path.rsplit('/').next()?;
    ModuleName::new(leaf.split(".ko").next()?).ok()
}

/// Whether modules.dep knows the file by that name. Without a copy: trees are large.
fn has_file_name(entry: &ModuleEntry, name: &ModuleName) -> bool {
    let leaf = entry.file.as_deref().and_then(|path| path.rsplit('/').next()).unwrap_or_default();
    let stem = leaf.split(".ko").next().unwrap_or_default().bytes();
    stem.map(|byte| if byte == b'-' { b'_' } else { byte }).eq(name.as_str().bytes())
}

/// Whether there is a file to load.
pub(super) fn is_on_disk(entry: &ModuleEntry) -> bool {
    entry.on_disk != Some(false) && entry.builtin != Some(true) && entry.file.is_some()
}

impl Node {
    /// The kernel name of the module whose file has that name.
    pub(super) fn by_file_name(&self, name: &ModuleName) -> Option<&ModuleName> {
        let meant = |entry: &ModuleEntry| has_file_name(entry, name) && is_on_disk(entry);
        self.tree.iter().find(|(_, entry)| meant(entry)).map(|(name, _)| name)
    }

    pub(super) fn directives(&self) -> impl Iterator<Item = Directive<'_>> {
        let mut files: Vec<_> = self.modprobe.iter().collect();
        files.sort_by_key(|file| file.file.rsplit('/').next());
        files.into_iter().flat_map(|file| {
            file.lines.iter().enumerate().filter_map(move |(index, line)| {
                let (keyword, rest) = line.trim().split_once(char::is_whitespace)?;
                let rest = rest.trim_start();
                let (module, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
                Some(Directive {
                    keyword,
                    module: ModuleName::new(module).ok()?,
                    rest: rest.trim(),
                    origin: format!("{}:{}", file.file, index + 1),
                })
            })
        })
    }

    fn directives_for(&self, keyword: &str, name: &ModuleName) -> Vec<Directive<'_>> {
        let meant = |d: &Directive<'_>| d.keyword == keyword && d.module == *name;
        self.directives().filter(meant).collect()
    }

    /// Where a deny list names the module.
    pub(super) fn denied_by(&self, name: &ModuleName) -> Option<String> {
        self.directives_for("blacklist", name).into_iter().next().map(|d| d.origin)
    }

    pub(super) fn options(&self, name: &ModuleName) -> String {
        let options = self.directives_for("options", name);
        options.iter().map(|d| d.rest).collect::<Vec<_>>().join(" ")
    }

    /// The `install` command that stands in for the module's file, with its place. A module that
    /// has soft dependencies has its command ignored, as libkmod does.
    pub(super) fn install_command(&self, name: &ModuleName) -> Option<(String, String)> {
        let (pre, post) = self.softdeps(name);
        let found = self.directives_for("install", name).into_iter().next()?;
        (pre.is_empty() && post.is_empty()).then(|| (found.rest.to_owned(), found.origin))
    }

    fn softdeps(&self, name: &ModuleName) -> (Vec<ModuleName>, Vec<ModuleName>) {
        let entry = self.by_file_name(name).and_then(|kernel_name| self.tree.get(kernel_name));
        let of_file = |list: fn(&ModuleEntry) -> &Option<Vec<ModuleName>>| {
            entry.and_then(|entry| list(entry).clone()).unwrap_or_default()
        };
        let (mut pre, mut post) = (of_file(|e| &e.softdep_pre), of_file(|e| &e.softdep_post));
        for directive in self.directives_for("softdep", name) {
            let mut list = None;
            for word in directive.rest.split_whitespace() {
                match (word, &mut list) {
                    ("pre:", _) => list = Some(&mut pre),
                    ("post:", _) => list = Some(&mut post),
                    (word, Some(list)) => list.extend(ModuleName::new(word).ok()),
                    (_, None) => {}
                }
            }
        }
        (pre, post)
    }

    /// Direct dependencies by kernel name, as depmod works them out from what is on disk.
    pub(super) fn depends(&self, entry: &ModuleEntry) -> Vec<ModuleName> {
        if let Some(depends) = &entry.depends {
            return depends.clone();
        }
        let exporter = |symbol: &str| {
            let exports = |entry: &ModuleEntry| super::exported(entry, symbol).is_some();
            let mut found = self.tree.iter().filter(|(_, e)| is_on_disk(e) && exports(e));
            found.next().map(|(name, _)| name.clone())
        };
        let found: BTreeSet<_> = super::needed(entry).filter_map(|s| exporter(&s.name)).collect();
        found.into_iter().filter(|name| entry.name.as_ref() != Some(name)).collect()
    }

    /// What a probe of that name does; `None` if nothing is found by it.
    pub(super) fn probe_list(
        &self,
        name: &ModuleName,
        run_install: bool,
    ) -> Option<Vec<ProbeStep>> {
        let mut steps = Vec::new();
        let mut seen = BTreeSet::new();
        let wanted = Wanted { required: true, target: true, run_install };
        self.add_to_probe(name, wanted, &mut seen, &mut steps).then_some(steps)
    }

    fn add_to_probe(
        &self,
        name: &ModuleName,
        wanted: Wanted,
        seen: &mut BTreeSet<ModuleName>,
        steps: &mut Vec<ProbeStep>,
    ) -> bool {
        if !seen.insert(name.clone()) {
            return true;
        }
        let command = self.install_command(name).filter(|_| wanted.run_install || !wanted.target);
        let file = self.by_file_name(name);
        let step = |action| ProbeStep { action, required: wanted.required, target: wanted.target };
        let Some((kernel_name, entry)) = file.and_then(|file| self.tree.get_key_value(file)) else {
            let builtin = self.is_builtin(name);
            steps.extend(command.as_ref().map(|(line, _)| step(Action::Command(line.clone()))));
            return command.is_some() || builtin;
        };
        let (pre, post) = self.softdeps(name);
        for name in &pre {
            self.add_to_probe(name, Wanted::soft(), seen, steps);
        }
        for dependency in self.depends(entry) {
            let file = self.tree.get(&dependency).filter(|e| is_on_disk(e)).and_then(file_name);
            let dependency = file.unwrap_or(dependency);
            self.add_to_probe(&dependency, Wanted { target: false, ..wanted }, seen, steps);
        }
        steps.push(step(match command {
            Some((line, _)) => Action::Command(line),
            None => Action::File(kernel_name.clone(), self.options(name)),
        }));
        for name in &post {
            self.add_to_probe(name, Wanted::soft(), seen, steps);
        }
        true
    }
}

/// Why a module is in a probe list.
#[derive(Clone, Copy)]
struct Wanted {
    required: bool,
    target: bool,
    run_install: bool,
}

impl Wanted {
    fn soft() -> Self {
        Self { required: false, target: false, run_install: true }
    }
}
