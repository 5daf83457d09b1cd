//! Nodes in the states that a person meets.

use jiff::tz::TimeZone;
use peermemd::dbus::client::{
    AdvisoryEntry, ClientEntry, EvidenceEntry, HoldEntry, ModuleEntry, Snapshot,
};

use peermemd::model::{Check, CheckResult};

use crate::screen::{Clock, Screen};

/// Mon 2026-11-16 11:27:44 UTC, four hours after boot.
pub const NOW: u64 = 1_794_828_464_000_000;
const MONOTONIC_NOW: u64 = 4 * HOUR;
const SECOND: u64 = 1_000_000;
const HOUR: u64 = 3_600 * SECOND;

/// A terminal of 80 columns at a fixed time.
pub fn screen() -> Screen {
    let clock = Clock { real: NOW, monotonic: MONOTONIC_NOW, zone: TimeZone::UTC };
    Screen { width: 80, unicode: true, clock }
}

/// What is found on a node whose kernel is locked down.
pub fn checks() -> Vec<Check> {
    let check = |id: &str, result, reason: &str, detail: &str, remedy: &str| Check {
        id: id.into(),
        result,
        reason: reason.into(),
        detail: detail.into(),
        remedy: remedy.into(),
    };
    let pass = |id: &str, detail: &str| check(id, CheckResult::Pass, "", detail, "");
    let locked = "Kernel lockdown forbids loading nvidia: the file is not signed, and lockdown \
                  is 'integrity'.";
    let sign = "Sign the module with a key that the kernel trusts ('mokutil --import KEY.der', \
                then reboot and confirm), or turn secure boot off.";
    let fail = |id: &str| check(id, CheckResult::Fail, "lockdown", locked, sign);
    vec![
        pass("hardware.gpu", "GPUs on PCI: 8"),
        pass("hardware.nic", "RDMA network cards on PCI: 8"),
        fail("driver.nvidia"),
        pass("rdma.ib_core", "ib_core is loaded, version 24.10-1.1.4"),
        check("rdma.port", CheckResult::Warn, "", "no RDMA port is active", ""),
        fail("policy.lockdown"),
        check(
            "policy.signatures",
            CheckResult::Unknown,
            "",
            "module.sig_enforce could not be read",
            "",
        ),
        fail("load.nvidia_peermem"),
        check(
            "rivals.modules-load",
            CheckResult::Warn,
            "",
            "/etc/modules-load.d/gpu.conf:2 loads nvidia_peermem too, without waiting for the rest \
             of the chain",
            "Remove that line, now that peermemd loads nvidia_peermem.",
        ),
        check(
            "consumers.all",
            CheckResult::Skip,
            "",
            "nothing is registered that a program could see",
            "",
        ),
    ]
}

/// A node without any finding; `ago` seconds in this state.
fn node(state: &str, reason: &str, ago: u64) -> Snapshot {
    Snapshot {
        version: "0.1.0".into(),
        backend: "kmod".into(),
        kernel_release: "6.8.0-45-generic".into(),
        mode: "enforce".into(),
        state: state.into(),
        reason: reason.into(),
        transport: "peermem".into(),
        active_path: "none".into(),
        dmabuf_support: "unknown".into(),
        state_change_timestamp: NOW - ago * SECOND,
        state_change_timestamp_monotonic: MONOTONIC_NOW - ago * SECOND,
        last_check_timestamp: NOW - 14 * SECOND,
        nvidia_driver_version: "570.124.06".into(),
        nvidia_driver_flavour: "open".into(),
        rdma_stack: "MLNX_OFED 24.10-1.1.4.0".into(),
        modules: chain(),
        ..Snapshot::default()
    }
}

fn module(name: &str, role: &str, state: &str, version: &str, holders: &[&str]) -> ModuleEntry {
    ModuleEntry {
        name: name.into(),
        role: role.into(),
        required: role != "legacy" && !matches!(name, "mlx5_ib" | "ib_uverbs"),
        load_state: state.into(),
        module_version: version.into(),
        ref_count: Some(i32::try_from(holders.len()).unwrap()),
        holders: holders.iter().map(|&name| name.to_owned()).collect(),
        ..ModuleEntry::default()
    }
}

fn chain() -> Vec<ModuleEntry> {
    let ofed = "24.10-1.1.4";
    let mut client = module("nvidia_peermem", "peer-client", "live", "570.124.06", &[]);
    client.ref_count = Some(12);
    let users = ["ib_ipoib", "ib_umad", "ib_uverbs", "mlx5_ib", "nvidia_peermem", "rdma_cm"];
    vec![
        module("mlx5_core", "rdma-driver", "live", ofed, &["mlx5_ib"]),
        module("ib_core", "rdma-core", "live", ofed, &users),
        module("mlx5_ib", "rdma-driver", "live", ofed, &[]),
        module("ib_uverbs", "rdma-core", "live", ofed, &["mlx5_ib", "rdma_ucm"]),
        module("nvidia", "gpu-driver", "live", "570.124.06", &["nvidia_peermem", "nvidia_uvm"]),
        client,
        module("nv_peer_mem", "legacy", "not-found", "", &[]),
    ]
}

fn evidence(id: &str, result: &str, detail: &str) -> EvidenceEntry {
    EvidenceEntry { id: id.into(), result: result.into(), detail: detail.into() }
}

