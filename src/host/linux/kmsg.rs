//! The kernel log: `/dev/kmsg`, one record for each read.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::model::Fact;

/// The kernel's own limit of one record with its prefix and dictionary.
const LONGEST_RECORD: usize = 8192;

/// More records than any log buffer holds: the end of a read that would never end.
const MOST_RECORDS: usize = 1 << 16;

/// The most records that are read at one look while the client is live. Whoever floods the log
/// faster does not keep the daemon busy.
const MOST_AT_ONCE: usize = 1 << 13;

/// Lines that are kept of a step, from its beginning and from its end, and bytes of each.
const FIRST_LINES: usize = 128;
const LAST_LINES: usize = 128;
const LONGEST_LINE: usize = 512;

/// A record of the kernel itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Sequence number.
    pub seq: u64,
    /// When it was logged, in µs since boot.
    pub at: u64,
    /// The message, without its prefix and its dictionary.
    pub text: String,
}

/// A place in the log from which on it is read.
#[derive(Debug)]
pub(super) struct Kmsg(File);

impl Kmsg {
    /// From the next record on.
    pub(super) fn from_now(root: &Path) -> io::Result<Self> {
        let mut log = Self::from_the_start(root)?;
        log.0.seek(SeekFrom::End(0))?;
        Ok(log)
    }

    /// From the oldest record that the kernel still has.
    pub(super) fn from_the_start(root: &Path) -> io::Result<Self> {
        let path = root.join("dev/kmsg");
        let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&path);
        let named =
            |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        file.map(Self).map_err(named)
    }

    /// Gives every new record of the kernel to `each`, and says whether some were lost.
    pub(super) fn read(&mut self, each: impl FnMut(Record)) -> io::Result<bool> {
        drain(|buffer| self.0.read(buffer), each, MOST_RECORDS)
    }

    /// The same for a log that is followed: of a flood only the beginning is read, and the rest
    /// is passed over.
    pub(super) fn follow(&mut self, each: impl FnMut(Record)) -> io::Result<bool> {
        let mut count = 0;
        let lost = drain(
            |buffer| {
                count += 1;
                self.0.read(buffer)
            },
            each,
            MOST_AT_ONCE,
        )?;
        if count >= MOST_AT_ONCE {
            self.0.seek(SeekFrom::End(0))?;
        }
        Ok(lost)
    }

    /// The new lines, cut to a bearable size and number, and whether some were lost.
    pub(super) fn lines(&mut self) -> (Fact<Vec<String>>, bool) {
        let (mut first, mut tail, mut lost) = (Vec::new(), VecDeque::new(), false);
        let read = self.read(|record| {
            for line in record.text.lines() {
                let line = cut(line, LONGEST_LINE);
                if first.len() < FIRST_LINES {
                    first.push(line);
                    continue;
                }
                if tail.len() == LAST_LINES {
                    tail.pop_front();
                    lost = true;
                }
                tail.push_back(line);
            }
        });
        match read {
            Ok(overrun) => {
                first.extend(tail);
                (Fact::Known(first), lost || overrun)
            }
            Err(error) => (Fact::unknown(format!("the kernel log: {error}")), lost),
        }
    }
}

/// At most `limit` bytes of the text, ended at a character.
pub(super) fn cut(text: &str, limit: usize) -> String {
    let end = (0..=limit.min(text.len())).rev().find(|&end| text.is_char_boundary(end));
    text[..end.unwrap_or(0)].to_owned()
}

