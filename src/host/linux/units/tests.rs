//! Against a systemd that is played on a bus of its own.

mod played;

use super::*;
use played::{Bus, Played};

const LEGACY: &str = "nv_peer_mem.service";
const OPENIBD: &str = "openibd.service";

async fn look(units: &mut Units) -> Fact<BTreeMap<String, Unit>> {
    units.look([LEGACY, OPENIBD].into_iter()).await
}

/// Looks until a look shows what is waited for.
async fn until(units: &mut Units, test: impl Fn(&Fact<BTreeMap<String, Unit>>) -> bool) -> bool {
    let wait = async {
        while !test(&look(units).await) {
            let _ = timeout(Duration::from_millis(20), units.changed()).await;
        }
    };
    timeout(Duration::from_secs(10), wait).await.is_ok()
}

async fn settled(bus: &Bus) -> Units {
    let mut units = Units::connect(bus.address());
    assert!(until(&mut units, |seen| seen.known().is_some()).await);
    assert_eq!(next(&mut units).await, Some(Change::Bus));
    units
}

async fn next(units: &mut Units) -> Option<Change> {
    timeout(Duration::from_secs(5), units.changed()).await.ok()
}

#[tokio::test]
async fn units_are_read_whether_they_are_loaded_or_not() {
    let bus = Bus::start().await;
    let systemd = Played::start(&bus, &[(OPENIBD, "active")]).await;
    let mut units = settled(&bus).await;
    let seen = look(&mut units).await;
    let seen = seen.known().unwrap();
    assert_eq!(seen[OPENIBD].active_state, "active");
    assert_eq!((&*seen[LEGACY].load_state, &*seen[LEGACY].active_state), ("not-found", "inactive"));
    assert!(timeout(Duration::from_millis(100), units.changed()).await.is_err());
    systemd.stop().await;
}

#[tokio::test]
async fn a_change_and_a_job_come_by_signal() {
    let bus = Bus::start().await;
    let systemd = Played::start(&bus, &[(OPENIBD, "active")]).await;
    let mut units = settled(&bus).await;
    systemd.change(OPENIBD, "deactivating", Some("restart")).await;
    assert_eq!(next(&mut units).await, Some(Change::Unit(OPENIBD.to_owned())));
    let seen = look(&mut units).await;
    let unit = &seen.known().unwrap()[OPENIBD];
    assert_eq!((&*unit.active_state, unit.job.as_deref()), ("deactivating", Some("restart")));
    systemd.change(OPENIBD, "active", None).await;
    assert_eq!(next(&mut units).await, Some(Change::Unit(OPENIBD.to_owned())));
    assert!(!look(&mut units).await.known().unwrap()[OPENIBD].is_busy());
    systemd.stop().await;
}

#[tokio::test]
async fn a_unit_that_systemd_unloads_is_inactive_and_is_not_loaded_again() {
    let bus = Bus::start().await;
    let systemd = Played::start(&bus, &[(OPENIBD, "active")]).await;
    let mut units = settled(&bus).await;
    let loads = systemd.loads();
    systemd.unload(OPENIBD).await;
    assert_eq!(next(&mut units).await, Some(Change::Unit(OPENIBD.to_owned())));
    systemd.announce(OPENIBD).await;
    assert!(timeout(Duration::from_millis(100), units.changed()).await.is_err());
    let seen = look(&mut units).await;
    let unit = &seen.known().unwrap()[OPENIBD];
    assert_eq!((&*unit.load_state, &*unit.active_state), ("loaded", "inactive"));
    assert_eq!(systemd.loads(), loads);
    systemd.stop().await;
}

#[tokio::test]
async fn a_stop_ends_when_its_job_has_and_is_then_seen() {
    let bus = Bus::start().await;
    let systemd = Played::start(&bus, &[(LEGACY, "active")]).await;
    let mut units = settled(&bus).await;
    let stop = units.stop(LEGACY);
    // It runs whether or not anybody waits for it.
    systemd.wait_for_stop(LEGACY).await;
    let mut stop = pin!(stop);
    assert!(timeout(Duration::from_millis(50), &mut stop).await.is_err());
    assert!(look(&mut units).await.known().unwrap()[LEGACY].is_running());
    systemd.end_stop(LEGACY, "inactive", "done").await;
    let outcome = timeout(Duration::from_secs(5), stop).await.unwrap();
    assert_eq!(outcome, crate::model::Outcome::success());
    assert!(!look(&mut units).await.known().unwrap()[LEGACY].is_running());
    systemd.stop().await;
}

#[tokio::test]
async fn a_stop_that_fails_or_is_refused_says_why() {
    let bus = Bus::start().await;
    let systemd = Played::start(&bus, &[(LEGACY, "active")]).await;
    let units = settled(&bus).await;
    let stop = units.stop(LEGACY);
    systemd.wait_for_stop(LEGACY).await;
    systemd.end_stop(LEGACY, "failed", "dependency").await;
    let outcome = timeout(Duration::from_secs(5), stop).await.unwrap();
    assert_eq!(outcome.message, "the stop job of nv_peer_mem.service ended with 'dependency'");
    let outcome = timeout(Duration::from_secs(5), units.stop("none.service")).await.unwrap();
    assert_eq!(outcome.errno, libc::ENOENT);
    assert!(outcome.message.contains("none.service"), "{}", outcome.message);
    systemd.stop().await;
}

#[tokio::test]
async fn the_bus_may_come_late_and_go_and_come_back() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("bus");
    let mut units = Units::connect(&format!("unix:path={}", socket.display()));
    assert!(look(&mut units).await.why_unknown().unwrap().starts_with("the system bus: "));
    let bus = Bus::start().await;
    let systemd = Played::start(&bus, &[(OPENIBD, "active")]).await;
    for _ in 0..2 {
        let offer = bus.offer_at(&socket);
        units.bus_moved();
        assert!(until(&mut units, |seen| seen.known().is_some()).await);
        offer.abort();
        assert!(until(&mut units, |seen| seen.known().is_none()).await);
        std::fs::remove_file(&socket).unwrap();
        let outcome = timeout(Duration::from_secs(5), units.stop(LEGACY)).await.unwrap();
        assert_eq!(outcome.errno, libc::ENOTCONN);
    }
    systemd.stop().await;
}

#[tokio::test]
async fn a_systemd_that_leaves_the_bus_is_waited_for() {
    let bus = Bus::start().await;
    let systemd = Played::start(&bus, &[(OPENIBD, "active")]).await;
    let mut units = settled(&bus).await;
    systemd.stop().await;
    assert!(until(&mut units, |seen| seen.known().is_none()).await);
    let systemd = Played::start(&bus, &[(OPENIBD, "failed")]).await;
    assert!(until(&mut units, |seen| seen.known().is_some()).await);
    assert_eq!(look(&mut units).await.known().unwrap()[OPENIBD].active_state, "failed");
    systemd.stop().await;
}

#[tokio::test]
async fn another_set_of_units_is_read_when_it_is_asked_for() {
    let bus = Bus::start().await;
    let systemd = Played::start(&bus, &[(OPENIBD, "active"), ("x.service", "failed")]).await;
    let mut units = settled(&bus).await;
    let seen = units.look(["x.service"].into_iter()).await;
    let seen: Vec<_> =
        seen.known().unwrap().iter().map(|(n, u)| (&**n, &*u.active_state)).collect();
    assert_eq!(seen, [("x.service", "failed")]);
    systemd.stop().await;
}
