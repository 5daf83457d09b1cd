//! The one table of reasons: slug, class, states, sentence, remedy and what re-arms it.
//!
//! Status, bus, client, manual and journal catalog all read it from here.

use serde::{Deserialize, Serialize};

/// The node's health.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// No observation finished yet.
    Starting,
    /// This node has no business with GPUDirect.
    NotApplicable,
    /// What is missing is expected to come by itself.
    Waiting,
    /// Steps are being run.
    Converging,
    /// The goal is reached, on evidence.
    Ready,
    /// Reached, with a named shortcoming.
    Degraded,
    /// Cannot succeed until something named changes.
    Blocked,
}

impl State {
    /// The string on the bus.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::NotApplicable => "not-applicable",
            Self::Waiting => "waiting",
            Self::Converging => "converging",
            Self::Ready => "ready",
            Self::Degraded => "degraded",
            Self::Blocked => "blocked",
        }
    }
}

/// How a reason goes away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// By itself: retried with back-off.
    Transient,
    /// By a change that the daemon sees.
    Event,
    /// By somebody's hand; the daemon sees the result.
    Operator,
}

/// What a remembered failure depends on. It is tried again once one of these is different.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Circumstance {
    /// The index of the module tree.
    ModuleTree,
    /// The effective modprobe configuration of the configured set.
    ModprobeConfig,
    /// PCI devices and their bindings.
    Devices,
    /// States of the watched units.
    Units,
    /// Which prerequisites are loaded, and from which build. Predecessors do not count: putting
    /// one back after a failure must not end the memory of that failure.
    Chain,
    /// Who is registered in `memory_peers`.
    Clients,
    /// The kernel's policy on modules.
    Policy,
}

