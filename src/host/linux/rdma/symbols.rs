//! What the loaded RDMA stack provides, by the symbol names of the running kernel.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use crate::model::{LoadedModule, ModuleName};

/// A function that only a stack with the directory of clients has.
const SHOWS_A_COUNTER: &str = "num_alloc_mrs_show";

/// Far above the size on any kernel.
const MOST: u64 = 256 * 1024 * 1024;

/// Where the unit's sandbox shows the symbols, and where they are otherwise.
const PLACES: [&str; 2] = ["run/peermemd-kallsyms", "proc/kallsyms"];

/// What the symbols say of the peer memory interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PeerSymbols {
    /// The loaded module that has the registration function.
    pub(super) exporter: Option<ModuleName>,
    /// It makes the directory of clients.
    pub(super) makes_directory: bool,
}

/// The last answer and the builds that it is about.
#[derive(Debug, Default)]
pub(super) struct SymbolCache(Option<(Builds, PeerSymbols)>);

type Builds = Vec<(ModuleName, Option<String>)>;

impl SymbolCache {
    /// What the symbols say; `None` if they cannot be seen.
    pub(super) fn look(
        &mut self,
        root: &Path,
        register_symbol: &str,
        modules: &BTreeMap<ModuleName, LoadedModule>,
    ) -> Option<PeerSymbols> {
        let build =
            |(name, module): (&ModuleName, &LoadedModule)| (name.clone(), module.build_id.clone());
        let builds: Builds = modules.iter().map(build).collect();
        if let Some((of, symbols)) = &self.0
            && *of == builds
        {
            return Some(symbols.clone());
        }
        let symbols = read(root, register_symbol)?;
        self.0 = Some((builds, symbols.clone()));
        Some(symbols)
    }
}

fn read(root: &Path, register_symbol: &str) -> Option<PeerSymbols> {
    let file = PLACES.iter().find_map(|place| File::open(root.join(place)).ok())?;
    scan(BufReader::with_capacity(1 << 16, file.take(MOST)), register_symbol).ok()?
}

/// `None` if not one symbol of a module is listed: then they are hidden, not absent.
fn scan(mut symbols: impl BufRead, register_symbol: &str) -> io::Result<Option<PeerSymbols>> {
    let (mut line, mut any) = (Vec::new(), false);
    let (mut exporter, mut counters) = (None, Vec::new());
    while symbols.read_until(b'\n', &mut line)? > 0 {
        // Lines of the kernel image have no module, and most lines are such.
        if let Some((symbol, module)) = parse(&line) {
            any = true;
            if symbol == register_symbol {
                exporter = Some(module.to_owned());
            } else if symbol == SHOWS_A_COUNTER {
                counters.push(module.to_owned());
            }
        }
        line.clear();
    }
    let makes_directory = exporter.as_ref().is_some_and(|module| counters.contains(module));
    let exporter = exporter.and_then(|module| ModuleName::new(&module).ok());
    Ok(any.then_some(PeerSymbols { exporter, makes_directory }))
}

/// Name and module of a function: `ffffffffc0a1b2c0 t num_alloc_mrs_show<TAB>[ib_core]`. What a
/// compiler appends after a dot does not belong to the name.
fn parse(line: &[u8]) -> Option<(&str, &str)> {
    let line = line.trim_ascii_end().strip_suffix(b"]")?;
    let mut fields = std::str::from_utf8(line).ok()?.split_ascii_whitespace();
    let (_address, kind, symbol, module) =
        (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
    if !matches!(kind, "t" | "T") {
        return None;
    }
    Some((symbol.split('.').next()?, module.strip_prefix('[')?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const REGISTER: &str = "ib_register_peer_memory_client";

    fn symbols(text: &str) -> Option<PeerSymbols> {
        scan(text.as_bytes(), REGISTER).unwrap()
    }

    #[test]
    fn the_counters_count_only_for_the_module_that_registers() {
        let core = "0000000000000000 T ib_register_peer_memory_client\t[ib_core]\n\
                    0000000000000000 t num_alloc_mrs_show.llvm.123\t[ib_core]\n";
        let wanted = PeerSymbols {
            exporter: Some(ModuleName::new("ib_core").unwrap()),
            makes_directory: true,
        };
        assert_eq!(symbols(core), Some(wanted));
        let elsewhere = core.replacen("[ib_core]", "[ib_uverbs]", 1);
        assert!(!symbols(&elsewhere).unwrap().makes_directory);
    }

    #[test]
    fn a_stack_without_the_function_has_no_exporter() {
        let text = "0 T printk\n0 t ib_x\t[ib_core]\n0 r ib_register_peer_memory_client\t[x]\n";
        assert_eq!(symbols(text), Some(PeerSymbols::default()));
    }

    #[test]
    fn hidden_symbols_say_nothing() {
        assert_eq!(symbols("0 T printk\n"), None);
        assert_eq!(symbols(""), None);
        assert_eq!(read(tempfile::tempdir().unwrap().path(), REGISTER), None);
    }

    #[test]
    fn the_answer_is_kept_for_the_same_builds() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("proc")).unwrap();
        let path = root.path().join("proc/kallsyms");
        std::fs::write(&path, "0 t ib_x\t[ib_core]\n").unwrap();
        let mut cache = SymbolCache::default();
        let none = BTreeMap::new();
        assert!(cache.look(root.path(), REGISTER, &none).is_some());
        std::fs::remove_file(path).unwrap();
        assert!(cache.look(root.path(), REGISTER, &none).is_some());
        assert!(SymbolCache::default().look(root.path(), REGISTER, &none).is_none());
    }

    proptest! {
        #[test]
        fn no_line_makes_the_parser_panic(line in proptest::collection::vec(any::<u8>(), 0..80)) {
            parse(&line);
        }
    }
}
