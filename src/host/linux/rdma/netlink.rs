//! RDMA netlink: questions to the kernel about all devices or one, as `rdma resource show` asks.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, sendto,
    setsockopt, socket, sockopt,
};
use nix::sys::time::{TimeVal, TimeValLike};

/// `RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, …)` of `rdma/rdma_netlink.h`.
const NLDEV: u16 = 5 << 10;
/// `RDMA_NLDEV_ATTR_DEV_INDEX`
pub(super) const DEVICE: u16 = 1;

const HEADER: usize = 16;
/// Message types and flags of `linux/netlink.h`.
const ERROR: u16 = 2;
const DONE: u16 = 3;
const REQUEST_DUMP: u16 = 0x301;
/// The kernel's largest message of a dump.
const BUFFER: usize = 32 * 1024;
/// More messages than any machine has devices.
const MOST_MESSAGES: usize = 4096;

/// A socket on which the kernel answers within a second.
#[derive(Debug)]
pub(super) struct Netlink(OwnedFd);

impl Netlink {
    /// Only to be called while the RDMA core is loaded: opening the socket without it makes the
    /// kernel load modules.
    pub(super) fn open() -> io::Result<Self> {
        let protocol = SockProtocol::NetlinkRDMA;
        let socket =
            socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, Some(protocol))?;
        setsockopt(&socket, sockopt::ReceiveTimeout, &TimeVal::seconds(1))?;
        bind(socket.as_raw_fd(), &NetlinkAddr::new(0, 0))?;
        Ok(Self(socket))
    }

    /// Hands out the attributes of every answer to a command, for one device or for all.
    pub(super) fn dump(
        &self,
        command: u16,
        device: Option<u32>,
        mut take: impl FnMut(&[u8]),
    ) -> io::Result<()> {
        let kernel = NetlinkAddr::new(0, 0);
        sendto(self.0.as_raw_fd(), &request(command, device), &kernel, MsgFlags::empty())?;
        let mut buffer = vec![0; BUFFER];
        for _ in 0..MOST_MESSAGES {
            let length = recv(self.0.as_raw_fd(), &mut buffer, MsgFlags::MSG_TRUNC)?;
            let answer = buffer.get(..length).ok_or_else(damaged)?;
            if each(answer, command, &mut take)? {
                return Ok(());
            }
        }
        Err(damaged())
    }
}

fn request(command: u16, device: Option<u32>) -> Vec<u8> {
    let mut message = vec![0; HEADER];
    message[4..6].copy_from_slice(&(NLDEV + command).to_ne_bytes());
    message[6..8].copy_from_slice(&REQUEST_DUMP.to_ne_bytes());
    if let Some(device) = device {
        message.extend(8u16.to_ne_bytes());
        message.extend(DEVICE.to_ne_bytes());
        message.extend(device.to_ne_bytes());
    }
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    message[..4].copy_from_slice(&length.to_ne_bytes());
    message
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "an answer that makes no sense")
}

/// Hands out the messages of one answer; true when the dump is over.
fn each(mut messages: &[u8], command: u16, take: &mut impl FnMut(&[u8])) -> io::Result<bool> {
    while !messages.is_empty() {
        let size = u32_at(messages, 0).and_then(|size| usize::try_from(size).ok());
        let size = size.filter(|&size| size >= HEADER).ok_or_else(damaged)?;
        let message = messages.get(..size).ok_or_else(damaged)?;
        match u16_at(message, 4).ok_or_else(damaged)? {
            DONE => return Ok(true),
            ERROR => return Err(error(&message[HEADER..])),
            kind if kind == NLDEV + command => take(&message[HEADER..]),
            _ => {}
        }
        messages = messages.get(aligned(size)..).unwrap_or_default();
    }
    Ok(false)
}

