use super::*;

fn found(lines: &[&str]) -> Vec<Remark> {
    let module = ModuleName::new("nvidia_peermem").unwrap();
    let depends = ModuleName::new("nvidia").unwrap();
    let lines: Vec<String> = lines.iter().map(|&line| line.to_owned()).collect();
    remarks(&[&module, &depends], &lines)
}

fn said(line: &str) -> Option<Said> {
    found(&[line]).into_iter().next().map(|remark| remark.said)
}

fn text(text: &str) -> String {
    text.to_owned()
}

#[test]
fn every_line_of_the_loader_says_what_and_about_which_symbol() {
    let symbol = || text("ib_register_peer_memory_client");
    let table = [
        (
            "nvidia_peermem: disagrees about version of symbol ib_register_peer_memory_client",
            Said::VersionDiffers { symbol: symbol() },
        ),
        (
            "nvidia_peermem: no symbol version for ib_register_peer_memory_client",
            Said::VersionMissing { symbol: symbol() },
        ),
        (
            "nvidia_peermem: Unknown symbol ib_register_peer_memory_client (err 0)",
            Said::Unresolved { symbol: symbol(), errno: 0 },
        ),
        (
            "nvidia_peermem: Unknown symbol ib_register_peer_memory_client (err -22)",
            Said::Unresolved { symbol: symbol(), errno: 22 },
        ),
        (
            "nvidia_peermem: Unknown symbol ib_register_peer_memory_client (err -2)",
            Said::Unresolved { symbol: symbol(), errno: 2 },
        ),
        (
            "[ 1234.567890] nvidia_peermem: Unknown symbol ib_register_peer_memory_client",
            Said::Unresolved { symbol: symbol(), errno: 0 },
        ),
        (
            "nvidia_peermem: module using GPL-only symbols uses symbols nvidia_p2p_get_pages from \
             proprietary module nvidia.",
            Said::GplOnly { symbol: text("nvidia_p2p_get_pages"), owner: text("nvidia") },
        ),
        (
            "nvidia: module uses symbol (dma_buf_export) from namespace DMA_BUF, but does not \
             import it.",
            Said::Namespace { symbol: text("dma_buf_export"), namespace: text("DMA_BUF") },
        ),
        (
            "nvidia: module uses symbol dma_buf_export from namespace DMA_BUF, but does not \
             import it.",
            Said::Namespace { symbol: text("dma_buf_export"), namespace: text("DMA_BUF") },
        ),
        (
            "nvidia_peermem: version magic '5.15.0 SMP ' should be '6.1.0 SMP preempt '",
            Said::Vermagic { own: text("5.15.0 SMP "), kernel: text("6.1.0 SMP preempt ") },
        ),
        ("nvidia_peermem: gave up waiting for init of module nvidia.", Said::Busy),
        (
            "nvidia_peermem: `abc' invalid for parameter `peerdirect_support'",
            Said::Parameter { name: text("peerdirect_support"), value: text("abc") },
        ),
        ("nvidia_peermem: module is not a zstd compressed module", Said::Damaged),
    ];
    for (line, expected) in table {
        assert_eq!(said(line), Some(expected), "{line}");
    }
}

#[test]
fn every_line_of_policy_says_which() {
    let signature = |why: &str| Said::Signature { why: text(why) };
    let table = [
        ("Loading of unsigned module is rejected", signature("unsigned module")),
        (
            "Loading of module with unavailable key is rejected",
            signature("module with unavailable key"),
        ),
        (
            "Loading of module with unsupported crypto is rejected",
            signature("module with unsupported crypto"),
        ),
        (
            "Lockdown: modprobe: unsigned module loading is restricted; see man kernel_lockdown.7",
            Said::Lockdown,
        ),
        ("Module nvidia_peermem is blacklisted", Said::NameDenied),
        (
            "Module hash 0badc0de is blacklisted",
            signature("its hash is on the kernel's list of revoked ones"),
        ),
    ];
    for (line, expected) in table {
        assert_eq!(said(line), Some(expected), "{line}");
    }
    assert_eq!(said("Module nouveau is blacklisted"), None);
}

#[test]
fn the_client_s_lines_count_by_their_text_whatever_their_prefix() {
    let prefixes = [
        "nvidia-peermem nv_mem_client_init:441 ERROR ",
        "nvidia-peermem nv_mem_legacy_client_init:512 ERROR ",
        "nvidia-peermem nv_mem_nc_client_init:1 ",
        "nvidia_peermem nv_mem_param_conf_check:12 ",
        "nv_mem nv_mem_client_init:3 ",
        "",
    ];
    let parameter = Said::Parameter { name: text("peerdirect_support"), value: text("7") };
    let table = [
        ("invalid peerdirect_support param value 7", parameter),
        ("nv_mem_client_init -- error while registering traditional client", Said::NotRegistered),
        ("nv_mem_client_init -- error while registering nc client", Said::NotRegistered),
        ("nv_mem_client_init -- error while registering client", Said::NotRegistered),
        ("module compiled without IB peer memory symbols present", Said::BuiltWithout),
    ];
    for prefix in prefixes {
        for (line, expected) in &table {
            assert_eq!(said(&format!("{prefix}{line}")).as_ref(), Some(expected), "{prefix}{line}");
        }
    }
}

