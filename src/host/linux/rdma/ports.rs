//! RDMA ports, from `/sys/class/infiniband/*/ports/*/state`. The kernel asks the device.

use std::path::Path;

use super::super::file::{self, ATTRIBUTE, Unreadable};
use crate::model::{Fact, Port};

/// Reads the state of every port.
pub(super) fn read(root: &Path) -> Fact<Vec<Port>> {
    list(&root.join("sys/class/infiniband")).into()
}

fn list(class: &Path) -> Result<Vec<Port>, Unreadable> {
    let mut ports = Vec::new();
    for device in file::names(class)?.unwrap_or_default() {
        let directory = class.join(&device).join("ports");
        for number in file::names(&directory)?.unwrap_or_default() {
            let state = file::text(&directory.join(&number).join("state"), ATTRIBUTE)?;
            let (Ok(port), Some(state)) = (number.parse(), state) else { continue };
            ports.push(Port { device: device.clone(), port, active: is_active(&state) });
        }
    }
    Ok(ports)
}

/// `4: ACTIVE`
fn is_active(state: &str) -> bool {
    state.split_once(':').is_some_and(|(number, _)| number.trim() == "4")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn active_is_what_the_kernel_numbers_four() {
        let root = tempfile::tempdir().unwrap();
        let class = root.path().join("sys/class/infiniband");
        for (port, state) in [
            ("mlx5_0/ports/1", "4: ACTIVE\n"),
            ("mlx5_1/ports/1", "1: DOWN\n"),
            ("mlx5_1/ports/x", "4: ACTIVE\n"),
        ] {
            fs::create_dir_all(class.join(port)).unwrap();
            fs::write(class.join(port).join("state"), state).unwrap();
        }
        let port = |device: &str, active| Port { device: device.to_owned(), port: 1, active };
        assert_eq!(
            read(root.path()),
            Fact::Known(vec![port("mlx5_0", true), port("mlx5_1", false)])
        );
    }

    #[test]
    fn no_device_is_no_port() {
        assert_eq!(read(tempfile::tempdir().unwrap().path()), Fact::Known(vec![]));
        assert!(!is_active("ACTIVE") && !is_active("") && !is_active("44: ACTIVE"));
    }
}
