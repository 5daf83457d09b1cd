//! `/sys/kernel/mm/memory_peers`: one directory for each registered client.

use std::path::Path;

use super::super::file;
use crate::model::{PeerClient, PeerDirectory};

/// Reads the clients and their counters.
pub(super) fn read(root: &Path) -> PeerDirectory {
    let directory = root.join("sys/kernel/mm/memory_peers");
    match file::names(&directory) {
        Ok(None) => PeerDirectory::Absent,
        Ok(Some(names)) => PeerDirectory::Present(
            names.into_iter().map(|name| client(&directory.join(&name), name)).collect(),
        ),
        Err(error) => PeerDirectory::Unknown(error.to_string()),
    }
}

fn client(directory: &Path, name: String) -> PeerClient {
    let counter = |file: &str| file::attribute(&directory.join(file))?.parse().ok();
    PeerClient {
        name,
        version: file::attribute(&directory.join("version")).unwrap_or_default(),
        num_alloc_mrs: counter("num_alloc_mrs"),
        num_dealloc_mrs: counter("num_dealloc_mrs"),
        num_reg_pages: counter("num_reg_pages"),
        num_dereg_pages: counter("num_dereg_pages"),
        num_reg_bytes: counter("num_reg_bytes"),
        num_dereg_bytes: counter("num_dereg_bytes"),
        num_free_callbacks: counter("num_free_callbacks"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn counters_that_are_missing_or_damaged_are_none() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("sys/kernel/mm/memory_peers/nv_mem");
        fs::create_dir_all(&directory).unwrap();
        for (file, content) in
            [("version", "570.124.06\n"), ("num_alloc_mrs", "12\n"), ("num_dealloc_mrs", "-1\n")]
        {
            fs::write(directory.join(file), content).unwrap();
        }
        let peers = read(root.path());
        let client = peers.client("nv_mem").unwrap();
        assert_eq!(client.version, "570.124.06");
        assert_eq!(client.num_alloc_mrs, Some(12));
        assert_eq!((client.num_dealloc_mrs, client.num_reg_bytes), (None, None));
    }

    #[test]
    fn no_directory_and_an_unreadable_one_are_told_apart() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(read(root.path()), PeerDirectory::Absent);
        let mm = root.path().join("sys/kernel/mm");
        fs::create_dir_all(&mm).unwrap();
        std::os::unix::fs::symlink("memory_peers", mm.join("memory_peers")).unwrap();
        assert!(matches!(read(root.path()), PeerDirectory::Unknown(_)));
    }
}
