//! What happened: one JSON object per line, kept across reboots.
//!
//! Entries are rare (a state change, a load), so each is appended when it happens. Nothing is
//! synced but a rewrite, so that a crash leaves the old file or the new one, never an empty one.
//! If the disk does not take them, entries stay in memory, and one warning says so.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::model::HistoryEntry;

/// The file's name in the state directory.
const NAME: &str = "history.jsonl";

/// How many entries are kept.
pub const KEPT: usize = 256;

/// How many more lines the file may have before it is rewritten: one rewrite for so many appends.
const SLACK: usize = 64;

/// How much of the end of the file is read. Entries are some hundred bytes.
const TAIL: u64 = 2 << 20;

/// The history of the node.
#[derive(Debug)]
pub struct History {
    path: PathBuf,
    /// Oldest first.
    entries: VecDeque<HistoryEntry>,
    /// Lines in the file; `None` if it is not what it should be, so that the next entry has to
    /// rewrite it.
    lines: Option<usize>,
    skipped: usize,
    warned: bool,
}

impl History {
    /// Reads what is kept in `directory`. Lines that are no entries are passed over; a file that
    /// cannot be read is an empty history, said in the log.
    pub fn open(directory: impl AsRef<Path>) -> Self {
        let path = directory.as_ref().join(NAME);
        let mut history =
            Self { path, entries: VecDeque::new(), lines: Some(0), skipped: 0, warned: false };
        match read_tail(&history.path) {
            Ok(tail) => history.take_over(&tail),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => history.warn("read", &error),
        }
        history
    }

    /// How many lines were passed over because they are damaged.
    pub fn skipped(&self) -> usize {
        self.skipped
    }

    /// The newest entries, newest first; at most `max` of them, 0 for all that are kept.
    pub fn newest(&self, max: usize) -> Vec<HistoryEntry> {
        let max = if max == 0 { KEPT } else { max };
        self.entries.iter().rev().take(max).cloned().collect()
    }

    /// Adds an entry.
    pub fn append(&mut self, entry: HistoryEntry) {
        self.entries.push_back(entry);
        if self.entries.len() > KEPT {
            self.entries.pop_front();
        }
        match self.store() {
            Ok(()) => self.warned = false,
            Err(error) => {
                self.lines = None;
                self.warn("written", &error);
            }
        }
    }

    fn take_over(&mut self, tail: &Tail) {
        let text = String::from_utf8_lossy(&tail.bytes);
        let mut lines = 0;
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            lines += 1;
            match serde_json::from_str(line) {
                Ok(entry) => self.entries.push_back(entry),
                Err(_) => self.skipped += 1,
            }
        }
        let surplus = self.entries.len().saturating_sub(KEPT);
        self.entries.drain(..surplus);
        // Appending behind half a line would damage the next one too.
        let is_sound = tail.is_whole && self.skipped == 0 && tail.ends_line();
        self.lines = is_sound.then_some(lines);
        if self.skipped > 0 {
            let (path, skipped) = (self.path.display(), self.skipped);
            tracing::info!("'{path}' had {skipped} damaged lines, which are passed over");
        }
    }

    /// Brings the newest entry to the disk.
    fn store(&mut self) -> io::Result<()> {
        match (self.lines, self.entries.back()) {
            (Some(lines), Some(entry)) if lines < KEPT + SLACK => {
                append_line(&self.path, entry)?;
                self.lines = Some(lines + 1);
            }
            _ => {
                self.rewrite()?;
                self.lines = Some(self.entries.len());
            }
        }
        Ok(())
    }

    fn rewrite(&self) -> io::Result<()> {
        let directory = self.path.parent().unwrap_or(Path::new("/"));
        let mut file = NamedTempFile::new_in(directory)?;
        let mut out = BufWriter::new(&mut file);
        for entry in &self.entries {
            serde_json::to_writer(&mut out, entry)?;
            out.write_all(b"\n")?;
        }
        out.flush()?;
        drop(out);
        file.as_file().set_permissions(Permissions::from_mode(0o644))?;
        file.as_file().sync_all()?;
        file.persist(&self.path).map_err(|error| error.error)?;
        Ok(())
    }

    fn warn(&mut self, done: &str, error: &io::Error) {
        if !self.warned {
            let path = self.path.display();
            tracing::warn!(
                "the history in '{path}' cannot be {done} and is kept in memory: {error}"
            );
        }
        self.warned = true;
    }
}

/// The end of the file.
struct Tail {
    bytes: Vec<u8>,
    /// Whether that is all of it.
    is_whole: bool,
}

impl Tail {
    fn ends_line(&self) -> bool {
        self.bytes.is_empty() || self.bytes.ends_with(b"\n")
    }
}

fn read_tail(path: &Path) -> io::Result<Tail> {
    let mut file = File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let skip = file.metadata()?.len().saturating_sub(TAIL);
    file.seek(SeekFrom::Start(skip))?;
    let mut bytes = Vec::new();
    file.take(TAIL).read_to_end(&mut bytes)?;
    if skip > 0 {
        // Most likely it begins within a line.
        let first = bytes.iter().position(|&byte| byte == b'\n').map_or(bytes.len(), |at| at + 1);
        bytes.drain(..first);
    }
    Ok(Tail { bytes, is_whole: skip == 0 })
}