fn error(body: &[u8]) -> io::Error {
    match u32_at(body, 0) {
        Some(code) => {
            io::Error::from_raw_os_error(i32::from_ne_bytes(code.to_ne_bytes()).saturating_neg())
        }
        None => damaged(),
    }
}

/// Walks over attributes, and ends where one makes no sense.
#[derive(Debug)]
pub(super) struct Attributes<'a>(pub(super) &'a [u8]);

impl<'a> Attributes<'a> {
    /// The first of a kind.
    pub(super) fn value(mut self, wanted: u16) -> Option<&'a [u8]> {
        self.find_map(|(kind, value)| (kind == wanted).then_some(value))
    }

    /// The first of a kind, as a number.
    pub(super) fn number(self, wanted: u16) -> Option<u32> {
        u32_at(self.value(wanted)?, 0)
    }
}

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

/// Answers as the kernel writes them, for tests.
#[cfg(test)]
pub(super) mod written {
    use super::*;

    pub(in super::super) fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = u16::try_from(value.len() + 4).unwrap().to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(aligned(bytes.len()), 0);
        bytes
    }

    pub(super) fn message(kind: u16, body: &[u8]) -> Vec<u8> {
        let mut bytes = u32::try_from(body.len() + HEADER).unwrap().to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.resize(HEADER, 0);
        bytes.extend(body);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::written::{attribute, message};
    use super::*;
    use proptest::prelude::*;

    const COMMAND: u16 = 9;

    fn taken(answer: &[u8]) -> (io::Result<bool>, Vec<Vec<u8>>) {
        let mut taken = Vec::new();
        let over = each(answer, COMMAND, &mut |body: &[u8]| taken.push(body.to_vec()));
        (over, taken)
    }

    #[test]
    fn answers_to_the_command_are_handed_out_until_the_end_of_the_dump() {
        let one = message(NLDEV + COMMAND, &[1, 2, 3, 4]);
        let other = message(NLDEV + 1, &[5; 4]);
        let (over, bodies) = taken(&[one.clone(), other, one.clone()].concat());
        assert_eq!((over.unwrap(), bodies), (false, vec![vec![1, 2, 3, 4]; 2]));
        assert!(taken(&[one, message(DONE, &[0; 4])].concat()).0.unwrap());
    }

    #[test]
    fn a_refusal_is_an_error() {
        let refusal = message(ERROR, &(-libc::EPERM).to_ne_bytes());
        assert_eq!(taken(&refusal).0.unwrap_err().raw_os_error(), Some(libc::EPERM));
    }

    #[test]
    fn a_request_is_one_whole_message() {
        let all = request(COMMAND, None);
        assert_eq!((u32_at(&all, 0), u16_at(&all, 4)), (Some(16), Some(0x1409)));
        let one = request(COMMAND, Some(3));
        assert_eq!(u32_at(&one, 0), u32::try_from(one.len()).ok());
        assert_eq!(Attributes(&one[HEADER..]).number(DEVICE), Some(3));
        assert_eq!(i32::from(REQUEST_DUMP), libc::NLM_F_REQUEST | libc::NLM_F_DUMP);
        assert_eq!((i32::from(ERROR), i32::from(DONE)), (libc::NLMSG_ERROR, libc::NLMSG_DONE));
    }

    #[test]
    fn attributes_are_found_by_kind() {
        let both = [attribute(7, b"a"), attribute(8 | 0x8000, &5u32.to_ne_bytes())].concat();
        assert_eq!(Attributes(&both).value(7), Some(&b"a"[..]));
        assert_eq!((Attributes(&both).number(8), Attributes(&both).number(7)), (Some(5), None));
    }

    proptest! {
        #[test]
        fn no_answer_makes_it_panic_or_spin(bytes in proptest::collection::vec(any::<u8>(), 0..128)) {
            let _ = taken(&bytes);
            let _ = taken(&message(NLDEV + COMMAND, &bytes));
            let _ = Attributes(&bytes).count();
        }
    }
}
