//! `doctor`, `consumers` and the archive.

use std::io::Read;

use insta::assert_snapshot;
use peermemd::model::{CheckResult, State};

use super::fake::FakeDaemon;
use super::run::{Seen, Shared, run, run_with};
use super::samples;
use super::verbs::{bus, json, seen};
use crate::view;

fn page(checks: &[peermemd::model::Check]) -> String {
    let text = view::doctor::render(checks, &samples::screen());
    anstream::adapter::strip_str(&text).to_string()
}

#[test]
fn the_root_is_named_first_and_what_follows_is_folded() {
    assert_snapshot!(page(&samples::checks()), @r"
    One thing is wrong (10 checks, 2 are worth a look, 1 could not be told)

    ✗ policy.lockdown (lockdown)
        Kernel lockdown forbids loading nvidia: the file is not signed, and lockdown
        is 'integrity'.
        What to do: Sign the module with a key that the kernel trusts ('mokutil
        --import KEY.der', then reboot and confirm), or turn secure boot off.
        From this follows: driver.nvidia, load.nvidia_peermem

    Hardware
      ✓ gpu             GPUs on PCI: 8
      ✓ nic             RDMA network cards on PCI: 8

    GPU driver
      ✗ nvidia          follows from policy.lockdown

    RDMA stack
      ✓ ib_core         ib_core is loaded, version 24.10-1.1.4
      ! port            no RDMA port is active

    Policy
      ✗ lockdown        see above
      ? signatures      module.sig_enforce could not be read

    Load
      ✗ nvidia_peermem  follows from policy.lockdown

    Rivals
      ! modules-load    /etc/modules-load.d/gpu.conf:2 loads nvidia_peermem too,
                        without waiting for the rest of the chain. Remove that line,
                        now that peermemd loads nvidia_peermem.

    Consumers
      - all             nothing is registered that a program could see
    ");
}

#[test]
fn a_node_with_nothing_wrong_says_so() {
    let mut checks = samples::checks();
    checks.retain(|check| check.result == CheckResult::Pass);
    let page = page(&checks);
    assert!(page.starts_with("Nothing is wrong (3 checks)\n"), "{page}");
    assert!(page.contains("\nHardware\n  ✓ gpu"), "{page}");
}

#[tokio::test]
async fn the_daemon_is_asked_and_a_failure_is_in_the_exit_code() {
    let (_directory, bus) = bus().await;
    let daemon = FakeDaemon::start(&bus, vec![samples::blocked()]).await;
    let ended = run(&bus.address, &["doctor"]).await;
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(ended.out.starts_with("One thing is wrong"), "{}", ended.out);
    let document = json(&run(&bus.address, &["doctor", "--json=short"]).await);
    assert_eq!(document["source"], "daemon");
    assert_eq!(document["roots"][0]["id"], "policy.lockdown");
    assert_eq!(document["roots"][0]["follows"][1], "load.nvidia_peermem");
    assert_eq!(document["checks"].as_array().unwrap().len(), samples::checks().len());
    let calls = daemon.answers.lock().unwrap().calls.clone();
    assert!(calls.contains(&"RunChecks".to_owned()));
}

#[tokio::test]
async fn without_a_daemon_it_looks_for_itself() {
    let (_directory, bus) = bus().await;
    let look = async |arguments: &[&str]| {
        let seen = Seen(Some(seen(State::Blocked)), "");
        run_with(&bus.address, arguments, seen, Shared::default()).await
    };
    let ended = look(&["doctor"]).await;
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(ended.out.contains("has looked for itself"), "{}", ended.out);
    let consumers = look(&["consumers"]).await;
    assert_eq!(consumers.code, 0);
    assert!(consumers.out.contains("nothing is registered"), "{}", consumers.out);
    let blind = run(&bus.address, &["doctor"]).await;
    assert_eq!(blind.code, 4, "{blind:?}");
}

#[tokio::test]
async fn the_archive_holds_everything_and_none_of_the_secrets() {
    let (directory, bus) = bus().await;
    let mut node = samples::blocked();
    node.status_text = "nvidia (GPU-6f2d5b3e-1c4a-4e7b-9f0d-112233445566) at 10.1.2.3".into();
    let _daemon = FakeDaemon::start(&bus, vec![node]).await;
    let file = directory.path().join("bundle.tar");
    let arguments = ["doctor", "--bundle", file.to_str().unwrap()];
    let ended = run(&bus.address, &arguments).await;
    assert!(ended.out.contains("bundle.tar"), "{ended:?}");
    let mut archive = tar::Archive::new(std::fs::File::open(&file).unwrap());
    let (mut names, mut all) = (Vec::new(), String::new());
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        names.push(entry.path().unwrap().display().to_string());
        entry.read_to_string(&mut all).unwrap();
    }
    let wanted = ["status", "checks", "preflight", "modules", "history"];
    let wanted = wanted.map(|it| format!("peermemd/{it}.json"));
    assert!(wanted.iter().all(|name| names.contains(name)), "{names:?}");
    for name in ["peermemd/config.toml", "peermemd/kernel-log.txt", "peermemd/versions.txt"] {
        assert!(names.contains(&name.to_owned()), "{names:?}");
    }
    for secret in ["6f2d5b3e", "10.1.2.3"] {
        assert!(!all.contains(secret), "{secret}");
    }
    assert!(all.contains("<uuid>") && all.contains("policy.lockdown"));
    let again = run(&bus.address, &arguments).await;
    assert_eq!(again.code, 1);
    assert!(again.err.contains("cannot be written"), "{}", again.err);
}
