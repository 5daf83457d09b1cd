//! What `peermemctl preflight` costs, beside what kmod itself takes for two of its answers, and on a
//! root with twenty kernels. Each kernel has as many modules as a distribution's, all with names of
//! their own in the indexes, and a GPU driver of the size of the real one. Both sides are whole
//! processes over the same root, in turns. Prints times and their ratio; fails above the bars.

use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// Of the time of one `modprobe --show-depends` and one `modprobe --dump-modversions`.
const RATIO_BAR: f64 = 1.5;
const TWENTY_BAR: Duration = Duration::from_secs(1);
const ROUNDS: usize = 25;
const KERNELS: usize = 20;

/// Symbols that a provider exports and the client needs, as many as real ones have.
const EXPORTS: usize = 240;
/// Other modules of one kernel, and what stands for the number in the one that all are made from.
const OTHERS: usize = 4_000;
const NUMBER: &str = "00000";
/// The GPU driver's own code and symbols.
const DRIVER_BYTES: usize = 60 << 20;
const DRIVER_SYMBOLS: usize = 30_000;

type Fallible<T> = Result<T, Box<dyn Error>>;

fn run(command: &mut Command) -> Fallible<Duration> {
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{path}:/usr/sbin:/sbin"));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let begin = Instant::now();
    // That something fails is not what is measured.
    command.status()?;
    Ok(begin.elapsed())
}

/// A module with so many exports, the needs of a client where it has any, and more assembly.
fn compile(
    file: &Path,
    name: &str,
    exports: &[String],
    needs: &[String],
    more: &str,
) -> Fallible<()> {
    let mut text = format!("asm({more:?});\n");
    text.push_str("struct version { unsigned long crc; char name[56]; };\n");
    let field = |key: &str, value: &str| {
        format!(
            "static const char f_{key}[] __attribute__((section(\".modinfo\"), used)) = \"{key}={value}\";\n"
        )
    };
    text += &field("name", name);
    text += &field("vermagic", "6.1.0 SMP mod_unload modversions ");
    text += &field("license", "GPL");
    for symbol in exports {
        writeln!(
            text,
            "int {symbol}; asm(\".globl __crc_{symbol}\\n.set __crc_{symbol}, 1\\n\");"
        )?;
    }
    for symbol in needs {
        writeln!(text, "extern int {symbol}; int *use_{symbol} = &{symbol};")?;
        writeln!(
            text,
            "static const struct version v_{symbol} \
             __attribute__((section(\"__versions\"), used)) = {{ 1, \"{symbol}\" }};"
        )?;
    }
    text += &field("intree", "Y");
    let source = file.with_extension("c");
    fs::write(&source, text)?;
    let mut gcc = Command::new("gcc");
    run(gcc.args(["-r", "-nostdlib", "-fno-pic", "-o"]).arg(file).arg(&source))?;
    Ok(fs::remove_file(source)?)
}

/// The chain in a directory.
fn make_chain(directory: &Path) -> Fallible<()> {
    let numbered = |prefix: &str| (0..EXPORTS).map(|n| format!("{prefix}_{n}")).collect::<Vec<_>>();
    let mut rdma = numbered("ib");
    rdma.push("ib_register_peer_memory_client".to_owned());
    let driver = numbered("nvidia_p2p");
    let needs: Vec<_> = rdma.iter().rev().chain(&driver).take(EXPORTS).cloned().collect();
    let module = |file: &str| directory.join(format!("{file}.ko"));
    let mut size = format!(".text\n.fill {DRIVER_BYTES}, 1, 0x90\n");
    for number in 0..DRIVER_SYMBOLS {
        writeln!(size, "rm_internal_function_of_the_driver_{number}: .byte 0")?;
    }
    compile(&module("ib_core"), "ib_core", &rdma, &[], "")?;
    compile(&module("nvidia"), "nvidia", &driver, &[], &size)?;
    compile(&module("mlx5_core"), "mlx5_core", &numbered("mlx5"), &[], "")?;
    compile(&module("nvidia-peermem"), "nvidia_peermem", &[], &needs, "")
}

