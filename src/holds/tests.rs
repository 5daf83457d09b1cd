//! The store over a directory of its own.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;
use tokio::time::timeout;

use super::*;
use crate::model::{Asker, Monotonic};

const SOON: Duration = Duration::from_secs(5);

fn at(seconds: u64) -> Moment {
    Moment { real: seconds * 1_000_000, monotonic: Monotonic(seconds * 1_000_000) }
}

fn asker(pid: u32) -> Asker {
    Asker::new("a test", "to see it held", (0, pid)).unwrap()
}

fn name(text: &str) -> HoldName {
    text.parse().unwrap()
}

fn named(text: &str, length: Option<u64>, now: u64) -> NamedHold {
    NamedHold::new(name(text), asker(1), length.map(Duration::from_secs), at(now)).unwrap()
}

/// Names of the holds at that time.
fn names(store: &mut HoldStore, now: u64) -> Vec<String> {
    store.list(at(now)).into_iter().map(|hold| hold.name).collect()
}

fn files(directory: &TempDir) -> Vec<String> {
    let entries = fs::read_dir(directory.path().join(DIRECTORY)).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

async fn wakes(store: &HoldStore) {
    timeout(SOON, store.changed()).await.expect("something happened");
}

#[tokio::test]
async fn an_inhibitor_lasts_until_its_last_copy_is_closed() {
    let directory = TempDir::new().unwrap();
    let mut store = HoldStore::open(directory.path());
    let end = store.inhibit(What::LOAD, asker(7), at(5)).unwrap();
    let copy = end.try_clone().unwrap();
    let holds = store.list(at(6));
    assert_eq!(holds.len(), 1);
    assert_eq!((holds[0].kind, holds[0].what), (HoldKind::Inhibitor, What::LOAD));
    assert_eq!((holds[0].who.as_str(), holds[0].pid, holds[0].since), ("a test", 7, at(5)));
    drop(end);
    assert_eq!(store.list(at(7)).len(), 1);
    drop(copy);
    wakes(&store).await;
    assert!(store.list(at(8)).is_empty());
    assert!(files(&directory).is_empty());
}

#[tokio::test]
async fn an_inhibitor_survives_the_daemon_and_ends_with_its_killed_holder() {
    let directory = TempDir::new().unwrap();
    let mut store = HoldStore::open(directory.path());
    let end = store.inhibit(What::ALL, asker(7), at(5)).unwrap();
    let mut holder = Command::new("sleep").arg("60").stdin(Stdio::from(end)).spawn().unwrap();
    let before = store.list(at(6));
    drop(store);
    let mut store = HoldStore::open(directory.path());
    assert_eq!(store.list(at(7)), before);
    holder.kill().unwrap();
    holder.wait().unwrap();
    wakes(&store).await;
    assert!(store.list(at(8)).is_empty());
}

#[tokio::test]
async fn what_ended_between_two_daemons_is_cleared_away() {
    let directory = TempDir::new().unwrap();
    let mut store = HoldStore::open(directory.path());
    let end = store.inhibit(What::ALL, asker(7), at(5)).unwrap();
    drop(store);
    drop(end);
    let holds = directory.path().join(DIRECTORY);
    fs::write(holds.join("9.inhibitor"), "left behind").unwrap();
    nix::unistd::mkfifo(&holds.join("8.fifo"), nix::sys::stat::Mode::S_IRUSR).unwrap();
    let mut store = HoldStore::open(directory.path());
    assert!(store.list(at(6)).is_empty());
    assert!(files(&directory).is_empty());
}

#[tokio::test]
async fn an_inhibitor_whose_description_is_damaged_still_holds() {
    let directory = TempDir::new().unwrap();
    let mut store = HoldStore::open(directory.path());
    let end = store.inhibit(What::LOAD, asker(7), at(5)).unwrap();
    drop(store);
    fs::write(directory.path().join(DIRECTORY).join("1.inhibitor"), "{").unwrap();
    let mut store = HoldStore::open(directory.path());
    let holds = store.list(at(6));
    assert_eq!(holds[0].what, What::ALL);
    assert!(holds[0].why.contains("1.inhibitor cannot be understood"), "{}", holds[0].why);
    drop(end);
    assert!(store.list(at(7)).is_empty());
}

#[tokio::test]
async fn a_holder_that_writes_says_nothing_by_it() {
    let directory = TempDir::new().unwrap();
    let mut store = HoldStore::open(directory.path());
    let end = store.inhibit(What::ALL, asker(7), at(5)).unwrap();
    let mut writer = fs::File::from(end);
    let chunk = [0_u8; 4096];
    while std::io::Write::write(&mut writer, &chunk).is_ok() {}
    assert_eq!(store.list(at(6)).len(), 1);
    drop(writer);
    assert!(store.list(at(7)).is_empty());
}

#[tokio::test]
async fn numbers_are_not_used_again_while_a_later_one_is_held() {
    let directory = TempDir::new().unwrap();
    let mut store = HoldStore::open(directory.path());
    let first = store.inhibit(What::ALL, asker(7), at(5)).unwrap();
    let second = store.inhibit(What::ALL, asker(7), at(6)).unwrap();
    drop(first);
    let third = store.inhibit(What::ALL, asker(7), at(7)).unwrap();
    assert_eq!(names(&mut store, 8), ["2", "3"]);
    drop((second, third));
}

#[tokio::test]
async fn one_process_and_all_together_have_their_limits() {
    let directory = TempDir::new().unwrap();
    let mut store = HoldStore::open(directory.path());
    let mut ends: Vec<OwnedFd> = Vec::new();
    for pid in 0..8 {
        for _ in 0..MOST_PER_CALLER {
            ends.push(store.inhibit(What::LOAD, asker(pid), at(5)).unwrap());
        }
        let refused = store.inhibit(What::LOAD, asker(pid), at(5)).unwrap_err();
        assert!(matches!(refused, HoldError::TooManyOfCaller(..)), "{refused}");
    }
    assert_eq!(ends.len(), MOST);
    let refused = store.inhibit(What::LOAD, asker(99), at(5)).unwrap_err();
    assert!(matches!(refused, HoldError::TooMany), "{refused}");
    assert!(matches!(store.hold(&named("x", None, 5), at(5)), Err(HoldError::TooMany)));
    ends.clear();
    store.hold(&named("x", None, 6), at(6)).unwrap();
    store.hold(&named("x", None, 7), at(7)).unwrap();
    assert_eq!(names(&mut store, 8), ["x"]);
}

#[tokio::test]
async fn a_named_hold_is_seen_at_once_by_whomever_it_was_written() {
    let directory = TempDir::new().unwrap();
    let holds = directory.path().join(DIRECTORY);
    write(&holds, &named("before", None, 1)).unwrap();
    let mut store = HoldStore::open(directory.path());
    assert_eq!(names(&mut store, 2), ["before"]);
    write(&holds, &named("later", None, 3)).unwrap();
    wakes(&store).await;
    assert_eq!(names(&mut store, 4), ["before", "later"]);
    store.lift(&name("before")).unwrap();
    lift(&holds, &name("later")).unwrap();
    wakes(&store).await;
    assert!(names(&mut store, 5).is_empty());
    assert!(matches!(store.lift(&name("later")), Err(HoldError::NotFound(_))));
}

#[tokio::test]
async fn a_named_hold_ends_with_its_time() {
    let directory = TempDir::new().unwrap();
    let mut store = HoldStore::open(directory.path());
    store.hold(&named("short", Some(10), 5), at(5)).unwrap();
    assert_eq!(store.list(at(14))[0].until, at(15).real);
    assert!(names(&mut store, 15).is_empty());
    assert!(files(&directory).is_empty());
    let end_of_time = Some(Duration::from_secs(u64::MAX));
    assert!(NamedHold::new(name("x"), asker(1), end_of_time, at(5)).is_err());
}

#[tokio::test]
async fn whatever_cannot_be_understood_counts_as_a_hold() {
    let directory = TempDir::new().unwrap();
    let holds = directory.path().join(DIRECTORY);
    let mut store = HoldStore::open(directory.path());
    fs::write(holds.join("empty.hold"), "").unwrap();
    fs::write(holds.join("bytes.hold"), b"\xff\xfe\x00").unwrap();
    fs::write(holds.join("huge.hold"), vec![b' '; 1 << 20]).unwrap();
    fs::write(holds.join("no name!\n.hold"), "{}").unwrap();
    fs::create_dir(holds.join("folder.hold")).unwrap();
    symlink("/etc/passwd", holds.join("link.hold")).unwrap();
    nix::unistd::mkfifo(&holds.join("pipe.hold"), nix::sys::stat::Mode::S_IRUSR).unwrap();
    fs::write(holds.join("README"), "not a hold").unwrap();
    fs::write(holds.join(".tmp.hold"), "not one yet").unwrap();
    let found = store.list(at(5));
    assert_eq!(found.len(), 7);
    for hold in found {
        assert!(hold.what == What::ALL && hold.until == 0, "{hold:?}");
        assert!(hold.why.contains("cannot be understood"), "{hold:?}");
        assert!(!hold.why.contains('\n') && !hold.name.contains('\n'), "{hold:?}");
    }
    store.lift(&name("huge")).unwrap();
    store.hold(&named("bytes", Some(1), 5), at(5)).unwrap();
    assert_eq!(names(&mut store, 7).len(), 5);
}

#[tokio::test]
async fn a_directory_that_is_taken_away_comes_back() {
    let directory = TempDir::new().unwrap();
    let holds = directory.path().join(DIRECTORY);
    let mut store = HoldStore::open(directory.path());
    assert!(names(&mut store, 1).is_empty());
    fs::remove_dir(&holds).unwrap();
    wakes(&store).await;
    assert!(names(&mut store, 2).is_empty());
    write(&holds, &named("x", None, 3)).unwrap();
    wakes(&store).await;
    assert_eq!(names(&mut store, 4), ["x"]);
}

#[tokio::test]
async fn an_overdue_hold_that_is_replaced_meanwhile_stays() {
    let directory = TempDir::new().unwrap();
    let mut store = HoldStore::open(directory.path());
    let holds = directory.path().join(DIRECTORY);
    let path = holds.clone();
    let writer = std::thread::spawn(move || {
        for round in 0..500 {
            write(&path, &named("x", Some(1), 1)).unwrap();
            write(&path, &named("x", None, round)).unwrap();
        }
    });
    while !writer.is_finished() {
        names(&mut store, 100);
    }
    writer.join().unwrap();
    assert_eq!(names(&mut store, 100), ["x"]);
    assert_eq!(files(&directory), ["x.hold"]);
}

#[tokio::test]
async fn what_has_to_be_put_back_outlives_the_daemon() {
    let directory = TempDir::new().unwrap();
    let store = HoldStore::open(directory.path());
    assert!(store.owed().is_empty());
    let modules = ["nvidia", "nvidia_uvm"].map(|text| ModuleName::new(text).unwrap());
    store.owe(&modules).unwrap();
    assert_eq!(HoldStore::open(directory.path()).owed(), modules);
    fs::write(directory.path().join(DIRECTORY).join("put-back.json"), "[\"../x\"]").unwrap();
    assert!(store.owed().is_empty());
    store.owe(&[]).unwrap();
    assert!(files(&directory).is_empty());
}
