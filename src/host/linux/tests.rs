use std::fs;
use std::path::Path;
use std::time::Duration;

use tokio::time::timeout;

use super::inspect::InspectRequest;
use super::*;
use crate::model::{Fact, Files, InitState, Outcome, RunningLoad};

/// A loader that loads nothing and counts.
#[derive(Debug, Default)]
pub(super) struct FakeLoader {
    pub(super) inspections: u32,
    pub(super) rests: u32,
}

impl Loader for FakeLoader {
    fn insert(&mut self, _module: &ModuleName) -> Attempt {
        Box::pin(async { Outcome::failed(libc::ENODEV) })
    }

    fn remove(&mut self, _module: &ModuleName) -> Attempt {
        Box::pin(async { Outcome::success() })
    }

    async fn inspect(&mut self, _: &InspectRequest) -> Fact<Files> {
        self.inspections += 1;
        Fact::Known(Files::default())
    }

    fn running(&self) -> Option<RunningLoad> {
        None
    }

    async fn load_ended(&mut self) {
        std::future::pending::<()>().await;
    }

    fn rest(&mut self) {
        self.rests += 1;
    }
}

fn write(root: &Path, path: &str, content: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn node() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), "proc/sys/kernel/osrelease", "6.1.0\n");
    write(root.path(), "sys/module/ib_core/initstate", "live\n");
    write(root.path(), "lib/modules/6.1.0/modules.dep.bin", "");
    root
}

fn host(root: &tempfile::TempDir) -> LinuxHost<FakeLoader> {
    let paths = LinuxPaths { root: root.path().to_owned(), system_bus: None };
    LinuxHost::new(paths, FakeLoader::default()).unwrap()
}

async fn change(host: &mut LinuxHost<FakeLoader>) -> Option<Change> {
    timeout(Duration::from_secs(5), host.changed()).await.ok()
}

/// All changes until it is quiet, but for slow reads that were late on a busy machine.
async fn changes(host: &mut LinuxHost<FakeLoader>) -> Vec<Change> {
    let mut changes = Vec::new();
    while let Ok(change) = timeout(Duration::from_millis(200), host.changed()).await {
        changes.push(change);
    }
    changes.retain(|change| !matches!(change, Change::Rdma | Change::Pci));
    changes
}

#[tokio::test]
async fn a_look_brings_what_is_there_and_says_what_is_unknown() {
    let root = node();
    let desired = Desired::default();
    let seen = host(&root).observe(&desired).await;
    let core = ModuleName::new("ib_core").unwrap();
    assert_eq!(seen.kernel.release, "6.1.0");
    assert_eq!(seen.state(&core), Fact::Known(InitState::Live));
    assert_eq!(seen.state(&desired.client), Fact::Known(InitState::Absent));
    assert_eq!(seen.rdma.stack, "inbox");
    assert!(seen.units.why_unknown().unwrap().starts_with("the system bus: "));
    assert!(seen.pci.known().unwrap().gpus.is_empty());
}

#[tokio::test]
async fn a_rebuilt_index_and_a_new_deny_list_are_told_and_inspected() {
    let root = node();
    let mut host = host(&root);
    let desired = Desired::default();
    host.observe(&desired).await;
    write(root.path(), "lib/modules/6.1.0/modules.dep.bin", "new");
    assert_eq!(change(&mut host).await, Some(Change::ModuleTree));
    write(root.path(), "etc/modprobe.d/x.conf", "blacklist nvidia\n");
    assert_eq!(change(&mut host).await, Some(Change::ModprobeConfig));
    host.observe(&desired).await;
    assert_eq!(host.loader.inspections, 2);
}

#[tokio::test]
async fn a_change_is_not_lost_when_nobody_waits_for_it() {
    let root = node();
    let mut host = host(&root);
    let desired = Desired::default();
    host.observe(&desired).await;
    assert_eq!(changes(&mut host).await, []);
    write(root.path(), "lib/modules/6.1.0/modules.dep.bin", "new");
    host.observe(&desired).await;
    assert_eq!(changes(&mut host).await, [Change::ModuleTree]);
}

#[tokio::test]
async fn a_pci_change_of_a_step_of_ours_is_not_from_outside() {
    let root = node();
    let mut host = host(&root);
    let desired = Desired::default();
    let gpu = pci::Identity::parse("10DE:2330", "30200");
    let outside = async |host: &mut LinuxHost<FakeLoader>| {
        host.observe(&desired).await.pci.known().unwrap().outside_changes
    };
    assert_eq!(outside(&mut host).await, 0);
    let attempt = host.insert(&desired.client);
    host.note_uevent(uevent::Uevent::Pci(gpu));
    assert_eq!(attempt.await.errno, libc::ENODEV);
    host.note_uevent(uevent::Uevent::Pci(gpu));
    assert_eq!(outside(&mut host).await, 0);
    host.note_uevent(uevent::Uevent::Pci(gpu));
    host.note_uevent(uevent::Uevent::Pci(pci::Identity::parse("8086:1", "20000")));
    assert_eq!(outside(&mut host).await, 1);
    assert_eq!(change(&mut host).await, Some(Change::Pci));
}

#[tokio::test]
async fn only_modules_that_matter_wake() {
    let root = node();
    let mut host = host(&root);
    host.observe(&Desired::default()).await;
    host.note_uevent(uevent::Uevent::Module("ext4".to_owned()));
    host.note_uevent(uevent::Uevent::Module("nvidia_peermem".to_owned()));
    host.note_uevent(uevent::Uevent::Lost);
    let client = Desired::default().client;
    assert_eq!(change(&mut host).await, Some(Change::Module(client)));
    assert_eq!(change(&mut host).await, Some(Change::Overrun));
}

#[tokio::test]
async fn a_look_without_a_daemon_watches_nothing() {
    let root = node();
    let paths = LinuxPaths { root: root.path().to_owned(), system_bus: None };
    let mut host = LinuxHost::for_one_look(paths, FakeLoader::default());
    let seen = host.observe(&Desired::default()).await;
    assert_eq!(seen.kernel.release, "6.1.0");
    assert!(timeout(Duration::from_millis(20), host.changed()).await.is_err());
}

#[tokio::test]
async fn a_unit_cannot_be_stopped_without_a_bus() {
    let root = node();
    let mut host = host(&root);
    let outcome = host.stop_unit("nv_peer_mem.service").await;
    assert_eq!(outcome.errno, libc::ENOTCONN);
    assert!(host.now().monotonic.0 > 0 && host.now().real > host.now().monotonic.0);
}

#[tokio::test]
async fn the_kernel_that_runs_is_read_without_a_daemon() {
    let paths = LinuxPaths { root: "/".into(), system_bus: None };
    let mut host = LinuxHost::for_one_look(paths, FakeLoader::default());
    let seen = host.observe(&Desired::default()).await;
    let release = nix::sys::utsname::uname().unwrap();
    assert_eq!(seen.kernel.release, release.release().to_string_lossy());
    assert_eq!(seen.kernel.boot_id.len(), 36);
}
