//! Each command against a daemon, and without one.

use peermemd::dbus::client::{Snapshot, fetch};
use peermemd::model::{
    Backend, GpuFlavour, Mode, Moment, Monotonic, Reason, State, Status, Transport,
};
use zbus::Variant;

use super::fake::{FakeDaemon, PrivateBus, owned, systemd};
use super::run::{ClosedPipe, Ended, Seen, Shared, failure_of, run, run_with};
use super::samples;

pub async fn bus() -> (tempfile::TempDir, PrivateBus) {
    let directory = tempfile::tempdir().unwrap();
    let bus = PrivateBus::start(directory.path()).await;
    (directory, bus)
}

pub fn json(ended: &Ended) -> serde_json::Value {
    let value: serde_json::Value = serde_json::from_str(&ended.out).expect(&ended.out);
    assert_eq!(value["schema"], 1, "{}", ended.out);
    value
}

/// What a look without privileges may come to.
pub fn seen(state: State) -> Status {
    Status {
        version: "0.1.0".into(),
        backend: Backend::Kmod,
        kernel_release: "6.8.0".into(),
        mode: Mode::Enforce,
        state,
        reason: Some(Reason::LegacyInUse),
        status_text: "nv_peer_mem is loaded and in use.".into(),
        remedy: String::new(),
        transport: Transport::Peermem,
        active_path: "none".into(),
        dmabuf_support: "unknown".into(),
        registered: false,
        evidence: Vec::new(),
        advisories: Vec::new(),
        holds: Vec::new(),
        managed_by: Vec::new(),
        plan: vec!["remove nv_peer_mem".into()],
        state_change: Moment { real: samples::NOW, monotonic: Monotonic(0) },
        last_check: samples::NOW,
        next_attempt: Monotonic(0),
        attempt_count: 0,
        failure_count: 0,
        nvidia_driver_version: String::new(),
        nvidia_driver_flavour: GpuFlavour::Unknown,
        rdma_stack: String::new(),
        fingerprint: String::new(),
        configuration_files: Vec::new(),
        modules: Vec::new(),
        clients: Vec::new(),
    }
}

#[tokio::test]
async fn everything_that_is_published_arrives_as_it_was() {
    let (_directory, bus) = bus().await;
    for node in [samples::ready(), samples::held()] {
        let daemon = FakeDaemon::start(&bus, vec![node.clone()]).await;
        let mut read = fetch(&bus.connect().await).await.unwrap();
        let order: Vec<_> = node.modules.iter().map(|module| module.name.as_str()).collect();
        read.sort_modules(&order);
        assert_eq!(read, node);
        daemon.leave().await;
    }
}

#[tokio::test]
async fn a_reading_that_was_overtaken_is_repeated() {
    let (_directory, bus) = bus().await;
    let attempt = |count| Snapshot { attempt_count: count, ..samples::blocked() };
    let daemon = FakeDaemon::start(&bus, vec![attempt(1), attempt(2)]).await;
    let read = fetch(&bus.connect().await).await.unwrap();
    assert_eq!(read.attempt_count, 2);
    let calls = daemon.answers.lock().unwrap().calls.clone();
    let readings = calls.iter().filter(|member| *member == "GetManagedObjects").count();
    assert_eq!(readings, 2, "{calls:?}");
}

#[tokio::test]
async fn every_document_parses_and_has_a_schema() {
    let (_directory, bus) = bus().await;
    let daemon = FakeDaemon::start(&bus, vec![samples::ready()]).await;
    let entry = [("Timestamp", Variant::from(5u64)), ("Event", Variant::from("load"))];
    let entry = entry.into_iter().map(|(name, value)| (name.to_owned(), owned(value))).collect();
    daemon.answers.lock().unwrap().history = vec![entry];
    let verbs = [
        "status",
        "list",
        "show",
        "plan",
        "check",
        "wait",
        "history",
        "reconcile",
        "config",
        "log-level",
    ];
    for verb in verbs {
        for style in ["--json=short", "--json=pretty"] {
            let ended = run(&bus.address, &[verb, style]).await;
            assert_eq!(ended.code, 0, "{verb}: {ended:?}");
            json(&ended);
        }
        let short = run(&bus.address, &[verb, "--json=short"]).await.out;
        assert_eq!(short.lines().count(), 1, "{short}");
    }
    let status = json(&run(&bus.address, &["--json=short"]).await);
    assert_eq!(status["source"], "daemon");
    assert_eq!(status["modules"][5]["name"], "nvidia_peermem", "modules stand in load order");
    let history = json(&run(&bus.address, &["history", "--json=short"]).await);
    assert_eq!(history["entries"][0]["timestamp"], 5);
}

