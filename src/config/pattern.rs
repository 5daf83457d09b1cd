//! PCI patterns, `vendor:class` in hexadecimal digits.

use crate::model::PciMatch;

/// What a pattern looks like, for messages.
pub const ALLOWED: &str = "write \"vendor:class\" in hexadecimal digits, where '*' ends a class that is \
     only the beginning of one, as in \"10de:0302\" or \"15b3:02*\"";

/// Base classes of the PCI code and ID assignment: 00 to 13, processing accelerators 12 among
/// them, 40 (co-processor) and ff (unassigned).
fn is_base_class(digits: &str) -> bool {
    let base = u8::from_str_radix(digits, 16).unwrap_or(0x80);
    base <= 0x13 || base == 0x40 || base == 0xff
}

/// Reads a pattern, or says what is wrong with it.
pub fn parse(text: &str) -> Result<PciMatch, String> {
    let quoted: String = text.chars().take(40).collect();
    let wrong = |what: &str| Err(format!("'{quoted}' is not a PCI pattern: {what}"));
    let Some((vendor, class)) = text.split_once(':') else {
        return wrong("it has no ':'");
    };
    let is_hex = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let (digits, open) = class.strip_suffix('*').map_or((class, false), |digits| (digits, true));
    if vendor.len() != 4 || !is_hex(vendor) {
        return wrong("a vendor has four digits");
    }
    if !is_hex(digits) || digits.len() > 4 {
        return wrong("a class has four digits, base class and subclass");
    }
    if digits.is_empty() && !open {
        return wrong("it has no class");
    }
    if digits.len() >= 2 && !is_base_class(&digits[..2]) {
        return wrong("there is no such class; 'lspci -n' prints it before vendor and device");
    }
    let vendor = u16::from_str_radix(vendor, 16).unwrap_or(0);
    Ok(PciMatch { vendor, class: digits.to_ascii_lowercase() })
}

/// Writes a pattern as [`parse`] reads it.
pub fn format(pattern: &PciMatch) -> String {
    let open = if pattern.class.len() < 4 { "*" } else { "" };
    format!("{:04x}:{}{open}", pattern.vendor, pattern.class)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_read_back_as_written() {
        for text in ["10de:0302", "15b3:02*", "1002:12*", "15b3:*"] {
            assert_eq!(format(&parse(text).unwrap()), text);
        }
        assert_eq!(format(&parse("10DE:030").unwrap()), "10de:030*");
    }

    #[test]
    fn a_device_id_in_the_place_of_the_class_is_refused() {
        assert!(parse("10de:2330").unwrap_err().contains("no such class"));
    }

    #[test]
    fn nonsense_is_refused() {
        for text in
            ["", "10de", "10de:", "0x10de:0302", "10d:0302", "10de:030000", "\u{e9}\u{e9}:02"]
        {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }
}
