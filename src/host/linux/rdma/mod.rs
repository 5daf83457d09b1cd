//! The RDMA stack: registered clients, who exports the registration, ports and users.

mod contexts;
mod netlink;
mod peers;
mod ports;
mod symbols;

use std::collections::BTreeMap;
use std::path::Path;

use crate::model::{
    Desired, Fact, Files, InitState, LoadedModule, ModuleName, PeerDirectory, Rdma, UserContexts,
};

use super::modules;
use super::slow::Slow;
use symbols::{PeerSymbols, SymbolCache};

/// The module that answers on RDMA netlink. Opening that socket while it is not loaded would
/// make the kernel load it.
const CORE: &str = "ib_core";

/// What is kept from one look at the RDMA stack to the next.
#[derive(Debug)]
pub(super) struct RdmaReader {
    ports: Slow<Fact<Vec<crate::model::Port>>>,
    contexts: Slow<Fact<UserContexts>>,
    symbols: SymbolCache,
}

/// What the rest of the observation says that matters here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Surroundings<'a> {
    pub(super) desired: &'a Desired,
    pub(super) modules: &'a Fact<BTreeMap<ModuleName, LoadedModule>>,
    pub(super) files: &'a Fact<Files>,
}

impl Default for RdmaReader {
    fn default() -> Self {
        Self {
            ports: Slow::new("rdma-ports"),
            contexts: Slow::without_memory("rdma-contexts"),
            symbols: SymbolCache::default(),
        }
    }
}

impl RdmaReader {
    /// One look.
    pub(super) async fn look(&mut self, root: &Path, around: Surroundings<'_>) -> Rdma {
        let peers = peers::read(root);
        let symbols = self.symbols(root, around, &peers);
        let ports = {
            let root = root.to_owned();
            self.ports.look(move || ports::read(&root)).await
        };
        Rdma {
            has_peer_directory: has_peer_directory(&peers, symbols.as_ref(), around),
            live_exporter: live_exporter(symbols.as_ref(), around),
            peers,
            ports: flatten(ports),
            user_contexts: self.user_contexts(root).await,
            stack: stack(root),
        }
    }

    /// Ends when a slow read has something new to tell. Cancel safe.
    pub(super) async fn changed(&mut self) {
        tokio::select! {
            () = self.ports.changed() => {}
            () = self.contexts.changed() => {}
        }
    }

    /// A module came or went: what was read of the kernel's symbols may be old.
    pub(super) fn forget_symbols(&mut self) {
        self.symbols = SymbolCache::default();
    }

    /// Reading the symbols takes tens of milliseconds, so it is done only where they decide: the
    /// client is live, yet not listed.
    fn symbols(
        &mut self,
        root: &Path,
        around: Surroundings<'_>,
        peers: &PeerDirectory,
    ) -> Option<PeerSymbols> {
        let modules = around.modules.known()?;
        let live = modules.get(&around.desired.client)?.state.is_known_and(|s| s.is_usable());
        if !live || peers.client(&around.desired.client_name).is_some() {
            return None;
        }
        self.symbols.look(root, &around.desired.register_symbol, modules)
    }

    async fn user_contexts(&mut self, root: &Path) -> Fact<UserContexts> {
        if root != Path::new("/") {
            return Fact::unknown("RDMA netlink speaks of the running kernel only");
        }
        match modules::state(root, CORE) {
            Fact::Known(InitState::Live | InitState::Builtin) => {
                let root = root.to_owned();
                flatten(self.contexts.look(move || contexts::read(&root)).await)
            }
            // Without the core there is no device that could be opened.
            Fact::Known(InitState::Absent) => Fact::Known(UserContexts::default()),
            Fact::Known(_) => Fact::unknown(format!("{CORE} is in transition")),
            Fact::Unknown(why) => Fact::Unknown(why),
        }
    }
}

fn flatten<T>(fact: Fact<Fact<T>>) -> Fact<T> {
    match fact {
        Fact::Known(inner) => inner,
        Fact::Unknown(why) => Fact::Unknown(why),
    }
}

fn has_peer_directory(
    peers: &PeerDirectory,
    symbols: Option<&PeerSymbols>,
    around: Surroundings<'_>,
) -> Fact<bool> {
    if matches!(peers, PeerDirectory::Present(_)) {
        return Fact::Known(true);
    }
    if let Some(symbols) = symbols {
        return Fact::Known(symbols.makes_directory);
    }
    match exporter_on_disk_that_runs(around) {
        Fact::Known((files, exporter)) => files.modules.get(exporter).map_or_else(
            || Fact::unknown(format!("{exporter} was not read")),
            |file| file.imports_mm_kobj.clone(),
        ),
        Fact::Unknown(why) => Fact::Unknown(why),
    }
}

fn live_exporter(
    symbols: Option<&PeerSymbols>,
    around: Surroundings<'_>,
) -> Fact<Option<ModuleName>> {
    match symbols {
        Some(symbols) => Fact::Known(symbols.exporter.clone()),
        None => exporter_on_disk_that_runs(around).map(|(_, exporter)| Some(exporter.clone())),
    }
}

/// The exporter by the index of the module tree, if what is loaded under its name is the very
/// build that is on disk. Only then does the file speak for the running kernel.
fn exporter_on_disk_that_runs(around: Surroundings<'_>) -> Fact<(&Files, &ModuleName)> {
    let files = match around.files {
        Fact::Known(files) => files,
        Fact::Unknown(why) => return Fact::unknown(why.clone()),
    };
    let Some(exporter) = &files.exporter else {
        return Fact::unknown("no module file exports the registration symbol");
    };
    let loaded = around.modules.known().and_then(|modules| modules.get(exporter));
    let loaded = loaded.and_then(|module| module.build_id.as_ref());
    let on_disk = files.modules.get(exporter).and_then(|file| file.build_id.as_ref());
    match (loaded, on_disk) {
        (Some(loaded), Some(on_disk)) if loaded == on_disk => Fact::Known((files, exporter)),
        (Some(_), Some(_)) => {
            Fact::unknown(format!("the loaded {exporter} is not the one on disk"))
        }
        _ => Fact::unknown(format!("the build of {exporter} could not be compared")),
    }
}

/// The vendor's stack stamps its version on its modules; modules of the kernel's own tree have
/// none, or the one that never changed.
fn stack(root: &Path) -> String {
    const OF_THE_KERNELS_TREE: &str = "5.0-0";
    let version =
        |name: &str| super::file::attribute(&root.join("sys/module").join(name).join("version"));
    let vendor = [CORE, "mlx5_core"].into_iter().filter_map(version);
    match vendor.into_iter().find(|version| version != OF_THE_KERNELS_TREE && !version.is_empty()) {
        Some(version) => format!("OFED {version}"),
        None if root.join("sys/module").join(CORE).is_dir() => "inbox".to_owned(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests;
