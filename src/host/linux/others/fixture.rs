//! Files of a node that exists for a test only.

use std::fs;
use std::path::Path;

/// Writes a file below the root, and the directories that lead to it.
pub(super) fn write(root: &Path, path: &str, content: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}
