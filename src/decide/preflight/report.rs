//! The judgement on one kernel as a list of checks, for people and for a machine: also for kernels
//! that do not run.

mod around;
mod dkms;

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Objection, objections, parameters, symbols};
use crate::decide::advice;
use crate::model::{
    BootLoaders, CheckResult, Desired, Fact, Files, GpuDriver, Kernel, ModuleFile, Observed,
    PeerDirectory, Rdma, Reason, Resolution,
};

/// How sure a check is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Certainty {
    /// The kernel is bound to act so.
    Certain,
    /// What it rests on may be out of date, or decided elsewhere.
    Likely,
    /// Nothing can be said.
    Unknown,
}

impl Certainty {
    /// The string in documents.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Certain => "certain",
            Self::Likely => "likely",
            Self::Unknown => "unknown",
        }
    }
}

/// One check of one kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Stable name.
    pub id: &'static str,
    /// How it went.
    pub result: CheckResult,
    /// How sure that is.
    pub certainty: Certainty,
    /// Slug of the reason that a load would fail for, or empty.
    pub reason: &'static str,
    /// What was seen.
    pub detail: String,
    /// What to do, or empty.
    pub remedy: String,
}

impl Check {
    /// A check that found nothing to remedy.
    pub fn new(
        id: &'static str,
        result: CheckResult,
        certainty: Certainty,
        detail: impl Into<String>,
    ) -> Self {
        let (detail, remedy) = (detail.into(), String::new());
        Self { id, result, certainty, reason: "", detail, remedy }
    }
}

/// A node that runs nothing of what is on disk: the way to judge a kernel before it is booted.
/// What only a running kernel knows is unknown.
pub fn not_running(release: &str, files: Files) -> Observed {
    let unknown = || "this kernel does not run".to_owned();
    Observed {
        kernel: Kernel { release: release.to_owned(), ..Kernel::default() },
        modules: Fact::Known(BTreeMap::new()),
        files: Fact::Known(files),
        rdma: Rdma {
            peers: PeerDirectory::Absent,
            has_peer_directory: Fact::Unknown(unknown()),
            live_exporter: Fact::Unknown(unknown()),
            ports: Fact::Unknown(unknown()),
            user_contexts: Fact::Unknown(unknown()),
            stack: String::new(),
        },
        gpu: GpuDriver::default(),
        pci: Fact::Unknown(unknown()),
        units: Fact::Unknown(unknown()),
        boot_loaders: BootLoaders::default(),
        load: None,
        swaps: Vec::new(),
        others: crate::model::Others::default(),
        client_errors: Fact::Unknown(unknown()),
    }
}

/// Checks that one objection each decides: id, the reasons for it, what is said if there is none,
/// and what must be known for that.
const ROWS: [(&str, &[Reason], &str, Needs); 12] = [
    ("file", &[Reason::ModuleNotFound], "", Needs::Nothing),
    ("readable", &[Reason::DamagedFile], "the file can be read", Needs::File),
    (
        "peer-memory",
        &[Reason::BuiltWithoutPeerMemory],
        "it was built with peer memory",
        Needs::Symbols,
    ),
    ("provider", &[Reason::PeerMemoryUnsupported], "", Needs::Symbols),
    (
        "symbol-versions",
        &[Reason::SymbolVersionMismatch],
        "they fit the modules on disk",
        Needs::Exports,
    ),
    (
        "versions-present",
        &[Reason::SymbolVersionMissing],
        "every symbol carries its version",
        Needs::Exports,
    ),
    ("symbols", &[Reason::UnknownSymbol], "all that it needs is exported", Needs::Image),
    ("vermagic", &[Reason::VermagicMismatch], "it is that of the kernel", Needs::Vermagic),
    ("signature", &[Reason::SignatureRejected, Reason::Lockdown], "", Needs::File),
    ("parameters", &[Reason::BadParameter], "nothing speaks against the options", Needs::File),
    ("deny-list", &[Reason::DenyListed], "no deny list names it", Needs::Nothing),
    ("install-command", &[Reason::InstallCommandFailed], "", Needs::Nothing),
];

/// What must be known before the absence of an objection says something.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Needs {
    Nothing,
    File,
    Symbols,
    Exports,
    Image,
    Vermagic,
}

/// The client of one kernel, and the way to it.
struct Subject<'a> {
    desired: &'a Desired,
    observed: &'a Observed,
    file: Option<&'a ModuleFile>,
    found: Vec<Objection>,
}

/// All checks, in the order in which a load would meet what they look for.
pub fn checks(desired: &Desired, observed: &Observed) -> Vec<Check> {
    let client = &desired.client;
    let subject = Subject {
        desired,
        observed,
        file: observed.file(client),
        found: objections(client, desired, observed),
    };
    let mut checks = vec![subject.chain()];
    checks.extend(
        ROWS.iter().map(|(id, reasons, good, needs)| subject.row(id, reasons, good, *needs)),
    );
    checks.extend([
        subject.driver_version(),
        subject.legacy_file(),
        subject.one_file_each(),
        subject.memory_peers(),
    ]);
    if !observed.kernel.boot_id.is_empty() {
        checks.push(subject.loading_allowed());
        checks.push(subject.loaded_is_on_disk());
    }
    checks.extend(subject.dkms());
    checks
}

