//! The hardware that was seen in this boot, so that a restart of the daemon does not forget a
//! device that fell off the bus.

use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::model::SeenHardware;

/// The file's name in the runtime directory.
const NAME: &str = "hardware.json";

/// Longer is damage.
const LONGEST: u64 = 4096;

#[derive(Serialize, Deserialize)]
struct Content {
    boot_id: String,
    seen: SeenHardware,
}

/// The file of one boot.
#[derive(Debug)]
pub struct HardwareFile {
    path: PathBuf,
    boot_id: String,
}

impl HardwareFile {
    /// The file in `directory`, for the boot `boot_id`.
    pub fn new(directory: impl Into<PathBuf>, boot_id: impl Into<String>) -> Self {
        Self { path: directory.into().join(NAME), boot_id: boot_id.into() }
    }

    /// What was seen so far; nothing, if the file is of another boot or is none.
    pub fn read(&self) -> SeenHardware {
        self.content().filter(|it| it.boot_id == self.boot_id).map(|it| it.seen).unwrap_or_default()
    }

    /// Replaces what was seen. A file that cannot be written costs only this memory.
    pub fn write(&self, seen: SeenHardware) {
        let content = Content { boot_id: self.boot_id.clone(), seen };
        let written = serde_json::to_vec(&content).map_err(std::io::Error::from).and_then(|text| {
            let mut file =
                tempfile::NamedTempFile::new_in(self.path.parent().unwrap_or(&self.path))?;
            std::io::Write::write_all(&mut file, &text)?;
            file.persist(&self.path)?;
            Ok(())
        });
        if let Err(error) = written {
            tracing::debug!("{}: {error}", self.path.display());
        }
    }

    fn content(&self) -> Option<Content> {
        let size = fs::metadata(&self.path).ok()?.len();
        let text = (size <= LONGEST).then(|| fs::read(&self.path))?.ok()?;
        serde_json::from_slice(&text).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_survives_a_restart_but_not_a_reboot() {
        let directory = tempfile::TempDir::new().unwrap();
        let seen = SeenHardware { gpus: 8, nics: 4 };
        HardwareFile::new(directory.path(), "a").write(seen);
        assert_eq!(HardwareFile::new(directory.path(), "a").read(), seen);
        assert_eq!(HardwareFile::new(directory.path(), "b").read(), SeenHardware::default());
    }

    #[test]
    fn damage_is_nothing_seen() {
        let directory = tempfile::TempDir::new().unwrap();
        fs::write(directory.path().join(NAME), b"{\"boot_id\": 3").unwrap();
        assert_eq!(HardwareFile::new(directory.path(), "a").read(), SeenHardware::default());
    }
}
