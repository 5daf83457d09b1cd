//! Every reader of what others write, given bytes. The fuzz targets call one each; a test of the
//! ordinary build (`tests/hostile_input.rs`) calls them all.
#![allow(dead_code, reason = "each target calls one")]

use peermemd::decide::kernel_log;
use peermemd::host::linux::inspect::index;
use peermemd::host::linux::kernels::{self, installed, symvers};
use peermemd::host::linux::kmodfile::KernelModule;
use peermemd::host::linux::kmsg;
use peermemd::host::linux::libkmod::index::Index;
use peermemd::host::linux::libkmod::{Context, ModuleTree};
use peermemd::host::linux::modprobe_config::{inner_module, parse};
use peermemd::model::ModuleName;

pub fn module_file(bytes: &[u8]) {
    if let Ok(module) = KernelModule::of_bytes(bytes.to_vec()) {
        let _ = (module.info(), module.build_id(), module.symbols(), module.signature());
        let _ = module.has_versions();
    }
}

pub fn kernel_log(bytes: &[u8]) {
    let Ok(module) = ModuleName::new("nvidia_peermem") else { return };
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for remark in kernel_log::remarks(&[&module], &lines) {
        assert!(remark.said.symbol().is_none_or(|symbol| text.contains(symbol)));
    }
}

pub fn kernel_records(bytes: &[u8]) {
    if let Some(record) = kmsg::parse(bytes) {
        // A byte that is no text becomes a character of three.
        assert!(record.text.len() <= 3 * bytes.len());
    }
}

pub fn modprobe_d(bytes: &[u8]) {
    for directive in parse(&String::from_utf8_lossy(bytes)) {
        let _ = inner_module(&directive.value);
    }
}

pub fn dkms_status(bytes: &[u8]) {
    for entry in kernels::dkms_status::parse(&String::from_utf8_lossy(bytes)) {
        assert!(!entry.package.is_empty() && !entry.version.is_empty());
    }
}

/// What is taken for whole, libkmod must be able to read.
pub fn module_indexes(bytes: &[u8]) {
    thread_local! {
        static TREE: Option<tempfile::TempDir> = tempfile::tempdir().ok();
    }
    if !index::is_whole(bytes) {
        return;
    }
    TREE.with(|tree| {
        let Some(tree) = tree else { return };
        for name in ["modules.dep.bin", "modules.symbols.bin", "modules.alias.bin"] {
            if std::fs::write(tree.path().join(name), bytes).is_err() {
                return;
            }
        }
        if let Ok(index) = Index::open(Some(tree.path())) {
            let _ = (index.dependencies("ib_core"), index.exporter("ib_register_device"));
        }
        // By its aliases a name can lead far into an index.
        let tree = ModuleTree { directory: Some(tree.path().to_owned()), config: Some(Vec::new()) };
        if let Ok(context) = Context::new(&tree) {
            let _ = context.lookup("nvidia_peermem").map(|found| found.len());
        }
    });
}

pub fn symbol_lists(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for line in symvers::lines(&text) {
        assert!(text.contains(line.symbol));
    }
    let (a, b) = text.split_once('\n').unwrap_or((&text, ""));
    assert_eq!(installed::compare(a, b), installed::compare(b, a).reverse());
}
