//! How libkmod would come to a module.

use std::path::{Path, PathBuf};

use super::sources::Sources;
use crate::host::linux::kernels::Root;
use crate::host::linux::kmodfile::KernelModule;
use crate::host::linux::libkmod::{Context, KmodError, Module};
use crate::host::linux::modprobe_config::inner_module;
use crate::model::{InitState, ModuleName, OptionWord, Resolution};

/// A module that a load can come to.
#[derive(Debug)]
pub(super) struct Resolved<'context> {
    /// How.
    pub(super) resolution: Resolution,
    /// The module under the name of its file, which differs from the kernel's where a
    /// distribution renames the file.
    pub(super) module: Module<'context>,
    /// Its file, if that is known.
    pub(super) file: Option<PathBuf>,
    /// Effective parameters.
    pub(super) options: String,
    /// The same word by word, each with its place.
    pub(super) option_words: Vec<OptionWord>,
    /// What keeps it out.
    pub(super) deny_listed: Option<String>,
}

/// Asks libkmod as a load would. `None`: there is nothing to load.
pub(super) fn resolve<'context>(
    context: &'context Context,
    root: &Root,
    sources: &Sources,
    name: &ModuleName,
) -> Result<Option<Resolved<'context>>, KmodError> {
    let Some(module) = first(context, name.as_str())? else { return Ok(None) };
    if module.init_state() == InitState::Builtin {
        return Ok(Some(direct(module, Resolution::Builtin, None, sources)));
    }
    if let Some(command) = module.install_command().filter(|_| !module.ignores_install_command()) {
        return by_command(context, (root, sources), module, command).map(Some);
    }
    // The index may name a file that is gone: then there is nothing to load either.
    let file = module.path().filter(|path| is_there(root, path));
    Ok(file.map(|file| direct(module, Resolution::File(file.clone()), Some(file), sources)))
}

/// The module itself is loaded, or needs not be.
fn direct<'context>(
    module: Module<'context>,
    resolution: Resolution,
    file: Option<PathBuf>,
    sources: &Sources,
) -> Resolved<'context> {
    let (options, deny_listed) = (module.options(), deny_listed(&module, sources));
    let option_words = sources.option_words(&options, &[&module.name()]);
    Resolved { resolution, module, file, options, option_words, deny_listed }
}

/// A command is run in its place.
fn by_command<'context>(
    context: &'context Context,
    (root, sources): (&Root, &Sources),
    outer: Module<'context>,
    command: String,
) -> Result<Resolved<'context>, KmodError> {
    let name = outer.name();
    let deny_listed = deny_listed(&outer, sources);
    let inner = match inner_module(&command) {
        Some(inner) => first(context, &inner)?.filter(|inner| says_its_name_is(root, inner, &name)),
        None => None,
    };
    let file = inner.as_ref().and_then(Module::path);
    let options = options(&outer, inner.as_ref(), &command);
    let inner_name = inner.as_ref().map(Module::name).unwrap_or_default();
    let option_words = sources.option_words(&options, &[&inner_name, &name]);
    let origin = sources.install(&name, &command);
    let resolution = Resolution::InstallCommand { command, origin, file: file.clone() };
    let module = inner.unwrap_or(outer);
    Ok(Resolved { resolution, module, file, options, option_words, deny_listed })
}

/// The options of the outer name reach the file only where the command says so; those of the
/// file's own name always do.
fn options(outer: &Module<'_>, inner: Option<&Module<'_>>, command: &str) -> String {
    let Some(inner) = inner.filter(|inner| inner.name() != outer.name()) else {
        return outer.options();
    };
    let passed_on = command.contains("$CMDLINE_OPTS").then(|| outer.options());
    [inner.options(), passed_on.unwrap_or_default()].join(" ").trim().to_owned()
}

fn first<'context>(
    context: &'context Context,
    alias: &str,
) -> Result<Option<Module<'context>>, KmodError> {
    Ok(context.lookup(alias)?.into_iter().next())
}

/// Whether the file itself says that the kernel will know it as `name`.
fn says_its_name_is(root: &Root, module: &Module<'_>, name: &str) -> bool {
    let path = module.path().and_then(|path| root.resolve(&root.inside(&path)).ok());
    let info = path.and_then(|path| KernelModule::open(&path).ok()?.info().ok());
    info.is_some_and(|info| info.get("name").is_some_and(|says| says.replace('-', "_") == name))
}

fn is_there(root: &Root, path: &Path) -> bool {
    root.resolve(&root.inside(path)).is_ok_and(|path| path.exists())
}

fn deny_listed(module: &Module<'_>, sources: &Sources) -> Option<String> {
    module.is_deny_listed().then(|| sources.deny_list(&module.name()))
}
