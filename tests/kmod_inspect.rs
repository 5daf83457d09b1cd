//! The real libkmod reads a fixture tree: what a load would take is told rightly, and whatever
//! is wrong with a file or a line is told rather than suffered.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may")]

mod module_tree;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use module_tree::{Fixture, GET_PAGES, REGISTER, debian_stack, name, run, stack, stand_in};
use peermemd::host::linux::inspect::InspectRequest;
use peermemd::host::linux::kmodfile::KernelModule;
use peermemd::host::linux::libkmod::{Context, Module, ModuleTree};
use peermemd::model::{Desired, Fact, InitState, ModuleName, Resolution, Symbol};

fn symbol(name: &str, crc: u32) -> Symbol {
    Symbol { name: name.to_owned(), crc: (crc != 0).then_some(crc) }
}

#[test]
fn every_module_is_resolved_with_its_fields() {
    let fixture = Fixture::new(&stack());
    fixture.configure("a.conf", "options nvidia-peermem peerdirect_support=1\n");
    let files = fixture.inspect();
    let client = &files.modules[&name("nvidia_peermem")];
    assert_eq!(client.resolution, Resolution::File(fixture.file("nvidia-peermem")));
    assert_eq!(client.options, "peerdirect_support=1");
    assert_eq!(client.version.as_deref(), Some("570.1"));
    assert_eq!(client.srcversion.as_deref(), Some("ABCDEF"));
    assert_eq!(client.license.as_deref(), Some("Dual BSD/GPL"));
    assert_eq!(client.signer, None);
    assert_eq!(client.build_id.as_ref().map(String::len), Some(40));
    let mut depends = client.depends.clone();
    depends.sort();
    assert_eq!(depends, [name("ib_core"), name("nvidia")]);
    assert_eq!(files.modules[&name("ib_uverbs")].resolution, Resolution::Builtin);
}

#[test]
fn needs_and_exports_carry_the_versions_that_tell_a_mismatch() {
    let files = Fixture::new(&stack()).inspect();
    let Fact::Known(needs) = &files.modules[&name("nvidia_peermem")].needs else { panic!() };
    for wanted in
        [symbol(REGISTER, 0x9999_9999), symbol(GET_PAGES, 0x5555_5555), symbol("unversioned", 0)]
    {
        assert!(needs.contains(&wanted), "{wanted:?} in {needs:?}");
    }
    let exports = |module| files.modules[&name(module)].exports.clone();
    // What no client needs is left out.
    assert_eq!(exports("ib_core"), Fact::Known(vec![symbol(REGISTER, 0x1111_1111)]));
    assert_eq!(exports("nvidia"), Fact::Known(vec![symbol(GET_PAGES, 0x5555_5555)]));
    assert_eq!(exports("mlx5_core"), Fact::Known(vec![]));
}

#[test]
fn the_exporter_is_asked_for_and_its_sysfs_import_is_seen() {
    let files = Fixture::new(&stack()).inspect();
    assert_eq!(files.exporter, Some(name("ib_core")));
    let imports = |module| files.modules[&name(module)].imports_mm_kobj.clone();
    assert_eq!(imports("ib_core"), Fact::Known(true));
    assert_eq!(imports("nvidia"), Fact::Known(false));
    assert!(imports("mlx5_core").known().is_none());
}

#[test]
fn a_stack_without_the_registration_has_no_exporter() {
    let files = Fixture::new(&[stand_in("ib_core", "ib_core")]).inspect();
    assert_eq!(files.exporter, None);
    assert_eq!(files.modules.keys().collect::<Vec<_>>(), [&name("ib_core"), &name("ib_uverbs")]);
}

#[test]
fn debians_renamed_files_are_found_through_their_install_lines() {
    let fixture = Fixture::new(&debian_stack());
    let line = "modprobe nvidia ; modprobe -i nvidia-current-peermem $CMDLINE_OPTS";
    fixture.configure(
        "nvidia.conf",
        &format!(
            "# Debian\ninstall nvidia modprobe -i nvidia-current $CMDLINE_OPTS\n\n\
             install nvidia-peermem {line}\n\
             options nvidia-current-peermem inner=1\noptions nvidia_peermem outer=1\n"
        ),
    );
    let files = fixture.inspect();
    let client = &files.modules[&name("nvidia_peermem")];
    let origin = fixture.config().join("nvidia.conf");
    assert_eq!(
        client.resolution,
        Resolution::InstallCommand {
            command: line.to_owned(),
            origin: Some(format!("{}:4", origin.display())),
            file: Some(fixture.file("nvidia-current-peermem")),
        }
    );
    assert_eq!(client.options, "inner=1 outer=1");
    assert_eq!(client.version.as_deref(), Some("570.1"));
    // Dependencies go by the kernel's names, not by those of the files.
    assert!(client.depends.contains(&name("nvidia")), "{:?}", client.depends);
    let exports = files.modules[&name("nvidia")].exports.clone();
    assert_eq!(exports, Fact::Known(vec![symbol(GET_PAGES, 0x5555_5555)]));
}

