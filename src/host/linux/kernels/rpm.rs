//! Asks rpm who brought a file. Its database has had three formats, which only its own library
//! reads.
//!
//! The question is asked without the right to write, so that not even an index or a lock is made:
//! as the user at hand, or as nobody by root. A root that may not become another user (the daemon
//! in its sandbox) does not ask, and says how to.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::owners::spellings;
use super::root::Root;
use crate::model::FileOwner;

/// Where the database is, by distribution.
const PLACES: [&str; 2] = ["/usr/lib/sysimage/rpm", "/var/lib/rpm"];
/// What it is called, by format: sqlite, Berkeley, ndb.
const DATABASES: [&str; 3] = ["rpmdb.sqlite", "Packages", "Packages.db"];
const PROGRAM: &str = "/usr/bin/rpm";
const NOBODY: u32 = 65534;
/// A database that is being written to may be locked.
const PATIENCE: Duration = Duration::from_secs(2);
const GLANCE: Duration = Duration::from_millis(2);
const LARGEST_ANSWER: u64 = 16 * 1024;

/// The owners of files (as they are called inside) that rpm knows, each under the key that it
/// was asked for. Nothing, where there is no database.
pub(super) fn owners<K: Ord + Clone>(
    root: &Root,
    files: &BTreeMap<K, PathBuf>,
) -> BTreeMap<K, FileOwner> {
    let Some(database) = database(root).filter(|_| !files.is_empty()) else {
        return BTreeMap::new();
    };
    let allowed = may_ask();
    // All at once: each takes a tenth of a second, most of which is its own start.
    let asked: Vec<_> = files
        .iter()
        .map(|(key, file)| {
            let question = allowed.then(|| Question::ask(&database, file)).flatten();
            (key.clone(), file, question)
        })
        .collect();
    let until = Instant::now() + PATIENCE;
    let owner = |(key, file, question): (K, &PathBuf, Option<Question>)| {
        let answer = question.map_or(Answer::None, |question| question.answer(until));
        Some((
            key,
            match answer {
                Answer::Package(package) => FileOwner::Package(package),
                Answer::Nobody => return None,
                Answer::None => {
                    FileOwner::Unasked { command: format!("rpm -qf {}", file.display()) }
                }
            },
        ))
    };
    asked.into_iter().filter_map(owner).collect()
}

fn database(root: &Root) -> Option<PathBuf> {
    let directories = PLACES.iter().filter_map(|place| root.resolve(Path::new(place)).ok());
    let mut holding =
        directories.filter(|path| DATABASES.iter().any(|name| path.join(name).is_file()));
    holding.next()
}

/// Whether the answer can be had without the right to write.
fn may_ask() -> bool {
    const SETGID_AND_SETUID: u64 = 0b1100_0000;
    if !nix::unistd::geteuid().is_root() {
        return true;
    }
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
    bits.is_some_and(|bits| bits & SETGID_AND_SETUID == SETGID_AND_SETUID)
}

/// A running rpm.
struct Question(Child);

enum Answer {
    Package(String),
    Nobody,
    None,
}

impl Question {
    fn ask(database: &Path, file: &Path) -> Option<Self> {
        let mut command = Command::new(PROGRAM);
        command.env_clear().env("LC_ALL", "C").env("PATH", "/usr/bin:/bin").current_dir("/");
        command.arg("--dbpath").arg(database).args(["--noplugins", "-qf", "--qf", "%{NAME}\\n"]);
        command.args(spellings(file));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if nix::unistd::geteuid().is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command.spawn().ok().map(Self)
    }