fn append_line(path: &Path, entry: &HistoryEntry) -> io::Result<()> {
    let mut line = serde_json::to_vec(entry)?;
    line.push(b'\n');
    let is_new = fs::symlink_metadata(path).is_err();
    let mut file = OpenOptions::new().append(true).create(true).open(path)?;
    if is_new {
        file.set_permissions(Permissions::from_mode(0o644))?;
    }
    file.write_all(&line)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tempfile::TempDir;

    use super::*;

    fn entry(timestamp: u64) -> HistoryEntry {
        HistoryEntry {
            timestamp,
            boot_id: "boot".into(),
            event: "load".into(),
            subject: "nvidia_peermem".into(),
            result: "ok".into(),
            reason: String::new(),
            errno: 0,
            actor: "peermemd".into(),
            text: "Loaded nvidia_peermem.".into(),
        }
    }

    fn timestamps(history: &History, max: usize) -> Vec<u64> {
        history.newest(max).iter().map(|entry| entry.timestamp).collect()
    }

    fn lines(directory: &TempDir) -> usize {
        fs::read_to_string(directory.path().join(NAME)).unwrap().lines().count()
    }

    #[test]
    fn entries_survive_a_restart_and_come_newest_first() {
        let directory = TempDir::new().unwrap();
        let mut history = History::open(directory.path());
        (1..=3).for_each(|at| history.append(entry(at)));
        let reopened = History::open(directory.path());
        assert_eq!(timestamps(&reopened, 0), [3, 2, 1]);
        assert_eq!(timestamps(&reopened, 2), [3, 2]);
        assert_eq!(reopened.newest(1), [entry(3)]);
    }

    #[test]
    fn no_more_than_256_are_kept_and_the_file_does_not_grow() {
        let directory = TempDir::new().unwrap();
        let mut history = History::open(directory.path());
        for at in 1..=1000 {
            history.append(entry(at));
            assert!(lines(&directory) <= KEPT + SLACK);
        }
        for history in [history, History::open(directory.path())] {
            let kept = timestamps(&history, 0);
            assert_eq!((kept.len(), kept[0], kept[KEPT - 1]), (KEPT, 1000, 745));
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn damaged_lines_are_counted_and_gone_after_the_next_entry() {
        let directory = TempDir::new().unwrap();
        History::open(directory.path()).append(entry(1));
        let path = directory.path().join(NAME);
        let mut bytes = fs::read(&path).unwrap();
        bytes.extend_from_slice(b"\xff\xfe\0\n{\"timestamp\": 2}\n\n[1]\n");
        bytes.extend(serde_json::to_vec(&entry(3)).unwrap());
        bytes.extend_from_slice(b"\n{\"timestamp\": 4, \"boot");
        fs::write(&path, bytes).unwrap();
        let mut history = History::open(directory.path());
        assert_eq!((timestamps(&history, 0), history.skipped()), (vec![3, 1], 4));
        history.append(entry(5));
        let history = History::open(directory.path());
        assert_eq!((timestamps(&history, 0), history.skipped()), (vec![5, 3, 1], 0));
    }

    #[test]
    fn an_entry_behind_half_a_line_is_not_lost() {
        let directory = TempDir::new().unwrap();
        fs::write(directory.path().join(NAME), serde_json::to_vec(&entry(1)).unwrap()).unwrap();
        History::open(directory.path()).append(entry(2));
        assert_eq!(timestamps(&History::open(directory.path()), 0), [2, 1]);
    }

    #[test]
    fn of_a_huge_file_the_end_is_read_and_the_file_is_cut() {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join(NAME);
        let mut bytes = vec![b'x'; usize::try_from(TAIL).unwrap()];
        bytes.push(b'\n');
        bytes.extend(serde_json::to_vec(&entry(1)).unwrap());
        bytes.push(b'\n');
        fs::write(&path, bytes).unwrap();
        let mut history = History::open(directory.path());
        assert_eq!(timestamps(&history, 0), [1]);
        history.append(entry(2));
        assert_eq!(lines(&directory), 2);
    }

    #[test]
    fn without_a_place_to_write_entries_stay_in_memory_and_are_stored_once_there_is() {
        let directory = TempDir::new().unwrap();
        let late = directory.path().join("late");
        let mut history = History::open(&late);
        (1..=3).for_each(|at| history.append(entry(at)));
        assert!(history.warned);
        assert_eq!(timestamps(&history, 0), [3, 2, 1]);
        fs::create_dir(&late).unwrap();
        history.append(entry(4));
        assert!(!history.warned);
        assert_eq!(timestamps(&History::open(&late), 0), [4, 3, 2, 1]);
    }

    #[test]
    fn a_full_disk_keeps_entries_in_memory() {
        let directory = TempDir::new().unwrap();
        std::os::unix::fs::symlink("/dev/full", directory.path().join(NAME)).unwrap();
        let mut history = History::open(directory.path());
        history.append(entry(1));
        assert_eq!(timestamps(&history, 0), [1]);
        assert!(history.warned);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn any_bytes_in_the_file_leave_a_history_that_takes_entries(
            bytes in proptest::collection::vec(any::<u8>(), 0..400)
        ) {
            let directory = TempDir::new().unwrap();
            fs::write(directory.path().join(NAME), bytes).unwrap();
            History::open(directory.path()).append(entry(7));
            let reopened = History::open(directory.path());
            prop_assert_eq!(timestamps(&reopened, 0), [7]);
            prop_assert_eq!(reopened.skipped(), 0);
        }
    }
}