#[test]
fn an_install_line_that_loads_another_module_promises_no_file() {
    let fixture = Fixture::new(&stack());
    for command in ["/bin/true", "modprobe -i ib_core", "modprobe -i no-such-module"] {
        fixture.configure("a.conf", &format!("install nvidia_peermem {command}\n"));
        let files = fixture.inspect();
        let client = &files.modules[&name("nvidia_peermem")];
        let Resolution::InstallCommand { file, .. } = &client.resolution else { panic!() };
        assert_eq!(*file, None, "{command}");
        assert!(client.needs.why_unknown().is_some());
    }
}

#[test]
fn a_soft_dependency_makes_libkmod_pass_over_the_install_line() {
    let fixture = Fixture::new(&stack());
    fixture.configure(
        "a.conf",
        "install nvidia_peermem /bin/true\nsoftdep nvidia_peermem pre: mlx5_core\n",
    );
    let resolution = fixture.inspect().modules[&name("nvidia_peermem")].resolution.clone();
    assert_eq!(resolution, Resolution::File(fixture.file("nvidia-peermem")));
}

#[test]
fn a_deny_list_is_named_with_file_and_line() {
    let fixture = Fixture::new(&stack());
    fixture.configure("b.conf", "\nblacklist nvidia-peermem\n");
    let files = fixture.inspect();
    let place = format!("{}:2", fixture.config().join("b.conf").display());
    assert_eq!(files.modules[&name("nvidia_peermem")].deny_listed, Some(place));
    assert_eq!(files.modules[&name("nvidia")].deny_listed, None);
}

#[test]
fn a_file_of_the_same_name_in_a_weaker_directory_is_not_the_origin() {
    let fixture = Fixture::new(&stack());
    let weaker = fixture.path().join("lib/modprobe.d");
    fs::create_dir_all(&weaker).unwrap();
    fs::write(weaker.join("a.conf"), "install nvidia /bin/true\n").unwrap();
    fs::write(weaker.join("z.conf"), "install nvidia /bin/true\n").unwrap();
    fixture.configure("a.conf", "# masked\n");
    let tree =
        ModuleTree { config: Some(vec![fixture.config(), weaker.clone()]), ..fixture.tree() };
    let request = InspectRequest { tree, ..fixture.request() };
    let files = peermemd::host::linux::inspect::inspect(&request, &mut |_| ()).unwrap();
    let Resolution::InstallCommand { origin, .. } = &files.modules[&name("nvidia")].resolution
    else {
        panic!()
    };
    assert_eq!(*origin, Some(format!("{}:1", weaker.join("z.conf").display())));
}

#[test]
fn a_damaged_file_makes_its_symbols_unknown_and_nothing_else() {
    let fixture = Fixture::new(&stack());
    let path = fixture.file("nvidia-peermem");
    let whole = fs::read(&path).unwrap();
    for damaged in [&whole[..whole.len() / 2], &whole[..100], b"not an ELF file", b""] {
        fs::write(&path, damaged).unwrap();
        let files = fixture.inspect();
        let client = &files.modules[&name("nvidia_peermem")];
        let why = client.needs.why_unknown().unwrap_or_else(|| panic!("{} bytes", damaged.len()));
        assert!(why.contains("nvidia-peermem.ko"), "{why}");
        assert!(files.modules[&name("ib_core")].exports.known().is_some());
    }
}

#[test]
fn a_file_that_is_gone_is_no_file() {
    let fixture = Fixture::new(&stack());
    fs::remove_file(fixture.file("nvidia-peermem")).unwrap();
    assert!(!fixture.inspect().modules.contains_key(&name("nvidia_peermem")));
}

