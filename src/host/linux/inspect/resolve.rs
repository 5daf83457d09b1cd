//! How libkmod would come to a module.

use std::path::PathBuf;

use super::sources::Sources;
use crate::host::linux::libkmod::{Context, KmodError, Module};
use crate::host::linux::modprobe_config::inner_module;
use crate::model::{InitState, ModuleName, Resolution};

/// A module that a load can come to.
#[derive(Debug)]
pub(super) struct Resolved {
    /// How.
    pub(super) resolution: Resolution,
    /// The name of its file in the index, which differs from the kernel's where a distribution
    /// renames the file.
    pub(super) index_name: String,
    /// Its file, if that is known.
    pub(super) file: Option<PathBuf>,
    /// Effective parameters.
    pub(super) options: String,
    /// What keeps it out.
    pub(super) deny_listed: Option<String>,
}

/// Asks libkmod as a load would. `None`: there is nothing to load.
pub(super) fn resolve(
    context: &Context,
    sources: &Sources,
    name: &ModuleName,
) -> Result<Option<Resolved>, KmodError> {
    let found = context.lookup(name.as_str())?;
    let Some(module) = found.first() else { return Ok(None) };
    if module.init_state() == InitState::Builtin {
        return Ok(Some(with(module, Resolution::Builtin, None, sources)));
    }
    if let Some(command) = module.install_command().filter(|_| !module.ignores_install_command()) {
        return by_command(context, sources, module, command).map(Some);
    }
    // The index may name a file that is gone: then there is nothing to load either.
    let file = module.path().filter(|path| path.exists());
    Ok(file.map(|file| with(module, Resolution::File(file.clone()), Some(file), sources)))
}

fn by_command(
    context: &Context,
    sources: &Sources,
    module: &Module<'_>,
    command: String,
) -> Result<Resolved, KmodError> {
    let name = module.name();
    let inner = match inner_module(&command) {
        Some(inner) => expected(context, &inner, &name)?,
        None => None,
    };
    let inner = inner.unwrap_or_else(|| Inner { name: name.clone(), ..Inner::default() });
    let options = if inner.name == name {
        module.options()
    } else {
        // The options of the outer name reach the file only where the command says so.
        let outer = command.contains("$CMDLINE_OPTS").then(|| module.options());
        [inner.options, outer.unwrap_or_default()].join(" ").trim().to_owned()
    };
    let origin = sources.install(&name, &command);
    let resolution = Resolution::InstallCommand { command, origin, file: inner.file.clone() };
    let resolved = with(module, resolution, inner.file, sources);
    Ok(Resolved { options, index_name: inner.name, ..resolved })
}

/// The module that an `install` command is expected to load.
#[derive(Debug, Default)]
struct Inner {
    name: String,
    file: Option<PathBuf>,
    options: String,
}

/// The module that `inner` is, if its file says itself that the kernel will know it as `name`.
fn expected(context: &Context, inner: &str, name: &str) -> Result<Option<Inner>, KmodError> {
    let found = context.lookup(inner)?;
    let Some(module) = found.first() else { return Ok(None) };
    let says = module.info().ok().and_then(|info| info.get("name").cloned());
    let agrees = says.is_some_and(|says| says.replace('-', "_") == name);
    let inner = || Inner { name: module.name(), file: module.path(), options: module.options() };
    Ok(agrees.then(inner))
}

fn with(
    module: &Module<'_>,
    resolution: Resolution,
    file: Option<PathBuf>,
    sources: &Sources,
) -> Resolved {
    let name = module.name();
    Resolved {
        resolution,
        file,
        options: module.options(),
        deny_listed: module.is_deny_listed().then(|| sources.deny_list(&name)),
        index_name: name,
    }
}