#[tokio::test]
async fn show_prints_named_properties_in_the_order_asked_for() {
    let (_directory, bus) = bus().await;
    let _daemon = FakeDaemon::start(&bus, vec![samples::held()]).await;
    let ended = run(&bus.address, &["show", "State", "Plan", "Held"]).await;
    assert_eq!(ended.out, "State=waiting\nPlan=[\"load nvidia_peermem\"]\nHeld=true\n");
    let ended = run(&bus.address, &["show", "--value", "Reason"]).await;
    assert_eq!(ended.out, "held\n");
    let ended = run(&bus.address, &["show", "Sate"]).await;
    assert_eq!(ended.code, 64, "{ended:?}");
    let all = run(&bus.address, &["show"]).await.out;
    assert!(all.lines().all(|line| line.contains('=')), "{all}");
}

#[tokio::test]
async fn check_speaks_each_monitors_language() {
    let (_directory, bus) = bus().await;
    let _daemon = FakeDaemon::start(&bus, vec![samples::blocked()]).await;
    for (format, code) in [("plain", 3), ("nagios", 2), ("npd", 1), ("nhc", 1)] {
        let ended = run(&bus.address, &["check", "--format", format]).await;
        assert_eq!(ended.code, code, "{format}: {ended:?}");
        assert_eq!(ended.out.lines().count(), 1, "{}", ended.out);
        assert!(ended.out.contains("blocked"), "{}", ended.out);
    }
    let quiet = run(&bus.address, &["check", "-q"]).await;
    assert_eq!((quiet.code, quiet.out.as_str()), (3, ""));
}

#[tokio::test]
async fn check_counts_the_grace_over_all_retries() {
    let (_directory, bus) = bus().await;
    let daemon = FakeDaemon::start(&bus, vec![samples::stuck()]).await;
    let fresh = run(&bus.address, &["check", "--format=nagios"]).await;
    assert_eq!(fresh.code, 1, "{fresh:?}");
    let change = |ago: u64, state: &'static str| {
        let words = [
            ("Timestamp", Variant::from(samples::NOW - ago * 1_000_000)),
            ("BootId", Variant::from("b")),
            ("Event", Variant::from("state")),
            ("Result", Variant::from(state)),
        ];
        words.into_iter().map(|(name, value)| (name.to_owned(), owned(value))).collect()
    };
    let history = vec![change(64, "converging"), change(400, "waiting"), change(900, "ready")];
    daemon.answers.lock().unwrap().history = history;
    let late = run(&bus.address, &["check", "--format=nagios"]).await;
    assert_eq!(late.code, 2, "{late:?}");
    let patient = run(&bus.address, &["check", "--format=nagios", "--grace=10min"]).await;
    assert_eq!(patient.code, 1, "{patient:?}");
}

#[tokio::test]
async fn reconcile_ends_in_the_state_that_it_came_to() {
    let (_directory, bus) = bus().await;
    let daemon = FakeDaemon::start(&bus, vec![samples::blocked()]).await;
    let ended = run(&bus.address, &["reconcile"]).await;
    assert_eq!(ended.code, 3, "{ended:?}");
    assert!(ended.out.starts_with("× blocked (symbol-version-mismatch): "), "{}", ended.out);
    assert!(ended.out.contains("What to do: Rebuild"), "{}", ended.out);
    daemon.answers.lock().unwrap().refuses = true;
    for verb in ["reconcile", "reset-failed", "reload"] {
        let refused = run(&bus.address, &[verb]).await;
        assert_eq!(refused.code, 1, "{refused:?}");
        assert!(refused.err.contains("sudo"), "{}", refused.err);
    }
}

