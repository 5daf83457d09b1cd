//! Who offers the symbols that a module needs, and how what it was built with differs.

use super::{loaded, provenance};
use crate::model::{Desired, Fact, ModuleName, Observed, Role, Symbol};

/// The most symbols that a sentence names.
const NAMED: usize = 3;

/// A symbol with its provider, if one can be found, and what both sides say of its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Culprit {
    /// The symbol.
    pub symbol: String,
    /// The module that exports it, or that it belongs to by its name; `None` with a file: the
    /// kernel image.
    pub owner: Option<ModuleName>,
    /// The CRC that the module was built with and the one that is offered.
    pub versions: Option<(u32, u32)>,
    /// The provider's file, or the list of what the image exports.
    pub file: Option<String>,
}

/// Looks for the provider of `symbol` among the configured modules, by their files; else by the
/// name that it begins with.
pub fn culprit(
    symbol: &str,
    module: &ModuleName,
    desired: &Desired,
    observed: &Observed,
) -> Culprit {
    let offer = offer(symbol, observed);
    let needs = observed.file(module).and_then(|file| file.needs.known());
    let wanted = needs.and_then(|needs| needs.iter().find(|need| need.name == symbol)?.crc);
    let offered = offer.as_ref().and_then(|(_, offer)| offer.crc);
    let provider = offer.as_ref().map(|(provider, _)| (*provider).clone());
    let file = provider.as_ref().and_then(|name| observed.file(name)).map(loaded::path);
    Culprit {
        symbol: symbol.to_owned(),
        owner: provider.or_else(|| namesake(symbol, desired, observed)),
        versions: wanted.zip(offered),
        file,
    }
}

/// The configured module whose file exports `symbol`.
pub fn offer<'a>(symbol: &str, observed: &'a Observed) -> Option<(&'a ModuleName, &'a Symbol)> {
    let files = observed.files.known()?;
    files.modules.iter().find_map(|(provider, file)| {
        let offer = file.exports.known()?.iter().find(|offer| offer.name == symbol)?;
        Some((provider, offer))
    })
}

/// `nvidia_p2p_get_pages` is nvidia's, `ib_…` the exporter's or that of the RDMA core.
fn namesake(symbol: &str, desired: &Desired, observed: &Observed) -> Option<ModuleName> {
    let (lead, _) = symbol.split_once('_')?;
    let exporter = match (&observed.rdma.live_exporter, observed.files.known()) {
        (Fact::Known(Some(exporter)), _) => Some(exporter),
        (_, files) => files.and_then(|files| files.exporter.as_ref()),
    };
    let begins = |module: &&ModuleName| module.as_str().split('_').next() == Some(lead);
    exporter.into_iter().chain(desired.prerequisites()).find(begins).cloned()
}

impl Culprit {
    /// `SYMBOL of OWNER`, with both versions if they differ.
    pub fn told(&self) -> String {
        let owner = match (&self.owner, &self.file) {
            (Some(owner), _) => format!(" of {owner}"),
            (None, Some(_)) => " of the kernel".to_owned(),
            (None, None) => String::new(),
        };
        match (&self.versions, &self.file) {
            (Some((wanted, offered)), Some(file)) if wanted != offered => format!(
                "{}{owner} (it wants CRC {wanted:#010x}, {file} offers {offered:#010x})",
                self.symbol
            ),
            _ => format!("{}{owner}", self.symbol),
        }
    }
}

/// The culprits as a list. Of several of one owner the first few are named, so that no owner is
/// left out.
pub fn list(culprits: &[Culprit]) -> String {
    let mut owners: Vec<Option<&ModuleName>> = Vec::new();
    for culprit in culprits {
        if !owners.contains(&culprit.owner.as_ref()) {
            owners.push(culprit.owner.as_ref());
        }
    }
    let told: Vec<_> = owners
        .into_iter()
        .map(|owner| {
            let of_owner: Vec<_> =
                culprits.iter().filter(|culprit| culprit.owner.as_ref() == owner).collect();
            let named: Vec<_> = of_owner.iter().take(NAMED).map(|it| it.told()).collect();
            match of_owner.len() - named.len() {
                0 => named.join(", "),
                more => format!("{} and {more} more", named.join(", ")),
            }
        })
        .collect();
    told.join("; ")
}

/// All that is known of versions that differ: the culprits, where each side comes from, and
/// whether a rebuild would help.
pub fn told(
    module: &ModuleName,
    culprits: &[Culprit],
    desired: &Desired,
    observed: &Observed,
) -> String {
    let mut clauses = vec![list(culprits)];
    clauses.extend(circumstances(module, culprits, desired, observed));
    clauses.join("; ")
}

/// The part of it that is not about single symbols.
pub fn circumstances(
    module: &ModuleName,
    culprits: &[Culprit],
    desired: &Desired,
    observed: &Observed,
) -> Vec<String> {
    let Fact::Known(files) = &observed.files else { return Vec::new() };
    let mut owners: Vec<&ModuleName> = Vec::new();
    for owner in culprits.iter().filter_map(|culprit| culprit.owner.as_ref()) {
        if !owners.contains(&owner) {
            owners.push(owner);
        }
    }
    provenance::sides(module, &owners, desired, files)
}

/// Symbols that `module` needs in another version than the files on disk offer.
pub fn mismatches(module: &ModuleName, desired: &Desired, observed: &Observed) -> Vec<Culprit> {
    let Some(needs) = observed.file(module).and_then(|file| file.needs.known()) else {
        return Vec::new();
    };
    let culprits = needs.iter().map(|need| culprit(&need.name, module, desired, observed));
    culprits.filter(|it| it.versions.is_some_and(|(wanted, offered)| wanted != offered)).collect()
}

/// Whether some of the owners drive GPUs, and whether some do not.
pub fn sides(owners: &[&ModuleName], desired: &Desired) -> (bool, bool) {
    let gpu = |owner: &&&ModuleName| desired.role(owner) == Some(Role::GpuDriver);
    (owners.iter().any(|owner| gpu(&owner)), owners.iter().any(|owner| !gpu(&owner)))
}
