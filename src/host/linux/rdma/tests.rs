use std::collections::BTreeSet;
use std::fs;

use super::*;
use crate::model::{FileDetails, ModuleFile, Resolution};

fn name(text: &str) -> ModuleName {
    ModuleName::new(text).unwrap()
}

fn loaded(build_id: Option<&str>) -> LoadedModule {
    LoadedModule {
        state: Fact::Known(InitState::Live),
        refcount: Fact::Known(0),
        holders: Fact::Known(BTreeSet::new()),
        version: None,
        srcversion: None,
        build_id: build_id.map(str::to_owned),
    }
}

fn files(exporter: &str, build_id: &str, imports_mm_kobj: bool) -> Fact<Files> {
    let file = ModuleFile {
        resolution: Resolution::File("/lib/modules/k/x.ko".into()),
        deny_listed: None,
        options: String::new(),
        version: None,
        srcversion: None,
        build_id: Some(build_id.to_owned()),
        vermagic: None,
        license: None,
        signer: None,
        depends: vec![],
        needs: Fact::Known(vec![]),
        exports: Fact::Known(vec![]),
        imports_mm_kobj: Fact::Known(imports_mm_kobj),
        details: FileDetails::default(),
    };
    let exporter = name(exporter);
    Fact::Known(Files {
        modules: [(exporter.clone(), file)].into(),
        exporter: Some(exporter),
        ..Files::default()
    })
}

struct Node {
    root: tempfile::TempDir,
    desired: Desired,
    modules: Fact<BTreeMap<ModuleName, LoadedModule>>,
    files: Fact<Files>,
}

impl Node {
    /// The client is live, `ib_core` is loaded as build `b1`, and so it is on disk.
    fn new() -> Self {
        let modules =
            [(name("ib_core"), loaded(Some("b1"))), (name("nvidia_peermem"), loaded(Some("c1")))];
        Self {
            root: tempfile::tempdir().unwrap(),
            desired: Desired::default(),
            modules: Fact::Known(modules.into()),
            files: files("ib_core", "b1", true),
        }
    }

    fn write(&self, path: &str, content: &str) {
        let path = self.root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    async fn look(&self) -> Rdma {
        let around =
            Surroundings { desired: &self.desired, modules: &self.modules, files: &self.files };
        RdmaReader::default().look(self.root.path(), around).await
    }
}

#[tokio::test]
async fn a_listed_client_proves_the_directory() {
    let node = Node::new();
    node.write("sys/kernel/mm/memory_peers/nv_mem/version", "570.1\n");
    assert_eq!(node.look().await.has_peer_directory, Fact::Known(true));
}

#[tokio::test]
async fn the_symbols_of_the_kernel_outweigh_the_file() {
    let node = Node::new();
    node.write(
        "proc/kallsyms",
        "0 t ib_x\t[ib_core]\n0 T ib_register_peer_memory_client\t[ib_uverbs]\n",
    );
    let rdma = node.look().await;
    assert_eq!(rdma.has_peer_directory, Fact::Known(false));
    assert_eq!(rdma.live_exporter, Fact::Known(Some(name("ib_uverbs"))));
}

#[tokio::test]
async fn without_symbols_the_file_counts_if_it_is_the_loaded_build() {
    let mut node = Node::new();
    let rdma = node.look().await;
    assert_eq!(rdma.has_peer_directory, Fact::Known(true));
    assert_eq!(rdma.live_exporter, Fact::Known(Some(name("ib_core"))));
    node.files = files("ib_core", "b2", true);
    let rdma = node.look().await;
    let why = rdma.has_peer_directory.why_unknown().unwrap();
    assert_eq!(why, "the loaded ib_core is not the one on disk");
    assert!(rdma.live_exporter.known().is_none());
    node.files = files("ib_uverbs", "b1", true);
    assert!(node.look().await.live_exporter.known().is_none());
}

#[tokio::test]
async fn the_stack_is_named_by_the_version_that_a_vendor_stamps_on_it() {
    let node = Node::new();
    assert_eq!(node.look().await.stack, "");
    node.write("sys/module/ib_core/initstate", "live\n");
    assert_eq!(node.look().await.stack, "inbox");
    node.write("sys/module/mlx5_core/version", "5.0-0\n");
    assert_eq!(node.look().await.stack, "inbox");
    node.write("sys/module/mlx5_core/version", "24.10-0.7.0\n");
    assert_eq!(node.look().await.stack, "OFED 24.10-0.7.0");
}

#[tokio::test]
async fn users_of_another_root_are_not_read_from_this_kernel() {
    let node = Node::new();
    node.write("sys/module/ib_core/initstate", "live\n");
    assert!(node.look().await.user_contexts.known().is_none());
}
