//! A socket filter for kernel uevents.
//!
//! The text of a kernel uevent has its subsystem at no fixed place, and a classic filter has no
//! loops; but it begins with `ACTION@/PATH`. So the filter goes by that: modules, and devices
//! that are not virtual (the pairs and bridges of containers come and go all day). The rest is
//! sorted out by whoever reads the socket.

use std::io;
use std::os::fd::AsFd;

use libc::sock_filter;

use super::attach;

const WORD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
const WORD_AT_X: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_IND;
const SET_X: u32 = libc::BPF_LDX | libc::BPF_W | libc::BPF_IMM;
const IF_EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
const JUMP: u32 = libc::BPF_JMP | libc::BPF_JA;
const RETURN: u32 = libc::BPF_RET | libc::BPF_K;

/// Lets only the uevents through that can concern a kernel module, a PCI device or an RDMA
/// device: added, removed, bound or unbound.
pub(crate) fn keep_relevant_uevents(socket: &impl AsFd) -> io::Result<()> {
    attach(socket, &mut program())
}

fn program() -> [sock_filter; 20] {
    let text = |four: &[u8; 4]| u32::from_be_bytes(*four);
    [
        // The action tells where the path begins.
        step(WORD, 0),
        branch(text(b"add@"), 4, 0),
        branch(text(b"bind"), 5, 0),
        branch(text(b"remo"), 6, 0),
        branch(text(b"unbi"), 5, 0),
        step(RETURN, 0),
        step(SET_X, 4),
        step(JUMP, 3),
        step(SET_X, 5),
        step(JUMP, 1),
        step(SET_X, 7),
        // "/module/…" and "/devices/…", but not "/devices/virtual/…" unless "…/infiniband/…".
        step(WORD_AT_X, 0),
        branch(text(b"/mod"), 5, 0),
        branch(text(b"/dev"), 0, 5),
        step(WORD_AT_X, 8),
        branch(text(b"/vir"), 0, 2),
        step(WORD_AT_X, 17),
        branch(text(b"infi"), 0, 1),
        step(RETURN, u32::MAX),
        step(RETURN, 0),
    ]
}

fn step(code: u32, k: u32) -> sock_filter {
    instruction(code, k, (0, 0))
}

fn branch(k: u32, jt: u8, jf: u8) -> sock_filter {
    instruction(IF_EQUAL, k, (jt, jf))
}

#[allow(clippy::cast_possible_truncation, reason = "the codes above all fit into eight bits")]
fn instruction(code: u32, k: u32, (jt, jf): (u8, u8)) -> sock_filter {
    sock_filter { code: code as u16, jt, jf, k }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixDatagram;

    fn passes(message: &str) -> bool {
        let (sender, receiver) = UnixDatagram::pair().unwrap();
        receiver.set_nonblocking(true).unwrap();
        keep_relevant_uevents(&receiver).unwrap();
        // A filtered datagram is an error for the sender of a local socket, not for the kernel.
        let _ = sender.send(message.as_bytes());
        receiver.recv(&mut [0; 256]).is_ok()
    }

    #[test]
    fn modules_and_real_devices_pass() {
        for message in [
            "add@/module/nvidia_peermem\0ACTION=add",
            "remove@/module/nvidia\0",
            "bind@/devices/pci0000:00/0000:00:01.0\0",
            "unbind@/devices/LNXSYSTM:00/VMBUS:01/pci0001:00/0001:00:00.0\0",
            "add@/devices/pci0000:00/0000:00:01.0/infiniband/mlx5_0\0",
            "add@/devices/virtual/infiniband/rxe0\0",
        ] {
            assert!(passes(message), "{message}");
        }
    }

    #[test]
    fn noise_is_dropped_in_the_kernel() {
        for message in [
            "add@/devices/virtual/net/veth01\0",
            "change@/devices/pci0000:00/0000:00:01.0\0",
            "add@/kernel/slab/x\0",
            "move@/module/nvidia\0",
            "add@",
            "",
        ] {
            assert!(!passes(message), "{message}");
        }
    }
}
