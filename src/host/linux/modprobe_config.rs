//! The text of modprobe.d, as libkmod reads it, with the line that each directive stands on.
//!
//! libkmod knows what the configuration says, but not where. This parser is asked only for the
//! place: what counts is always libkmod's answer.

/// The first word of a directive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Keyword {
    /// Another name for a module.
    Alias,
    /// Keeps a module out.
    Blacklist,
    /// A command in place of an insertion.
    Install,
    /// Parameters.
    Options,
    /// A command in place of a removal.
    Remove,
    /// Modules that should come before or after.
    Softdep,
}

impl Keyword {
    fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "alias" => Self::Alias,
            "blacklist" => Self::Blacklist,
            "install" => Self::Install,
            "options" => Self::Options,
            "remove" => Self::Remove,
            "softdep" => Self::Softdep,
            _ => return None,
        })
    }
}

/// One directive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directive {
    /// What it does.
    pub keyword: Keyword,
    /// The module, alias or shell pattern that it is about, spelt with `_` outside brackets.
    pub name: String,
    /// The rest of the line, without the blanks before it; empty for `blacklist`.
    pub value: String,
    /// The line that it begins on, counted from 1.
    pub line: usize,
}

/// Every well-formed directive of a file. Lines that libkmod would ignore are ignored.
pub fn parse(text: &str) -> Vec<Directive> {
    logical_lines(text).into_iter().filter_map(|(line, text)| directive(line, &text)).collect()
}

/// Joins continued lines. A backslash before a line break vanishes together with it; before any
/// other character it vanishes alone.
fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines = Vec::new();
    let (mut joined, mut first, mut number) = (String::new(), 1, 1);
    let mut chars = text.chars();
    while let Some(mut char) = chars.next() {
        if char == '\\' {
            match chars.next() {
                Some('\n') => {
                    number += 1;
                    continue;
                }
                Some(escaped) => {
                    joined.push(escaped);
                    continue;
                }
                None => char = '\n',
            }
        }
        if char == '\n' {
            lines.push((first, std::mem::take(&mut joined)));
            number += 1;
            first = number;
        } else {
            joined.push(char);
        }
    }
    lines.push((first, joined));
    lines
}

fn directive(line: usize, text: &str) -> Option<Directive> {
    let (word, rest) = split_word(text)?;
    let keyword = Keyword::parse(word)?;
    let (name, rest) = split_word(rest)?;
    let value = match keyword {
        Keyword::Blacklist => "",
        Keyword::Alias => split_word(rest)?.0,
        _ => Some(rest).filter(|rest| !rest.is_empty())?,
    };
    Some(Directive { keyword, name: underscores(name)?, value: value.to_owned(), line })
}

/// The next word, and what follows the one blank behind it, as `strtok_r` leaves it.
fn split_word(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start_matches(BLANKS);
    let end = text.find(BLANKS).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    // A blank is one byte long.
    (!word.is_empty()).then(|| (word, rest.get(1..).unwrap_or_default()))
}

const BLANKS: [char; 2] = [' ', '\t'];

/// Spells a name with `_`, except inside a pattern's brackets. `None` when those do not match,
/// which libkmod calls a bad line.
pub fn underscores(name: &str) -> Option<String> {
    let mut bracket = false;
    let mut spelt = String::with_capacity(name.len());
    for char in name.chars() {
        match char {
            ']' if !bracket => return None,
            ']' => bracket = false,
            '[' => bracket = true,
            _ => {}
        }
        spelt.push(if char == '-' && !bracket { '_' } else { char });
    }
    (!bracket).then_some(spelt)
}

/// The file that an `install` command is expected to load: the module of the last
/// `modprobe -i NAME` in it.
pub fn inner_module(command: &str) -> Option<String> {
    command.split([';', '&', '|', '\n']).filter_map(ignoring_modprobe).next_back()
}

/// Options of modprobe whose value is the next word.
const TAKES_VALUE: [&str; 6] = ["-C", "--config", "-d", "--dirname", "-S", "--set-version"];

