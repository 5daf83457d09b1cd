//! Remedies for what was found in particular, where the general one of the reason says less.

use serde::{Deserialize, Serialize};

macro_rules! remedies {
    ($($(#[doc = $doc:literal])+ $variant:ident = $text:literal;)+) => {
        /// A particular remedy.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Remedy { $($(#[doc = $doc])+ $variant,)+ }

        /// All of them with their texts, in which `{subject}` stands for what the finding is
        /// about and `{place}` for the file, module or unit that the remedy acts on.
        pub const REMEDIES: &[(Remedy, &str)] = &[$((Remedy::$variant, $text)),+];
    };
}

remedies! {
    /// The loaded build is old and nobody uses it.
    Reload = "Reload it: nobody uses {place}, so 'modprobe -r {place} && modprobe {subject}' runs what is installed; no reboot is needed.";
    /// The loaded build is old and in use.
    Reboot = "Reboot the node to run what is installed: {place} is in use, so it cannot be reloaded now.";
    /// A line of modprobe.d is to go.
    RemoveLine = "Remove {place} if {subject} is wanted on this node, then run 'update-initramfs -u' or 'dracut -f' if the initramfs has a copy.";
    /// The kernel command line denies a module.
    CommandLine = "Remove {subject} from module_blacklist= on the kernel command line (/etc/default/grub or 'grubby --remove-args'), and reboot.";
    /// A line of modprobe.d is to be corrected.
    CorrectLine = "Correct {place}, then run 'peermemctl reconcile'.";
    /// A closed module is refused symbols for GPL modules only.
    OpenFlavour = "Use one flavour of the GPU driver throughout: install the open kernel modules ({place}), or rebuild the whole set from one package.";
    /// The module does not import a namespace.
    ImportNamespace = "Rebuild or update the package of {subject} for this kernel: its source must import the namespace {place}.";
    /// Both the GPU driver and the RDMA stack differ from what the client was built with.
    RebuildAll = "Rebuild all of the GPU driver's kernel modules, not the client alone, against the installed RDMA stack and kernel: {place} differ. For DKMS, with NAME/VERSION from 'dkms status': 'dkms remove NAME/VERSION -k $(uname -r)', then 'dkms install NAME/VERSION -k $(uname -r)'.";
    /// The client belongs to another build of the GPU driver than the one it meets.
    RebuildDriver = "Rebuild or reinstall the GPU driver's kernel modules as one set, so that the client and {place} come from the same build; reboot if the loaded {place} is older than its file.";
    /// The client is the work of an entry of DKMS, and a rebuild now would fit.
    RebuildEntry = "Rebuild {subject} with the rest of its driver: 'dkms remove {place} -k $(uname -r)', then 'dkms install {place} -k $(uname -r)'; against what is installed now it will fit.";
    /// A rebuild now would take the versions of another build.
    CorrectSymvers = "Let {place} lead to the tree of the running kernel, by the RDMA stack's development package or 'ln -sfn', before the GPU driver's kernel modules are rebuilt: now a rebuild takes its versions from there, and they are not those of the installed stack.";
    /// A rebuild now would be a stub.
    InstallSymvers = "Install the RDMA stack's development files for the running kernel first (a Module.symvers below {place}), then rebuild the GPU driver's kernel modules: a rebuild alone would be without peer memory.";
    /// DKMS knows the package that should bring the module.
    BuildEntry = "Build it: 'dkms install {place} -k $(uname -r)'; if that fails, see its make.log below /var/lib/dkms/{place}. If the file is there, run 'depmod -a'.";
    /// A driver of another name has the devices.
    Unbind = "Put {place} on the deny list ('echo blacklist {place} > /etc/modprobe.d/deny-{place}.conf'), rebuild the initramfs, and reboot, if {subject} is to have these devices.";
    /// The GPU needs the other flavour of the driver.
    OtherFlavour = "Install the other flavour of the GPU driver: GPUs before Turing need the proprietary kernel modules, Blackwell and later the open ones.";
    /// The process may not load modules.
    Sandbox = "See 'systemctl show peermemd -p CapabilityBoundingSet -p ProtectKernelModules -p SystemCallFilter': the unit needs CAP_SYS_MODULE; remove the drop-in that takes it away.";
    /// The compressed file is of a kind that libkmod was built without.
    Decompress = "See 'kmod --version' for what this libkmod can read; install the module with a compression that it knows, or a kmod built with it ({place}).";
    /// The predecessor has the client's name.
    RemoveLegacy = "Remove {place}: 'rmmod {place}' once nobody uses it, and its package, or it comes back at boot.";
    /// Neither the stack nor the client knows peer memory.
    InstallStack = "Install an RDMA stack with peer memory (MLNX_OFED or DOCA-OFED) first, then rebuild the GPU driver's kernel modules; or use DMA-BUF (transport = \"dmabuf\") with the open GPU driver.";
    /// The index does not know what is on disk.
    Depmod = "Run 'depmod -a': the module index was made before {place} was installed.";
}

/// A particular remedy with what it acts on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Advice {
    /// Which.
    pub remedy: Remedy,
    /// The file and line, module or unit that it acts on.
    pub place: String,
}

impl Remedy {
    /// Its text.
    pub fn text(self) -> &'static str {
        // The table is generated in the order of the enumeration; a test holds that.
        REMEDIES[self as usize].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_remedy_finds_its_own_text() {
        for (remedy, text) in REMEDIES {
            assert_eq!(remedy.text(), *text);
            assert!(text.ends_with('.'), "{text}");
        }
    }
}
