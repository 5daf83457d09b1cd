//! The module tree, as the daemon would read it on a real node.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;

use super::modprobe::{file_name, is_on_disk};
use super::{Node, exported, needed, text_of};
use crate::host::simulated::scenario::{ModuleEntry, Probe};
use crate::model::{
    Desired, Fact, FileDetails, Files, KernelTree, ModuleFile, ModuleName, OptionLine, Rebuild,
    Resolution, Symbol,
};

impl Node {
    pub(super) fn observe_files(&self, desired: &Desired) -> Files {
        // Whatever there is beside the configured set may be asked about.
        let found =
            desired.modules().chain(self.tree.keys().filter(|name| desired.role(name).is_none()));
        let exports = |entry: &ModuleEntry| {
            is_on_disk(entry) && exported(entry, &desired.register_symbol).is_some()
        };
        Files {
            modules: found
                .filter_map(|name| Some((name.clone(), self.observe_file(desired, name)?)))
                .collect(),
            exporter: self.tree.iter().find(|(_, entry)| exports(entry)).map(|(n, _)| n.clone()),
            option_lines: self.option_lines(desired),
            tree_stamp: self.tree_stamp,
            modprobe_stamp: self.modprobe_stamp(desired),
            kernel: self.observe_tree(),
        }
    }

    /// Where the files come from, and what a build would find.
    fn observe_tree(&self) -> KernelTree {
        let owned = |(name, entry): (&ModuleName, &ModuleEntry)| {
            Some((name.clone(), entry.owner.clone()?.0))
        };
        let rebuild = self.rebuild.as_ref().map(|table| Rebuild {
            tested: table.tested.clone(),
            versions_from: table.versions_from.clone(),
            leads_to: table.leads_to.clone(),
            crc: table.crc.map(|crc| crc.0),
            searched: table.searched.clone(),
        });
        KernelTree {
            owners: self.tree.iter().filter_map(owned).collect(),
            rebuild,
            dkms: self.dkms.iter().map(|table| table.entry(&self.kernel.release)).collect(),
            ..KernelTree::default()
        }
    }

    /// The other files of the module's name.
    fn others(&self, name: &ModuleName) -> Vec<PathBuf> {
        let path =
            |file: &String| PathBuf::from(format!("/lib/modules/{}/{file}", self.kernel.release));
        let files = self.tree.get(name).and_then(|entry| entry.also.as_ref());
        files.into_iter().flatten().map(path).collect()
    }

    fn option_lines(&self, desired: &Desired) -> BTreeMap<ModuleName, Vec<OptionLine>> {
        let mut lines: BTreeMap<ModuleName, Vec<OptionLine>> = BTreeMap::new();
        for directive in self.directives().filter(|d| d.keyword == "options") {
            let name = self.by_file_name(&directive.module).unwrap_or(&directive.module);
            if desired.modules().any(|module| module == name) {
                let (origin, options) = (directive.origin.clone(), directive.rest.to_owned());
                lines.entry(name.clone()).or_default().push(OptionLine { origin, options });
            }
        }
        lines
    }

    /// How libkmod would come to a module of that name, and to which file.
    pub(super) fn resolve(&self, name: &ModuleName) -> Option<(Resolution, Option<&ModuleEntry>)> {
        let path = |entry: &ModuleEntry| {
            let file = entry.file.as_deref().unwrap_or_default();
            PathBuf::from(format!("/lib/modules/{}/{file}", self.kernel.release))
        };
        if let Some((command, origin)) = self.install_command(name) {
            let entry = loaded_by(&command).and_then(|name| self.by_file_name(&name));
            let entry = entry.or_else(|| self.by_file_name(name)).and_then(|n| self.tree.get(n));
            let file = entry.map(path);
            let resolution = Resolution::InstallCommand { command, origin: Some(origin), file };
            return Some((resolution, entry));
        }
        if let Some(entry) = self.by_file_name(name).and_then(|name| self.tree.get(name)) {
            return Some((Resolution::File(path(entry)), Some(entry)));
        }
        self.is_builtin(name).then(|| (Resolution::Builtin, self.tree.get(name)))
    }