fn ignoring_modprobe(command: &str) -> Option<String> {
    let mut words = command.split_whitespace().map(|word| word.trim_matches(['"', '\'', '(', ')']));
    words.find(|word| word.rsplit('/').next() == Some("modprobe"))?;
    let (mut ignores, mut name) = (false, None);
    while let Some(word) = words.next() {
        if TAKES_VALUE.contains(&word) {
            words.next();
            continue;
        }
        match word.strip_prefix('-') {
            Some("-ignore-install") => ignores = true,
            Some(long) if long.starts_with('-') => {}
            Some(short) => ignores |= short.contains('i'),
            None if name.is_none() => name = Some(word),
            None => {}
        }
    }
    name.filter(|_| ignores).and_then(underscores)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn directive(keyword: Keyword, name: &str, value: &str, line: usize) -> Directive {
        Directive { keyword, name: name.into(), value: value.into(), line }
    }

    #[test]
    fn every_directive_is_found_on_the_line_that_it_begins_on() {
        let text = "# a comment\n\nblacklist nv-peer-mem\n\
            options nvidia_peermem \\\n  peerdirect_support=1\n\
            \tinstall nvidia-peermem  modprobe nvidia ; modprobe -i nvidia-current-peermem\n\
            alias symbol:x nvidia-current trailing\nsoftdep mlx5-ib pre: a b\nremove x y";
        assert_eq!(
            parse(text),
            [
                directive(Keyword::Blacklist, "nv_peer_mem", "", 3),
                directive(Keyword::Options, "nvidia_peermem", "  peerdirect_support=1", 4),
                directive(
                    Keyword::Install,
                    "nvidia_peermem",
                    " modprobe nvidia ; modprobe -i nvidia-current-peermem",
                    6
                ),
                directive(Keyword::Alias, "symbol:x", "nvidia-current", 7),
                directive(Keyword::Softdep, "mlx5_ib", "pre: a b", 8),
                directive(Keyword::Remove, "x", "y", 9),
            ]
        );
    }

    #[test]
    fn lines_that_libkmod_ignores_are_ignored() {
        for text in [
            "install nvidia",
            "options nvidia ",
            "blacklist",
            "include x",
            "alias a",
            "install a] b",
        ] {
            assert_eq!(parse(text), [], "{text:?}");
        }
    }

    #[test]
    fn a_continued_comment_swallows_the_next_line() {
        assert_eq!(parse("# no \\\nblacklist a\nblacklist b").len(), 1);
    }

    #[test]
    fn dashes_stay_inside_the_brackets_of_a_pattern() {
        assert_eq!(underscores("nv-[a-z]-mem").as_deref(), Some("nv_[a-z]_mem"));
        assert_eq!(underscores("nv[a"), None);
    }

    #[test]
    fn the_inner_module_is_that_of_the_last_modprobe_that_ignores_install() {
        for (command, inner) in [
            (
                "modprobe nvidia ; modprobe -i nvidia-current-peermem $CMDLINE_OPTS",
                Some("nvidia_current_peermem"),
            ),
            ("/sbin/modprobe --ignore-install nvidia && true", Some("nvidia")),
            ("modprobe -i a; modprobe -qi b || modprobe -i -v c", Some("c")),
            ("( modprobe -i a )", Some("a")),
            ("modprobe -C /etc/x -S 6.1 -i a b=1", Some("a")),
            ("modprobe nvidia", None),
            ("/bin/true", None),
            ("modprobe -i", None),
        ] {
            assert_eq!(inner_module(command).as_deref(), inner, "{command}");
        }
    }

    proptest! {
        #[test]
        fn garbage_gives_directives_of_lines_that_exist(text in "\\PC*|[a-z\\\\ \t\n#_-]{0,200}") {
            let lines = text.split('\n').count();
            for directive in parse(&text) {
                prop_assert!((1..=lines).contains(&directive.line));
                prop_assert!(!directive.name.is_empty());
            }
        }

        #[test]
        fn a_written_directive_is_read_back(
            name in "[a-z_-]{1,20}",
            value in "[a-z][a-z=,;$ -]{0,40}",
            before in prop::collection::vec("#[a-z ]{0,9}", 0..5),
        ) {
            let text = format!("{}\ninstall {name} {value}\n", before.join("\n"));
            let name = name.replace('-', "_");
            let line = before.len().max(1) + 1;
            prop_assert_eq!(parse(&text), [directive(Keyword::Install, &name, &value, line)]);
        }

        #[test]
        fn no_command_makes_the_inner_module_panic(command in "\\PC{0,200}") {
            let _ = inner_module(&command);
        }
    }
}
