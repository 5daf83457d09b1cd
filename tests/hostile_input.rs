//! Nothing that others write makes a reader panic, hang or call libkmod with what it cannot bear:
//! random bytes, and good ones that were damaged. The fuzz targets do the same for longer.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may")]

#[path = "../fuzz/entry_points.rs"]
mod entry_points;
mod module_tree;

use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use module_tree::{Fixture, REGISTER, StandIn, stand_in};

/// In all; an unoptimised build takes a few seconds.
const LONGEST: Duration = Duration::from_secs(60);

const LOG: &str = "nvidia_peermem: disagrees about version of symbol ib_x\n\
    nvidia_peermem: Unknown symbol ib_x (err -22)\n\
    nvidia_peermem: module uses symbol (ib_y) from namespace RDMA, but does not import it.\n\
    nvidia_peermem: version magic '6.1 SMP' should be '6.2 SMP'\n\
    nvidia_peermem: `7' invalid for parameter `peerdirect_support'\n\
    nvidia-peermem nv_mem_client_init:469 ERROR nv_mem_client_init -- error while registering\n\
    sysfs: cannot create duplicate filename '/kernel/mm/memory_peers/nv_mem'\n\
    Loading of module with unavailable key is rejected\nNVRM: No NVIDIA GPU found.\n";
const RECORD: &str = "4,339,5140900,-,caller=T1;nvidia_peermem: Unknown symbol \\x0aib_x (err \\xff)\n SUBSYSTEM=module\n DEVICE=+module:x\n";
const MODPROBE: &str = "# a\nblacklist nvidia-peermem\noptions nvidia_peermem a=\"b c\" \\\n d=1\n\
    install nvidia-peermem modprobe nvidia ; modprobe -i nvidia-current-peermem $CMDLINE_OPTS\n\
    softdep x pre: y post: z\nalias a* b\n";
const DKMS: &str = "nvidia, 570.1, 6.8.0-45-generic, x86_64: installed (original_module exists)\n\
    nvidia/570.1, 6.8.0, x86_64: installed-weak from 5.14 (Differences) (x)\nmlnx/1: added\n";
const LISTS: &str = "0x12345678\tprintk\tvmlinux\tEXPORT_SYMBOL_GPL\tNAMESPACE\n6.1.0-9-amd64\n";

/// A reader, by the name of its fuzz target, with something good to read.
type Reader = (&'static str, fn(&[u8]), Vec<Vec<u8>>);

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

fn readers() -> Vec<Reader> {
    let module = StandIn { needs: vec![(REGISTER, 7)], ..stand_in("x", "x") };
    let provider = StandIn { exports: vec![(REGISTER, 7)], ..stand_in("ib_core", "ib_core") };
    let fixture = Fixture::new(&[module, provider]);
    let signed = |mut bytes: Vec<u8>| {
        bytes.extend([0x30, 0x06, 0x03, 0x55, 0x04, 0x03, 0x0c, 0x01, b'x']);
        bytes.extend([0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 9]);
        bytes.extend(b"~Module signature appended~\n");
        bytes
    };
    let modules = ["x", "ib_core"].map(|file| fs::read(fixture.file(file)).unwrap());
    let indexes = ["modules.dep.bin", "modules.symbols.bin", "modules.alias.bin"];
    let indexes = indexes.map(|name| fs::read(fixture.modules().join(name)).unwrap());
    let text = |text: &str| vec![text.as_bytes().to_vec()];
    vec![
        (
            "module_file",
            entry_points::module_file,
            vec![
                modules[0].clone(),
                modules[1].clone(),
                signed(modules[0].clone()),
                packed(&modules[0]),
            ],
        ),
        ("kernel_log", entry_points::kernel_log, text(LOG)),
        ("kernel_records", entry_points::kernel_records, text(RECORD)),
        ("modprobe_d", entry_points::modprobe_d, text(MODPROBE)),
        ("dkms_status", entry_points::dkms_status, text(DKMS)),
        ("module_indexes", entry_points::module_indexes, indexes.to_vec()),
        ("symbol_lists", entry_points::symbol_lists, text(LISTS)),
    ]
}

/// Random bytes, or one of the seeds with some bytes changed and its end cut off.
fn input(seeds: Vec<Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    let changes = vec((any::<prop::sample::Index>(), any::<u8>()), 0..6);
    let damaged = (prop::sample::select(seeds), changes, any::<Option<prop::sample::Index>>());
    let damaged = damaged.prop_map(|(mut bytes, changes, cut)| {
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        bytes
    });
    prop_oneof![1 => vec(any::<u8>(), 0..512), 5 => damaged]
}

#[test]
fn damaged_input_harms_no_reader() {
    let begin = Instant::now();
    for (what, read, seeds) in readers() {
        // The seeds themselves, whole and at every length that ends within a header.
        for seed in &seeds {
            read(seed);
            (0..seed.len().min(128)).for_each(|length| read(&seed[..length]));
        }
        let config = ProptestConfig { cases: 400, failure_persistence: None, ..Default::default() };
        let mut runner = TestRunner::new(config);
        let result = runner.run(&input(seeds), |bytes| {
            read(&bytes);
            Ok(())
        });
        result.unwrap_or_else(|error| panic!("{what}: {error}"));
    }
    assert!(begin.elapsed() < LONGEST, "{:?}", begin.elapsed());
}

/// Not a test: a first corpus for `cargo fuzz run`, where it looks for one.
#[test]
#[ignore = "writes fuzz/corpus"]
fn seeds_of_the_fuzz_targets() {
    for (target, _, seeds) in readers() {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
        fs::create_dir_all(&corpus).unwrap();
        for (number, seed) in seeds.iter().enumerate() {
            fs::write(corpus.join(format!("seed-{number}")), seed).unwrap();
        }
    }
}
