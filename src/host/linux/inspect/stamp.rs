//! Numbers that change when what a load depends on does. They are compared with each other in
//! one run of the daemon, and mean nothing else.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::{fs, io};

use super::InspectError;
use crate::host::linux::libkmod::{Context, KmodError};
use crate::host::linux::modprobe_config::inner_module;
use crate::model::ModuleName;

/// The files that depmod writes last and that decide what is found.
const INDEX_FILES: [&str; 2] = ["modules.dep.bin", "modules.symbols.bin"];

/// The module index in `directory`. That it is missing is a state like any other.
pub(super) fn tree(directory: &Path) -> Result<u64, InspectError> {
    let mut hasher = DefaultHasher::new();
    for name in INDEX_FILES {
        let path = directory.join(name);
        let identity = match fs::metadata(&path) {
            Ok(data) => Some((data.mtime(), data.mtime_nsec(), data.ino(), data.size())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(source) => return Err(InspectError::Tree { path, source }),
        };
        identity.hash(&mut hasher);
    }
    Ok(hasher.finish())
}

/// The configuration as far as it bears on `modules`.
pub(super) fn configuration(context: &Context, modules: &[ModuleName]) -> Result<u64, KmodError> {
    let mut hasher = DefaultHasher::new();
    for module in modules {
        module.as_str().hash(&mut hasher);
        for found in context.lookup(module.as_str())? {
            let command = found.install_command();
            let inner = command.as_deref().and_then(inner_module);
            (found.name(), found.options(), &command).hash(&mut hasher);
            (found.is_deny_listed(), found.ignores_install_command()).hash(&mut hasher);
            if let Some(inner) = inner {
                context.module(&inner)?.options().hash(&mut hasher);
            }
        }
    }
    Ok(hasher.finish())
}
