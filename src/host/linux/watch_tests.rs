use std::fs;
use std::time::Duration;

use tokio::time::timeout;

use super::*;

async fn next(watches: &mut Watches) -> Vec<Sign> {
    loop {
        if timeout(Duration::from_secs(5), watches.readable()).await.is_err() {
            return vec![];
        }
        let signs = watches.drain();
        if !signs.is_empty() {
            return signs;
        }
    }
}

async fn is_quiet(watches: &mut Watches) -> bool {
    let quiet = timeout(Duration::from_millis(20), watches.readable()).await.is_err();
    watches.drain().is_empty() && quiet
}

#[tokio::test]
async fn an_index_that_is_renamed_into_place_is_seen_and_its_neighbours_are_not() {
    let root = tempfile::tempdir().unwrap();
    let mut watches = Watches::new().unwrap();
    let tree = Interest::files_in(root.path().into(), &["modules.dep.bin"], Sign::ModuleTree);
    watches.watch(vec![tree]);
    fs::write(root.path().join("modules.dep.tmp"), "x").unwrap();
    assert!(watches.drain().is_empty());
    fs::rename(root.path().join("modules.dep.tmp"), root.path().join("modules.dep.bin")).unwrap();
    assert_eq!(next(&mut watches).await, [Sign::ModuleTree]);
    assert!(is_quiet(&mut watches).await);
}

#[tokio::test]
async fn a_directory_that_appears_later_is_watched_from_then_on() {
    let root = tempfile::tempdir().unwrap();
    let directory = root.path().join("etc/modprobe.d");
    let mut watches = Watches::new().unwrap();
    let config = Interest::files_ending_in(directory.clone(), ".conf", Sign::ModprobeConfig);
    watches.watch(vec![config]);
    fs::create_dir(root.path().join("unrelated")).unwrap();
    assert!(watches.drain().is_empty());
    fs::create_dir(root.path().join("etc")).unwrap();
    next(&mut watches).await;
    fs::create_dir(&directory).unwrap();
    assert_eq!(next(&mut watches).await, [Sign::ModprobeConfig]);
    fs::write(directory.join("x.txt"), "").unwrap();
    assert!(watches.drain().is_empty());
    fs::write(directory.join("x.conf"), "").unwrap();
    assert_eq!(next(&mut watches).await, [Sign::ModprobeConfig]);
    fs::remove_dir_all(&directory).unwrap();
    assert_eq!(next(&mut watches).await, [Sign::ModprobeConfig]);
    fs::create_dir(&directory).unwrap();
    assert_eq!(next(&mut watches).await, [Sign::ModprobeConfig]);
}

#[tokio::test]
async fn two_names_of_one_file_both_count() {
    let root = tempfile::tempdir().unwrap();
    let (real, link) = (root.path().join("real"), root.path().join("link"));
    fs::create_dir(&real).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let mut watches = Watches::new().unwrap();
    watches.watch(vec![
        Interest::end_of(real.clone(), "queue", Sign::UdevQueue),
        Interest::files_in(link, &["socket"], Sign::Bus),
        Interest::end_of(real.clone(), "other", Sign::Swap),
    ]);
    for name in ["queue", "socket", "other"] {
        fs::write(real.join(name), "").unwrap();
    }
    assert_eq!(watches.drain(), [Sign::Bus]);
    fs::remove_file(real.join("queue")).unwrap();
    assert_eq!(watches.drain(), [Sign::UdevQueue]);
}

#[tokio::test]
async fn a_lock_file_that_is_opened_and_closed_is_seen() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("lock");
    fs::write(&path, "").unwrap();
    let mut watches = Watches::new().unwrap();
    watches.watch(vec![Interest::lock(path.clone(), Sign::Swap)]);
    let lock = fs::OpenOptions::new().write(true).open(&path).unwrap();
    assert_eq!(next(&mut watches).await, [Sign::Swap]);
    drop(lock);
    assert_eq!(next(&mut watches).await, [Sign::Swap]);
    watches.watch(vec![]);
    fs::write(&path, "").unwrap();
    assert!(watches.drain().is_empty());
}