macro_rules! reasons {
    ($($(#[doc = $doc:literal])+ $variant:ident = $slug:literal, $class:ident,
       [$($state:ident),*], [$($arm:ident),*], $sentence:literal, $remedy:literal;)+) => {
        /// Why the state is what it is. Unknown slugs from a newer daemon are new, not errors.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Reason { $($(#[doc = $doc])+ #[serde(rename = $slug)] $variant,)+ }

        /// The table, in the order of the enumeration.
        pub const REASONS: &[ReasonRow] = &[$(ReasonRow {
            reason: Reason::$variant,
            slug: $slug,
            class: Class::$class,
            states: &[$(State::$state),*],
            rearmed_by: &[$(Circumstance::$arm),*],
            sentence: $sentence,
            remedy: $remedy,
        },)+];
    };
}

/// One row of the table. In the texts `{subject}` stands for the module, unit or device and
/// `{detail}` for what was seen.
#[derive(Clone, Copy, Debug)]
pub struct ReasonRow {
    /// The reason.
    pub reason: Reason,
    /// Its stable name.
    pub slug: &'static str,
    /// How it goes away.
    pub class: Class,
    /// The states that it may stand under; empty: only as an advisory.
    pub states: &'static [State],
    /// What ends the memory of a failure with this reason. `Reconcile`, a reload and a restart
    /// always do.
    pub rearmed_by: &'static [Circumstance],
    /// One sentence.
    pub sentence: &'static str,
    /// What to do; empty where nothing needs doing.
    pub remedy: &'static str,
}

reasons! {
    /// The client is live and nothing speaks against its registration.
    Registered = "registered", Event, [Ready], [],
        "{subject} is loaded and registered with {detail}.", "";
    /// The DMA-BUF prerequisites are proven.
    DmabufReady = "dmabuf-ready", Event, [Ready], [],
        "The DMA-BUF path is in place: {detail}.", "";
    /// Configuration wants no transport.
    TransportOff = "transport-off", Operator, [NotApplicable], [],
        "GPUDirect RDMA is switched off by the configuration (transport = \"off\").",
        "Set transport = \"peermem\" in /etc/peermemd/peermemd.toml to use it.";
    /// No GPU on PCI, none earlier in this boot, none expected.
    NoGpu = "no-gpu", Event, [NotApplicable], [],
        "There is no GPU for GPUDirect RDMA on this node: {detail}.", "";
    /// No RDMA network card on PCI, none earlier in this boot, none expected.
    NoNic = "no-nic", Event, [NotApplicable], [],
        "There is no RDMA network card on this node: {detail}.", "";
    /// GPUs were here or are expected, and are not there.
    GpuLost = "gpu-lost", Event, [Blocked, Degraded], [],
        "{detail} on PCI.",
        "Look for Xid and PCIe errors in the kernel log (journalctl -k), then reset the GPU or power-cycle the node.";
    /// Network cards were here or are expected, and are not there.
    NicLost = "nic-lost", Event, [Blocked, Degraded], [],
        "{detail} on PCI.",
        "Look for PCIe errors in the kernel log (journalctl -k), then reseat or power-cycle the network card.";
    /// A module is being loaded or unloaded by somebody else.
    ModuleInTransition = "module-in-transition", Transient, [Waiting], [],
        "{subject} is {detail}.", "";
    /// A unit that loads or swaps drivers is not done.
    UnitBusy = "unit-busy", Event, [Waiting], [],
        "Waiting for {subject}: {detail}.",
        "See what it is doing with 'systemctl status {subject}'.";
    /// A failed step will be tried again.
    RetryPending = "retry-pending", Transient, [Waiting], [],
        "{subject} could not be loaded yet: {detail}.",
        "Nothing to do: it is tried again by itself. 'peermemctl reconcile' tries at once.";
    /// A load is running.
    LoadRunning = "load-running", Transient, [Converging], [],
        "{detail} {subject}.", "";
    /// A load has been running for longer than `load_stuck`.
    LoadStuck = "load-stuck", Transient, [Converging], [],
        "Loading {subject} has not finished after {detail}.",
        "It cannot be interrupted. Look for errors of {subject} in the kernel log (journalctl -k); if it never ends, reboot the node.";
    /// Somebody holds us back.
    Held = "held", Event, [Waiting], [],
        "Held by {subject}: {detail}.",
        "It goes on when the hold ends; 'peermemctl' lists who holds it.";
    /// Drivers are being swapped.
    DriverSwap = "driver-swap", Event, [Waiting], [],
        "Standing aside while drivers are swapped: {detail}.",
        "It goes on by itself once {subject} is back or the swap has ended; 'peermemctl reconcile' goes on now.";
    /// A hold has lasted for longer than `hold_max`.
    HeldTooLong = "held-too-long", Operator, [Waiting], [],
        "{subject} has held back the daemon for longer than hold_max: {detail}.",
        "Find out why it has not ended; 'peermemctl' lists the holds.";
    /// Another manager owns the module.
    ExternallyManaged = "externally-managed", Event, [Waiting], [Chain],
        "{subject} is managed by {detail}.",
        "Ask that manager, or set external_manager = \"override\".";
    /// There is no file of that name for this kernel.
    ModuleNotFound = "module-not-found", Event, [Blocked], [ModuleTree, ModprobeConfig],
        "There is no module {subject} for this kernel: {detail}.",
        "Install or build the driver package that brings {subject} for the running kernel, then run depmod if it did not.";
    /// The client was compiled without the peer-memory symbols.
    BuiltWithoutPeerMemory = "built-without-peer-memory", Event, [Blocked], [ModuleTree, ModprobeConfig],
        "{subject} was built without peer-memory support ({detail}), so the kernel refuses it without a word.",
        "Rebuild the GPU driver's kernel modules now that the RDMA stack is installed (for DKMS: dkms remove and dkms install of the nvidia entry).";
    /// A symbol's CRC differs from the provider's.
    SymbolVersionMismatch = "symbol-version-mismatch", Event, [Blocked], [ModuleTree, ModprobeConfig, Chain],
        "{subject} was built against another version of what it links to: {detail}.",
        "Rebuild the GPU driver's kernel modules against the installed RDMA stack and kernel, so that both sides agree.";
    /// The module carries no CRC for a symbol.
    SymbolVersionMissing = "symbol-version-missing", Event, [Blocked], [ModuleTree, ModprobeConfig, Chain],
        "{subject} carries no version for a symbol that it needs: {detail}.",
        "Rebuild the GPU driver's kernel modules with the RDMA stack's Module.symvers in place.";
    /// A symbol is not exported by anything loaded.
    UnknownSymbol = "unknown-symbol", Event, [Blocked], [ModuleTree, ModprobeConfig, Chain],
        "{subject} needs a symbol that no loaded module exports: {detail}.",
        "See whether the loaded RDMA stack is the one on disk ('peermemctl list'); reload or reboot into the installed one.";
    /// Built for another kernel configuration.
    VermagicMismatch = "vermagic-mismatch", Event, [Blocked], [ModuleTree, ModprobeConfig],
        "{subject} was built for another kernel: {detail}.",
        "Rebuild the driver's kernel modules for the running kernel.";
    /// The kernel does not trust the signature, or there is none.
    SignatureRejected = "signature-rejected", Operator, [Blocked], [ModuleTree, Policy],
        "The kernel rejected the signature of {subject}: {detail}.",
        "Sign the module with a key that the kernel trusts (mokutil --import), or install a signed package.";
    /// Kernel lockdown forbids it.
    Lockdown = "lockdown", Operator, [Blocked], [ModuleTree, Policy],
        "Kernel lockdown forbids loading {subject}: {detail}.",
        "Sign the module with a trusted key, or turn secure boot off.";
    /// `kernel.modules_disabled` is 1.
    ModulesDisabled = "modules-disabled", Operator, [Blocked], [Policy],
        "This kernel loads no more modules until it is rebooted (kernel.modules_disabled = 1), so {subject} cannot be loaded.",
        "Remove kernel.modules_disabled=1 from the sysctl configuration, or let it be set after peermemd is ready, and reboot.";
    /// A deny list keeps the module out.
    DenyListed = "deny-listed", Operator, [Blocked], [ModprobeConfig],
        "{subject} is on a deny list: {detail}.",
        "Remove that line if {subject} is wanted on this node.";
    /// The `install` command failed or loaded nothing.
    InstallCommandFailed = "install-command-failed", Operator, [Blocked], [ModprobeConfig, ModuleTree],
        "The modprobe.d install command for {subject} did not load it: {detail}.",
        "Correct or remove that install line.";
    /// The module refused a parameter.
    BadParameter = "bad-parameter", Operator, [Blocked], [ModprobeConfig],
        "{subject} refuses a parameter: {detail}.",
        "Correct the options line in modprobe.d.";
    /// Another module registered under the client's name.
    DuplicateClient = "duplicate-client", Event, [Blocked], [Chain, Clients],
        "{subject} cannot register, since its name is taken: {detail}.",
        "Unload the other client.";
    /// Live, but the stack that should list the client does not.
    RegistrationMissing = "registration-missing", Operator, [Blocked], [ModuleTree, Chain],
        "{subject} is loaded, but the RDMA stack does not list it: {detail}.",
        "End the jobs that use it and run 'peermemctl reconcile'; if it stays away, reboot and report this with 'journalctl -k'.";
    /// The predecessor serves memory regions, and the client is not loaded.
    LegacyInUse = "legacy-in-use", Event, [Blocked], [],
        "{subject} is loaded and in use ({detail}), so nvidia's own client cannot take its place.",
        "Nothing to do but to let those jobs end: it is replaced as soon as they are gone.";
    /// Both are loaded, and the predecessor serves the memory regions.
    LegacyOwnsClient = "legacy-owns-client", Event, [Degraded], [],
        "{subject} is loaded beside the client and in use ({detail}): it may serve memory regions in its stead.",
        "Let the jobs that use it end; then it is removed.";
    /// The predecessor stays, since its removal is not proven safe or not wanted.
    LegacyKept = "legacy-kept", Operator, [Degraded], [ModuleTree, ModprobeConfig, Chain],
        "{subject} is loaded and is kept: {detail}.",
        "Repair the client's module file, or remove the package of {subject}.";
    /// Nothing on this node exports the registration symbol.
    PeerMemoryUnsupported = "peer-memory-unsupported", Event, [Blocked], [ModuleTree, Chain],
        "The RDMA stack of this node has no peer-memory interface: {detail}.",
        "Install an RDMA stack that has it (MLNX_OFED or DOCA-OFED) and rebuild the GPU driver's modules, or use DMA-BUF (transport = \"dmabuf\") with the open GPU driver.";
    /// The hardware driver found no device that it can drive.
    NvidiaProbeFailed = "nvidia-probe-failed", Event, [Blocked], [Devices, ModuleTree, ModprobeConfig],
        "{subject} found no device that it can drive (ENODEV): {detail}.",
        "See who drives the devices with 'lspci -k' and what the driver said with 'journalctl -k'.";
    /// The hardware driver could not initialise its device.
    GpuInitFailed = "gpu-init-failed", Event, [Blocked], [Devices, ModuleTree, ModprobeConfig],
        "{subject} could not initialise its hardware: {detail}.",
        "See what the driver said with 'journalctl -k'; reset or power-cycle the device.";
    /// A module that must go is in use.
    ModuleInUse = "module-in-use", Event, [Blocked], [],
        "{subject} must be reloaded, but is in use: {detail}.",
        "Let the jobs that use it end.";
    /// The module file cannot be read as one.
    DamagedFile = "damaged-file", Event, [Blocked], [ModuleTree],
        "The module file of {subject} is damaged: {detail}.",
        "Reinstall the package that brings it.";
    /// A loaded module is not the file on disk.
    StaleLoadedModule = "stale-loaded-module", Event, [Blocked], [Chain, ModuleTree],
        "The loaded {subject} is not the one on disk: {detail}.",
        "Reload the stack or reboot the node to run what is installed.";
    /// The configuration could not be understood at start.
    ConfigInvalid = "config-invalid", Operator, [Blocked], [],
        "The configuration is not valid, so nothing is done: {detail}.",
        "Correct it ('peermemd --check' names file and line), then 'systemctl reload peermemd'.";
    /// Somebody undoes what the daemon does.
    RivalActor = "rival-actor", Operator, [Blocked], [],
        "Somebody keeps undoing the daemon's work on {subject}: {detail}.",
        "Find who does it ('peermemctl history'), stop one of the two, then run 'peermemctl reconcile'.";
    /// A DMA-BUF prerequisite is missing.
    DmabufUnsupported = "dmabuf-unsupported", Event, [Blocked], [ModuleTree, Chain],
        "The DMA-BUF path is not available: {detail}.",
        "Install what is missing, or set transport = \"peermem\".";
    /// A step failed and nothing says why.
    Unclassified = "unclassified", Event, [Blocked], [ModuleTree, ModprobeConfig, Devices, Chain, Policy],
        "{subject} could not be loaded and nothing tells why: {detail}.",
        "Look at 'journalctl -k' around the attempt; 'peermemctl reconcile' tries again.";
    /// The node could not be looked at.
    ProbeFailed = "probe-failed", Transient, [Waiting], [],
        "The state of the node could not be read: {detail}.",
        "See whether {subject} is readable for the daemon.";
    /// The system is going down.
    ShuttingDown = "shutting-down", Event, [Waiting], [],
        "The system is going down.", "";
    /// Errors of the client stand in the kernel log.
    KernelErrorsLogged = "kernel-errors-logged", Operator, [], [],
        "The kernel log holds errors of {subject} since it was loaded: {detail}.",
        "They usually come from one crashed job; see 'journalctl -k'.";
    /// Old consumers cannot see the registration on this stack.
    InvisibleToOldNccl = "invisible-to-old-nccl", Operator, [], [],
        "This RDMA stack has no memory_peers directory, which is where NCCL before 2.23.4 looks for {subject}.",
        "Use NCCL 2.23.4 or later; the registration itself is fine.";
    /// PCIe access control redirects peer traffic.
    AcsRedirect = "acs-redirect", Operator, [], [],
        "PCIe access control redirects traffic between GPU and network card: {detail}.",
        "See the platform's documentation on ACS; nothing is changed by peermemd.";
    /// Nothing proves what the client is linked to.
    LinkUnproven = "link-unproven", Operator, [], [],
        "It could not be seen which module {subject} registered with: {detail}.", "";
    /// A required part of the chain is missing although the client is registered.
    ChainIncomplete = "chain-incomplete", Event, [], [],
        "{subject} is not loaded although the client is registered: {detail}.",
        "Run 'peermemctl reconcile' to bring it back.";
}

impl Reason {
    /// The row of the table.
    pub fn row(self) -> &'static ReasonRow {
        // The table is generated in the order of the enumeration; a test holds that.
        &REASONS[self as usize]
    }

    /// The stable name.
    pub fn slug(self) -> &'static str {
        self.row().slug
    }

    /// How it goes away.
    pub fn class(self) -> Class {
        self.row().class
    }
}

