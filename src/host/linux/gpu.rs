//! The loaded GPU driver, as it names itself in `/proc/driver/nvidia/version`.

use std::path::Path;

use crate::model::{GpuDriver, GpuFlavour};

use super::file::{self, ATTRIBUTE};

/// Asks the driver, which may take its time. Empty where no driver answers.
pub(super) fn read(root: &Path) -> GpuDriver {
    let path = root.join("proc/driver/nvidia/version");
    let text = file::text(&path, ATTRIBUTE).ok().flatten();
    text.as_deref().map(parse).unwrap_or_default()
}

/// Line 1 is `NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.261.03  …` or
/// `NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  535.261.03  …`.
fn parse(text: &str) -> GpuDriver {
    let Some(line) = text.lines().find(|line| line.starts_with("NVRM version:")) else {
        return GpuDriver::default();
    };
    let version = line.split_whitespace().find(|word| is_version(word)).unwrap_or_default();
    let flavour = if line.contains("Open Kernel Module") {
        GpuFlavour::Open
    } else if line.contains("Kernel Module") {
        GpuFlavour::Proprietary
    } else {
        GpuFlavour::Unknown
    };
    GpuDriver { version: version.to_owned(), flavour }
}

/// Three digits, then one or two numbers: `570.124.06`, `580.65`.
fn is_version(word: &str) -> bool {
    let number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let parts: Vec<_> = word.split('.').collect();
    matches!(parts.len(), 2 | 3) && parts[0].len() == 3 && parts.iter().all(|part| number(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_builds_name_themselves() {
        let closed = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.261.03  Sat Jun 14 \
                      16:05:50 UTC 2025\nGCC version:  gcc version 12.2.0\n";
        let open = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.124.06  Release \
                    Build  (buildd@debian)  Sat Dec 20 2025\n";
        let driver = |version: &str, flavour| GpuDriver { version: version.to_owned(), flavour };
        assert_eq!(parse(closed), driver("535.261.03", GpuFlavour::Proprietary));
        assert_eq!(parse(open), driver("570.124.06", GpuFlavour::Open));
    }

    #[test]
    fn anything_else_is_unknown() {
        for text in ["", "\u{fffd}", "NVRM version: ", "GCC version: 535.1.2"] {
            assert_eq!(parse(text).version, "", "{text:?}");
        }
        let root = tempfile::tempdir().unwrap();
        assert_eq!(read(root.path()), GpuDriver::default());
    }
}
