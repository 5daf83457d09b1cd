//! How many contexts user space has open on RDMA devices, by RDMA netlink: `rdma resource show`
//! asks the same.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, sendto,
    setsockopt, socket, sockopt,
};
use nix::sys::time::{TimeVal, TimeValLike};

use crate::model::Fact;

/// `RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_RES_GET)`
const RESOURCES: u16 = (5 << 10) + 9;
/// Attributes of `rdma/rdma_netlink.h`.
const SUMMARY: u16 = 15;
const SUMMARY_ENTRY: u16 = 16;
const ENTRY_NAME: u16 = 17;
const ENTRY_COUNT: u16 = 18;
/// The name under which the kernel counts contexts.
const CONTEXTS: &[u8] = b"ctx";

const HEADER: usize = 16;
/// Message types and flags of `linux/netlink.h`.
const ERROR: u16 = 2;
const DONE: u16 = 3;
const REQUEST_DUMP: u16 = 0x301;
/// The kernel's largest message of a dump.
const BUFFER: usize = 32 * 1024;
/// More messages than any machine has devices.
const MOST_MESSAGES: usize = 4096;

/// Asks the kernel. Only to be called while the RDMA core is loaded: opening the socket without
/// it makes the kernel load modules.
pub(super) fn read() -> Fact<u32> {
    ask().map_err(|error| format!("RDMA netlink: {error}")).into()
}

fn ask() -> io::Result<u32> {
    let socket = open()?;
    let kernel = NetlinkAddr::new(0, 0);
    sendto(socket.as_raw_fd(), &request(), &kernel, MsgFlags::empty())?;
    let mut tally = Tally::default();
    let mut buffer = vec![0; BUFFER];
    for _ in 0..MOST_MESSAGES {
        let length = recv(socket.as_raw_fd(), &mut buffer, MsgFlags::MSG_TRUNC)?;
        let answer = buffer.get(..length).ok_or_else(damaged)?;
        if tally.add(answer)? {
            return tally
                .contexts
                .ok_or_else(|| io::Error::other("this kernel counts no contexts"));
        }
    }
    Err(damaged())
}

fn open() -> io::Result<OwnedFd> {
    let protocol = SockProtocol::NetlinkRDMA;
    let socket =
        socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, Some(protocol))?;
    setsockopt(&socket, sockopt::ReceiveTimeout, &TimeVal::seconds(1))?;
    bind(socket.as_raw_fd(), &NetlinkAddr::new(0, 0))?;
    Ok(socket)
}

/// A dump of the resources of every device.
fn request() -> [u8; HEADER] {
    let mut message = [0; HEADER];
    message[..4].copy_from_slice(&16u32.to_ne_bytes());
    message[4..6].copy_from_slice(&RESOURCES.to_ne_bytes());
    message[6..8].copy_from_slice(&REQUEST_DUMP.to_ne_bytes());
    message
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "an answer that makes no sense")
}

/// The sum over all devices; `None` once a device did not count its contexts.
#[derive(Debug, PartialEq, Eq)]
struct Tally {
    contexts: Option<u32>,
}

impl Default for Tally {
    fn default() -> Self {
        Self { contexts: Some(0) }
    }
}

impl Tally {
    /// Adds the messages of one answer; true when the dump is over.
    fn add(&mut self, mut messages: &[u8]) -> io::Result<bool> {
        while !messages.is_empty() {
            let size = u32_at(messages, 0).and_then(|size| usize::try_from(size).ok());
            let size = size.filter(|&size| size >= HEADER).ok_or_else(damaged)?;
            let message = messages.get(..size).ok_or_else(damaged)?;
            match u16_at(message, 4).ok_or_else(damaged)? {
                DONE => return Ok(true),
                ERROR => return Err(error(&message[HEADER..])),
                RESOURCES => self.add_device(&message[HEADER..]),
                _ => {}
            }
            messages = messages.get(aligned(size)..).unwrap_or_default();
        }
        Ok(false)
    }

    fn add_device(&mut self, attributes: &[u8]) {
        let count = count(attributes);
        self.contexts = self.contexts.zip(count).map(|(sum, count)| sum.saturating_add(count));
    }
}

fn error(body: &[u8]) -> io::Error {
    match u32_at(body, 0) {
        Some(code) => {
            io::Error::from_raw_os_error(i32::from_ne_bytes(code.to_ne_bytes()).saturating_neg())
        }
        None => damaged(),
    }
}

