//! The rows: for each reason its slug, class, states, what re-arms it, sentence and remedy.

use serde::{Deserialize, Serialize};

use super::{Circumstance, Class, ReasonRow, State};

macro_rules! reasons {
    ($($(#[doc = $doc:literal])+ $variant:ident = $slug:literal, $class:ident,
       [$($state:ident),*], [$($arm:ident),*] $(or $ends:literal)?, $sentence:literal,
       $remedy:literal;)+) => {
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
            ends: concat!($($ends)?),
            meaning: concat!($($doc),+),
            sentence: $sentence,
            remedy: $remedy,
        },)+];
    };
}

reasons! {
    /// The client is live and nothing speaks against its registration.
    Registered = "registered", Event, [Ready], [] or "the client is unloaded",
        "{subject} is loaded and registered with {detail}.", "";
    /// The DMA-BUF prerequisites are proven.
    DmabufReady = "dmabuf-ready", Event, [Ready], [] or "a prerequisite is unloaded",
        "The DMA-BUF path is in place: {detail}.", "";
    /// Configuration wants no transport.
    TransportOff = "transport-off", Operator, [NotApplicable], [],
        "GPUDirect RDMA is switched off by the configuration (transport = \"off\").",
        "Set transport = \"peermem\" in /etc/peermemd/peermemd.toml and run 'peermemctl reload' to use it.";
    /// No GPU on PCI, none earlier in this boot, none expected.
    NoGpu = "no-gpu", Event, [NotApplicable], [] or "a GPU appears on PCI",
        "There is no GPU for GPUDirect RDMA on this node: {detail}.", "";
    /// No RDMA network card on PCI, none earlier in this boot, none expected.
    NoNic = "no-nic", Event, [NotApplicable], [] or "an RDMA network card appears on PCI",
        "There is no RDMA network card on this node: {detail}.", "";
    /// GPUs were here or are expected, and are not there.
    GpuLost = "gpu-lost", Event, [Blocked, Degraded], [] or "the GPUs are back on PCI",
        "{detail} on PCI.",
        "Look for Xid 79 and PCIe errors with 'journalctl -k -g \"NVRM: Xid|AER|pcieport\"', then reset the GPU or power-cycle the node.";
    /// Network cards were here or are expected, and are not there.
    NicLost = "nic-lost", Event, [Blocked, Degraded], [] or "the network cards are back on PCI",
        "{detail} on PCI.",
        "Look for PCIe errors with 'journalctl -k -g \"mlx5|AER|pcieport\"', then reseat or power-cycle the network card.";
    /// A module is being loaded or unloaded by somebody else.
    ModuleInTransition = "module-in-transition", Transient, [Waiting], [],
        "{subject} is {detail}.", "";
    /// A unit that loads or swaps drivers is not done.
    UnitBusy = "unit-busy", Event, [Waiting], [] or "the unit is done",
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
    Held = "held", Event, [Waiting], [] or "the hold ends",
        "Held by {subject}: {detail}.",
        "It goes on when the hold ends; 'peermemctl' lists who holds it.";
    /// Drivers are being swapped.
    DriverSwap = "driver-swap", Event, [Waiting], [] or "the evidence of the swap is gone and the chain is quiet",
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
        "Install the package that brings {subject} for the running kernel, or build it: 'dkms status' shows what is built, 'dkms autoinstall' builds the rest. If the file is there, run 'depmod -a'.";
    /// The client was compiled without the peer-memory symbols.
    BuiltWithoutPeerMemory = "built-without-peer-memory", Event, [Blocked], [ModuleTree, ModprobeConfig],
        "{subject} was built without peer-memory support ({detail}), so the kernel refuses it without a word.",
        "Rebuild the GPU driver's kernel modules now that the RDMA stack is installed. For DKMS, with NAME/VERSION from 'dkms status': 'dkms remove NAME/VERSION -k $(uname -r)', then 'dkms install NAME/VERSION -k $(uname -r)'.";
    /// A symbol's CRC differs from the provider's.
    SymbolVersionMismatch = "symbol-version-mismatch", Event, [Blocked], [ModuleTree, ModprobeConfig, Chain],
        "{subject} was built against another version of what it links to: {detail}.",
        "Rebuild the GPU driver's kernel modules against the installed RDMA stack and kernel, so that both sides agree; '/usr/src/ofa_kernel/default' must lead to the tree of the running kernel, or the build takes another one's versions. For DKMS, with NAME/VERSION from 'dkms status': 'dkms remove NAME/VERSION -k $(uname -r)', then 'dkms install NAME/VERSION -k $(uname -r)'.";
    /// The module carries no CRC for a symbol.
    SymbolVersionMissing = "symbol-version-missing", Event, [Blocked], [ModuleTree, ModprobeConfig, Chain],
        "{subject} carries no version for a symbol that it needs: {detail}.",
        "Rebuild the GPU driver's kernel modules with the RDMA stack's Module.symvers in place ('ls -l /usr/src/ofa_kernel/' shows which kernel it is for).";
    /// A symbol is not exported by anything loaded, or not to this module.
    UnknownSymbol = "unknown-symbol", Event, [Blocked], [ModuleTree, ModprobeConfig, Chain],
        "{subject} needs a symbol that the kernel does not give it: {detail}.",
        "Run 'depmod -a', and see whether the loaded RDMA stack is the one on disk ('peermemctl doctor'); reload or reboot into the installed one.";
    /// Built for another kernel configuration.
    VermagicMismatch = "vermagic-mismatch", Event, [Blocked], [ModuleTree, ModprobeConfig],
        "{subject} was built for another kernel: {detail}.",
        "Rebuild the driver's kernel modules against the headers of the running kernel ('dkms autoinstall -k $(uname -r)'), or install the package built for it.";
    /// The kernel does not trust the signature, or there is none.
    SignatureRejected = "signature-rejected", Operator, [Blocked], [ModuleTree, Policy],
        "The kernel rejected the signature of {subject}: {detail}.",
        "Sign the module with a key that the kernel trusts ('mokutil --import KEY.der', then reboot and confirm), or install a signed package.";
    /// Kernel lockdown forbids it.
    Lockdown = "lockdown", Operator, [Blocked], [ModuleTree, Policy],
        "Kernel lockdown forbids loading {subject}: {detail}.",
        "Sign the module with a key that the kernel trusts ('mokutil --import KEY.der', then reboot and confirm), or turn secure boot off.";
    /// `kernel.modules_disabled` is 1.
    ModulesDisabled = "modules-disabled", Operator, [Blocked], [Policy],
        "This kernel loads no more modules until it is rebooted (kernel.modules_disabled = 1), so {subject} cannot be loaded.",
        "Find who sets it ('grep -rs modules_disabled /etc/sysctl.conf /etc/sysctl.d /usr/lib/sysctl.d'), remove it or let it be set after gpudirect-rdma.target, and reboot.";
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
        "Correct the options line in modprobe.d ('modprobe -c | grep \"options {subject}\"' shows the effective ones).";
    /// Another module registered under the client's name.
    DuplicateClient = "duplicate-client", Event, [Blocked], [Chain, Clients],
        "{subject} cannot register, since its name is taken: {detail}.",
        "Unload the other client; 'cat /sys/kernel/mm/memory_peers/*/version' tells whose it is (1.x is nv_peer_mem).";
    /// Live, but the stack that should list the client does not.
    RegistrationMissing = "registration-missing", Operator, [Blocked], [ModuleTree, Chain],
        "{subject} is loaded, but the RDMA stack does not list it: {detail}.",
        "End the jobs that use it and run 'peermemctl reconcile'; if it stays away, reboot and report this with 'peermemctl doctor --bundle'.";
    /// The predecessor serves memory regions, and the client is not loaded.
    LegacyInUse = "legacy-in-use", Event, [Blocked], [] or "its users are gone",
        "{subject} is loaded and in use ({detail}), so nvidia's own client cannot take its place.",
        "Nothing to do but to let those jobs end: it is replaced as soon as they are gone.";
    /// Both are loaded, and the predecessor serves the memory regions.
    LegacyOwnsClient = "legacy-owns-client", Event, [Degraded], [] or "its users are gone",
        "{subject} is loaded beside the client and in use ({detail}): it may serve memory regions in its stead.",
        "Let the jobs that use it end; then it is removed.";
    /// The predecessor stays, since its removal is not proven safe or not wanted.
    LegacyKept = "legacy-kept", Operator, [Degraded], [ModuleTree, ModprobeConfig, Chain],
        "{subject} is loaded and is kept: {detail}.",
        "Repair the client's module file, or remove the package of {subject} (nvidia-peer-memory-dkms on Debian and Ubuntu, nvidia_peer_memory on RPM systems).";
    /// Nothing on this node exports the registration symbol.
    PeerMemoryUnsupported = "peer-memory-unsupported", Event, [Blocked], [ModuleTree, Chain],
        "The RDMA stack of this node has no peer-memory interface: {detail}.",
        "Install an RDMA stack that has it (MLNX_OFED or DOCA-OFED) and rebuild the GPU driver's modules, or use DMA-BUF (transport = \"dmabuf\") with the open GPU driver.";
    /// The hardware driver found no device that it can drive.
    NvidiaProbeFailed = "nvidia-probe-failed", Event, [Blocked], [Devices, ModuleTree, ModprobeConfig],
        "{subject} found no device that it can drive (ENODEV): {detail}.",
        "See who drives the devices with 'lspci -k -d 10de:' and what the driver said with 'journalctl -k -g NVRM'.";
    /// The hardware driver could not initialise its device.
    GpuInitFailed = "gpu-init-failed", Event, [Blocked], [Devices, ModuleTree, ModprobeConfig],
        "{subject} could not initialise its hardware: {detail}.",
        "See what the driver said with 'journalctl -k -g \"NVRM|mlx5\"'; reset the device or power-cycle the node.";
    /// A module that must go is in use.
    ModuleInUse = "module-in-use", Event, [Blocked], [] or "its users are gone",
        "{subject} must be reloaded, but is in use: {detail}.",
        "Let the jobs that use it end.";
    /// The module file cannot be read as one.
    DamagedFile = "damaged-file", Event, [Blocked], [ModuleTree],
        "The module file of {subject} cannot be used: {detail}.",
        "Reinstall or rebuild the package that brings it; 'modinfo {subject}' shows whether it can be read then.";
    /// A loaded module is not the file on disk.
    StaleLoadedModule = "stale-loaded-module", Event, [Blocked], [Chain, ModuleTree],
        "The loaded {subject} is not the one on disk: {detail}.",
        "Reboot the node to run what is installed.";
    /// Two files in the module tree have one module's name.
    ShadowedFile = "shadowed-file", Event, [], [ModuleTree],
        "There is more than one file for {subject}: {detail}.",
        "Remove the one that is not wanted and run 'depmod -a', or say which one wins in /etc/depmod.d.";
    /// The configuration could not be understood at start.
    ConfigInvalid = "config-invalid", Operator, [Blocked], [],
        "The configuration is not valid, so nothing is done: {detail}.",
        "Correct it ('peermemd --check' names file and line), then 'systemctl reload peermemd'.";
    /// Somebody undoes what the daemon does.
    RivalActor = "rival-actor", Operator, [Blocked], [],
        "Somebody keeps undoing the daemon's work on {subject}: {detail}.",
        "Find who does it ('peermemctl history', 'peermemctl doctor'), stop one of the two, then run 'peermemctl reconcile'.";
    /// A DMA-BUF prerequisite is missing.
    DmabufUnsupported = "dmabuf-unsupported", Event, [Blocked], [ModuleTree, Chain],
        "The DMA-BUF path is not available: {detail}.",
        "Install what is missing, or set transport = \"peermem\".";
    /// A step failed and nothing says why.
    Unclassified = "unclassified", Event, [Blocked], [ModuleTree, ModprobeConfig, Devices, Chain, Policy],
        "{subject} could not be loaded and nothing tells why: {detail}.",
        "Look at 'journalctl -k' around the attempt; 'peermemctl reconcile' tries again, and 'peermemctl doctor --bundle FILE' collects what a report needs.";
    /// The node could not be looked at.
    ProbeFailed = "probe-failed", Transient, [Waiting], [],
        "The state of the node could not be read: {detail}.",
        "See whether {subject} is readable for the daemon.";
    /// The system is going down.
    ShuttingDown = "shutting-down", Event, [Waiting], [] or "the next boot",
        "The system is going down.", "";
    /// Errors of the client stand in the kernel log.
    KernelErrorsLogged = "kernel-errors-logged", Operator, [], [],
        "The kernel log holds errors of {subject} since it was loaded: {detail}.",
        "They usually come from one crashed job and need nothing done; 'journalctl -k -g nvidia-peermem' has them all.";
    /// Old consumers cannot see the registration on this stack.
    InvisibleToOldNccl = "invisible-to-old-nccl", Operator, [], [],
        "This RDMA stack has no memory_peers directory, which is where NCCL before 2.23.4 looks for {subject}.",
        "Use NCCL 2.23.4 or later; the registration itself is fine. 'peermemctl consumers' lists who sees it.";
    /// PCIe access control redirects peer traffic.
    AcsRedirect = "acs-redirect", Operator, [], [],
        "PCIe access control redirects traffic between GPU and network card: {detail}.",
        "See the platform's documentation on ACS; nothing is changed by peermemd.";
    /// Nothing proves what the client is linked to.
    LinkUnproven = "link-unproven", Operator, [], [],
        "It could not be seen which module {subject} registered with: {detail}.", "";
    /// Something else on the host loads one of the modules, too.
    RivalLoader = "rival-loader", Operator, [], [],
        "{subject} is also loaded by {detail}.",
        "Remove that entry, so that nothing loads {subject} while drivers are swapped.";
    /// A required part of the chain is missing although the client is registered.
    ChainIncomplete = "chain-incomplete", Event, [], [] or "it is loaded again",
        "{subject} is not loaded although the client is registered: {detail}.",
        "Run 'peermemctl reconcile' to bring it back.";
}
