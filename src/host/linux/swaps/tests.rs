use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use tokio::time::timeout;

use super::*;

fn unit(active_state: &str, job: Option<&str>) -> Unit {
    Unit {
        load_state: "loaded".to_owned(),
        active_state: active_state.to_owned(),
        sub_state: String::new(),
        job: job.map(str::to_owned),
    }
}

fn look(swaps: &mut Swaps, units: &[(&str, Unit)], step_may_follow: bool) -> Vec<Swap> {
    let units = units.iter().map(|(name, unit)| ((*name).to_owned(), unit.clone())).collect();
    swaps.look(Surroundings {
        desired: &Desired::default(),
        units: &Fact::Known(units),
        step_may_follow,
        now: SystemTime::now(),
    })
}

#[tokio::test]
async fn a_busy_watched_unit_and_a_shutdown_are_swaps() {
    let root = tempfile::tempdir().unwrap();
    let mut swaps = Swaps::new(root.path());
    let idle = [("openibd.service", unit("active", None)), (SHUTDOWN, unit("inactive", None))];
    assert_eq!(look(&mut swaps, &idle, true), []);
    let busy = [
        ("openibd.service", unit("deactivating", None)),
        ("cron.service", unit("activating", None)),
        (SHUTDOWN, unit("inactive", Some("start"))),
    ];
    let seen = look(&mut swaps, &busy, true);
    let seen: Vec<_> = seen.iter().map(|swap| (swap.kind, swap.why.as_str())).collect();
    let wanted = [
        (SwapKind::UnitJob, "openibd.service is deactivating"),
        (SwapKind::Shutdown, "shutdown.target has a start job"),
    ];
    assert_eq!(seen, wanted);
}

#[tokio::test]
async fn dkms_is_looked_for_only_before_a_step_and_its_end_is_seen() {
    let root = tempfile::tempdir().unwrap();
    let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let pid = child.id();
    let directory = root.path().join(format!("proc/{pid}"));
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("stat"), format!("{pid} (dkms) S 1 1")).unwrap();
    let mut swaps = Swaps::new(root.path());
    assert_eq!(look(&mut swaps, &[], false), []);
    let seen = look(&mut swaps, &[], true);
    assert_eq!((seen[0].kind, seen[0].pid), (SwapKind::DkmsBuild, pid));
    assert!(timeout(Duration::from_millis(20), swaps.ended()).await.is_err());
    drop(child.stdin.take());
    timeout(Duration::from_secs(5), swaps.ended()).await.unwrap();
    child.wait().unwrap();
    assert!(timeout(Duration::from_millis(20), swaps.ended()).await.is_err());
}

#[test]
fn a_package_manager_that_runs_no_script_is_indirect_evidence() {
    let held = || Held { path: "/var/lib/dpkg/lock".into(), pid: 7 };
    let root = tempfile::tempdir().unwrap();
    for (pid, name, parent) in [(7, "apt-get", 1), (8, "dkms", 7)] {
        let swap = package_transaction(&held(), &ProcessTable::default().read(root.path()));
        assert!(swap.indirect);
        let directory = root.path().join(format!("proc/{pid}"));
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("stat"), format!("{pid} ({name}) S {parent} 1")).unwrap();
    }
    let swap = package_transaction(&held(), &ProcessTable::default().read(root.path()));
    assert!(!swap.indirect);
    assert_eq!(swap.why, "apt-get holds /var/lib/dpkg/lock");
}