#[test]
fn the_gpu_driver_s_lines_count_and_its_api_mismatch_does_not() {
    let table = [
        ("NVRM: No NVIDIA GPU found.", Some(Said::NoDevice)),
        ("NVRM: The NVIDIA probe routine was not called for 8 device(s).", Some(Said::NoDevice)),
        ("NVRM: No NVIDIA devices probed.", Some(Said::NoDevice)),
        ("NVRM: None of the NVIDIA devices were initialized.", Some(Said::NoDevice)),
        ("NVRM: The NVIDIA probe routine failed for 1 device(s).", Some(Said::NoDevice)),
        ("NVRM: GPU 0000:17:00.0: RmInitAdapter failed! (0x62:0x40:2011)", Some(Said::InitFailed)),
        ("NVRM: API mismatch: the client 'nvidia-smi' (pid 77) has the version 570.1, but", None),
        ("NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  570.124.06", None),
    ];
    for (line, expected) in table {
        assert_eq!(said(line), expected, "{line}");
    }
}

#[test]
fn a_message_over_several_lines_is_one() {
    let lines = [
        "NVRM: The NVIDIA GPU 0000:17:00.0 (PCI ID: 10de:1b38)",
        "NVRM: installed in this system is not supported by open",
        "NVRM: nvidia.ko because it does not include the required GPU",
        "NVRM: System Processor (GSP).",
    ];
    let remarks = found(&lines[..3]);
    assert_eq!(remarks[0].said, Said::WrongFlavour);
    assert!(remarks[0].line.contains("not supported by open"), "{}", remarks[0].line);
}

#[test]
fn the_stack_dump_of_a_duplicate_name_is_dropped_and_the_rest_kept() {
    let lines = [
        "sysfs: cannot create duplicate filename '/kernel/mm/memory_peers/nv_mem'",
        "CPU: 3 PID: 4711 Comm: modprobe Tainted: P           OE     5.15.0-91-generic",
        "Hardware name: Some Server/Board, BIOS 1.2 01/01/2024",
        "Call Trace:",
        " <TASK>",
        " dump_stack_lvl+0x4a/0x63",
        " ? sysfs_warn_dup.cold+0x17/0x27",
        " </TASK>",
        "kobject: kobject_add_internal failed for nv_mem with -EEXIST, don't try to register \
         things with the same name in the same directory.",
        "nvidia-peermem nv_mem_client_init:511 ERROR nv_mem_client_init -- error while \
         registering client",
    ];
    let remarks = found(&lines);
    assert_eq!(remarks[0].said, Said::NameTaken { name: text("nv_mem") });
    assert_eq!(remarks.len(), 2);
    assert!(remarks[0].line.contains("duplicate filename"));
}

#[test]
fn a_symbol_that_was_explained_is_not_repeated_as_unknown() {
    let remarks = found(&[
        "nvidia_peermem: disagrees about version of symbol ib_register_peer_memory_client",
        "nvidia_peermem: Unknown symbol ib_register_peer_memory_client (err -22)",
        "nvidia_peermem: Unknown symbol nvidia_p2p_get_pages (err -2)",
    ]);
    let reasons: Vec<_> = remarks.iter().map(|remark| remark.said.reason()).collect();
    assert_eq!(reasons, [Reason::SymbolVersionMismatch, Reason::UnknownSymbol]);
}

#[test]
fn another_module_s_trouble_and_warnings_are_not_ours() {
    for line in [
        "nvidia_drm: Unknown symbol drm_foo (err -2)",
        "nvidia_peermem: module verification failed: signature and/or required key missing - \
         tainting kernel",
        "nvidia: loading out-of-tree module taints kernel.",
        "nvidia: module license 'NVIDIA' taints kernel.",
        "nvidia_peermem: module uses symbols nvidia_p2p_get_pages from proprietary module \
         nvidia, inheriting taint.",
        "nvidia_peermem: unknown parameter 'peerdirect' ignored",
        "",
        "\u{fffd}\u{fffd}: \u{fffd}",
    ] {
        assert_eq!(said(line), None, "{line}");
    }
}

#[test]
fn logged_errors_are_told_by_magnitude() {
    let errors = |total, last_hour| LoggedErrors { lines: vec![text("x")], total, last_hour };
    assert_eq!(errors_told(&LoggedErrors::default()), None);
    assert_eq!(errors_told(&errors(3, 0)).unwrap(), "2 to 9 in all, none in the last hour: \"x\"");
    assert_eq!(errors_told(&errors(4, 2)), errors_told(&errors(9, 9)));
}

proptest::proptest! {
    #[test]
    fn no_line_makes_the_reader_panic(lines in proptest::collection::vec(".{0,120}", 0..20)) {
        let module = ModuleName::new("nvidia_peermem").unwrap();
        remarks(&[&module], &lines);
    }
}
