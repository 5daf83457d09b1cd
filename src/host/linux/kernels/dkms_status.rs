//! What `dkms status` prints.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::ask::Question;
use crate::model::{DkmsEntry, DkmsState};

/// It is a shell script that walks its tree.
const PATIENCE: Duration = Duration::from_secs(3);

/// Asks the program, if there is one and it may be asked.
pub(super) fn ask(program: &Path) -> Vec<DkmsEntry> {
    if !program.is_file() {
        return Vec::new();
    }
    let mut command = Command::new(program);
    command.arg("status");
    let said = Question::ask(command).and_then(|asked| asked.answer(Instant::now() + PATIENCE));
    let mut entries = said.map(|said| parse(&said.text)).unwrap_or_default();
    entries.sort();
    entries
}

/// What `dkms status` printed, before and since version 2.8.6. Lines that are not of this kind
/// are left out.
pub fn parse(text: &str) -> Vec<DkmsEntry> {
    text.lines().take(4096).filter_map(parse_line).collect()
}

/// `nvidia, 570.1, 6.8.0, x86_64: installed (Original modules exist)`, since 2.8.6 with a slash
/// after the name; weak ones keep the comma.
fn parse_line(line: &str) -> Option<DkmsEntry> {
    let (what, state) = line.trim().split_once(": ")?;
    let mut fields = what.split([',', '/']).map(str::trim);
    let (package, version) = (fields.next()?, fields.next()?);
    if package.is_empty() || version.is_empty() || package.contains(char::is_whitespace) {
        return None;
    }
    let (state, notes) = state.split_once(" (").unwrap_or((state, ""));
    let state = state.trim();
    let state = match state.split_once(" from ") {
        Some(("installed-weak", from)) => DkmsState::InstalledWeak { from: from.trim().to_owned() },
        _ => match state {
            "added" => DkmsState::Added,
            "built" => DkmsState::Built,
            "installed" => DkmsState::Installed,
            _ if state.starts_with("broken") => DkmsState::Broken,
            _ => return None,
        },
    };
    let notes = notes.split([')', '(']).map(str::trim).filter(|note| !note.is_empty());
    Some(DkmsEntry {
        package: package.to_owned(),
        version: version.to_owned(),
        kernel: fields.next().map(str::to_owned),
        architecture: fields.next().map(str::to_owned),
        state,
        notes: notes.map(str::to_owned).collect(),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use proptest::prelude::*;

    use super::*;

    fn texts(entries: &[DkmsEntry]) -> Vec<String> {
        entries
            .iter()
            .map(|e| format!("{e} for {}", e.kernel.as_deref().unwrap_or("none")))
            .collect()
    }

    #[test]
    fn the_program_is_asked_where_there_is_one() {
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let program = directory.path().join("dkms");
        assert!(ask(&program).is_empty());
        let script = "#!/bin/sh\n[ \"$1\" = status ] && echo nvidia/570.1, 6.8, x86_64: built\n";
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(texts(&ask(&program)), ["nvidia/570.1: built for 6.8"]);
    }

    #[test]
    fn both_formats_of_status_are_read() {
        let text = "nvidia, 570.1, 6.8.0-45-generic, x86_64: installed (original_module exists)\n\
            nvidia/570.1, 6.8.0-45-generic, x86_64: installed (WARNING! Diff between built and installed module!) (Original modules exist)\n\
            mlnx-ofed-kernel/24.10: added\n\
            nv_peer_mem/1.2: broken\n\
            iser, 5.0, 5.14-2, x86_64: installed-weak from 5.14-1\n\
            Error! Could not locate dkms.conf file.\n\
            a b/c: added\n: added\n";
        let entries = parse(text);
        assert_eq!(
            texts(&entries),
            [
                "nvidia/570.1: installed for 6.8.0-45-generic",
                "nvidia/570.1: installed for 6.8.0-45-generic",
                "mlnx-ofed-kernel/24.10: added for none",
                "nv_peer_mem/1.2: broken for none",
                "iser/5.0: installed-weak from 5.14-1 for 5.14-2",
            ]
        );
        assert_eq!(entries[0].notes, ["original_module exists"]);
        assert_eq!(entries[1].notes.len(), 2);
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "\\PC*|([a-z0-9./, :()-]{0,60}\n){0,5}") {
            let _ = parse(&text);
        }
    }
}
