//! Whether the module takes the `options` that it would be given.

use super::{Objection, certain};
use crate::model::{ModuleFile, ModuleName, OptionWord, Reason};

/// Values that a module's init function takes of a parameter; any other makes it fail. From the
/// source of the driver.
const ALLOWED: [(&str, &str, &[i64]); 2] = [
    ("nvidia_peermem", "peerdirect_support", &[0, 1]),
    ("nvidia_peermem", "persistent_api_support", &[0, 1]),
];

/// The first option that makes the load fail.
pub(super) fn objection(module: &ModuleName, file: &ModuleFile) -> Option<Objection> {
    file.details.options.iter().find_map(|option| {
        let takes = refusal(module, file, option)?;
        let place = option.origin.as_ref().map(|origin| format!("{origin}: ")).unwrap_or_default();
        let detail = format!("{place}{}; it takes {takes}", option.word);
        Some(certain(Reason::BadParameter, module, detail))
    })
}

/// Options that the module does not have; the kernel only warns about those.
pub(super) fn unknown(file: &ModuleFile) -> impl Iterator<Item = &OptionWord> {
    let any = !file.details.parameters.is_empty();
    file.details.options.iter().filter(move |option| {
        let (name, _) = split(&option.word);
        any && !name.contains('.') && kind(file, &name).is_none()
    })
}

/// What the parameter takes, if not this.
fn refusal(module: &ModuleName, file: &ModuleFile, option: &OptionWord) -> Option<String> {
    let (name, value) = split(&option.word);
    let kind = kind(file, &name)?;
    let row = |(of, parameter, _): &&(&str, &str, _)| *of == module.as_str() && *parameter == name;
    let number = value.and_then(integer);
    if let Some((_, _, allowed)) = ALLOWED.iter().find(row) {
        let texts: Vec<_> = allowed.iter().map(ToString::to_string).collect();
        return (!number.is_some_and(|number| allowed.contains(&number)))
            .then(|| texts.join(" or "));
    }
    match kind {
        "int" | "uint" | "long" | "ulong" | "short" | "ushort" | "byte" | "ullong" => {
            number.is_none().then(|| "a number".to_owned())
        }
        "bool" | "invbool" => {
            let fits = value.is_none_or(is_bool);
            (!fits).then(|| "y or n".to_owned())
        }
        _ => None,
    }
}

fn kind<'a>(file: &'a ModuleFile, name: &str) -> Option<&'a str> {
    let found =
        file.details.parameters.iter().find(|found| found.name.replace('-', "_") == name)?;
    Some(&found.kind)
}

fn split(word: &str) -> (String, Option<&str>) {
    let (name, value) = match word.split_once('=') {
        Some((name, value)) => (name, Some(value.trim_matches('"'))),
        None => (word, None),
    };
    (name.replace('-', "_"), value)
}

/// As the kernel reads one: decimal, `0x` hexadecimal, `0` octal, with a sign.
fn integer(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix(['-', '+']) {
        Some(digits) => (text.starts_with('-'), digits),
        None => (false, text),
    };
    let hexadecimal = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"));
    let value = match (hexadecimal, digits.strip_prefix('0')) {
        (Some(digits), _) => unsigned(digits, 16),
        (None, Some(octal)) if !octal.is_empty() => unsigned(octal, 8),
        _ => unsigned(digits, 10),
    }?;
    Some(if negative { -value } else { value })
}

/// Values beyond this range are taken for its end: which range counts depends on the type.
fn unsigned(digits: &str, radix: u32) -> Option<i64> {
    let plain = !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
    plain.then(|| i64::from_str_radix(digits, radix).unwrap_or(i64::MAX))
}

fn is_bool(text: &str) -> bool {
    matches!(
        text.as_bytes(),
        [b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'0' | b'1', ..]
    ) || text.to_ascii_lowercase().starts_with("on")
        || text.to_ascii_lowercase().starts_with("of")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_the_kernel_reads_them() {
        for (text, value) in [
            ("0", Some(0)),
            ("7", Some(7)),
            ("-1", Some(-1)),
            ("0x10", Some(16)),
            ("010", Some(8)),
            ("08", None),
            ("", None),
            ("-", None),
            ("0x", None),
            ("1 ", None),
            ("one", None),
            ("99999999999999999999", Some(i64::MAX)),
        ] {
            assert_eq!(integer(text), value, "{text:?}");
        }
    }

    #[test]
    fn switches_take_what_the_kernel_takes() {
        for text in ["y", "No", "1", "on", "OFF"] {
            assert!(is_bool(text), "{text}");
        }
        assert!(!is_bool("2") && !is_bool("") && !is_bool("o"));
    }
}