/// A reason about something: what the status, a blocked step or an advisory says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Why.
    pub reason: Reason,
    /// The module, unit, device or file concerned.
    pub subject: String,
    /// What was seen; a clause without a full stop.
    pub detail: String,
}

impl Finding {
    /// A finding about `subject`.
    #[allow(clippy::needless_pass_by_value, reason = "a name is given as it is at hand")]
    pub fn new(reason: Reason, subject: impl ToString, detail: impl Into<String>) -> Self {
        Self { reason, subject: subject.to_string(), detail: detail.into() }
    }

    /// One sentence.
    pub fn sentence(&self) -> String {
        self.render(self.reason.row().sentence)
    }

    /// What to do; empty where nothing needs doing.
    pub fn remedy(&self) -> String {
        self.render(self.reason.row().remedy)
    }

    fn render(&self, template: &str) -> String {
        template.replace("{subject}", &self.subject).replace("{detail}", &self.detail)
    }
}

/// Something worth knowing that does not change the state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Advisory {
    /// Its slug.
    pub reason: Reason,
    /// One sentence, with the remedy where there is one.
    pub text: String,
}

impl From<Finding> for Advisory {
    fn from(finding: Finding) -> Self {
        let text = match (finding.sentence(), finding.remedy()) {
            (sentence, remedy) if remedy.is_empty() => sentence,
            (sentence, remedy) => format!("{sentence} {remedy}"),
        };
        Self { reason: finding.reason, text }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_finds_its_own_row() {
        for row in REASONS {
            assert_eq!(row.reason.row().slug, row.slug);
            let wire = serde_json::to_string(&row.reason).unwrap();
            assert_eq!(wire, format!("\"{}\"", row.slug));
        }
    }

    #[test]
    fn slugs_are_unique() {
        let mut slugs: Vec<_> = REASONS.iter().map(|row| row.slug).collect();
        slugs.sort_unstable();
        slugs.dedup();
        assert_eq!(slugs.len(), REASONS.len());
    }

    #[test]
    fn what_blocks_says_what_to_do() {
        for row in REASONS.iter().filter(|row| row.states.contains(&State::Blocked)) {
            assert!(!row.remedy.is_empty(), "{} has no remedy", row.slug);
        }
    }
}
