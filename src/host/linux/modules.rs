//! What the kernel says of its modules: `/sys/module`, and `/proc/modules` for the moments in
//! which a module has lost its directory but not yet its place.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use crate::model::{Fact, InitState, LoadedModule, ModuleName};

use super::file::{self, ATTRIBUTE, LIST};

/// What depends on the GPU driver is followed over so many modules; a real one has a handful.
const MOST_HOLDERS: usize = 256;

/// Reads the watched modules and whatever depends on `drivers`, however indirectly. One that is
/// missing in a known map is not loaded.
pub(super) fn read<'a>(
    root: &Path,
    watched: impl Iterator<Item = &'a ModuleName>,
    drivers: &[&ModuleName],
) -> Fact<BTreeMap<ModuleName, LoadedModule>> {
    let sysfs = root.join("sys/module");
    let listed = file::text(&root.join("proc/modules"), LIST);
    if !sysfs.is_dir() {
        return Fact::unknown(format!("{} is not there", sysfs.display()));
    }
    let listed = match &listed {
        Ok(Some(text)) => states(text),
        // A kernel that cannot load modules has no such file.
        Ok(None) => BTreeMap::new(),
        Err(error) => return Fact::unknown(error.to_string()),
    };
    let module = |name: &ModuleName| {
        let listed = listed.get(name.as_str()).copied();
        Some((name.clone(), one(&sysfs.join(name.as_str()), listed)?))
    };
    let mut modules: BTreeMap<_, _> = watched.filter_map(module).collect();
    let mut open: Vec<ModuleName> = drivers.iter().copied().cloned().collect();
    let mut followed = BTreeSet::new();
    while let Some(name) = open.pop().filter(|_| followed.len() < MOST_HOLDERS) {
        if !followed.insert(name.clone()) {
            continue;
        }
        if !modules.contains_key(&name) {
            modules.extend(module(&name));
        }
        let holders = modules.get(&name).and_then(|loaded| loaded.holders.known());
        open.extend(holders.into_iter().flatten().cloned());
    }
    Fact::Known(modules)
}

/// The state of one module, without the rest. Absent where there is no sign of it.
pub(super) fn state(root: &Path, name: &str) -> Fact<InitState> {
    let directory = root.join("sys/module").join(name);
    init_state(&directory).unwrap_or(Fact::Known(InitState::Absent))
}

/// The names and states in `/proc/modules`. Lines that make no sense are passed over.
fn states(text: &str) -> BTreeMap<&str, InitState> {
    let line = |line| -> Option<(&str, InitState)> {
        let mut fields = str::split_whitespace(line);
        let name = fields.next()?;
        let state = match fields.nth(3)? {
            "Live" => InitState::Live,
            "Loading" => InitState::Coming,
            "Unloading" => InitState::Going,
            _ => return None,
        };
        Some((name, state))
    };
    text.lines().filter_map(line).collect()
}

fn one(directory: &Path, listed: Option<InitState>) -> Option<LoadedModule> {
    let state = match (init_state(directory), listed) {
        (Some(Fact::Known(InitState::Builtin)) | None, Some(listed)) => Fact::Known(listed),
        (Some(state), _) => state,
        (None, None) => return None,
    };
    let builtin = state.is_known_and(|&state| state == InitState::Builtin);
    Some(LoadedModule {
        refcount: if builtin { part_of_the_kernel() } else { refcount(directory) },
        holders: if builtin { part_of_the_kernel() } else { holders(directory) },
        state,
        version: file::attribute(&directory.join("version")),
        srcversion: file::attribute(&directory.join("srcversion")),
        build_id: build_id(directory),
    })
}

fn part_of_the_kernel<T>() -> Fact<T> {
    Fact::unknown("it is built into the kernel, which counts no users of it")
}

/// `None` if there is no directory. One without `initstate` belongs to a built-in.
fn init_state(directory: &Path) -> Option<Fact<InitState>> {
    let path = directory.join("initstate");
    match file::text(&path, ATTRIBUTE) {
        Ok(Some(text)) => {
            let damaged = || format!("{}: '{}' is no state", path.display(), text.trim());
            Some(parse_init_state(&text).ok_or_else(damaged).into())
        }
        Ok(None) => directory.is_dir().then_some(Fact::Known(InitState::Builtin)),
        Err(error) => Some(Fact::unknown(error.to_string())),
    }
}

fn parse_init_state(text: &str) -> Option<InitState> {
    match text.trim() {
        "live" => Some(InitState::Live),
        "coming" => Some(InitState::Coming),
        "going" => Some(InitState::Going),
        _ => None,
    }
}

fn refcount(directory: &Path) -> Fact<i32> {
    let path = directory.join("refcnt");
    match file::text(&path, ATTRIBUTE) {
        Ok(Some(text)) => text
            .trim()
            .parse()
            .map_err(|_| format!("{}: '{}' is no number", path.display(), text.trim()))
            .into(),
        Ok(None) => Fact::unknown(format!("{} is not there", path.display())),
        Err(error) => Fact::unknown(error.to_string()),
    }
}

fn holders(directory: &Path) -> Fact<BTreeSet<ModuleName>> {
    let path = directory.join("holders");
    match file::names(&path) {
        Ok(Some(names)) => names
            .iter()
            .map(|name| ModuleName::new(name))
            .collect::<Result<_, _>>()
            .map_err(|error| format!("{}: {error}", path.display()))
            .into(),
        Ok(None) => Fact::unknown(format!("{} is not there", path.display())),
        Err(error) => Fact::unknown(error.to_string()),
    }
}

fn build_id(directory: &Path) -> Option<String> {
    let path = directory.join("notes/.note.gnu.build-id");
    parse_build_id(&file::bytes(&path, ATTRIBUTE).ok()??)
}

/// The build-id in an ELF note section of this machine's byte order: sizes of name and
/// description, type 3, `GNU\0`, description.
fn parse_build_id(note: &[u8]) -> Option<String> {
    const GNU_BUILD_ID: u32 = 3;
    let word = |at: usize| Some(u32::from_ne_bytes(note.get(at..at + 4)?.try_into().ok()?));
    let (name_size, size, kind) = (word(0)?, word(4)?, word(8)?);
    if name_size != 4 || kind != GNU_BUILD_ID || note.get(12..16)? != b"GNU\0" {
        return None;
    }
    let id = note.get(16..16usize.checked_add(usize::try_from(size).ok()?)?)?;
    let mut hex = String::with_capacity(id.len() * 2);
    for byte in id {
        let _ = write!(hex, "{byte:02x}");
    }
    (!hex.is_empty()).then_some(hex)
}

#[cfg(test)]
#[path = "modules_tests.rs"]
mod tests;
