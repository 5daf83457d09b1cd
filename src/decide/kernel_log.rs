//! What the kernel said while a module was loaded.
//!
//! The texts are those of the module loader (kernel/module/*, 4.18 to 6.12), of the peer memory
//! clients (nvidia-peermem 470 to 595, `nv_peer_mem` 1.0 to 1.3) and of the NVIDIA driver.
//! Prefixes differ between versions, so what counts is the text after them.

mod sentences;

#[cfg(test)]
mod tests;

pub use sentences::{is_noise, sentences};

use crate::model::{LoggedErrors, ModuleName, Reason};

/// What one line of the log says.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields are named after what the kernel prints there")]
pub enum Said {
    /// The CRC of a symbol differs.
    VersionDiffers { symbol: String },
    /// The module carries no CRC for a symbol.
    VersionMissing { symbol: String },
    /// The module does not import a symbol's namespace.
    Namespace { symbol: String, namespace: String },
    /// A module for GPL symbols only may not use this one of a proprietary module.
    GplOnly { symbol: String, owner: String },
    /// A symbol could not be resolved. errno is positive; 0 is how old kernels say ENOENT.
    Unresolved { symbol: String, errno: i32 },
    /// The version magic differs.
    Vermagic { own: String, kernel: String },
    /// The signature was refused: why, in the kernel's words.
    Signature { why: String },
    /// Kernel lockdown refused it.
    Lockdown,
    /// `module_blacklist=` refused it.
    NameDenied,
    /// A parameter has a value that the module does not take.
    Parameter { name: String, value: String },
    /// The client was compiled without the peer-memory symbols.
    BuiltWithout,
    /// Another client is registered under this name.
    NameTaken { name: String },
    /// The registration failed, and nothing says why.
    NotRegistered,
    /// The GPU driver found nothing to drive.
    NoDevice,
    /// The GPU driver is of the flavour that does not know this GPU.
    WrongFlavour,
    /// The hardware did not come up.
    InitFailed,
    /// The file is not what it should be.
    Damaged,
    /// Another module was not ready in time.
    Busy,
}

/// A line that says why, and about which module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// What it says.
    pub said: Said,
    /// The module that the line begins with, in the kernel's spelling.
    pub module: Option<ModuleName>,
    /// The line, joined if it was several.
    pub line: String,
}

impl Said {
    /// The reason that it stands for.
    pub fn reason(&self) -> Reason {
        match self {
            Self::VersionDiffers { .. } => Reason::SymbolVersionMismatch,
            Self::Unresolved { errno, .. } if *errno == nix::libc::EINVAL => {
                Reason::SymbolVersionMismatch
            }
            Self::Unresolved { errno, .. } if *errno == nix::libc::EBUSY => Reason::RetryPending,
            Self::VersionMissing { .. } => Reason::SymbolVersionMissing,
            Self::Namespace { .. } | Self::GplOnly { .. } | Self::Unresolved { .. } => {
                Reason::UnknownSymbol
            }
            Self::Vermagic { .. } => Reason::VermagicMismatch,
            Self::Signature { .. } => Reason::SignatureRejected,
            Self::Lockdown => Reason::Lockdown,
            Self::NameDenied => Reason::DenyListed,
            Self::Parameter { .. } => Reason::BadParameter,
            Self::BuiltWithout => Reason::BuiltWithoutPeerMemory,
            Self::NameTaken { .. } | Self::NotRegistered => Reason::DuplicateClient,
            Self::NoDevice | Self::WrongFlavour => Reason::NvidiaProbeFailed,
            Self::InitFailed => Reason::GpuInitFailed,
            Self::Damaged => Reason::DamagedFile,
            Self::Busy => Reason::RetryPending,
        }
    }

    /// The symbol that it is about.
    pub fn symbol(&self) -> Option<&str> {
        match self {
            Self::VersionDiffers { symbol }
            | Self::VersionMissing { symbol }
            | Self::Namespace { symbol, .. }
            | Self::GplOnly { symbol, .. }
            | Self::Unresolved { symbol, .. } => Some(symbol),
            _ => None,
        }
    }

