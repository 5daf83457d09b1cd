//! What `peermemctl preflight` costs, beside what kmod itself takes for two of its answers, and on a root with
//! twenty kernels. Prints times and their ratio; fails above the bars.

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

/// Symbols that a provider exports and the client needs, as many as real ones have.
const EXPORTS: usize = 240;

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

/// A module with so many exports, and the needs of a client where it has any.
fn compile(file: &Path, name: &str, exports: &[String], needs: &[String]) -> Fallible<()> {
    let mut text = String::from("struct version { unsigned long crc; char name[56]; };\n");
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
    let source = file.with_extension("c");
    fs::write(&source, text)?;
    let mut gcc = Command::new("gcc");
    run(gcc.args(["-r", "-nostdlib", "-fno-pic", "-o"]).arg(file).arg(&source))?;
    Ok(fs::remove_file(source)?)
}

/// A root with copies of the chain for so many kernels; the first is called `6.1.0`.
fn make_root(kernels: usize) -> Fallible<tempfile::TempDir> {
    let root = tempfile::tempdir()?;
    let first = root.path().join("lib/modules/6.1.0/kernel");
    fs::create_dir_all(&first)?;
    let numbered = |prefix: &str| (0..EXPORTS).map(|n| format!("{prefix}_{n}")).collect::<Vec<_>>();
    let mut rdma = numbered("ib");
    rdma.push("ib_register_peer_memory_client".to_owned());
    let driver = numbered("nvidia_p2p");
    let needs: Vec<_> = rdma.iter().rev().chain(&driver).take(EXPORTS).cloned().collect();
    let module = |file: &str| first.join(format!("{file}.ko"));
    compile(&module("ib_core"), "ib_core", &rdma, &[])?;
    compile(&module("nvidia"), "nvidia", &driver, &[])?;
    compile(&module("mlx5_core"), "mlx5_core", &numbered("mlx5"), &[])?;
    compile(&module("nvidia-peermem"), "nvidia_peermem", &[], &needs)?;
    for number in 0..kernels {
        let tree = root.path().join(format!("lib/modules/6.1.{number}"));
        fs::create_dir_all(tree.join("kernel"))?;
        for entry in fs::read_dir(&first)?.flatten() {
            let copy = tree.join("kernel").join(entry.file_name());
            if copy != entry.path() {
                fs::copy(entry.path(), copy)?;
            }
        }
        for name in ["modules.builtin", "modules.order"] {
            fs::write(tree.join(name), "")?;
        }
        run(Command::new("depmod").arg("-b").arg(root.path()).arg(format!("6.1.{number}")))?;
    }
    Ok(root)
}

fn preflight(root: &Path, arguments: &[&str]) -> Fallible<Duration> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_peermemctl"));
    run(command.args(["--json=short", "preflight", "--root"]).arg(root).args(arguments))
}

fn kmod(root: &Path) -> Fallible<Duration> {
    let client = root.join("lib/modules/6.1.0/kernel/nvidia-peermem.ko");
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

fn main() -> Fallible<ExitCode> {
    let root = make_root(20)?;
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
