//! Letting go of code that is not needed now.

use std::io;

use libc::c_void;

/// Drops this process's mappings of executable file pages. What runs again is mapped again from
/// the page cache, at the cost of a minor fault.
///
/// Start-up touches most of the program once, and a look much of it for an instant. Between two
/// looks, which are minutes apart, hardly any of it runs.
pub(crate) fn release_code() -> io::Result<()> {
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    for (start, end) in maps.lines().filter_map(code) {
        // SAFETY: the range is one mapping that the kernel has just listed: private, executable,
        // never written (no text relocations in position-independent code), backed by a file.
        // Its pages are clean, so the kernel finds the same content again when they are used.
        let result =
            unsafe { libc::madvise(start as *mut c_void, end - start, libc::MADV_DONTNEED) };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// The range of a line of `maps`, if it is code from a file.
fn code(line: &str) -> Option<(usize, usize)> {
    let mut fields = line.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let is_code = fields.next()? == "r-xp" && fields.nth(3)?.starts_with('/');
    let address = |text| usize::from_str_radix(text, 16).ok();
    Some((address(start)?, address(end)?)).filter(|_| is_code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_private_code_of_files_is_let_go() {
        let table = [
            ("55d0-55e0 r-xp 00001000 fe:01 42 /usr/sbin/peermemd", Some((0x55d0, 0x55e0))),
            ("55d0-55e0 r--p 00001000 fe:01 42 /usr/sbin/peermemd", None),
            ("55d0-55e0 rw-p 00001000 fe:01 42 /usr/sbin/peermemd", None),
            ("7ffd-7fff r-xp 00000000 00:00 0 [vdso]", None),
            ("7ffd-7fff r-xp 00000000 00:00 0", None),
            ("", None),
        ];
        for (line, expected) in table {
            assert_eq!(code(line), expected, "{line}");
        }
    }

    #[test]
    fn the_program_goes_on_with_its_code_let_go() {
        release_code().unwrap();
        assert_eq!(format!("{:>5}", 42), "   42");
    }
}