    /// What stands nearer to the root goes first. Signature and policy are checked before
    /// symbols, symbols before init; "busy" is the consequence of another's failure.
    fn rank(&self) -> u8 {
        match self {
            Self::Signature { .. } | Self::Lockdown | Self::NameDenied | Self::Damaged => 0,
            Self::Vermagic { .. } => 1,
            Self::VersionDiffers { .. } => 2,
            Self::VersionMissing { .. } => 3,
            Self::Namespace { .. } | Self::GplOnly { .. } => 4,
            Self::Unresolved { errno, .. } if *errno == nix::libc::EINVAL => 5,
            Self::Unresolved { errno, .. } if *errno != nix::libc::EBUSY => 6,
            Self::Parameter { .. } | Self::BuiltWithout | Self::NameTaken { .. } => 7,
            Self::WrongFlavour => 8,
            Self::InitFailed => 9,
            Self::NoDevice | Self::NotRegistered => 10,
            Self::Busy | Self::Unresolved { .. } => 11,
        }
    }
}

/// Everything that the lines say about one of `modules`, the root first, each once. A symbol for
/// which the kernel has given a reason is not repeated as one that could not be resolved.
pub fn remarks(modules: &[&ModuleName], lines: &[String]) -> Vec<Remark> {
    let mut found: Vec<Remark> = Vec::new();
    for line in sentences(lines) {
        if let Some(remark) = remark(modules, line)
            && !found.iter().any(|other| other.said == remark.said)
        {
            found.push(remark);
        }
    }
    let explained: Vec<String> = found
        .iter()
        .filter(|remark| !matches!(remark.said, Said::Unresolved { .. }))
        .filter_map(|remark| remark.said.symbol().map(str::to_owned))
        .collect();
    found.retain(|remark| match &remark.said {
        Said::Unresolved { symbol, .. } => !explained.contains(symbol),
        _ => true,
    });
    found.sort_by_key(|remark| remark.said.rank());
    found
}

fn remark(modules: &[&ModuleName], line: String) -> Option<Remark> {
    if let Some((head, rest)) = line.split_once(": ")
        && let Ok(name) = ModuleName::new(head)
        && let Some(said) = loader(rest)
    {
        // Another module's trouble is not ours.
        let ours = modules.contains(&&name);
        return ours.then_some(Remark { said, module: Some(name), line });
    }
    let said = policy(&line).or_else(|| client(&line)).or_else(|| gpu_driver(&line))?;
    let denied_other = said == Said::NameDenied
        && !modules.iter().any(|name| line.split(' ').any(|word| is(name, word)));
    (!denied_other).then_some(Remark { said, module: None, line })
}

fn is(name: &ModuleName, word: &str) -> bool {
    word.replace('-', "_") == name.as_str()
}

/// The rest of a line of the module loader that began with a module's name.
fn loader(rest: &str) -> Option<Said> {
    let after = |part: &str| rest.split_once(part).map(|(_, after)| after.trim());
    let first = |text: &str| {
        let symbol = text.split_whitespace().next()?.trim_matches(['(', ')', '.', ',', '\'']);
        Some(symbol.to_owned())
    };
    if let Some(symbol) = after("disagrees about version of symbol") {
        return Some(Said::VersionDiffers { symbol: first(symbol)? });
    }
    if let Some(symbol) = after("no symbol version for") {
        return Some(Said::VersionMissing { symbol: first(symbol)? });
    }
    if let Some(text) = after("using GPL-only symbols uses symbols") {
        let owner = text.rsplit(' ').next()?.trim_end_matches('.').to_owned();
        return Some(Said::GplOnly { symbol: first(text)?, owner });
    }
    if rest.contains("does not import it")
        && let Some(text) = after("uses symbol")
    {
        let namespace = first(text.split_once("from namespace")?.1)?;
        return Some(Said::Namespace { symbol: first(text)?, namespace });
    }
    if let Some(text) = after("Unknown symbol") {
        let errno = text.split_once("(err ").and_then(|(_, number)| {
            number.trim_end_matches(['.', ')']).parse::<i32>().ok().map(i32::abs)
        });
        return Some(Said::Unresolved { symbol: first(text)?, errno: errno.unwrap_or(0) });
    }
    if let Some(text) = after("version magic '") {
        let (own, kernel) = text.split_once("' should be '")?;
        let kernel = kernel.trim_end_matches('\'').to_owned();
        return Some(Said::Vermagic { own: own.to_owned(), kernel });
    }
    if rest.contains("gave up waiting for init of module") {
        return Some(Said::Busy);
    }
    if let Some((value, name)) = rest.split_once("' invalid for parameter `") {
        let value = value.trim_start_matches('`').to_owned();
        return Some(Said::Parameter {
            name: name.trim_end_matches(['\'', '.']).to_owned(),
            value,
        });
    }
    damaged(rest)
}