#[test]
fn compressed_files_are_read_like_plain_ones() {
    let fixture = Fixture::new(&stack());
    let plain = fixture.inspect();
    run(Command::new("xz").args(["--check=crc32", "-f"]).arg(fixture.file("nvidia-peermem")));
    run(Command::new("zstd").args(["-q", "--rm"]).arg(fixture.file("ib_core")));
    fixture.depmod();
    let packed = fixture.inspect();
    for module in ["nvidia_peermem", "ib_core"] {
        let (plain, packed) = (&plain.modules[&name(module)], &packed.modules[&name(module)]);
        assert_ne!(plain.resolution, packed.resolution);
        assert_eq!(plain.build_id, packed.build_id);
        assert_eq!((&plain.needs, &plain.exports), (&packed.needs, &packed.exports));
    }
}

#[test]
fn the_tree_stamp_changes_with_the_index() {
    let fixture = Fixture::new(&stack());
    let before = fixture.inspect();
    assert_eq!(fixture.inspect().tree_stamp, before.tree_stamp);
    fixture.depmod();
    assert_ne!(fixture.inspect().tree_stamp, before.tree_stamp);
}

#[test]
fn the_configuration_stamp_changes_only_with_lines_that_matter() {
    let fixture = Fixture::new(&debian_stack());
    let install = "install nvidia modprobe -i nvidia-current\n\
        install nvidia-peermem modprobe -i nvidia-current-peermem\n";
    fixture.configure("a.conf", install);
    let before = fixture.inspect().modprobe_stamp;
    fixture.configure("b.conf", "options snd_hda power_save=1\nblacklist nouveau\n# x\n");
    assert_eq!(fixture.inspect().modprobe_stamp, before);
    for line in [
        "blacklist nvidia-peermem",
        "options nvidia_current NVreg_X=1",
        "install ib_core /bin/true",
        "softdep nvidia pre: ib_core",
    ] {
        fixture.configure("b.conf", &format!("{line}\n"));
        assert_ne!(fixture.inspect().modprobe_stamp, before, "{line}");
    }
}

#[test]
fn a_tree_that_is_not_there_has_no_files() {
    let fixture = Fixture::new(&[]);
    fs::remove_dir_all(fixture.modules()).unwrap();
    let files = fixture.inspect();
    assert!(files.modules.is_empty());
    assert_eq!(files.exporter, None);
}

#[test]
fn names_take_dash_and_underscore_and_aliases_are_followed() {
    let fixture = Fixture::new(&stack());
    fixture.configure("a.conf", "alias gpu-driver nvidia\n");
    let context = Context::new(&fixture.tree()).unwrap();
    let found = |text: &str| -> Vec<String> {
        context.lookup(text).unwrap().iter().map(Module::name).collect()
    };
    assert_eq!(found("nvidia-peermem"), ["nvidia_peermem"]);
    assert_eq!(found("nvidia_peermem"), ["nvidia_peermem"]);
    assert_eq!(found("gpu_driver"), ["nvidia"]);
    assert_eq!(found(&format!("symbol:{REGISTER}")), ["ib_core"]);
    assert_eq!(found("no_such_module"), [""; 0]);
    assert_eq!(context.lookup("ib_uverbs").unwrap()[0].init_state(), InitState::Builtin);
    assert!(context.lookup("nul\0byte").is_err());
}

#[test]
fn the_kmod_crate_and_our_own_calls_agree() {
    let fixture = Fixture::new(&stack());
    let theirs = kmod::Context::new_with_dirname(&fixture.modules()).unwrap();
    let context = Context::new(&fixture.tree()).unwrap();
    for module in Desired::default().modules() {
        let ours = context.module(module.as_str()).unwrap();
        let its = theirs.module_new_from_name(module.as_str()).unwrap();
        assert_eq!(its.path().map(PathBuf::from), ours.path(), "{module}");
        let exports =
            ours.path().map(|path| KernelModule::open(&path).unwrap().symbols().unwrap().exports);
        for symbol in exports.unwrap_or_default().keys() {
            let alias = format!("symbol:{symbol}");
            let names = |list: Vec<String>| list.into_iter().map(|text| name(&text)).collect();
            let found: Vec<_> = theirs
                .module_new_from_lookup(&alias)
                .unwrap()
                .map(|found| found.name().to_string_lossy().into_owned())
                .collect();
            let found: Vec<ModuleName> = names(found);
            let ours: Vec<ModuleName> =
                names(context.lookup(&alias).unwrap().iter().map(Module::name).collect());
            assert_eq!(found.as_slice(), std::slice::from_ref(module), "{alias}");
            assert_eq!(found, ours, "{alias}");
        }
    }
}
