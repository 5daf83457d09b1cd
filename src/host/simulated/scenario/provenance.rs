//! Where module files come from, and what a build of the driver would find.

use std::path::PathBuf;

use serde::Deserialize;

use crate::model::{DkmsEntry, DkmsState, FileOwner};

/// `owner` of a module: `dkms NAME/VERSION` or `package NAME`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct OwnerText(pub FileOwner);

impl TryFrom<String> for OwnerText {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let owner = match text.split_once(' ') {
            Some(("dkms", entry)) if entry.contains('/') => FileOwner::Dkms(entry.to_owned()),
            Some(("package", name)) if !name.is_empty() => FileOwner::Package(name.to_owned()),
            _ => {
                return Err(format!(
                    "'{text}' is not an owner: write 'dkms NAME/VERSION' or 'package NAME'"
                ));
            }
        };
        Ok(Self(owner))
    }
}

/// How far DKMS has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DkmsProgress {
    /// Known.
    Added,
    /// Built, not installed.
    Built,
    /// Installed.
    #[default]
    Installed,
    /// Without its source.
    Broken,
}

/// `[[dkms]]`: an entry of DKMS.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DkmsTable {
    /// Package.
    pub package: String,
    /// Its version.
    pub version: String,
    /// The kernel that it was built for; otherwise the running one.
    pub kernel: Option<String>,
    /// How far it has come for that kernel.
    #[serde(default)]
    pub state: DkmsProgress,
}

impl DkmsTable {
    /// The entry on a node that runs `release`.
    pub fn entry(&self, release: &str) -> DkmsEntry {
        let state = match self.state {
            DkmsProgress::Added => DkmsState::Added,
            DkmsProgress::Built => DkmsState::Built,
            DkmsProgress::Installed => DkmsState::Installed,
            DkmsProgress::Broken => DkmsState::Broken,
        };
        let built = matches!(state, DkmsState::Built | DkmsState::Installed);
        let kernel = self.kernel.clone().unwrap_or_else(|| release.to_owned());
        DkmsEntry {
            package: self.package.clone(),
            version: self.version.clone(),
            kernel: built.then_some(kernel),
            architecture: None,
            state,
            notes: Vec::new(),
        }
    }
}

/// `[rebuild]`: what a build of the driver's modules would find now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RebuildTable {
    /// The `Module.symvers` that has the registration; none: the client would be a stub again.
    pub tested: Option<PathBuf>,
    /// The directory that symbol versions are taken from.
    pub versions_from: Option<PathBuf>,
    /// Where links lead from there.
    pub leads_to: Option<PathBuf>,
    /// The version of the registration symbol there.
    pub crc: Option<Crc>,
    /// Places that were looked at.
    pub searched: Vec<PathBuf>,
}

/// The version of a symbol, written as `"0x1234abcd"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Crc(pub u32);

impl TryFrom<String> for Crc {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let digits = text.strip_prefix("0x").unwrap_or(&text);
        u32::from_str_radix(digits, 16)
            .map(Self)
            .map_err(|_| format!("'{text}' is not a symbol version, such as '0x1234abcd'"))
    }
}
