//! What it adds to a failed step to say why: the judgement over a full kernel log, and what is looked
//! up only for files that do not fit together (who brought them, what a rebuild would find). Prints
//! both; fails if they take longer together than the bar.

use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use peermemd::decide::diagnose::failure;
use peermemd::decide::preflight::report::not_running;
use peermemd::decide::step::Step;
use peermemd::host::linux::kernels::{Root, owners, rebuild};
use peermemd::model::{
    Desired, Fact, Files, ModuleFile, ModuleName, Observed, Outcome, Reason, Resolution, Symbol,
};

const BAR: Duration = Duration::from_millis(20);
const ROUNDS: usize = 25;
/// A node with everything installed.
const PACKAGES: usize = 2_000;
const FILES_OF_A_PACKAGE: usize = 100;
const KERNELS: usize = 4;
const FILES_OF_A_KERNEL: usize = 5_000;
const RELEASE: &str = "6.1.0-28-amd64";
const REGISTER: &str = "ib_register_peer_memory_client";

type Fallible<T> = Result<T, Box<dyn Error>>;

/// A root with the lists of dpkg, and a stack's `Module.symvers` of the usual size.
fn make_root() -> Fallible<tempfile::TempDir> {
    let root = tempfile::tempdir()?;
    let info = root.path().join("var/lib/dpkg/info");
    fs::create_dir_all(&info)?;
    for number in 0..PACKAGES {
        let mut list = String::new();
        for file in 0..FILES_OF_A_PACKAGE {
            writeln!(list, "/usr/share/package-{number}/some/folder/with/files/file-{file}.ext")?;
        }
        fs::write(info.join(format!("package-{number}.list")), list)?;
    }
    for number in 0..KERNELS {
        let mut list = String::new();
        for file in 0..FILES_OF_A_KERNEL {
            writeln!(list, "/lib/modules/6.1.0-{number}/kernel/drivers/net/folder/file-{file}.ko")?;
        }
        fs::write(info.join(format!("linux-image-6.1.0-{number}-amd64.list")), list)?;
    }
    let stack = root.path().join("usr/src/ofa_kernel/default");
    fs::create_dir_all(&stack)?;
    let mut list = String::new();
    for number in 0..1_500 {
        writeln!(list, "0x{number:08x}\tib_symbol_{number}\tdrivers/ib_core\tEXPORT_SYMBOL\t")?;
    }
    let kernel = root.path().join("lib/modules").join(RELEASE).join("build");
    fs::create_dir_all(&kernel)?;
    let mut image = String::new();
    for number in 0..25_000 {
        writeln!(
            image,
            "0x{number:08x}\tsome_symbol_of_the_kernel_{number}\tvmlinux\tEXPORT_SYMBOL\t"
        )?;
    }
    fs::write(kernel.join("Module.symvers"), image)?;
    for symbol in [REGISTER, "ib_unregister_peer_memory_client"] {
        writeln!(list, "0x00000001\t{symbol}\tdrivers/ib_core\tEXPORT_SYMBOL\t")?;
    }
    fs::write(stack.join("Module.symvers"), list)?;
    Ok(root)
}

/// Files that nobody owns: the search goes through all lists.
fn paths() -> Fallible<Vec<(ModuleName, PathBuf)>> {
    let path = |name: &str| {
        let file = format!("/lib/modules/{RELEASE}/updates/{name}.ko");
        Ok((ModuleName::new(name)?, PathBuf::from(file)))
    };
    ["ib_core", "nvidia", "nvidia_peermem"].into_iter().map(path).collect()
}

fn look_up(root: &Path) -> Fallible<Files> {
    let mut files = Files::default();
    let root = Root::new(root);
    let paths = paths()?.into_iter().collect();
    files.kernel.owners = owners::owners(&root, RELEASE, &paths);
    let symbols = [REGISTER, "ib_unregister_peer_memory_client"];
    files.kernel.rebuild = Some(rebuild::look(&root, RELEASE, symbols));
    Ok(files)
}

/// A node whose client fits neither side.
fn node(mut files: Files) -> Fallible<Observed> {
    let symbols = |crc: u32| {
        let symbol = |n| Symbol { name: format!("ib_symbol_{n}"), crc: Some(crc) };
        let registers = Symbol { name: REGISTER.to_owned(), crc: Some(crc) };
        Fact::Known((0..240).map(symbol).chain([registers]).collect::<Vec<_>>())
    };
    let empty = || Fact::Known(Vec::new());
    for (name, path) in paths()? {
        let (needs, exports) = match name.as_str() {
            "nvidia_peermem" => (symbols(1), empty()),
            "ib_core" => (empty(), symbols(2)),
            _ => (empty(), empty()),
        };
        let file = ModuleFile {
            resolution: Resolution::File(path),
            deny_listed: None,
            options: String::new(),
            version: None,
            srcversion: None,
            build_id: None,
            vermagic: None,
            license: None,
            signer: None,
            depends: Vec::new(),
            needs,
            exports,
            imports_mm_kobj: Fact::Known(false),
            details: peermemd::model::FileDetails::default(),
        };
        files.modules.insert(name, file);
    }
    files.exporter = Some(ModuleName::new("ib_core")?);
    Ok(not_running(RELEASE, files))
}

fn outcome() -> Outcome {
    let noise = |number| format!("some_driver: message {number} {}", "x".repeat(400));
    let lines = (0..240).flat_map(|number| {
        [
            noise(number),
            format!("nvidia_peermem: disagrees about version of symbol ib_symbol_{number}"),
            format!("nvidia_peermem: Unknown symbol ib_symbol_{number} (err -22)"),
        ]
    });
    Outcome { kernel_log: Some(Fact::Known(lines.collect())), ..Outcome::failed(libc::EINVAL) }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn main() -> Fallible<ExitCode> {
    let root = make_root()?;
    let (desired, outcome) = (Desired::default(), outcome());
    let step = Step::Insert { module: desired.client.clone() };
    let (mut looks, mut judgements) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let begin = Instant::now();
        let files = look_up(root.path())?;
        looks.push(begin.elapsed());
        let observed = node(files)?;
        let begin = Instant::now();
        let finding = failure(&step, &outcome, &desired, &observed);
        judgements.push(begin.elapsed());
        if finding.map(|finding| finding.reason) != Some(Reason::SymbolVersionMismatch) {
            return Err("the judgement is wrong".into());
        }
    }
    let (look, judgement) = (median(looks), median(judgements));
    println!("looking up owners and rebuild: {look:.2?}; judging: {judgement:.2?} (bar {BAR:?})");
    let within = look + judgement <= BAR;
    Ok(if within { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
