//! Where the files that do not fit together come from: who brought each side, which one is newer,
//! what DKMS has, and whether a rebuild now would help. Status, doctor and preflight say it in
//! these words.

use crate::model::{
    Desired, DkmsEntry, DkmsState, FileOwner, Files, ModuleName, Observed, Rebuild, Role, Symbol,
};

/// The clauses about `module` and the modules that it does not fit.
pub fn sides(
    module: &ModuleName,
    providers: &[&ModuleName],
    desired: &Desired,
    files: &Files,
) -> Vec<String> {
    let all: Vec<_> = providers.iter().copied().chain([module]).collect();
    let owned = all.iter().filter_map(|name| {
        let owner = files.kernel.owners.get(name)?;
        Some(format!("{name} is of {owner}"))
    });
    let owned: Vec<_> = owned.collect();
    let mut clauses = Vec::new();
    clauses.extend((!owned.is_empty()).then(|| owned.join(", ")));
    clauses.extend(newer(module, providers, files));
    clauses.extend(rebuild(files, &desired.register_symbol));
    clauses
}

/// Packages keep the time of the build, so that the later file is the newer build.
fn newer(module: &ModuleName, providers: &[&ModuleName], files: &Files) -> Option<String> {
    let modified = |name: &ModuleName| files.modules.get(name)?.details.modified;
    let own = modified(module)?;
    let dated: Vec<_> =
        providers.iter().filter_map(|name| Some((*name, modified(name)?))).collect();
    let list = |fits: fn(i64, i64) -> bool| {
        let names = dated.iter().filter(|(_, at)| fits(*at, own)).map(|(name, _)| name.as_str());
        names.collect::<Vec<_>>().join(" and ")
    };
    let (younger, older) = (list(|at, own| at > own), list(|at, own| at < own));
    match (younger.is_empty(), older.is_empty()) {
        (true, true) => None,
        (false, _) => Some(format!("the file of {younger} is newer than that of {module}")),
        (true, false) => Some(format!("the file of {module} is newer than that of {older}")),
    }
}

/// What a rebuild of the driver's modules now would come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict<'a> {
    /// No list has the registration: a stub again.
    Stub(&'a Rebuild),
    /// The versions would be those that the installed stack offers.
    Fits(&'a Rebuild),
    /// They would be others.
    Differs(&'a Rebuild, u32),
    /// There would be none.
    Unversioned(&'a Rebuild),
}

/// `None` if it was not looked at, or the stack's side is not known.
pub fn verdict<'a>(files: &'a Files, register_symbol: &str) -> Option<Verdict<'a>> {
    let found = files.kernel.rebuild.as_ref()?;
    if found.tested.is_none() {
        return Some(Verdict::Stub(found));
    }
    let exporter = files.modules.get(files.exporter.as_ref()?)?.exports.known()?;
    let offered = exporter.iter().find(|symbol: &&Symbol| symbol.name == register_symbol)?.crc?;
    Some(match found.crc {
        Some(crc) if crc == offered => Verdict::Fits(found),
        Some(crc) => Verdict::Differs(found, crc),
        None => Verdict::Unversioned(found),
    })
}

/// The same as a clause.
pub fn rebuild(files: &Files, register_symbol: &str) -> Option<String> {
    Some(match verdict(files, register_symbol)? {
        Verdict::Stub(found) => {
            let places: Vec<_> =
                found.searched.iter().map(|path| path.display().to_string()).collect();
            format!(
                "a rebuild now would be without it again: no Module.symvers with it in {}",
                places.join(", ")
            )
        }
        Verdict::Fits(found) => format!("a rebuild now would fit, against {}", source(found)),
        Verdict::Differs(found, crc) => {
            format!("a rebuild now would not fit either: {} has CRC {crc:#010x}", source(found))
        }
        Verdict::Unversioned(found) => {
            format!("a rebuild now would lack the version: {} has none", source(found))
        }
    })
}

fn source(found: &Rebuild) -> String {
    let Some(directory) = &found.versions_from else { return "no directory".to_owned() };
    match &found.leads_to {
        Some(target) => format!("{}, which leads to {},", directory.display(), target.display()),
        None => directory.display().to_string(),
    }
}

/// The entry of DKMS that built the module's file.
pub fn built_by<'a>(module: &ModuleName, files: &'a Files) -> Option<&'a str> {
    match files.kernel.owners.get(module)? {
        FileOwner::Dkms(entry) => Some(entry),
        FileOwner::Package(_) | FileOwner::Unasked { .. } => None,
    }
}

/// The package of DKMS that should bring a module of which there is no file, and how far it has
/// come for this kernel. A client's name never appears there: it is part of the driver's package.
pub fn expected<'a>(
    module: &ModuleName,
    desired: &Desired,
    observed: &'a Observed,
) -> Option<(&'a DkmsEntry, String)> {
    let role = desired.role(module)?;
    let entries = observed.files.known()?.kernel.dkms.iter();
    let entries: Vec<_> = entries.filter(|entry| brings(&entry.package, role)).collect();
    let here = |entry: &&&DkmsEntry| entry.kernel.as_ref() == Some(&observed.kernel.release);
    let best = entries.iter().filter(here).max_by_key(|entry| is_installed(entry));
    let (entry, how) = match best {
        Some(entry) if is_installed(entry) => (entry, "for this kernel, and brings no such file"),
        Some(entry) => (entry, "for this kernel, not installed"),
        None => (entries.last()?, "and not built for this kernel"),
    };
    let state = match (&entry.state, best) {
        // What was built for other kernels says nothing here.
        (DkmsState::Added | DkmsState::Broken, _) | (_, Some(_)) => entry.state.to_string(),
        (_, None) => "added".to_owned(),
    };
    Some((entry, format!("DKMS entry {}/{} is {state} {how}", entry.package, entry.version)))
}

/// Whether an entry is installed for its kernel.
pub fn is_installed(entry: &DkmsEntry) -> bool {
    matches!(entry.state, DkmsState::Installed | DkmsState::InstalledWeak { .. })
}

fn brings(package: &str, role: Role) -> bool {
    let legacy = package.contains("peer");
    match role {
        Role::GpuDriver | Role::PeerClient => {
            package.starts_with("nvidia") && !legacy && package != "nvidia-fs"
        }
        Role::RdmaCore | Role::RdmaDriver => package.contains("mlnx") || package.contains("ofed"),
        Role::Legacy => legacy,
    }
}