/// Why the loader takes a file for damaged.
fn damaged(line: &str) -> Option<Said> {
    const PARTS: [&str; 6] = [
        "compressed module",
        "Invalid ELF",
        "section header",
        "decompression failed",
        "no .gnu.linkonce.this_module",
        "not module section",
    ];
    let negative = line.contains("not a ") || !line.contains("compressed module");
    PARTS.iter().any(|part| line.contains(part)).then_some(Said::Damaged).filter(|_| negative)
}

/// Lines about signatures, lockdown and deny lists, which begin with no module's name.
fn policy(line: &str) -> Option<Said> {
    if let Some((_, rest)) = line.split_once("Loading of ")
        && let Some((what, _)) = rest.split_once(" is rejected")
    {
        return Some(Said::Signature { why: what.to_owned() });
    }
    if line.contains("Lockdown:") && line.contains("module loading is restricted") {
        return Some(Said::Lockdown);
    }
    if line.contains("is blacklisted") {
        let hash = line.contains("Module hash");
        let why = "its hash is on the kernel's list of revoked ones".to_owned();
        return Some(if hash { Said::Signature { why } } else { Said::NameDenied });
    }
    damaged(line).filter(|_| line.contains("not a "))
}

/// Lines of a peer memory client, whatever function and line number they begin with.
fn client(line: &str) -> Option<Said> {
    if let Some((before, value)) = line.split_once(" param value") {
        let name = before.rsplit(' ').next()?.to_owned();
        return line.contains("invalid").then(|| Said::Parameter {
            name,
            value: value.trim().trim_end_matches('.').to_owned(),
        });
    }
    if line.contains("compiled without IB peer memory symbols") {
        return Some(Said::BuiltWithout);
    }
    if line.contains("cannot create duplicate filename")
        && let Some((_, rest)) = line.split_once("memory_peers/")
    {
        let name = rest.split(['\'', '"', ' ', '/']).next()?.to_owned();
        return Some(Said::NameTaken { name });
    }
    if let Some((_, rest)) = line.split_once("kobject_add_internal failed for ")
        && rest.contains("EEXIST")
    {
        return Some(Said::NameTaken { name: rest.split(' ').next()?.to_owned() });
    }
    let registering = line.contains("error while registering") && line.contains("client");
    let operation = line.contains("Peer memory ") && line.contains("missing mandatory function");
    (registering || operation).then_some(Said::NotRegistered)
}

/// Lines of the GPU driver. That its API does not fit some program's says nothing about a load.
fn gpu_driver(line: &str) -> Option<Said> {
    const NO_DEVICE: [&str; 5] = [
        "No NVIDIA GPU found",
        "The NVIDIA probe routine was not called",
        "No NVIDIA devices probed",
        "None of the NVIDIA devices were initialized",
        "The NVIDIA probe routine failed",
    ];
    const WRONG_FLAVOUR: [&str; 3] = [
        "is not supported by open",
        "does not include the required GPU",
        "requires use of the NVIDIA open kernel modules",
    ];
    const INIT: [&str; 4] = [
        "RmInitAdapter failed",
        "rm_init_adapter failed",
        "rm_init_rm() failed",
        "failed to initialize the NVIDIA",
    ];
    let says = |parts: &[&str]| parts.iter().any(|part| line.contains(part));
    if !line.contains("NVRM") || line.contains("API mismatch") {
        None
    } else if says(&WRONG_FLAVOUR) {
        Some(Said::WrongFlavour)
    } else if says(&INIT) {
        Some(Said::InitFailed)
    } else {
        says(&NO_DEVICE).then_some(Said::NoDevice)
    }
}

/// How errors that were logged while the client is live are told: by order of magnitude, so that
/// the text changes seldom. `None` if there are none.
pub fn errors_told(errors: &LoggedErrors) -> Option<String> {
    let first = errors.lines.first()?;
    let kinds = if errors.lines.len() > 1 { ", of more than one kind, the first" } else { "" };
    let rate = match magnitude(errors.last_hour) {
        "0" => "none",
        many => many,
    };
    Some(format!(
        "{} in all, {rate} in the last hour{kinds}: \"{first}\"",
        magnitude(errors.total.max(1))
    ))
}

fn magnitude(count: u32) -> &'static str {
    match count {
        0 => "0",
        1 => "1",
        2..=9 => "2 to 9",
        10..=99 => "10 to 99",
        _ => "100 or more",
    }
}
