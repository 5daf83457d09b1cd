//! A node whose kernel is a preloaded stand-in, and workers that run on it.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use peermemd::host::linux::worker::{Worker, WorkerCommand};
use peermemd::model::Outcome;
use tokio::runtime::Runtime;
use tokio::time::{sleep, timeout};

use crate::module_tree::{Fixture, StandIn, name, run};

pub const PATIENCE: Duration = Duration::from_secs(20);

/// A fixture tree, a kernel without modules, and how workers are started between the two.
pub struct Node {
    pub fixture: Fixture,
}

impl Node {
    pub fn new(modules: &[StandIn]) -> Self {
        let node = Self { fixture: Fixture::new(modules) };
        for directory in ["sys/module", "kernel", "run"] {
            fs::create_dir_all(node.path(directory)).unwrap();
        }
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/shim/fakekernel.c");
        let flags = ["-shared", "-fPIC", "-O1", "-Wall", "-o"];
        run(Command::new("gcc").args(flags).arg(node.path("shim.so")).arg(source).arg("-ldl"));
        node.write_program();
        node
    }

    pub fn path(&self, relative: &str) -> PathBuf {
        self.fixture.path().join(relative)
    }

    /// The program that stands for the daemon's own: the same, behind a mount namespace.
    fn write_program(&self) {
        let root = self.fixture.path().display();
        let text = format!(
            "#!/bin/sh\nexec unshare -Urm /bin/sh -c '\n\
             mount --rbind {root}/sys /sys || exit 99\n\
             export PATH=$PATH:/usr/sbin:/sbin\n\
             export FAKE_KERNEL={root}/kernel LD_PRELOAD={root}/shim.so\n\
             exec {} \"$@\"' worker \"$@\"\n",
            env!("CARGO_BIN_EXE_peermemd")
        );
        fs::write(self.path("program"), text).unwrap();
        fs::set_permissions(self.path("program"), Permissions::from_mode(0o755)).unwrap();
    }

    pub fn worker(&self) -> Worker {
        let command = WorkerCommand::new(self.path("run"))
            .with_program(self.path("program"))
            .with_tree(self.fixture.tree());
        Worker::with_command(command)
    }

    /// What the kernel does when `module` is next inserted or removed.
    pub fn script(&self, module: &str, errno: i32, delay: Duration, signal: i32) {
        let text = format!("{errno} {} {signal}", delay.as_millis());
        fs::write(self.path("kernel").join(module), text).unwrap();
    }

    pub fn log(&self) -> Vec<String> {
        let log = fs::read_to_string(self.path("kernel/log")).unwrap_or_default();
        log.lines().map(|line| line.trim().to_owned()).collect()
    }

    pub fn is_live(&self, module: &str) -> bool {
        self.path("sys/module").join(module).join("initstate").exists()
    }

    pub fn insert(&self, module: &str) -> Outcome {
        block_on(async { finish(self.worker().insert(&name(module))).await })
    }
}

pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    runtime().block_on(future)
}

pub fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

pub async fn finish<T>(future: impl Future<Output = T>) -> T {
    timeout(PATIENCE, future).await.expect("in time")
}

pub async fn until(mut condition: impl FnMut() -> bool) {
    finish(async {
        while !condition() {
            sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}