    fn observe_file(&self, desired: &Desired, name: &ModuleName) -> Option<ModuleFile> {
        let (resolution, entry) = self.resolve(name)?;
        let none = ModuleEntry::default();
        let entry = entry.unwrap_or(&none);
        let is_client = *name == desired.client || desired.legacy.contains(name);
        let own = file_name(entry).unwrap_or_else(|| name.clone());
        let damaged = entry.damaged == Some(true);
        let symbols = || {
            let readable =
                self.unless(Probe::Symbols, entry.file.as_deref().unwrap_or("it"), || ());
            if damaged { Fact::unknown("not an ELF file") } else { readable }
        };
        let needs = || needed(entry).cloned().collect();
        Some(ModuleFile {
            resolution,
            deny_listed: self.denial(name),
            options: self.options(&own),
            version: text_of(entry.version.as_ref()),
            srcversion: text_of(entry.srcversion.as_ref()),
            build_id: text_of(entry.build_id.as_ref()).filter(|_| !damaged),
            vermagic: (!damaged)
                .then(|| entry.vermagic.clone().unwrap_or_else(|| self.own_vermagic())),
            license: text_of(entry.license.as_ref()),
            signer: text_of(entry.signer.as_ref()),
            depends: self.depends(entry),
            needs: if is_client {
                symbols().map(|()| needs())
            } else {
                Fact::unknown("not read: it is no peer memory client")
            },
            exports: symbols().map(|()| self.exports_for_clients(desired, entry)),
            imports_mm_kobj: symbols().map(|()| entry.imports_mm_kobj == Some(true)),
            details: FileDetails {
                others: self.others(name),
                modified: entry.modified.and_then(|time| i64::try_from(time.0 / 1_000_000).ok()),
                ..FileDetails::default()
            },
        })
    }

    fn denial(&self, name: &ModuleName) -> Option<String> {
        let on_command_line = self.kernel.module_blacklist.contains(name);
        self.denied_by(name)
            .or_else(|| on_command_line.then(|| "the kernel command line".to_owned()))
    }

    /// Exports, as far as the client or a predecessor needs them.
    fn exports_for_clients(&self, desired: &Desired, entry: &ModuleEntry) -> Vec<Symbol> {
        let clients = desired.legacy.iter().chain([&desired.client]);
        let clients: Vec<_> = clients.filter_map(|name| self.tree.get(name)).collect();
        let wanted = |symbol: &&Symbol| {
            symbol.name == desired.register_symbol
                || clients.iter().any(|client| needed(client).any(|n| n.name == symbol.name))
        };
        entry.exports.iter().flatten().map(|symbol| &symbol.0).filter(wanted).cloned().collect()
    }

    fn modprobe_stamp(&self, desired: &Desired) -> u64 {
        let mut hasher = DefaultHasher::new();
        let set: Vec<_> = desired.modules().collect();
        for directive in self.directives() {
            let entry = self.by_file_name(&directive.module).unwrap_or(&directive.module);
            if set.contains(&&directive.module) || set.contains(&entry) {
                let origin = directive.origin.rsplit_once(':').map(|(file, _)| file.to_owned());
                (directive.keyword, &directive.module, directive.rest, origin).hash(&mut hasher);
            }
        }
        hasher.finish()
    }
}

/// The module that an `install` command loads: that of its last `modprobe -i NAME`.
fn loaded_by(command: &str) -> Option<ModuleName> {
    let words: Vec<_> = command.split_whitespace().collect();
    let ignoring = words.windows(2).rev().find(|pair| matches!(pair[0], "-i" | "--ignore-install"));
    ignoring.and_then(|pair| ModuleName::new(pair[1].trim_end_matches(';')).ok())
}
