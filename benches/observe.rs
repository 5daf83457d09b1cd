//! What one look at a large node costs, on a tree made for it: 16 GPUs, 16 network cards, 400
//! modules, 2,000 PCI devices. Prints times and how they grow; fails above the bars.

use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use peermemd::host::linux::inspect::InspectRequest;
use peermemd::host::linux::{LinuxHost, LinuxPaths, Loader};
use peermemd::host::{Attempt, Host};
use peermemd::model::{Desired, Fact, Files, ModuleName, Outcome, RunningLoad};

const WARM_BAR: Duration = Duration::from_millis(5);
const COLD_BAR: Duration = Duration::from_millis(30);
/// Twice the devices may take twice the time, and a bit for the noise of a busy machine.
const GROWTH_BAR: f64 = 2.6;
const ROUNDS: usize = 41;
const GPUS: usize = 16;
const NICS: usize = 16;
const MODULES: usize = 400;

/// Says nothing of files, so that only the look itself is measured.
struct NoLoader;

impl Loader for NoLoader {
    fn insert(&mut self, _module: &ModuleName) -> Attempt {
        Box::pin(async { Outcome::success() })
    }

    fn remove(&mut self, _module: &ModuleName) -> Attempt {
        Box::pin(async { Outcome::success() })
    }

    async fn inspect(&mut self, _: &InspectRequest) -> Fact<Files> {
        Fact::Known(Files::default())
    }

    fn running(&self) -> Option<RunningLoad> {
        None
    }

    async fn load_ended(&mut self) {
        std::future::pending::<()>().await;
    }

    fn rest(&mut self) {}
}

fn write(root: &Path, path: &str, content: &str) -> io::Result<()> {
    let path = root.join(path);
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    fs::write(path, content)
}

fn make_modules(root: &Path) -> io::Result<()> {
    use std::fmt::Write;

    let desired = Desired::default();
    let mut list = String::new();
    let chain = desired.load_order.iter().map(ModuleName::to_string);
    let others = (desired.load_order.len()..MODULES).map(|n| format!("module_{n}"));
    for name in chain.chain(others) {
        let _ = writeln!(list, "{name} 65536 2 x,y, Live 0x0000000000000000 (OE)");
        let file = |file: &str| format!("sys/module/{name}/{file}");
        write(root, &file("initstate"), "live\n")?;
        write(root, &file("refcnt"), "2\n")?;
        write(root, &file("version"), "570.124.06\n")?;
        write(root, &file("srcversion"), "0123456789ABCDEF\n")?;
        fs::create_dir_all(root.join(file("holders")))?;
    }
    write(root, "proc/modules", &list)
}

fn make_devices(root: &Path, devices: usize) -> io::Result<()> {
    for n in 0..devices {
        let address = format!("{:04x}:{:02x}:{:02x}.0", n / 2048, n / 32 % 64, n % 32);
        let (class, id, driver) = match n {
            _ if n < GPUS => ("30200", "10DE:2330", "nvidia"),
            _ if n < GPUS + NICS => ("20700", "15B3:1021", "mlx5_core"),
            _ => ("60400", "8086:352A", "pcieport"),
        };
        let uevent = format!(
            "DRIVER={driver}\nPCI_CLASS={class}\nPCI_ID={id}\nPCI_SUBSYS_ID=10DE:1\n\
             PCI_SLOT_NAME={address}\nMODALIAS=pci:v000010DEd00002330sv*sd*bc03sc02i00\n"
        );
        let directory = format!("sys/bus/pci/devices/{address}");
        write(root, &format!("{directory}/uevent"), &uevent)?;
        write(root, &format!("{directory}/driver_override"), "(null)\n")?;
    }
    Ok(())
}

fn make_tree(devices: usize) -> io::Result<tempfile::TempDir> {
    let directory = tempfile::tempdir()?;
    let root = directory.path();
    make_modules(root)?;
    make_devices(root, devices)?;
    for nic in 0..NICS {
        let state = format!("sys/class/infiniband/mlx5_{nic}/ports/1/state");
        write(root, &state, "4: ACTIVE\n")?;
    }
    for counter in ["version", "num_alloc_mrs", "num_dealloc_mrs", "num_reg_pages"] {
        write(root, &format!("sys/kernel/mm/memory_peers/nv_mem/{counter}"), "1\n")?;
    }
    write(root, "proc/sys/kernel/osrelease", "6.8.0\n")?;
    write(root, "lib/modules/6.8.0/modules.dep.bin", "")?;
    Ok(directory)
}

/// What it costs, and what it takes on a machine that is doing other things, too.
struct Cost {
    best: Duration,
    median: Duration,
}

impl Cost {
    fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self { best: times[0], median: times[times.len() / 2] }
    }
}

impl std::fmt::Display for Cost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.2?} (median {:.2?})", self.best, self.median)
    }
}

/// The first look of a new host, and the one that follows.
async fn measure(root: &Path) -> Result<(Cost, Cost), Box<dyn std::error::Error>> {
    let desired = Desired::default();
    let (mut cold, mut warm) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let paths = LinuxPaths { root: root.to_owned(), system_bus: None };
        let mut host = LinuxHost::new(paths, NoLoader)?;
        for times in [&mut cold, &mut warm] {
            let begin = Instant::now();
            let seen = host.observe(&desired).await;
            times.push(begin.elapsed());
            let gpus = seen.pci.known().map(|pci| pci.gpus.len());
            assert_eq!(gpus, Some(GPUS), "the tree was not read");
        }
    }
    Ok((Cost::of(cold), Cost::of(warm)))
}

fn ratio(of: Duration, to: Duration) -> f64 {
    of.as_secs_f64() / to.as_secs_f64()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let mut cold_times = Vec::new();
    let mut within = true;
    for devices in [500, 1000, 2000, 4000] {
        let tree = make_tree(devices)?;
        let (cold, warm) = measure(tree.path()).await?;
        println!("{devices:5} PCI devices: cold {cold}, warm {warm}");
        if devices == 2000 {
            within &= cold.best <= COLD_BAR && warm.best <= WARM_BAR;
        }
        cold_times.push(cold.best);
    }
    for pair in cold_times.windows(2) {
        let growth = ratio(pair[1], pair[0]);
        println!("twice the devices: {growth:.2} times the cold time");
        within &= growth <= GROWTH_BAR;
    }
    println!("bars: cold {COLD_BAR:?}, warm {WARM_BAR:?}, growth {GROWTH_BAR}");
    Ok(if within { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
