//! Whether what is loaded is what is on disk.

use super::in_use::Unused;
use super::standing::Situation;
use crate::model::{
    Desired, Fact, Finding, InitState, LoadedModule, ModuleFile, ModuleName, Observed, Reason,
    Remedy, Resolution,
};

/// How many digits of an identity are quoted.
const QUOTED: usize = 12;

/// What two identities of a module come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// They are the same build.
    Same,
    /// They are not; by what that is seen, as a clause.
    Differs(String),
    /// Neither can be said.
    Unknown,
}

/// Compares the loaded module with the file that a reload or reboot would take: by build-id,
/// else by srcversion, else by version.
pub fn compare(module: &ModuleName, observed: &Observed) -> Identity {
    match (observed.loaded(module), observed.file(module)) {
        (Some(loaded), Some(file)) => identity(loaded, file),
        _ => Identity::Unknown,
    }
}

fn identity(loaded: &LoadedModule, file: &ModuleFile) -> Identity {
    let pairs = [
        ("build-id", &loaded.build_id, &file.build_id),
        ("srcversion", &loaded.srcversion, &file.srcversion),
        ("version", &loaded.version, &file.version),
    ];
    for (what, ours, theirs) in pairs {
        match (ours, theirs) {
            (Some(ours), Some(theirs)) if ours == theirs && what == "version" => {
                // The same version may have been built twice.
                return Identity::Unknown;
            }
            (Some(ours), Some(theirs)) if ours == theirs => return Identity::Same,
            (Some(ours), Some(theirs)) => {
                let (ours, theirs) = (short(ours), short(theirs));
                return Identity::Differs(format!(
                    "its {what} is {ours}, and {theirs} in {}",
                    path(file)
                ));
            }
            _ => {}
        }
    }
    // MODULE_VERSION brings a srcversion with it, so a module with neither is no build of a file
    // that has both.
    let readable = matches!(loaded.state, Fact::Known(InitState::Live));
    match (&loaded.version, &loaded.srcversion, &file.version, &file.srcversion) {
        (None, None, Some(version), Some(_)) if readable => Identity::Differs(format!(
            "it has no version, as the stock one of a distribution, and {} has {version}",
            path(file)
        )),
        _ => Identity::Unknown,
    }
}

fn short(identity: &str) -> &str {
    identity.get(..QUOTED).unwrap_or(identity)
}

/// The file that a load comes to, for a sentence.
pub fn path(file: &ModuleFile) -> String {
    match &file.resolution {
        Resolution::File(path) | Resolution::InstallCommand { file: Some(path), .. } => {
            path.display().to_string()
        }
        Resolution::Builtin | Resolution::InstallCommand { file: None, .. } => {
            "its file".to_owned()
        }
    }
}

/// One finding for each module of the chain and predecessor that is not the one on disk.
pub fn stale(s: &Situation) -> Vec<Finding> {
    let modules = s.desired.modules();
    modules
        .filter_map(|module| match compare(module, s.observed) {
            Identity::Differs(how) => {
                let finding = Finding::new(Reason::StaleLoadedModule, module, how);
                Some(reload_or_reboot(finding, module, s.desired, s.observed))
            }
            Identity::Same | Identity::Unknown => None,
        })
        .collect()
}

/// The remedy that works: what is loaded can be taken out now, or cannot.
pub fn reload_or_reboot(
    finding: Finding,
    module: &ModuleName,
    desired: &Desired,
    observed: &Observed,
) -> Finding {
    match Unused::prove(module, desired, observed) {
        Ok(_) => finding.advise(Remedy::Reload, module),
        Err(_) => finding.advise(Remedy::Reboot, module),
    }
}

/// One finding for each module of which the tree has more than one file.
pub fn shadowed(desired: &Desired, observed: &Observed) -> Vec<Finding> {
    let Fact::Known(files) = &observed.files else { return Vec::new() };
    let several = desired.modules().filter_map(|module| {
        let file = files.modules.get(module)?;
        let others = Some(&file.details.others).filter(|others| !others.is_empty())?;
        let wins = path(file);
        let others: Vec<_> = others.iter().map(|other| other.display().to_string()).collect();
        let detail = format!("a load takes {wins}, and not {}", others.join(", "));
        Some(Finding::new(Reason::ShadowedFile, module, detail))
    });
    several.collect()
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{name, node, ready_node};
    use super::*;

    fn with(observed: &mut Observed, change: impl FnOnce(&mut LoadedModule, &mut ModuleFile)) {
        let Fact::Known(modules) = &mut observed.modules else { panic!() };
        let Fact::Known(files) = &mut observed.files else { panic!() };
        let module = name("ib_core");
        change(modules.get_mut(&module).unwrap(), files.modules.get_mut(&module).unwrap());
    }

    fn differs(change: impl FnOnce(&mut LoadedModule, &mut ModuleFile)) -> Option<String> {
        let mut observed = ready_node();
        with(&mut observed, change);
        match compare(&name("ib_core"), &observed) {
            Identity::Differs(how) => Some(how),
            Identity::Same | Identity::Unknown => None,
        }
    }

    #[test]
    fn the_build_id_decides_before_anything_else() {
        assert_eq!(differs(|_, _| {}), None);
        let how = differs(|loaded, _| loaded.build_id = Some("other".to_owned()));
        assert!(how.unwrap().contains("build-id"));
    }

    #[test]
    fn without_build_ids_the_srcversion_decides() {
        let how = differs(|loaded, file| {
            loaded.build_id = None;
            loaded.srcversion = Some("A".to_owned());
            file.srcversion = Some("B".to_owned());
        });
        assert!(how.unwrap().contains("srcversion is A, and B"));
    }

    #[test]
    fn a_stock_module_without_version_is_not_the_vendor_s_file() {
        let how = differs(|loaded, file| {
            (loaded.build_id, loaded.srcversion, loaded.version) = (None, None, None);
            file.srcversion = Some("B".to_owned());
        });
        assert!(how.unwrap().contains("stock"));
    }

    #[test]
    fn the_same_version_proves_nothing() {
        let mut observed = ready_node();
        with(&mut observed, |loaded, file| {
            (loaded.build_id, file.build_id) = (None, None);
        });
        assert_eq!(compare(&name("ib_core"), &observed), Identity::Unknown);
    }

    #[test]
    fn two_files_of_one_name_are_both_named() {
        let mut observed = node();
        let Fact::Known(files) = &mut observed.files else { panic!() };
        let other = "/lib/modules/test/kernel/drivers/video/nvidia.ko";
        files.modules.get_mut(&name("nvidia")).unwrap().details.others = vec![other.into()];
        let found = shadowed(&Desired::default(), &observed);
        assert_eq!(found.len(), 1);
        assert!(found[0].detail.contains(other));
        assert!(found[0].detail.contains("takes /lib/modules/test/nvidia.ko"));
    }
}