/// The contexts of one device.
fn count(attributes: &[u8]) -> Option<u32> {
    let entry = |entry: &[u8]| -> Option<u32> {
        let name = Attributes(entry).find(|(kind, _)| *kind == ENTRY_NAME)?.1;
        if name.strip_suffix(b"\0").unwrap_or(name) != CONTEXTS {
            return None;
        }
        let count = Attributes(entry).find(|(kind, _)| *kind == ENTRY_COUNT)?.1;
        let count = u64::from_ne_bytes(count.try_into().ok()?);
        Some(u32::try_from(count).unwrap_or(u32::MAX))
    };
    let (_, summary) = Attributes(attributes).find(|(kind, _)| *kind == SUMMARY)?;
    Attributes(summary).filter(|(kind, _)| *kind == SUMMARY_ENTRY).find_map(|(_, e)| entry(e))
}

/// Walks over attributes, and ends where one makes no sense.
struct Attributes<'a>(&'a [u8]);

impl<'a> Iterator for Attributes<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        const KIND: u16 = 0x3fff;
        let size = usize::from(u16_at(self.0, 0)?);
        let kind = u16_at(self.0, 2)? & KIND;
        let value = self.0.get(4..size)?;
        self.0 = self.0.get(aligned(size)..).unwrap_or_default();
        Some((kind, value))
    }
}

fn aligned(size: usize) -> usize {
    size.next_multiple_of(4)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = u16::try_from(value.len() + 4).unwrap().to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(aligned(bytes.len()), 0);
        bytes
    }

    fn message(kind: u16, body: &[u8]) -> Vec<u8> {
        let mut bytes = u32::try_from(body.len() + HEADER).unwrap().to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.resize(HEADER, 0);
        bytes.extend(body);
        bytes
    }

    fn device(counts: &[(&str, u64)]) -> Vec<u8> {
        const NESTED: u16 = 0x8000;
        let entry = |(name, count): &(&str, u64)| {
            let mut entry = attribute(ENTRY_NAME, format!("{name}\0").as_bytes());
            entry.extend(attribute(ENTRY_COUNT, &count.to_ne_bytes()));
            attribute(SUMMARY_ENTRY | NESTED, &entry)
        };
        let summary: Vec<u8> = counts.iter().flat_map(entry).collect();
        let mut body = attribute(2, b"mlx5_0\0");
        body.extend(attribute(SUMMARY | NESTED, &summary));
        message(RESOURCES, &body)
    }

    fn tally(messages: &[Vec<u8>]) -> (io::Result<bool>, Option<u32>) {
        let mut tally = Tally::default();
        let over = tally.add(&messages.concat());
        (over, tally.contexts)
    }

    #[test]
    fn the_contexts_of_all_devices_are_added_up() {
        let devices = [device(&[("pd", 9), ("ctx", 2)]), device(&[("ctx", 3), ("mr", 1)])];
        let (over, contexts) = tally(&[devices.concat(), message(DONE, &[0; 4])]);
        assert_eq!((over.unwrap(), contexts), (true, Some(5)));
        assert!(!tally(&devices).0.unwrap());
    }

    #[test]
    fn a_kernel_that_does_not_count_contexts_leaves_them_unknown() {
        assert_eq!(tally(&[device(&[("ctx", 1)]), device(&[("pd", 1)])]).1, None);
    }

    #[test]
    fn a_refusal_is_an_error() {
        let refusal = message(ERROR, &(-libc::EPERM).to_ne_bytes());
        assert_eq!(tally(&[refusal]).0.unwrap_err().raw_os_error(), Some(libc::EPERM));
    }

    #[test]
    fn the_request_is_one_whole_message() {
        let (size, kind) = (u32_at(&request(), 0), u16_at(&request(), 4));
        assert_eq!((size, kind), (u32::try_from(HEADER).ok(), Some(0x1409)));
        assert_eq!(i32::from(REQUEST_DUMP), libc::NLM_F_REQUEST | libc::NLM_F_DUMP);
        assert_eq!((i32::from(ERROR), i32::from(DONE)), (libc::NLMSG_ERROR, libc::NLMSG_DONE));
    }

    proptest! {
        #[test]
        fn no_answer_makes_the_decoder_panic_or_spin(bytes in proptest::collection::vec(any::<u8>(), 0..128)) {
            let _ = Tally::default().add(&bytes);
            let _ = Tally::default().add(&message(RESOURCES, &bytes));
            let _ = count(&attribute(SUMMARY, &bytes));
        }
    }
}
