//! What a scenario expects is compared with what came of it.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::path::Path;
use std::time::Duration;

use peermemd::host::simulated::{Expectations, Scenario};
use peermemd::model::{
    Advisory, Backend, GpuFlavour, HistoryEntry, LoadState, Mode, ModuleName, ModuleStatus, Moment,
    Monotonic, Reason, Role, State, Status, Transport,
};

const START: Moment = Moment { real: 1_768_464_000_000_000, monotonic: Monotonic(10_000_000) };

fn expect(text: &str) -> Expectations {
    Scenario::parse(text, Path::new("case.toml")).unwrap_or_else(|error| panic!("{error}")).expect
}

fn module(name: &str, load_state: LoadState) -> ModuleStatus {
    ModuleStatus {
        name: ModuleName::new(name).unwrap(),
        role: Role::PeerClient,
        required: true,
        load_state,
        file_name: String::new(),
        module_version: String::new(),
        src_version: String::new(),
        ref_count: 0,
        holders: Vec::new(),
        last_reason: None,
        last_errno: 0,
        loaded_timestamp: 0,
    }
}

fn status(state: State, reason: Reason) -> Status {
    Status {
        version: String::new(),
        backend: Backend::Simulated,
        kernel_release: String::new(),
        mode: Mode::Enforce,
        state,
        reason: Some(reason),
        status_text: "nvidia_peermem is registered".to_owned(),
        remedy: "Nothing to do.".to_owned(),
        transport: Transport::Peermem,
        active_path: "peermem".to_owned(),
        dmabuf_support: "unknown".to_owned(),
        registered: state == State::Ready,
        evidence: Vec::new(),
        advisories: vec![Advisory { reason: Reason::InvisibleToOldNccl, text: String::new() }],
        holds: Vec::new(),
        managed_by: Vec::new(),
        plan: vec!["load nvidia_peermem".to_owned()],
        state_change: START,
        last_check: 0,
        next_attempt: Monotonic(0),
        attempt_count: 0,
        failure_count: 0,
        nvidia_driver_version: String::new(),
        nvidia_driver_flavour: GpuFlavour::Open,
        rdma_stack: String::new(),
        fingerprint: String::new(),
        configuration_files: Vec::new(),
        modules: vec![
            module("nvidia_peermem", LoadState::Live),
            module("nv_peer_mem", LoadState::NotFound),
        ],
        clients: Vec::new(),
    }
}

fn entry(seconds: u64, event: &str, subject: &str, result: &str) -> HistoryEntry {
    HistoryEntry {
        timestamp: START.real + seconds * 1_000_000,
        boot_id: String::new(),
        event: event.to_owned(),
        subject: subject.to_owned(),
        result: result.to_owned(),
        reason: String::new(),
        errno: 0,
        actor: "peermemd".to_owned(),
        text: String::new(),
    }
}

/// Ready, then waiting from 60 s on, then ready again from 90 s on.
fn differences(text: &str) -> Vec<String> {
    let at = |seconds| START.monotonic + Duration::from_secs(seconds);
    let statuses = [
        (at(0), status(State::Starting, Reason::LoadRunning)),
        (at(1), status(State::Ready, Reason::Registered)),
        (at(60), status(State::Waiting, Reason::DriverSwap)),
        (at(90), status(State::Ready, Reason::Registered)),
    ];
    let mut history = [
        entry(1, "load", "nvidia_peermem", "ok"),
        entry(60, "vanished", "nvidia_peermem", ""),
        entry(89, "unload", "nvidia_peermem", "failed"),
        entry(90, "load", "nvidia_peermem", "ok"),
    ];
    history.reverse();
    expect(text).check(START, &statuses, &history).err().unwrap_or_default()
}

#[test]
fn what_came_as_expected_has_no_differences() {
    let text = "
        [[expect]]
        at = '59s'
        state = 'ready'
        loads = { nvidia_peermem = 1 }
        [[expect]]
        at = '60s'
        state = 'waiting'
        reason = 'driver-swap'
        registered = false
        [[expect]]
        state = 'ready'
        reason = 'registered'
        within = '1s'
        text_contains = ['nvidia_peermem', 'registered']
        remedy_contains = 'Nothing'
        plan_contains = 'load nvidia'
        advisories = 'invisible-to-old-nccl'
        modules_live = 'nvidia-peermem'
        modules_absent = ['nv_peer_mem', 'nvidia']
        loads = { nvidia_peermem = 2 }
        unloads = { nvidia_peermem = 1, nvidia = 0 }
        history = ['vanished nvidia_peermem', 'load nvidia_peermem ok']
        never = [{ state = 'blocked' }, { load = 'nvidia_peermem', after = '2s', before = '90s' }]
    ";
    assert_eq!(differences(text), Vec::<String>::new());
}

#[test]
fn each_expectation_that_is_not_met_is_told() {
    for (expectation, told) in [
        ("state = 'blocked'", "the state is ready/registered"),
        ("at = '61s'\nstate = 'ready'", "at 61s: the state is waiting/driver-swap"),
        ("reason = 'gpu-lost'", "the state is ready/registered"),
        ("registered = false", "registered is true"),
        ("text_contains = 'nouveau'", "'nouveau' is not in the text"),
        ("remedy_contains = 'reboot'", "'reboot' is not in the remedy"),
        ("plan_contains = 'mlx5_core'", "'mlx5_core' is not in the plan"),
        ("holds = 'dpkg'", "'dpkg' is not in the list of holds"),
        ("advisories = 'acs-redirect'", "no advisory acs-redirect"),
        ("advisory_contains = 'NCCL'", "'NCCL' is not in the advisories ''"),
        ("modules_live = 'nvidia'", "nvidia is not live"),
        ("modules_absent = 'nvidia_peermem'", "nvidia_peermem is loaded"),
        ("loads = { nvidia_peermem = 1 }", "2 times load of nvidia_peermem, not 1"),
        ("unloads = { nvidia_peermem = 0 }", "1 times unload of nvidia_peermem, not 0"),
        ("state = 'ready'\nwithin = '500ms'", "reached after 1s only"),
        ("state = 'blocked'\nwithin = '1min'", "not reached within 60s, nor ever"),
        ("history = ['load nvidia_peermem ok', 'vanished', 'vanished']", "'vanished' is missing"),
        ("history = ['load nvidia_peermem failed']", "'load nvidia_peermem failed' is missing"),
        (
            "never = [{ load = 'nvidia_peermem', after = '1min' }]",
            "load of nvidia_peermem after 90s",
        ),
        ("never = [{ unload = 'nvidia_peermem' }]", "unload of nvidia_peermem after 89s"),
        ("never = [{ state = 'ready', before = '1min' }]", "the state was ready from 1s on"),
        ("never = [{ state = 'waiting', after = '80s' }]", "the state was waiting from 60s on"),
    ] {
        let found = differences(&format!("[expect]\n{expectation}"));
        assert!(found.iter().any(|line| line.contains(told)), "{expectation}: {found:?}");
    }
}

#[test]
fn a_run_that_published_nothing_meets_nothing() {
    let check = expect("[expect]\nstate = 'ready'").check(START, &[], &[]);
    assert_eq!(check, Err(vec!["at the end: nothing was published".to_owned()]));
}
