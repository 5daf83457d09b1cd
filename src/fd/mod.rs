//! What safe wrappers do not offer for file descriptors: waiting on one, a handle of a process,
//! a filter on a socket, and letting go of code. The only unsafe code beside libkmod's.

#![allow(unsafe_code, reason = "each block says why it is sound")]

mod alarm;
mod filter;
mod pages;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

pub(crate) use alarm::Alarm;
pub(crate) use filter::keep_relevant_uevents;
pub(crate) use pages::release_code;

/// Waits for a file descriptor to become readable.
#[derive(Debug)]
pub(crate) struct Readiness(AsyncFd<OwnedFd>);

impl Readiness {
    /// Watches the open file behind `fd`, by a descriptor of its own.
    pub(crate) fn of(fd: BorrowedFd<'_>) -> io::Result<Self> {
        let own = fd.try_clone_to_owned()?;
        // SAFETY: `OwnedFd` is an open descriptor, returns the same number for as long as it
        // lives, and is given to the `AsyncFd` for good: nothing here takes it out again.
        let registered = unsafe { AsyncFd::register_with_interest(own, Interest::READABLE) };
        registered.map(Self).map_err(Into::into)
    }

    /// Ends when the file became readable since the last time that this ended. Whoever waits has
    /// to read until nothing is left. Cancel safe.
    pub(crate) async fn readable(&self) {
        // Cleared before the caller reads: what arrives in between makes it ready again.
        match self.0.readable().await {
            Ok(mut guard) => guard.clear_ready(),
            // The reactor is shutting down; nobody is there to be told.
            Err(_) => std::future::pending().await,
        }
    }
}

/// A handle of a process that becomes readable when it ends.
pub(crate) fn open_process(pid: u32) -> io::Result<OwnedFd> {
    let pid = libc::pid_t::try_from(pid).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: pidfd_open takes two integers and touches no memory of ours.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    let fd = RawFd::try_from(fd).map_err(|_| io::ErrorKind::InvalidData)?;
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just opened this descriptor for us and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Attaches a classic BPF program to a socket.
fn attach(socket: &impl AsFd, program: &mut [libc::sock_filter]) -> io::Result<()> {
    use std::os::fd::AsRawFd;

    let length = u16::try_from(program.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let size = libc::socklen_t::try_from(size_of::<libc::sock_fprog>())
        .map_err(|_| io::ErrorKind::InvalidInput)?;
    let filter = libc::sock_fprog { len: length, filter: program.as_mut_ptr() };
    // SAFETY: `filter` points to `length` instructions that outlive the call, the size is that
    // of the struct, and the kernel copies the program and keeps no pointer.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const filter).cast(),
            size,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    use std::process::Command;
    use std::time::Duration;

    use tokio::time::timeout;

    #[tokio::test]
    async fn readiness_comes_again_for_what_arrives_after_a_read() {
        let (mut writer, mut reader) = UnixStream::pair().unwrap();
        reader.set_nonblocking(true).unwrap();
        let ready = Readiness::of(reader.as_fd()).unwrap();
        for _ in 0..2 {
            writer.write_all(b"x").unwrap();
            timeout(Duration::from_secs(5), ready.readable()).await.unwrap();
            assert_eq!(reader.read(&mut [0; 8]).unwrap(), 1);
        }
        assert!(timeout(Duration::from_millis(20), ready.readable()).await.is_err());
    }

    #[tokio::test]
    async fn the_end_of_a_process_is_seen() {
        let mut child = Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let handle = open_process(child.id()).unwrap();
        let ready = Readiness::of(handle.as_fd()).unwrap();
        assert!(timeout(Duration::from_millis(20), ready.readable()).await.is_err());
        drop(child.stdin.take());
        timeout(Duration::from_secs(5), ready.readable()).await.unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_process_that_is_not_there_has_no_handle() {
        assert!(open_process(u32::MAX).is_err());
        assert!(open_process(i32::MAX as u32).is_err());
    }
}
