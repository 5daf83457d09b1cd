//! Where in modprobe.d a directive stands.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::host::linux::kernels::Root;
use crate::host::linux::modprobe_config::{Directive, Keyword, parse};
use crate::model::OptionLine;
use crate::model::OptionWord;

/// Where libkmod looks, strongest first. Which of the last two it knows depends on how it was
/// built; on most systems they are the same directory.
const DIRECTORIES: [&str; 5] = [
    "/etc/modprobe.d",
    "/run/modprobe.d",
    "/usr/local/lib/modprobe.d",
    "/usr/lib/modprobe.d",
    "/lib/modprobe.d",
];

/// More than this of one file is not read.
const FILE_LIMIT: u64 = 1024 * 1024;

/// The directories of the system at `root`.
pub(super) fn directories(root: &Root) -> io::Result<Vec<PathBuf>> {
    DIRECTORIES.iter().map(|directory| root.resolve(Path::new(directory))).collect()
}

/// The directives of all files, in the order in which libkmod reads them.
#[derive(Debug, Default)]
pub(super) struct Sources {
    directives: Vec<(PathBuf, Directive)>,
}

impl Sources {
    /// Reads the files of `directories`, or of the host's. What cannot be read has no place to
    /// be named, and is left out.
    pub(super) fn read(directories: Option<&[PathBuf]>) -> Self {
        let host = || DIRECTORIES.map(PathBuf::from).to_vec();
        let directories = directories.map_or_else(host, <[PathBuf]>::to_vec);
        let mut sources = Self::default();
        for path in files(&directories).into_values() {
            let text = read_text(&path).unwrap_or_default();
            let directives = parse(&text).into_iter();
            sources.directives.extend(directives.map(|directive| (path.clone(), directive)));
        }
        sources
    }

    /// The place of the `install` line that gave `module` this command.
    pub(super) fn install(&self, module: &str, command: &str) -> Option<String> {
        self.find(|directive| {
            directive.keyword == Keyword::Install
                && directive.value.trim() == command.trim()
                && (directive.name == module || directive.name.contains(['*', '?', '[']))
        })
    }

    /// The place of the deny list that names `module`.
    pub(super) fn deny_list(&self, module: &str) -> String {
        self.find(|directive| directive.keyword == Keyword::Blacklist && directive.name == module)
            .unwrap_or_else(|| "the kernel command line".to_owned())
    }

    /// The `options` lines for any of these names.
    pub(super) fn options(&self, names: &[&str]) -> Vec<OptionLine> {
        let fits = |directive: &Directive| {
            directive.keyword == Keyword::Options && names.contains(&directive.name.as_str())
        };
        let lines = self.directives.iter().filter(|(_, directive)| fits(directive));
        let line = |(path, directive): &(PathBuf, Directive)| OptionLine {
            origin: format!("{}:{}", path.display(), directive.line),
            options: directive.value.trim().to_owned(),
        };
        lines.map(line).collect()
    }

    /// The words of the effective options of a module that is known under these names, each with
    /// the line that says it.
    pub(super) fn option_words(&self, options: &str, names: &[&str]) -> Vec<OptionWord> {
        let says = |word: &str| {
            self.find(|directive| {
                directive.keyword == Keyword::Options
                    && names.contains(&directive.name.as_str())
                    && words(&directive.value).any(|said| said == word)
            })
        };
        words(options)
            .map(|word| OptionWord { word: word.to_owned(), origin: says(word) })
            .collect()
    }

    fn find(&self, fits: impl Fn(&Directive) -> bool) -> Option<String> {
        let (path, directive) = self.directives.iter().find(|(_, directive)| fits(directive))?;
        Some(format!("{}:{}", path.display(), directive.line))
    }
}

/// Words between blanks, which quotes keep together.
fn words(options: &str) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    let split = move |c: char| {
        quoted ^= c == '"';
        c.is_whitespace() && !quoted
    };
    options.split(split).filter(|word| !word.is_empty())
}

/// The files by name: sorted by it, and of one name only that in the strongest directory.
fn files(directories: &[PathBuf]) -> BTreeMap<std::ffi::OsString, PathBuf> {
    let mut files = BTreeMap::new();
    for directory in directories {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            if is_configuration(&entry.path()) {
                files.entry(entry.file_name()).or_insert_with(|| entry.path());
            }
        }
    }
    files
}

fn is_configuration(path: &Path) -> bool {
    let hidden = path.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b"."));
    !hidden && path.extension().is_some_and(|kind| kind == "conf" || kind == "alias")
}

fn read_text(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(FILE_LIMIT).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