fn drain(
    mut read: impl FnMut(&mut [u8]) -> io::Result<usize>,
    mut each: impl FnMut(Record),
    most: usize,
) -> io::Result<bool> {
    let mut buffer = vec![0; LONGEST_RECORD];
    let mut lost = false;
    for _ in 0..most {
        match read(&mut buffer) {
            Ok(0) => return Ok(lost),
            Ok(length) => {
                parse(buffer.get(..length).unwrap_or(&buffer)).into_iter().for_each(&mut each);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(lost),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // EPIPE: records were overwritten before they were read. EINVAL: one did not fit.
            Err(error) if matches!(error.raw_os_error(), Some(libc::EPIPE | libc::EINVAL)) => {
                lost = true;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// `PRIORITY,SEQUENCE,MICROSECONDS,FLAGS[,…];TEXT\n KEY=VALUE\n…`. `None` for what makes no
/// sense, and for what user space has written into the log.
pub fn parse(record: &[u8]) -> Option<Record> {
    let end = record.iter().position(|&byte| byte == b';')?;
    let prefix = std::str::from_utf8(record.get(..end)?).ok()?;
    let mut fields = prefix.split(',');
    let priority: u32 = fields.next()?.parse().ok()?;
    let seq = fields.next()?.parse().ok()?;
    let at = fields.next()?.parse().ok()?;
    let facility = priority >> 3;
    if facility != 0 {
        return None;
    }
    let message = record.get(end + 1..)?;
    let text = message.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let text = String::from_utf8_lossy(&unescape(text)).trim_end().to_owned();
    Some(Record { seq, at, text })
}

/// The kernel writes control characters, backslashes and everything beyond ASCII as `\xNN`; a
/// message of several lines comes as one record with `\x0a` in it.
fn unescape(text: &[u8]) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if first == b'\\'
            && let [b'x', high, low, beyond @ ..] = after
            && let (Some(high), Some(low)) = (digit(*high), digit(*low))
        {
            bytes.push(high << 4 | low);
            rest = beyond;
        } else {
            bytes.push(first);
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn scripted(
        steps: Vec<Result<&'static [u8], i32>>,
    ) -> impl FnMut(&mut [u8]) -> io::Result<usize> {
        let mut steps = VecDeque::from(steps);
        move |buffer| match steps.pop_front().unwrap_or(Err(libc::EAGAIN)) {
            Ok(record) => {
                buffer[..record.len()].copy_from_slice(record);
                Ok(record.len())
            }
            Err(errno) => Err(io::Error::from_raw_os_error(errno)),
        }
    }

    fn read(steps: Vec<Result<&'static [u8], i32>>) -> (Vec<String>, bool) {
        let mut texts = Vec::new();
        let lost = drain(scripted(steps), |record| texts.push(record.text), MOST_RECORDS).unwrap();
        (texts, lost)
    }

    #[test]
    fn the_dictionary_and_the_prefix_are_taken_off() {
        let record = b"6,339,5140900,-;NET: Registered\n SUBSYSTEM=net\n DEVICE=+x\n";
        let wanted = Record { seq: 339, at: 5_140_900, text: "NET: Registered".to_owned() };
        assert_eq!(parse(record), Some(wanted));
        assert_eq!(parse(b"4,7,1,-,caller=T1;a;b\n").unwrap().text, "a;b");
    }

    #[test]
    fn what_user_space_wrote_is_not_the_kernels_word() {
        assert_eq!(parse(b"30,1,1,-;nvidia-peermem ERROR\n"), None);
    }

    #[test]
    fn an_overrun_is_told_and_reading_goes_on() {
        let (texts, lost) = read(vec![
            Ok(b"3,1,1,-;one\n"),
            Err(libc::EPIPE),
            Err(libc::EINTR),
            Ok(b"3,9,1,-;t\xffwo\n"),
        ]);
        assert_eq!((texts, lost), (vec!["one".to_owned(), "t\u{fffd}wo".to_owned()], true));
    }

    #[test]
    fn what_the_kernel_escaped_is_read_as_it_was_written() {
        let text = |record: &[u8]| parse(record).unwrap().text;
        assert_eq!(text(b"3,1,1,-;one\\x0atwo \\x5c \\xc3\\xa9\n"), "one\ntwo \\ \u{e9}");
        assert_eq!(text(b"3,1,1,-;\\x \\x4 \\xzz\n"), "\\x \\x4 \\xzz");
    }

    /// A log as a plain file holds one record, so several lines come by way of escapes.
    #[test]
    fn of_a_flood_the_beginning_and_the_end_are_kept() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("dev")).unwrap();
        let text: Vec<_> = (0..400).map(|number| format!("line {number}")).collect();
        let record = format!("3,1,1,-;{}\n", text.join("\\x0a"));
        std::fs::write(root.path().join("dev/kmsg"), record).unwrap();
        let (lines, lost) = Kmsg::from_the_start(root.path()).unwrap().lines();
        let lines = lines.known().unwrap().clone();
        assert_eq!((lines.len(), lost), (FIRST_LINES + LAST_LINES, true));
        assert_eq!((lines[0].as_str(), lines[255].as_str()), ("line 0", "line 399"));
    }

    #[test]
    fn an_endless_log_ends() {
        let endless = |buffer: &mut [u8]| {
            buffer[..9].copy_from_slice(b"3,1,1,-;x");
            Ok(9)
        };
        let mut count = 0;
        assert!(drain(endless, |_| count += 1, MOST_RECORDS).unwrap());
        assert_eq!(count, MOST_RECORDS);
    }

    #[test]
    fn a_log_that_cannot_be_opened_says_which() {
        let root = tempfile::tempdir().unwrap();
        let error = Kmsg::from_now(root.path()).unwrap_err().to_string();
        assert!(error.contains("/dev/kmsg: "), "{error}");
    }

    #[test]
    fn a_long_line_is_cut_at_a_character() {
        assert_eq!(cut("a\u{e9}b", 2), "a");
        assert_eq!(cut("ab", 9), "ab");
    }

    proptest! {
        #[test]
        fn no_record_makes_the_parser_panic(record in proptest::collection::vec(any::<u8>(), 0..200)) {
            parse(&record);
        }

        #[test]
        fn every_record_of_the_kernel_comes_through(seq: u64, level in 0u32..8, text in r"[ -\[\]-~]{0,80}") {
            let record = parse(format!("{level},{seq},1,-;{text}\n KEY=x\n").as_bytes()).unwrap();
            prop_assert_eq!(record, Record { seq, at: 1, text: text.trim_end().to_owned() });
        }
    }
}