impl Subject<'_> {
    fn row(&self, id: &'static str, reasons: &[Reason], good: &str, needs: Needs) -> Check {
        let objection = self.found.iter().find(|found| reasons.contains(&found.finding.reason));
        if let Some(objection) = objection {
            let certainty = if objection.certain { Certainty::Certain } else { Certainty::Likely };
            let finding =
                advice::particular(objection.finding.clone(), self.desired, self.observed);
            return Check {
                reason: finding.reason.slug(),
                remedy: self.for_this_kernel(&finding.remedy()),
                ..Check::new(id, CheckResult::Fail, certainty, finding.sentence())
            };
        }
        if let Some(why) = self.unknown(needs) {
            let result = if self.file.is_none() { CheckResult::Skip } else { CheckResult::Unknown };
            return Check::new(id, result, Certainty::Unknown, why);
        }
        match id {
            "file" => Check::new(id, CheckResult::Pass, Certainty::Certain, self.file_name()),
            "signature" => self.signature(),
            "parameters" => self.parameters(good),
            "provider" => self.provider(),
            "install-command" => self.install_command(),
            _ => Check::new(id, CheckResult::Pass, Certainty::Certain, good),
        }
    }

    /// A remedy that is written for the running kernel.
    fn for_this_kernel(&self, remedy: &str) -> String {
        if !self.observed.kernel.boot_id.is_empty() {
            return remedy.to_owned();
        }
        let release = &self.observed.kernel.release;
        let named = remedy.replace("$(uname -r)", release);
        named.replace("the running kernel", &format!("kernel {release}"))
    }

    /// Why the absence of an objection says nothing, if it does not.
    fn unknown(&self, needs: Needs) -> Option<String> {
        if needs == Needs::Nothing {
            return None;
        }
        let Some(file) = self.file else { return Some("there is no file".to_owned()) };
        if matches!(file.resolution, Resolution::Builtin) {
            return Some("it is part of the kernel".to_owned());
        }
        let files = self.observed.files.known();
        let unread = file.needs.why_unknown().map(str::to_owned);
        match needs {
            Needs::Nothing => None,
            Needs::File => file.vermagic.is_none().then_some(unread).flatten(),
            Needs::Symbols => unread,
            Needs::Exports => unread.or_else(|| self.unread_provider()),
            Needs::Image => unread.or_else(|| {
                file.details
                    .unresolved
                    .is_none()
                    .then(|| "there is no Module.symvers of this kernel to compare with".to_owned())
            }),
            Needs::Vermagic => files
                .is_none_or(|files| files.kernel.vermagic.is_none())
                .then(|| "no module was found that came with the kernel".to_owned()),
        }
    }

    fn unread_provider(&self) -> Option<String> {
        let files = &self.observed.files.known()?.modules;
        self.file?
            .depends
            .iter()
            .find_map(|name| files.get(name)?.exports.why_unknown().map(str::to_owned))
    }

    fn file_name(&self) -> String {
        crate::decide::chain::file_name(self.observed, &self.desired.client)
    }

    fn provider(&self) -> Check {
        let exporter = symbols::exporter(self.observed).map(|name| name.to_string());
        let Some(exporter) = exporter else {
            let detail = "no module of this kernel has a peer-memory interface";
            return Check::new("provider", CheckResult::Warn, Certainty::Certain, detail);
        };
        let detail = format!("{} is exported by {exporter}", self.desired.register_symbol);
        Check::new("provider", CheckResult::Pass, Certainty::Certain, detail)
    }

    /// Whether its key is trusted only the kernel's key rings know.
    fn signature(&self) -> Check {
        let id = "signature";
        match self.file.and_then(|file| file.signer.as_deref()) {
            Some(signer) => {
                let detail = format!(
                    "signed by '{signer}'; whether the kernel trusts that key is not known"
                );
                Check::new(id, CheckResult::Pass, Certainty::Likely, detail)
            }
            None if self.observed.kernel.signatures_enforced == Some(false) => {
                let detail = "not signed; this kernel does not ask for it";
                Check::new(id, CheckResult::Pass, Certainty::Certain, detail)
            }
            None => {
                let detail =
                    "not signed: it is refused where secure boot or module.sig_enforce is on";
                Check::new(id, CheckResult::Warn, Certainty::Likely, detail)
            }
        }
    }

    fn parameters(&self, good: &str) -> Check {
        let unknown = self.file.and_then(|file| parameters::unknown(file).next());
        match unknown {
            None => Check::new("parameters", CheckResult::Pass, Certainty::Certain, good),
            Some(option) => {
                let place = option.origin.as_deref().unwrap_or("modprobe.d");
                let detail = format!(
                    "{place}: {} is ignored, since there is no such parameter",
                    option.word
                );
                Check::new("parameters", CheckResult::Warn, Certainty::Certain, detail)
            }
        }
    }

    fn install_command(&self) -> Check {
        let id = "install-command";
        match self.file.map(|file| &file.resolution) {
            Some(Resolution::InstallCommand { command, file: None, origin }) => {
                let place = origin.as_deref().unwrap_or("modprobe.d");
                let detail = format!("{place}: which file '{}' loads is not known", command.trim());
                Check::new(id, CheckResult::Unknown, Certainty::Unknown, detail)
            }
            Some(Resolution::InstallCommand { command, .. }) => {
                let detail = format!("loaded by '{}'", command.trim());
                Check::new(id, CheckResult::Pass, Certainty::Likely, detail)
            }
            _ => Check::new(id, CheckResult::Pass, Certainty::Certain, "none"),
        }
    }
}
