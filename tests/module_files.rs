//! Module files made by the system's compiler: what is in them is read, and nothing that is done
//! to them does worse than yield an error.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may")]

mod module_tree;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use module_tree::run;
use peermemd::host::linux::kmodfile::{Export, KernelModule};
use proptest::prelude::*;
use tempfile::TempDir;

/// Exports as kernels since 5.19 have them: a symbol that points to a word in a table. Versions in
/// both forms.
const SOURCE: &str = r#"
#define IN(name) __attribute__((section(name), used, aligned(1)))
struct version { unsigned long crc; char name[56]; };
static const struct version v[] IN("__versions") = { { 0x11, "printk" }, { 0x12, "module_layout" } };
#ifdef EXTENDED
static const unsigned e[] IN("__version_ext_crcs") = { 0x21, 0x22 };
static const char n[] IN("__version_ext_names") = "printk\0a_name_that_is_far_too_long_for_the_fifty_six_bytes_of_the_old_table";
#endif
static const char i[] IN(".modinfo") = "license=GPL\0parmtype=level:int\0import_ns=DMA_BUF\0import_ns=RDMA\0version=\0version=1.2";
static const char s[] IN("__ksymtab_strings") = "\0RDMA\0shared";
extern int printk, __attribute__((weak)) perhaps;
int *use[] = { &printk, &perhaps };
int shared, plain;
asm(".pushsection __kcrctab_gpl,\"a\"\n.long 0xdddddddd\n__crc_shared: .long 0xcafe1234\n.popsection\n"
    ".pushsection __ksymtab_gpl,\"a\"\n__ksymtab_shared: .long 0\n.popsection\n"
    ".pushsection __ksymtab,\"a\"\n__ksymtab_plain: .long 0\n.popsection\n"
    ".pushsection __ksymtab_strings\n.Lb: .popsection\n"
    ".set __kstrtabns_shared, s + 1\n.set __kstrtabns_plain, s\n");
"#;

struct Built {
    _directory: TempDir,
    path: PathBuf,
    bytes: Vec<u8>,
}

fn build(flags: &[&str]) -> Built {
    let directory = TempDir::new().unwrap();
    let (source, path) = (directory.path().join("m.c"), directory.path().join("m.ko"));
    fs::write(&source, SOURCE).unwrap();
    let common = ["-c", "-fno-pic", "-O0", "-Wno-attributes", "-o"];
    let flags = flags.iter().chain(&common);
    run(Command::new("gcc").args(flags).arg(&path).arg(&source));
    let bytes = fs::read(&path).unwrap();
    Built { _directory: directory, path, bytes }
}

fn built() -> &'static Built {
    static BUILT: OnceLock<Built> = OnceLock::new();
    BUILT.get_or_init(|| build(&[]))
}

/// Asks everything of a module, for the sake of not panicking.
fn ask_all(module: &KernelModule) {
    let _ = (module.info(), module.build_id(), module.symbols(), module.signature());
}

#[test]
fn needs_exports_and_fields_are_read() {
    let module = KernelModule::open(&built().path).unwrap();
    let symbols = module.symbols().unwrap();
    let undefined: Vec<_> =
        symbols.undefined.iter().map(|needed| (needed.name.as_str(), needed.weak)).collect();
    assert_eq!(undefined, [("printk", false), ("perhaps", true)]);
    assert_eq!(symbols.version("printk"), Some(0x11));
    assert_eq!(symbols.version("perhaps"), None);
    let shared =
        Export { crc: Some(0xcafe_1234), gpl_only: true, namespace: Some("RDMA".to_owned()) };
    assert_eq!(symbols.exports["shared"], shared);
    assert_eq!(symbols.exports["plain"], Export::default());
    let info = module.info().unwrap();
    assert_eq!(info.get("version"), Some("1.2"));
    assert_eq!(info.all("import_ns").collect::<Vec<_>>(), ["DMA_BUF", "RDMA"]);
    assert_eq!(module.signature().unwrap(), None);
    assert!(module.has_versions().unwrap());
}

#[test]
fn the_extended_versions_count_where_both_are_there() {
    let module = KernelModule::open(&build(&["-DEXTENDED"]).path).unwrap();
    let symbols = module.symbols().unwrap();
    assert_eq!(symbols.version("printk"), Some(0x21));
    let long = "a_name_that_is_far_too_long_for_the_fifty_six_bytes_of_the_old_table";
    assert_eq!(symbols.version(long), Some(0x22));
    assert_eq!(symbols.version("module_layout"), None);
}

#[test]
fn every_way_of_packing_gives_the_same() {
    let plain = KernelModule::open(&built().path).unwrap().symbols().unwrap();
    for (tool, arguments) in [("xz", "--check=crc32"), ("zstd", "-q"), ("gzip", "-9")] {
        let packed =
            Command::new(tool).args([arguments, "-c"]).arg(&built().path).output().unwrap();
        let module = KernelModule::of_bytes(packed.stdout).unwrap();
        assert_eq!(module.symbols().unwrap(), plain, "{tool}");
    }
}

#[test]
fn a_signature_names_its_signer_and_digest() {
    let mut bytes = built().bytes.clone();
    let message = b"\x30\x82\x06\x03\x55\x04\x03\x0c\x07the key..\
        \x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x01\x05\x00";
    bytes.extend_from_slice(message);
    bytes.extend_from_slice(&[0, 0, 2, 0, 0, 0, 0, 0]);
    bytes.extend_from_slice(&u32::try_from(message.len()).unwrap().to_be_bytes());
    bytes.extend_from_slice(b"~Module signature appended~\n");
    let signature = KernelModule::of_bytes(bytes).unwrap().signature().unwrap().unwrap();
    assert_eq!(signature.signer.as_deref(), Some("the key"));
    assert_eq!(signature.digest, Some("sha256"));
}

#[test]
fn what_is_no_module_is_named_with_its_path() {
    let directory = TempDir::new().unwrap();
    let fifo = directory.path().join("fifo.ko");
    run(Command::new("mkfifo").arg(&fifo));
    for path in [Path::new("/dev/zero"), directory.path(), &fifo, Path::new("/no/such.ko")] {
        let error = KernelModule::open(path).unwrap_err();
        assert!(error.to_string().starts_with(&path.display().to_string()), "{error}");
        assert!(!error.is_damage());
    }
    let error = KernelModule::of_bytes(b"no ELF file".to_vec()).unwrap().info().unwrap_err();
    assert!(error.to_string().contains("no 64-bit ELF file"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_file_that_is_cut_off_anywhere_is_an_error_at_most(length in 0..built().bytes.len()) {
        ask_all(&KernelModule::of_bytes(built().bytes[..length].to_vec()).unwrap());
    }

    #[test]
    fn bytes_that_are_changed_anywhere_are_an_error_at_most(
        changes in prop::collection::vec((0..built().bytes.len(), any::<u8>()), 1..12),
    ) {
        let mut bytes = built().bytes.clone();
        for (at, value) in changes {
            bytes[at] = value;
        }
        if let Ok(module) = KernelModule::of_bytes(bytes) {
            ask_all(&module);
        }
    }

    #[test]
    fn noise_is_an_error_at_most(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        if let Ok(module) = KernelModule::of_bytes(bytes) {
            ask_all(&module);
        }
    }
}