/// The client is not loaded, so nothing is used by it either.
fn unload_client(node: &mut Snapshot) {
    for module in &mut node.modules {
        module.holders.retain(|name| name != "nvidia_peermem");
        module.ref_count = i32::try_from(module.holders.len()).ok();
    }
    node.modules[5].load_state = "absent".into();
}

pub fn ready() -> Snapshot {
    Snapshot {
        status_text: "nvidia_peermem is loaded and registered with ib_core.".into(),
        active_path: "peermem".into(),
        registered: true,
        evidence: vec![
            evidence("live", "yes", "initstate of nvidia_peermem is live"),
            evidence("linked", "yes", "nvidia_peermem is a holder of ib_core"),
            evidence("listed", "yes", "/sys/kernel/mm/memory_peers/nv_mem"),
            evidence("owner", "yes", "its version is that of the GPU driver"),
            evidence("kernel-log", "unknown", "/dev/kmsg could not be read"),
            evidence("memory-regions", "yes", "the counters of nv_mem"),
            evidence("active-port", "no", "mlx5_0/1 and mlx5_1/1 are not ACTIVE"),
        ],
        advisories: vec![AdvisoryEntry {
            slug: "acs-redirect".into(),
            text: "PCIe access control redirects traffic between GPU and network card: \
                   0000:17:00.0. See the platform's documentation on ACS; nothing is changed \
                   by peermemd."
                .into(),
        }],
        clients: vec![ClientEntry {
            name: "nv_mem".into(),
            client_version: "570.124.06".into(),
            managed: true,
            num_alloc_mrs: Some(40),
            num_dealloc_mrs: Some(28),
            num_reg_bytes: Some(51_539_607_552),
            num_dereg_bytes: Some(0),
            active_mrs: Some(12),
            ..ClientEntry::default()
        }],
        ..node("ready", "registered", 7_988)
    }
}

pub fn blocked() -> Snapshot {
    let mut node = Snapshot {
        status_text: "nvidia_peermem was built against another RDMA stack: \
                      ib_register_peer_memory_client has CRC 0x8a2f41c0 in ib_core and \
                      0x11d07e93 in the module."
            .into(),
        remedy: "Rebuild the GPU driver's modules against the installed RDMA stack, for \
                 instance with 'dkms install --force nvidia/570.124.06'."
            .into(),
        evidence: vec![
            evidence("live", "no", "nvidia_peermem is not loaded"),
            evidence("linked", "not-applicable", "nothing to look at"),
        ],
        attempt_count: 1,
        failure_count: 1,
        ..node("blocked", "symbol-version-mismatch", 61)
    };
    unload_client(&mut node);
    let client = &mut node.modules[5];
    client.last_reason = "symbol-version-mismatch".into();
    client.last_errno = 22;
    node
}

pub fn held() -> Snapshot {
    let mut node = Snapshot {
        status_text: "Held by operator: new firmware for the network cards.".into(),
        remedy: "It goes on when the hold ends; 'peermemctl' lists who holds it.".into(),
        held: true,
        holds: vec![
            HoldEntry {
                kind: "hold".into(),
                name: "operator".into(),
                what: "load:remove".into(),
                who: "root".into(),
                why: "new firmware for the network cards".into(),
                since: NOW - 600 * SECOND,
                until: NOW + HOUR,
                uid: 0,
                pid: 812,
            },
            HoldEntry {
                kind: "automatic".into(),
                name: "openibd.service".into(),
                what: "load:remove".into(),
                who: "peermemd".into(),
                why: "a stop job is running".into(),
                since: NOW - 5 * SECOND,
                until: 0,
                uid: 0,
                pid: 1,
            },
        ],
        plan: vec!["load nvidia_peermem".into()],
        ..node("waiting", "held", 600)
    };
    unload_client(&mut node);
    node
}

pub fn not_applicable() -> Snapshot {
    let mut node = Snapshot {
        status_text: "There is no GPU for GPUDirect RDMA on this node: no NVIDIA device on PCI."
            .into(),
        nvidia_driver_version: String::new(),
        nvidia_driver_flavour: "unknown".into(),
        rdma_stack: "inbox".into(),
        ..node("not-applicable", "no-gpu", 3 * 86_400 / 24)
    };
    unload_client(&mut node);
    for module in &mut node.modules[4..] {
        *module = ModuleEntry {
            load_state: "not-found".into(),
            module_version: String::new(),
            holders: Vec::new(),
            ref_count: None,
            ..module.clone()
        };
    }
    node
}

pub fn stuck() -> Snapshot {
    let mut node = Snapshot {
        backend: "simulated".into(),
        status_text: "Loading nvidia has not finished after 60 s.".into(),
        remedy: "It cannot be interrupted. Look for errors of nvidia in the kernel log \
                 (journalctl -k); if it never ends, reboot the node."
            .into(),
        next_attempt_timestamp_monotonic: MONOTONIC_NOW + 12 * SECOND,
        attempt_count: 3,
        failure_count: 2,
        mode: "observe".into(),
        ..node("converging", "load-stuck", 64)
    };
    let driver = &mut node.modules[4];
    driver.load_state = "loading".into();
    driver.holders.clear();
    driver.ref_count = Some(1);
    unload_client(&mut node);
    node
}
