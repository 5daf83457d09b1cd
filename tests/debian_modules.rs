//! Debian's whole kernel and the builds of the virtual-machine tests, where their cache is: every
//! symbol agrees with what kmod says, and every verdict with what that kernel answers to a load.
//! Part of `make vm-test`.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use peermemd::host::linux::kmodfile::KernelModule;
use tempfile::TempDir;

fn cache() -> PathBuf {
    if let Some(path) = std::env::var_os("PEERMEMD_VM_CACHE") {
        return path.into();
    }
    let home = || PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cache");
    std::env::var_os("XDG_CACHE_HOME").map_or_else(home, PathBuf::from).join("peermemd-vm")
}

/// The newest product of that name.
fn product(name: &str) -> Option<PathBuf> {
    let entries = fs::read_dir(cache()).ok()?.flatten();
    let of_name = entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(&format!("{name}-")));
    let complete =
        of_name.filter(|entry| entry.path().extension().is_none_or(|kind| kind != "work"));
    complete
        .max_by_key(|entry| entry.metadata().unwrap().modified().unwrap())
        .map(|entry| entry.path())
}

fn tool(program: &str, arguments: &[&str], path: &Path) -> String {
    let path_variable = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
    let output = Command::new(program)
        .env("PATH", path_variable)
        .args(arguments)
        .arg(path)
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

fn modules(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap().flatten() {
        if entry.file_type().unwrap().is_dir() {
            modules(&entry.path(), found);
        } else if entry.file_name().to_string_lossy().contains(".ko") {
            found.push(entry.path());
        }
    }
}

/// `0xCRC<TAB>NAME` lines.
fn parsed(text: &str) -> BTreeMap<String, u32> {
    let line = |line: &str| {
        let (crc, name) = line.split_once('\t')?;
        let crc = u64::from_str_radix(crc.strip_prefix("0x")?, 16).ok()?;
        Some((name.to_owned(), u32::try_from(crc & 0xffff_ffff).unwrap()))
    };
    text.lines().filter_map(line).collect()
}

#[test]
#[ignore = "needs the kernel that the virtual-machine tests unpack"]
fn every_module_of_the_kernel_reads_as_kmod_reads_it() {
    let kernel = product("kernel").expect("tests/vm/run has unpacked a kernel");
    let mut files = Vec::new();
    modules(&kernel.join("stock/lib/modules"), &mut files);
    assert!(files.len() > 1000);
    for path in &files {
        let module = KernelModule::open(path).unwrap();
        let symbols = module.symbols().unwrap();
        let versions = symbols.versions.clone().unwrap_or_default();
        assert_eq!(
            versions,
            parsed(&tool("modprobe", &["--dump-modversions"], path)),
            "{}",
            path.display()
        );
        let exports: BTreeMap<_, _> = symbols
            .exports
            .iter()
            .map(|(name, export)| (name.clone(), export.crc.unwrap_or(0)))
            .collect();
        assert_eq!(
            exports,
            parsed(&tool("modprobe", &["--show-exports"], path)),
            "{}",
            path.display()
        );
        assert!(
            module.signature().unwrap().is_some_and(|signature| signature.signer.is_some()),
            "{}",
            path.display()
        );
    }
}

/// The tree of a set of builds, as the guests of the same name have it.
fn tree(kernel: &Path, builds: &Path, core: &str, client: &str) -> TempDir {
    let release = fs::read_to_string(kernel.join("release")).unwrap();
    let root = TempDir::new().unwrap();
    let (stock, tree) = (
        kernel.join("stock/lib/modules").join(&release),
        root.path().join("lib/modules").join(&release),
    );
    fs::create_dir_all(tree.join("updates")).unwrap();
    fs::create_dir_all(tree.join("kernel")).unwrap();
    for name in [
        "mlx5_core",
        "mlxfw",
        "mlx5_ib",
        "ib_uverbs",
        "ib_core",
        "psample",
        "pci-hyperv-intf",
        "tls",
    ] {
        let mut found = Vec::new();
        modules(&stock.join("kernel"), &mut found);
        let file = found.into_iter().find(|path| path.file_stem().unwrap() == name).unwrap();
        fs::copy(&file, tree.join("kernel").join(file.file_name().unwrap())).unwrap();
    }
    for name in ["modules.builtin", "modules.order"] {
        fs::copy(stock.join(name), tree.join(name)).unwrap();
    }
    if !core.is_empty() {
        fs::copy(builds.join(core).join("ib_core.ko"), tree.join("updates/ib_core.ko")).unwrap();
    }
    fs::copy(builds.join("base/nvidia.ko"), tree.join("updates/nvidia.ko")).unwrap();
    fs::copy(builds.join(client).join("nvidia-peermem.ko"), tree.join("updates/nvidia-peermem.ko"))
        .unwrap();
    tool("depmod", &["-b", root.path().to_str().unwrap()], Path::new(&release));
    root
}

#[test]
#[ignore = "needs the modules that the virtual-machine tests build"]
fn the_verdict_on_each_build_is_what_the_kernel_answers_to_its_load() {
    let (kernel, builds) = (product("kernel").unwrap(), product("modules").unwrap());
    for (core, client, check, reason) in [
        ("core", "client-core", "file", ""),
        ("core", "client-stub", "peer-memory", "built-without-peer-memory"),
        ("core", "client-crc", "symbol-versions", "symbol-version-mismatch"),
        ("core", "client-nocrc", "versions-present", "symbol-version-missing"),
        ("core", "client-vermagic", "vermagic", "vermagic-mismatch"),
        ("", "client-core", "provider", "peer-memory-unsupported"),
    ] {
        let root = tree(&kernel, &builds, core, client);
        let output = Command::new(env!("CARGO_BIN_EXE_peermemctl"))
            .args(["preflight", "--json=short", "--root"])
            .arg(root.path())
            .output()
            .unwrap();
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let checks = document["kernels"][0]["checks"].as_array().unwrap();
        let failed: Vec<_> = checks
            .iter()
            .filter(|check| check["result"] == "fail")
            .map(|c| (&c["id"], &c["reason"], &c["certainty"]))
            .collect();
        if reason.is_empty() {
            assert!(failed.is_empty(), "{failed:?}");
        } else {
            assert!(
                failed.contains(&(&check.into(), &reason.into(), &"certain".into())),
                "{client}: {failed:?}"
            );
        }
    }
}