    /// Waits no longer than that. A question that is not answered by then is given up.
    fn answer(mut self, until: Instant) -> Answer {
        loop {
            match self.0.try_wait() {
                Ok(Some(_)) => break,
                Ok(None) if Instant::now() < until => thread::sleep(GLANCE),
                Ok(None) | Err(_) => {
                    // It is our own child and has written nothing, so that it can be ended.
                    let _ = (self.0.kill(), self.0.wait());
                    return Answer::None;
                }
            }
        }
        let (said, complaint) = (text(self.0.stdout.take()), text(self.0.stderr.take()));
        let name = |line: &&str| !line.is_empty() && !line.contains(char::is_whitespace);
        match said.lines().map(str::trim).find(name) {
            Some(package) => Answer::Package(package.to_owned()),
            None if complaint.contains("cannot open") => Answer::None,
            None => Answer::Nobody,
        }
    }
}

fn text(stream: Option<impl Read>) -> String {
    let mut bytes = Vec::new();
    // What could not be read is not there.
    let _ = stream.map(|stream| stream.take(LARGEST_ANSWER).read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const FILE: &str = "/lib/modules/5.14/extra/ib_core.ko";

    fn ask(root: &Root, file: &str) -> Option<FileOwner> {
        owners(root, &[((), PathBuf::from(file))].into()).remove(&())
    }

    fn run(command: &mut Command) -> bool {
        let output = command.output();
        output.is_ok_and(|output| output.status.success())
    }

    /// A database with one package that has [`FILE`]; `None` where there is no rpm to make it.
    fn installed() -> Option<tempfile::TempDir> {
        let directory = tempfile::tempdir().unwrap();
        let open = fs::Permissions::from_mode(0o755);
        fs::set_permissions(directory.path(), open).unwrap();
        let database = directory.path().join("var/lib/rpm");
        fs::create_dir_all(&database).unwrap();
        let spec = format!(
            "Name: kmod-x\nVersion: 1\nRelease: 1\nSummary: x\nLicense: MIT\nBuildArch: noarch\n\
             %description\nx\n%install\nmkdir -p $(dirname %{{buildroot}}{FILE})\n\
             echo x > %{{buildroot}}{FILE}\n%files\n{FILE}\n"
        );
        let (file, top) = (directory.path().join("x.spec"), directory.path().join("top"));
        fs::write(&file, spec).unwrap();
        let define = format!("_topdir {}", top.display());
        let build = run(Command::new("rpmbuild").args(["-bb", "--define", &define]).arg(&file));
        let package = top.join("RPMS/noarch/kmod-x-1-1.noarch.rpm");
        let rpm = || {
            let mut rpm = Command::new(PROGRAM);
            rpm.arg("--dbpath").arg(&database);
            rpm
        };
        let made = build
            && run(rpm().arg("--initdb"))
            && run(rpm().args(["--justdb", "--nodeps", "-i"]).arg(package));
        made.then_some(directory)
    }

    #[test]
    fn rpm_names_the_package_and_nothing_is_written() {
        let Some(directory) = installed() else {
            println!("there is no rpmbuild here");
            return;
        };
        let root = Root::new(directory.path());
        let names = || {
            let entries = fs::read_dir(directory.path().join("var/lib/rpm")).unwrap().flatten();
            let stamp = |entry: fs::DirEntry| {
                (entry.file_name(), entry.metadata().unwrap().modified().unwrap())
            };
            entries.map(stamp).collect::<BTreeMap<_, _>>()
        };
        let before = names();
        let package = Some(FileOwner::Package("kmod-x".to_owned()));
        assert_eq!(ask(&root, FILE), package);
        assert_eq!(ask(&root, &format!("/usr{FILE}")), package);
        assert_eq!(ask(&root, "/lib/modules/5.14/extra/nobodys.ko"), None);
        assert_eq!(names(), before);
    }

    #[test]
    fn a_database_that_cannot_be_read_leaves_the_question_open() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(ask(&Root::new(directory.path()), FILE), None);
        fs::create_dir_all(directory.path().join("var/lib/rpm")).unwrap();
        fs::write(directory.path().join("var/lib/rpm/rpmdb.sqlite"), "no database").unwrap();
        let owner = ask(&Root::new(directory.path()), FILE).unwrap();
        assert_eq!(owner.to_string(), format!("a package or nobody ('rpm -qf {FILE}' tells)"));
    }
}