#[tokio::test]
async fn without_a_daemon_the_unit_says_why_and_nobody_guesses() {
    let (_directory, bus) = bus().await;
    let _systemd = systemd(&bus, "loaded", "inactive").await;
    let ended = run(&bus.address, &[]).await;
    assert_eq!(ended.code, 4, "{ended:?}");
    assert_eq!(
        ended.err,
        "peermemctl: peermemd is not running.\npeermemd.service is inactive.\n\
         Start it with: systemctl start peermemd\n"
    );
    for (format, code) in [("plain", 4), ("nagios", 3), ("npd", 2), ("nhc", 0)] {
        let check = run(&bus.address, &["check", "--format", format]).await;
        assert_eq!(check.code, code, "{format}: {check:?}");
        assert!(check.out.contains("inactive"), "{format}: {}", check.out);
    }
}

#[tokio::test]
async fn without_a_daemon_it_looks_for_itself_and_says_so() {
    let (_directory, bus) = bus().await;
    let look = async |arguments: &[&str], state| {
        run_with(&bus.address, arguments, Seen(Some(seen(state)), ""), Shared::default()).await
    };
    let status = look(&[], State::Blocked).await;
    assert_eq!(status.code, 3, "{status:?}");
    assert!(status.out.contains("is what peermemctl sees by itself"), "{}", status.out);
    let document = json(&look(&["--json=short"], State::Blocked).await);
    assert_eq!(document["source"], "local");
    let plan = look(&["plan"], State::Waiting).await;
    assert!(plan.out.contains(" 1. remove nv_peer_mem\n"), "{}", plan.out);
    assert!(plan.out.contains("while peermemd is not running"), "{}", plan.out);
    let check = look(&["check", "--format=nagios"], State::Ready).await;
    assert_eq!(check.code, 0, "{check:?}");
}

#[tokio::test]
async fn config_shows_origins_and_names_what_is_wrong() {
    let (_directory, bus) = bus().await;
    let _daemon = FakeDaemon::start(&bus, vec![samples::ready()]).await;
    let config = async |arguments: &[&str], text| {
        run_with(&bus.address, arguments, Seen(None, text), Shared::default()).await
    };
    let good = config(&["config"], "[timing]\ngrace = \"1min\"\n").await;
    assert_eq!(good.code, 0, "{good:?}");
    let grace = good.out.lines().find(|line| line.starts_with("grace")).unwrap();
    assert!(grace.contains("1min") && grace.contains("peermemd.toml:2"), "{grace}");
    let document = json(&config(&["config", "--json=short"], "").await);
    assert_eq!(document["config"]["policy"]["mode"], "enforce");
    assert_eq!(document["daemon_files"], serde_json::json!([]));
    let bad = config(&["config"], "[timing]\ngrace = \"soon\"\n").await;
    assert_eq!(bad.code, 78, "{bad:?}");
    assert!(bad.err.contains("peermemd.toml:2"), "{}", bad.err);
}

#[tokio::test]
async fn check_takes_its_grace_from_the_configuration() {
    let (_directory, bus) = bus().await;
    let _daemon = FakeDaemon::start(&bus, vec![samples::stuck()]).await;
    let seen = Seen(None, "[timing]\ngrace = \"1min\"\n");
    let ended = run_with(&bus.address, &["check", "--format=nhc"], seen, Shared::default()).await;
    assert_eq!(ended.code, 1, "{ended:?}");
}

#[tokio::test]
async fn a_reader_who_goes_away_is_no_failure() {
    let (_directory, bus) = bus().await;
    let _daemon = FakeDaemon::start(&bus, vec![samples::ready()]).await;
    for verb in ["status", "list", "show", "history", "config"] {
        let failure = failure_of(&bus.address, &[verb], ClosedPipe).await;
        assert!(failure.is_closed_pipe(), "{verb}: {failure:?}");
        assert_eq!(crate::report(&failure), 0, "{verb}");
    }
}
