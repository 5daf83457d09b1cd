//! What the `kmod` crate answers well: what modules depend on, and who exports a symbol. Neither
//! depends on modprobe.d, which that crate can only read from the host.

use std::path::{Path, PathBuf};

use crate::model::ModuleName;

/// The module index of one kernel.
#[derive(Debug)]
pub struct Index {
    context: kmod::Context,
}

/// The index could not be asked.
#[derive(Debug, thiserror::Error)]
#[error("the module index could not be asked for {subject}: {source}")]
pub struct IndexError {
    subject: String,
    source: kmod::Error,
}

impl Index {
    /// The index in `directory`, or that of the running kernel.
    pub fn open(directory: Option<&Path>) -> Result<Self, IndexError> {
        let context = match directory {
            Some(directory) => kmod::Context::new_with_dirname(directory),
            None => kmod::Context::new(),
        };
        context.map(|context| Self { context }).map_err(failed("a context"))
    }

    /// The directory that the index is in.
    pub fn directory(&self) -> PathBuf {
        PathBuf::from(self.context.dirname())
    }

    /// Every module that must be loaded before this one, the nearest first.
    pub fn dependencies(&self, module: &str) -> Result<Vec<ModuleName>, IndexError> {
        let module = self.context.module_new_from_name(module).map_err(failed(module))?;
        Ok(module.dependencies().filter_map(|module| name(&module)).collect())
    }

    /// The module that exports `symbol`, from the symbol index.
    pub fn exporter(&self, symbol: &str) -> Result<Option<ModuleName>, IndexError> {
        let alias = format!("symbol:{symbol}");
        let mut found = self.context.module_new_from_lookup(&alias).map_err(failed(&alias))?;
        Ok(found.next().and_then(|module| name(&module)))
    }
}

fn name(module: &kmod::Module) -> Option<ModuleName> {
    ModuleName::new(module.name().to_str()?).ok()
}

fn failed(subject: &str) -> impl FnOnce(kmod::Error) -> IndexError + '_ {
    move |source| IndexError { subject: subject.to_owned(), source }
}
