//! `Module.symvers`: which symbols a kernel or a build exports, and with which versions.

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::root::Root;
use crate::model::{ImageSymbols, Restriction, Symbol};

/// A distribution's list has 2 MiB.
const LARGEST: u64 = 32 * 1024 * 1024;

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line<'text> {
    /// The version; `None` where the build has none.
    pub crc: Option<u32>,
    /// The symbol.
    pub symbol: &'text str,
    /// `vmlinux`, or the module without `.ko`.
    pub module: &'text str,
    /// Only modules with a compatible licence may use it.
    pub gpl_only: bool,
    /// The namespace that must be imported.
    pub namespace: Option<&'text str>,
}

/// Every line that makes sense: CRC, symbol, module, kind of export, namespace, between tabs.
pub fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    text.lines().filter_map(|line| {
        let mut fields = line.split('\t');
        let crc = u32::from_str_radix(fields.next()?.strip_prefix("0x")?, 16).ok()?;
        let (symbol, module) = (fields.next()?, fields.next()?);
        let gpl_only =
            fields.next().is_some_and(|kind| kind.trim_end().starts_with("EXPORT_SYMBOL_GPL"));
        let namespace = fields.next().map(str::trim).filter(|name| !name.is_empty());
        Some(Line { crc: (crc != 0).then_some(crc), symbol, module, gpl_only, namespace })
    })
}

/// Reads a list, plain or compressed. `None`: there is no such file, or it is not readable as one.
pub fn read(path: &Path) -> Option<String> {
    let file = std::fs::File::open(path)
        .ok()
        .filter(|file| file.metadata().is_ok_and(|data| data.is_file() && data.len() <= LARGEST))?;
    let mut bytes = Vec::new();
    let read = match path.extension()?.to_str()? {
        "gz" => flate2::read::MultiGzDecoder::new(file).take(LARGEST).read_to_end(&mut bytes),
        "xz" => {
            let unpacked =
                lzma_rust2::XzReader::new_mem_limit(io::BufReader::new(file), true, 1 << 17);
            unpacked.take(LARGEST).read_to_end(&mut bytes)
        }
        "zst" => {
            let unpacked =
                ruzstd::decoding::StreamingDecoder::new(io::BufReader::new(file)).ok()?;
            unpacked.take(LARGEST).read_to_end(&mut bytes)
        }
        _ => file.take(LARGEST).read_to_end(&mut bytes),
    };
    read.ok()?;
    Some(match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    })
}

/// Where distributions keep the list of a kernel.
fn places(release: &str) -> Vec<PathBuf> {
    let tree = Path::new("/lib/modules").join(release);
    let boot = format!("/boot/symvers-{release}");
    let packed = |path: String| {
        ["", ".xz", ".zst", ".gz"].map(|kind| PathBuf::from(format!("{path}{kind}")))
    };
    let mut places = vec![tree.join("build/Module.symvers")];
    places.extend(packed(tree.join("symvers").display().to_string()));
    places.extend(packed(boot));
    places
}

/// What the image of the kernel exports of `needed`.
pub fn image(root: &Root, release: &str, needed: &BTreeSet<String>) -> Option<ImageSymbols> {
    places(release).into_iter().find_map(|place| {
        let text = read(&root.resolve(&place).ok()?)?;
        let mut found = ImageSymbols { source: place, ..ImageSymbols::default() };
        let (mut any, mut whole) = (false, lines(&text));
        for line in whole.by_ref().filter(|line| line.module == "vmlinux") {
            any = true;
            if !needed.contains(line.symbol) {
                continue;
            }
            found.symbols.push(Symbol { name: line.symbol.to_owned(), crc: line.crc });
            if line.gpl_only || line.namespace.is_some() {
                found.restricted.push(Restriction {
                    symbol: line.symbol.to_owned(),
                    gpl_only: line.gpl_only,
                    namespace: line.namespace.map(str::to_owned),
                });
            }
        }
        any.then_some(found)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str = "0x12345678\tprintk\tvmlinux\tEXPORT_SYMBOL\t\n\
        0xabc\tib_x\tdrivers/infiniband/core/ib_core\tEXPORT_SYMBOL_GPL\tRDMA\n\
        0x00000000\tno_crc\tvmlinux\tEXPORT_SYMBOL_GPL\n\
        nonsense\n";

    #[test]
    fn lines_of_every_kernel_are_read() {
        let found: Vec<_> = lines(TEXT).collect();
        assert_eq!(found.len(), 3);
        assert_eq!((found[0].crc, found[0].namespace), (Some(0x1234_5678), None));
        assert_eq!((found[1].gpl_only, found[1].namespace), (true, Some("RDMA")));
        assert_eq!((found[2].crc, found[2].gpl_only), (None, true));
    }

    #[test]
    fn the_image_is_told_from_modules_and_found_where_distributions_keep_it() {
        let needed: BTreeSet<_> = ["printk", "ib_x", "no_crc"].map(str::to_owned).into();
        for place in ["lib/modules/6.1/build/Module.symvers", "boot/symvers-6.1"] {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join(place);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, TEXT).unwrap();
            let found = image(&Root::new(directory.path()), "6.1", &needed);
            let Some(found) = found else { panic!("{place}") };
            let names: Vec<_> = found.symbols.iter().map(|symbol| symbol.name.as_str()).collect();
            assert_eq!(names, ["printk", "no_crc"]);
            assert_eq!(found.restricted.len(), 1);
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "\\PC*|(0x[0-9a-f]{0,9}\t?[a-z/]{0,9}\t?){0,9}") {
            let _ = lines(&text).count();
        }
    }
}
