//! A module tree in a temporary directory: stand-ins made by gcc, an index made by depmod, and
//! modprobe.d directories. What reads it is the real libkmod.
#![allow(dead_code, reason = "each test binary uses its own part")]

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use peermemd::host::linux::inspect::{InspectRequest, inspect};
use peermemd::host::linux::libkmod::ModuleTree;
use peermemd::model::{Desired, Files, ModuleName};
use tempfile::TempDir;

pub const RELEASE: &str = "6.1.0-test";

/// A stand-in for a module file.
#[derive(Clone, Debug)]
pub struct StandIn {
    /// File name without `.ko`.
    pub file: &'static str,
    /// The name that the kernel would know it by.
    pub name: &'static str,
    pub exports: Vec<(&'static str, u32)>,
    /// With a CRC of 0 for one that the file carries no version of.
    pub needs: Vec<(&'static str, u32)>,
}

pub const REGISTER: &str = "ib_register_peer_memory_client";
pub const GET_PAGES: &str = "nvidia_p2p_get_pages";

pub fn stand_in(file: &'static str, name: &'static str) -> StandIn {
    StandIn { file, name, exports: Vec::new(), needs: Vec::new() }
}

/// The chain and the predecessor as most distributions ship them.
pub fn stack() -> Vec<StandIn> {
    let ib_core = StandIn {
        exports: vec![(REGISTER, 0x1111_1111), ("ib_query_port", 0x2222_2222)],
        needs: vec![("mm_kobj", 0x3333_3333)],
        ..stand_in("ib_core", "ib_core")
    };
    let mlx5_core =
        StandIn { exports: vec![("mlx5_cmd", 0x4444_4444)], ..stand_in("mlx5_core", "mlx5_core") };
    let mlx5_ib = StandIn {
        needs: vec![("mlx5_cmd", 0x4444_4444), ("ib_query_port", 0x2222_2222)],
        ..stand_in("mlx5_ib", "mlx5_ib")
    };
    vec![
        ib_core,
        mlx5_core,
        mlx5_ib,
        nvidia("nvidia"),
        client("nvidia-peermem", "nvidia_peermem"),
        client("nv_peer_mem", "nv_peer_mem"),
    ]
}

pub fn nvidia(file: &'static str) -> StandIn {
    StandIn { exports: vec![(GET_PAGES, 0x5555_5555)], ..stand_in(file, "nvidia") }
}

/// Built against an RDMA stack whose version of the registration differs.
pub fn client(file: &'static str, name: &'static str) -> StandIn {
    StandIn {
        needs: vec![(REGISTER, 0x9999_9999), (GET_PAGES, 0x5555_5555), ("unversioned", 0)],
        ..stand_in(file, name)
    }
}

/// Debian's way: renamed files, reached through `install` lines.
pub fn debian_stack() -> Vec<StandIn> {
    let mut stack = stack();
    stack.retain(|module| !module.name.starts_with("nvidia"));
    stack.push(nvidia("nvidia-current"));
    stack.push(client("nvidia-current-peermem", "nvidia_peermem"));
    stack
}

/// The tree, gone with this value.
#[derive(Debug)]
pub struct Fixture {
    pub root: TempDir,
}

impl Fixture {
    pub fn new(modules: &[StandIn]) -> Self {
        let fixture = Self { root: TempDir::new().unwrap() };
        fs::create_dir_all(fixture.modules().join("kernel")).unwrap();
        fs::create_dir_all(fixture.config()).unwrap();
        for module in modules {
            compile(module, &fixture.file(module.file));
        }
        fs::write(fixture.modules().join("modules.builtin"), "kernel/ib_uverbs.ko\n").unwrap();
        fs::write(fixture.modules().join("modules.order"), "").unwrap();
        fixture.depmod();
        fixture
    }

    pub fn path(&self) -> &Path {
        self.root.path()
    }

    pub fn modules(&self) -> PathBuf {
        self.path().join("lib/modules").join(RELEASE)
    }

    pub fn file(&self, file: &str) -> PathBuf {
        self.modules().join("kernel").join(format!("{file}.ko"))
    }

    pub fn config(&self) -> PathBuf {
        self.path().join("etc/modprobe.d")
    }

    pub fn depmod(&self) {
        run(Command::new("depmod").arg("-b").arg(self.path()).arg(RELEASE));
    }

    pub fn configure(&self, file: &str, text: &str) {
        fs::write(self.config().join(file), text).unwrap();
    }

    pub fn tree(&self) -> ModuleTree {
        ModuleTree { directory: Some(self.modules()), config: Some(vec![self.config()]) }
    }

    pub fn request(&self) -> InspectRequest {
        let desired = Desired::default();
        InspectRequest {
            tree: self.tree(),
            ..InspectRequest::of_running_kernel(&desired, &BTreeSet::new())
        }
    }

    pub fn inspect(&self) -> Files {
        inspect(&self.request(), &mut |_| ()).unwrap()
    }
}

pub fn name(text: &str) -> ModuleName {
    ModuleName::new(text).unwrap()
}

/// Runs a tool that the tests cannot do without.
pub fn run(command: &mut Command) {
    // depmod is not on an ordinary user's path everywhere.
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{path}:/usr/sbin:/sbin"));
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn compile(module: &StandIn, object: &Path) {
    let source = object.with_extension("c");
    fs::write(&source, source_text(module)).unwrap();
    let flags = ["-r", "-nostdlib", "-fno-pic", "-Wl,--build-id=sha1", "-o"];
    run(Command::new("gcc").args(flags).arg(object).arg(&source));
    fs::remove_file(&source).unwrap();
}

fn source_text(module: &StandIn) -> String {
    let mut text = String::from(
        "#define SECTION(name) __attribute__((section(name), used, aligned(1)))\n\
         struct version { unsigned long crc; char name[64 - sizeof(long)]; };\n",
    );
    let fields = [
        ("first", ""),
        ("version", "570.1"),
        ("license", "Dual BSD/GPL"),
        ("srcversion", "ABCDEF"),
        ("vermagic", "6.1.0-test SMP mod_unload modversions "),
        ("name", module.name),
    ];
    for (key, value) in fields {
        let _ = writeln!(
            text,
            "static const char f_{key}[] SECTION(\".modinfo\") = \"{key}={value}\";"
        );
    }
    for (symbol, crc) in &module.exports {
        let _ = writeln!(
            text,
            "int {symbol}; asm(\".globl __crc_{symbol}\\n.set __crc_{symbol}, {crc}\");"
        );
        let _ = writeln!(
            text,
            "static const char s_{symbol}[] SECTION(\"__ksymtab_strings\") = \"{symbol}\";"
        );
    }
    for (symbol, crc) in &module.needs {
        let _ = writeln!(text, "extern int {symbol}; int *use_{symbol} = &{symbol};");
        if *crc != 0 {
            let _ = writeln!(
                text,
                "static const struct version v_{symbol} SECTION(\"__versions\") = {{ {crc}u, \"{symbol}\" }};"
            );
        }
    }
    text
}