/// Copies of one module, each with a name and exports of its own.
fn make_others(directory: &Path) -> Fallible<()> {
    let (model, name) = (directory.join("model.ko"), format!("other_{NUMBER}"));
    let exports: Vec<_> = (0..3).map(|n| format!("{name}_export_{n}")).collect();
    compile(&model, &name, &exports, &[], "")?;
    let bytes = fs::read(&model)?;
    fs::remove_file(model)?;
    let places: Vec<_> =
        memchr::memmem::find_iter(&bytes, &format!("other_{NUMBER}")).map(|at| at + 6).collect();
    for number in 0..OTHERS {
        let (mut bytes, digits) = (bytes.clone(), format!("{number:05}"));
        for at in &places {
            bytes[*at..*at + digits.len()].copy_from_slice(digits.as_bytes());
        }
        let folder = directory.join(format!("drivers/group{}", number / 50));
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(format!("other_{digits}.ko")), bytes)?;
    }
    Ok(())
}

/// A root with so many equal kernels; the first is called `6.1.0`. The others have links to its
/// files and copies of its indexes.
fn make_root(kernels: usize) -> Fallible<tempfile::TempDir> {
    let root = tempfile::tempdir()?;
    let modules = root.path().join("lib/modules");
    let first = modules.join("6.1.0");
    fs::create_dir_all(first.join("kernel/drivers/infiniband"))?;
    make_chain(&first.join("kernel/drivers/infiniband"))?;
    make_others(&first.join("kernel"))?;
    for name in ["modules.builtin", "modules.order"] {
        fs::write(first.join(name), "")?;
    }
    run(Command::new("depmod").arg("-b").arg(root.path()).arg("6.1.0"))?;
    for number in 1..kernels {
        run(Command::new("cp").arg("-rl").arg(&first).arg(modules.join(format!("6.1.{number}"))))?;
    }
    Ok(root)
}

fn preflight(root: &Path, arguments: &[&str]) -> Fallible<Duration> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_peermemctl"));
    run(command.args(["--json=short", "preflight", "--root"]).arg(root).args(arguments))
}

fn kmod(root: &Path) -> Fallible<Duration> {
    let client = root.join("lib/modules/6.1.0/kernel/drivers/infiniband/nvidia-peermem.ko");
    let mut depends = Command::new("modprobe");
    depends.arg("-d").arg(root).args(["-S", "6.1.0", "--show-depends", "nvidia_peermem"]);
    let mut versions = Command::new("modprobe");
    versions.arg("--dump-modversions").arg(client);
    Ok(run(&mut depends)? + run(&mut versions)?)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// Ends the run unless every kernel was judged to the end: what is measured must be the work.
fn check_that_all_is_judged(root: &Path) -> Fallible<()> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_peermemctl"));
    let output =
        command.args(["--json=short", "preflight", "--all", "--root"]).arg(root).output()?;
    let document: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let list = |value: &serde_json::Value| value.as_array().cloned().unwrap_or_default();
    let kernels = list(&document["kernels"]);
    let fits = |kernel: &serde_json::Value| {
        let passes = |check: &serde_json::Value| {
            check["id"] == "symbol-versions" && check["result"] == "pass"
        };
        list(&kernel["checks"]).iter().any(passes)
    };
    match kernels.iter().find(|kernel| !fits(kernel)) {
        None if kernels.len() == KERNELS => Ok(()),
        None => Err(format!("{} kernels were judged", kernels.len()).into()),
        Some(kernel) => Err(format!("the symbols were not compared: {kernel:#}").into()),
    }
}

fn main() -> Fallible<ExitCode> {
    let root = make_root(KERNELS)?;
    check_that_all_is_judged(root.path())?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        ours.push(preflight(root.path(), &["--kernel", "6.1.0"])?);
        theirs.push(kmod(root.path())?);
    }
    let (ours, theirs) = (median(ours), median(theirs));
    let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
    println!("one kernel: {ours:.2?}, kmod {theirs:.2?}, ratio {ratio:.2} (bar {RATIO_BAR})");
    let twenty =
        (0..5).map(|_| preflight(root.path(), &["--all"])).collect::<Fallible<Vec<_>>>()?;
    let twenty = median(twenty);
    println!("20 kernels: {twenty:.2?} (bar {TWENTY_BAR:?})");
    let within = ratio <= RATIO_BAR && twenty <= TWENTY_BAR;
    Ok(if within { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
