//! Kernel uevents: the netlink multicast group on which the kernel announces that modules and
//! devices come and go. Group 1 is the kernel's own; what udev says to others is group 2.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recvfrom, setsockopt,
    socket, sockopt,
};

use super::fd::{Readiness, keep_relevant_uevents};
use super::pci::Identity;

/// The kernel's group.
const KERNEL: u32 = 1;

/// Larger than any uevent: the kernel fills at most 2 KiB of variables.
const BUFFER: usize = 8192;

/// Room for the burst of an RDMA stack that is reloaded; overruns are noticed.
const QUEUE: usize = 1 << 20;

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Uevent {
    /// A module of that name came or went.
    Module(String),
    /// A PCI device came, went, was bound or unbound. `None` if it does not say what it is.
    Pci(Option<Identity>),
    /// An RDMA device came or went.
    Infiniband,
    /// Events were lost.
    Lost,
}

/// The socket on which they arrive.
#[derive(Debug)]
pub(super) struct UeventSocket {
    socket: OwnedFd,
    ready: Readiness,
}

impl UeventSocket {
    /// Listens from now on.
    pub(super) fn open() -> io::Result<Self> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let protocol = SockProtocol::NetlinkKObjectUEvent;
        let socket = socket(AddressFamily::Netlink, SockType::Datagram, flags, Some(protocol))?;
        enlarge(&socket);
        if let Err(error) = keep_relevant_uevents(&socket) {
            // It only saves waking up: everything is looked at again below.
            tracing::debug!(%error, "uevents are not filtered in the kernel");
        }
        bind(socket.as_raw_fd(), &NetlinkAddr::new(0, KERNEL))?;
        let ready = Readiness::of(socket.as_fd())?;
        Ok(Self { socket, ready })
    }

    /// Ends when there may be something to read. Cancel safe.
    pub(super) async fn readable(&self) {
        self.ready.readable().await;
    }

    /// Gives everything that has arrived to `each`.
    pub(super) fn drain(&self, mut each: impl FnMut(Uevent)) {
        let mut buffer = [0; BUFFER];
        loop {
            match recvfrom::<NetlinkAddr>(self.socket.as_raw_fd(), &mut buffer) {
                // Anybody may send to the socket; only the kernel has no port.
                Ok((length, Some(sender))) if sender.pid() == 0 => {
                    buffer.get(..length).and_then(parse).into_iter().for_each(&mut each);
                }
                Ok(_) | Err(Errno::EINTR) => {}
                Err(Errno::ENOBUFS) => each(Uevent::Lost),
                Err(_) => return,
            }
        }
    }
}

fn enlarge(socket: &OwnedFd) {
    // Beyond the system's limit only with a capability that the unit does not have; what the
    // limit allows is enough but for storms, and those are noticed.
    if setsockopt(socket, sockopt::RcvBufForce, &QUEUE).is_err() {
        let _ = setsockopt(socket, sockopt::RcvBuf, &QUEUE);
    }
}

/// `ACTION@DEVPATH`, then `KEY=VALUE` texts, each ended by NUL.
fn parse(message: &[u8]) -> Option<Uevent> {
    let mut parts = message.split(|&byte| byte == 0).map(|part| std::str::from_utf8(part).ok());
    let (action, path) = parts.next()??.split_once('@')?;
    if !matches!(action, "add" | "remove" | "bind" | "unbind") {
        return None;
    }
    let variables: BTreeMap<_, _> =
        parts.flatten().filter_map(|part| part.split_once('=')).collect();
    match *variables.get("SUBSYSTEM")? {
        "module" => Some(Uevent::Module(path.strip_prefix("/module/")?.to_owned())),
        "infiniband" => Some(Uevent::Infiniband),
        "pci" => {
            let identity = variables.get("PCI_ID").zip(variables.get("PCI_CLASS"));
            Some(Uevent::Pci(identity.and_then(|(id, class)| Identity::parse(id, class))))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn modules_pci_and_rdma_devices_are_told_apart() {
        let module = b"remove@/module/nvidia_peermem\0ACTION=remove\0SUBSYSTEM=module\0SEQNUM=7\0";
        assert_eq!(parse(module), Some(Uevent::Module("nvidia_peermem".to_owned())));
        let pci = b"unbind@/devices/pci0000:00/0000:00:01.0\0SUBSYSTEM=pci\0PCI_CLASS=30200\0PCI_ID=10DE:2330\0";
        let identity = Identity { vendor: 0x10de, device: 0x2330, class: 0x0302 };
        assert_eq!(parse(pci), Some(Uevent::Pci(Some(identity))));
        let rdma = b"add@/devices/pci0000:00/infiniband/mlx5_0\0SUBSYSTEM=infiniband\0";
        assert_eq!(parse(rdma), Some(Uevent::Infiniband));
    }

    #[test]
    fn other_events_and_damaged_ones_are_dropped() {
        for message in [
            &b"change@/module/nvidia\0SUBSYSTEM=module\0"[..],
            b"add@/devices/virtual/net/veth0\0SUBSYSTEM=net\0",
            b"add@/module/nvidia\0",
            b"libudev\0\xfe\xed\xca\xfe",
            b"",
        ] {
            assert_eq!(parse(message), None);
        }
        let unnamed = b"add@/devices/pci0000:00\0SUBSYSTEM=pci\0PCI_ID=\xff\0";
        assert_eq!(parse(unnamed), Some(Uevent::Pci(None)));
    }

    #[tokio::test]
    async fn the_kernels_socket_opens_and_is_empty_at_first() {
        let socket = UeventSocket::open().unwrap();
        let mut events = Vec::new();
        socket.drain(|event| events.push(event));
        assert!(!events.contains(&Uevent::Lost));
    }

    proptest! {
        #[test]
        fn no_message_makes_the_parser_panic(
            message in proptest::collection::vec(any::<u8>(), 0..128),
            text in "(add|bind)@/module/[a-z]{0,4}(\0(SUBSYSTEM|PCI_ID|PCI_CLASS)=[a-z0-9:]{0,6}){0,5}",
        ) {
            parse(&message);
            parse(text.as_bytes());
        }
    }
}
