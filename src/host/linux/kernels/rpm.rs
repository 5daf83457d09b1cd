//! Asks rpm who brought a file. Its database has had three formats, which only its own library
//! reads.
//! Where it may not be asked, what it would say is left open, with the command to ask it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::ask::{Question, Said};
use super::owners::spellings;
use super::root::Root;
use crate::model::FileOwner;

/// Where the database is, by distribution.
const PLACES: [&str; 2] = ["/usr/lib/sysimage/rpm", "/var/lib/rpm"];
/// What it is called, by format: sqlite, Berkeley, ndb.
const DATABASES: [&str; 3] = ["rpmdb.sqlite", "Packages", "Packages.db"];
const PROGRAM: &str = "/usr/bin/rpm";
/// A database that is being written to may be locked.
const PATIENCE: Duration = Duration::from_secs(2);

/// The owners of files (as they are called inside) that rpm knows, each under the key that it
/// was asked for. Nothing, where there is no database.
pub(super) fn owners<K: Ord + Clone>(
    root: &Root,
    files: &BTreeMap<K, PathBuf>,
) -> BTreeMap<K, FileOwner> {
    let Some(database) = database(root).filter(|_| !files.is_empty()) else {
        return BTreeMap::new();
    };
    // All at once: each takes a tenth of a second, most of which is its own start.
    let asked: Vec<_> =
        files.iter().map(|(key, file)| (key.clone(), file, ask(&database, file))).collect();
    let until = Instant::now() + PATIENCE;
    let owner = |(key, file, question): (K, &PathBuf, Option<Question>)| {
        let answer = question.map_or(Answer::None, |question| understood(question, until));
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

enum Answer {
    Package(String),
    Nobody,
    None,
}

/// Asks who has the file, which may be installed under either spelling of its directory.
fn ask(database: &Path, file: &Path) -> Option<Question> {
    let mut command = Command::new(PROGRAM);
    command.arg("--dbpath").arg(database).args(["--noplugins", "-qf", "--qf", "%{NAME}\n"]);
    command.args(spellings(file));
    Question::ask(command)
}

fn understood(question: Question, until: Instant) -> Answer {
    let Some(Said { text, complaint }) = question.answer(until) else { return Answer::None };
    let name = |line: &&str| !line.is_empty() && !line.contains(char::is_whitespace);
    match text.lines().map(str::trim).find(name) {
        Some(package) => Answer::Package(package.to_owned()),
        None if complaint.contains("cannot open") => Answer::None,
        None => Answer::Nobody,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
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
