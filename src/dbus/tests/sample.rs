//! A snapshot with something in every property.

use crate::model::{
    Advisory, Answer, Backend, ClientStatus, Evidence, EvidenceId, GpuFlavour, Hold, HoldKind,
    LoadState, Mode, ModuleName, ModuleStatus, Moment, Monotonic, PeerClient, Reason, Role, State,
    Status, Transport, What,
};

pub fn sample() -> Status {
    let moment = Moment { real: 1_700_000_000_000_000, monotonic: Monotonic(42_000_000) };
    Status {
        version: "0.1.0".to_owned(),
        backend: Backend::Kmod,
        kernel_release: "6.12.0-test".to_owned(),
        mode: Mode::Enforce,
        state: State::Ready,
        reason: Some(Reason::Registered),
        status_text: "nvidia_peermem is loaded and registered with ib_core.".to_owned(),
        remedy: String::new(),
        transport: Transport::Peermem,
        active_path: "peermem".to_owned(),
        dmabuf_support: "unknown".to_owned(),
        registered: true,
        evidence: vec![Evidence {
            id: EvidenceId::Live,
            answer: Answer::Yes,
            detail: "/sys/module/nvidia_peermem/initstate".to_owned(),
        }],
        advisories: vec![Advisory {
            reason: Reason::KernelErrorsLogged,
            text: "The kernel log holds errors.".to_owned(),
        }],
        holds: vec![Hold {
            kind: HoldKind::Hold,
            name: "operator".to_owned(),
            what: What::ALL,
            who: "root".to_owned(),
            why: "maintenance".to_owned(),
            since: moment,
            until: 0,
            uid: 0,
            pid: 4711,
        }],
        managed_by: vec![("nvidia_peermem".to_owned(), "peermemd".to_owned())],
        plan: vec!["Load nvidia_peermem".to_owned()],
        state_change: moment,
        last_check: 1_700_000_000_500_000,
        next_attempt: Monotonic(0),
        attempt_count: 3,
        failure_count: 1,
        nvidia_driver_version: "570.86.10".to_owned(),
        nvidia_driver_flavour: GpuFlavour::Open,
        rdma_stack: "inbox".to_owned(),
        fingerprint: "1:abc".to_owned(),
        configuration_files: vec!["/etc/peermemd/peermemd.toml".to_owned()],
        modules: vec![
            module("ib_core", Role::RdmaCore, 2),
            module("nvidia_peermem", Role::PeerClient, 0),
        ],
        clients: vec![client("nv_mem")],
    }
}

pub fn module(name: &str, role: Role, ref_count: i32) -> ModuleStatus {
    ModuleStatus {
        name: ModuleName::new(name).unwrap(),
        role,
        required: true,
        load_state: LoadState::Live,
        file_name: format!("/lib/modules/6.12.0-test/{name}.ko"),
        module_version: "1.0".to_owned(),
        src_version: "ABCDEF".to_owned(),
        ref_count,
        holders: vec![ModuleName::new("ib_uverbs").unwrap()],
        last_reason: None,
        last_errno: 0,
        loaded_timestamp: 1_700_000_000_000_000,
    }
}

pub fn client(name: &str) -> ClientStatus {
    let client = PeerClient {
        name: name.to_owned(),
        version: "570.86.10".to_owned(),
        num_alloc_mrs: Some(10),
        num_dealloc_mrs: Some(4),
        ..PeerClient::default()
    };
    ClientStatus { client, managed: name == "nv_mem" }
}
