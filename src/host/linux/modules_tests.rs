use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;

use super::*;

struct Tree(tempfile::TempDir);

impl Tree {
    fn new() -> Self {
        let tree = Self(tempfile::tempdir().unwrap());
        fs::create_dir_all(tree.0.path().join("sys/module")).unwrap();
        tree
    }

    fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path: PathBuf = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn read(&self, name: &str) -> Option<LoadedModule> {
        let name = ModuleName::new(name).unwrap();
        let modules = read(self.0.path(), std::iter::once(&name), &[]);
        modules.known().unwrap().get(&name).cloned()
    }
}

#[test]
fn everything_sysfs_says_of_a_live_module_is_read() {
    let tree = Tree::new();
    tree.write("sys/module/ib_core/initstate", "live\n");
    tree.write("sys/module/ib_core/refcnt", "3\n");
    tree.write("sys/module/ib_core/version", "24.10-0.7.0\n");
    tree.write("sys/module/ib_core/srcversion", "ABCDEF\n");
    tree.write("sys/module/ib_core/holders/nvidia_peermem", "");
    let mut note = Vec::new();
    for word in [4u32, 3, 3] {
        note.extend(word.to_ne_bytes());
    }
    note.extend(b"GNU\0\x0a\xbc\xde\0");
    tree.write("sys/module/ib_core/notes/.note.gnu.build-id", note);
    let module = tree.read("ib_core").unwrap();
    assert_eq!(module.state, Fact::Known(InitState::Live));
    assert_eq!(module.refcount, Fact::Known(3));
    assert_eq!(module.version.as_deref(), Some("24.10-0.7.0"));
    assert_eq!(module.srcversion.as_deref(), Some("ABCDEF"));
    assert_eq!(module.build_id.as_deref(), Some("0abcde"));
    let holders = module.holders.known().unwrap();
    assert_eq!(holders.iter().map(ModuleName::as_str).collect::<Vec<_>>(), ["nvidia_peermem"]);
}

#[test]
fn a_directory_without_initstate_is_a_builtin_with_unknown_users() {
    let tree = Tree::new();
    tree.write("sys/module/ib_core/version", "1\n");
    let module = tree.read("ib_core").unwrap();
    assert_eq!(module.state, Fact::Known(InitState::Builtin));
    assert!(module.refcount.known().is_none() && module.holders.known().is_none());
}

#[test]
fn a_module_without_a_directory_is_absent_unless_the_list_still_has_it() {
    let tree = Tree::new();
    assert_eq!(tree.read("nvidia"), None);
    tree.write("proc/modules", "nvidia 56 0 - Unloading 0x0 (POE)\nbroken\n");
    let module = tree.read("nvidia").unwrap();
    assert_eq!(module.state, Fact::Known(InitState::Going));
    assert!(module.refcount.known().is_none());
}

#[test]
fn damaged_attributes_are_unknown_and_say_where() {
    let tree = Tree::new();
    tree.write("sys/module/nvidia/initstate", b"li\xffve");
    tree.write("sys/module/nvidia/refcnt", "many");
    tree.write("sys/module/nvidia/holders/..not-a-module name", "");
    tree.write("sys/module/nvidia/notes/.note.gnu.build-id", "short");
    let module = tree.read("nvidia").unwrap();
    assert!(module.state.why_unknown().unwrap().contains("initstate: 'li\u{fffd}ve'"));
    assert!(module.refcount.why_unknown().unwrap().contains("refcnt: 'many'"));
    assert!(module.holders.why_unknown().unwrap().contains("holders: "));
    assert_eq!(module.build_id, None);
}

#[test]
fn without_sysfs_nothing_is_said_to_be_absent() {
    let root = tempfile::tempdir().unwrap();
    let name = ModuleName::new("nvidia").unwrap();
    assert!(read(root.path(), std::iter::once(&name), &[]).known().is_none());
}

proptest! {
    #[test]
    fn no_note_and_no_list_makes_the_parsers_panic(
        note in proptest::collection::vec(any::<u8>(), 0..64),
        list in "(?s).{0,200}",
    ) {
        parse_build_id(&note);
        states(&list);
    }
}

#[test]
fn whatever_depends_on_the_gpu_driver_is_followed_to_the_end() {
    let root = tempfile::tempdir().unwrap();
    let module = |name: &str, holders: &[&str]| {
        let directory = root.path().join("sys/module").join(name);
        std::fs::create_dir_all(directory.join("holders")).unwrap();
        std::fs::write(directory.join("initstate"), "live\n").unwrap();
        std::fs::write(directory.join("refcnt"), format!("{}\n", holders.len())).unwrap();
        for holder in holders {
            std::fs::write(directory.join("holders").join(holder), "").unwrap();
        }
    };
    module("nvidia", &["nvidia_modeset", "nvidia_uvm"]);
    module("nvidia_modeset", &["nvidia_drm"]);
    module("nvidia_drm", &["nvidia"]);
    module("nvidia_uvm", &["gone_by_now"]);
    module("ext4", &[]);
    let name = |text: &str| ModuleName::new(text).unwrap();
    let (nvidia, peermem) = (name("nvidia"), name("nvidia_peermem"));
    let modules = read(root.path(), [&nvidia, &peermem].into_iter(), &[&nvidia]);
    let found: Vec<_> = modules.known().unwrap().keys().map(ModuleName::as_str).collect();
    assert_eq!(found, ["nvidia", "nvidia_drm", "nvidia_modeset", "nvidia_uvm"]);
}
