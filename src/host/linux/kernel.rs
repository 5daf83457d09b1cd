//! The running kernel and its policy on modules.

use std::path::Path;

use crate::model::{Kernel, ModuleName};

use super::file::{self, ATTRIBUTE};

/// Reads all of it. What is not there or makes no sense stays unknown.
pub(super) fn read(root: &Path) -> Kernel {
    let attribute = |path: &str| file::attribute(&root.join(path));
    Kernel {
        release: attribute("proc/sys/kernel/osrelease").unwrap_or_default(),
        boot_id: attribute("proc/sys/kernel/random/boot_id").unwrap_or_default(),
        modules_disabled: attribute("proc/sys/kernel/modules_disabled").as_deref().and_then(flag),
        signatures_enforced: attribute("sys/module/module/parameters/sig_enforce")
            .as_deref()
            .and_then(flag),
        lockdown: attribute("sys/kernel/security/lockdown").as_deref().and_then(lockdown),
        denied_on_command_line: denied(&command_line(root)),
    }
}

fn command_line(root: &Path) -> String {
    file::text(&root.join("proc/cmdline"), ATTRIBUTE).ok().flatten().unwrap_or_default()
}

fn flag(text: &str) -> Option<bool> {
    match text {
        "1" | "Y" => Some(true),
        "0" | "N" => Some(false),
        _ => None,
    }
}

/// The level in brackets: `none [integrity] confidentiality`.
fn lockdown(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('[')?;
    let (level, _) = rest.split_once(']')?;
    Some(level.to_owned())
}

fn denied(line: &str) -> Vec<ModuleName> {
    values(line, "module_blacklist=")
        .flat_map(|list| list.split(',').map(ModuleName::new).collect::<Vec<_>>())
        .filter_map(Result::ok)
        .collect()
}

/// The values of a parameter of the kernel, without the quotes around them. What follows `--` is
/// not for the kernel.
fn values(line: &str, parameter: &str) -> impl Iterator<Item = String> {
    let mut quoted = false;
    line.trim()
        .split(move |c: char| {
            quoted ^= c == '"';
            c.is_whitespace() && !quoted
        })
        .take_while(|word| *word != "--")
        .filter_map(move |word| word.strip_prefix(parameter))
        .map(|value| value.replace('"', ""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        root
    }

    #[test]
    fn the_policy_is_read() {
        let root = tree(&[
            ("proc/sys/kernel/osrelease", "6.1.0-57-amd64\n"),
            ("proc/sys/kernel/random/boot_id", "0a1b\n"),
            ("proc/sys/kernel/modules_disabled", "0\n"),
            ("sys/module/module/parameters/sig_enforce", "Y\n"),
            ("sys/kernel/security/lockdown", "none [integrity] confidentiality\n"),
            ("proc/cmdline", "quiet module_blacklist=nouveau,nvidia-peermem dyndbg=\"a b\" ro\n"),
        ]);
        let kernel = read(root.path());
        assert_eq!(kernel.release, "6.1.0-57-amd64");
        assert_eq!(kernel.boot_id, "0a1b");
        assert_eq!(kernel.modules_disabled, Some(false));
        assert_eq!(kernel.signatures_enforced, Some(true));
        assert_eq!(kernel.lockdown.as_deref(), Some("integrity"));
        let denied: Vec<_> = kernel.denied_on_command_line.iter().map(ModuleName::as_str).collect();
        assert_eq!(denied, ["nouveau", "nvidia_peermem"]);
    }

    #[test]
    fn what_is_missing_or_damaged_is_not_guessed() {
        let root = tree(&[
            ("proc/sys/kernel/modules_disabled", "maybe\n"),
            ("sys/kernel/security/lockdown", "none integrity\n"),
            ("proc/cmdline", "module_blacklist=,,a/b \u{0}"),
        ]);
        assert_eq!(read(root.path()), Kernel::default());
    }
}
