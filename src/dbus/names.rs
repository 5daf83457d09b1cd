//! Names on the bus: the well-known name and the object paths.

use std::fmt::Write as _;

use crate::model::ModuleName;

/// The well-known name.
pub const BUS_NAME: &str = "org.peermemd1";
/// The object of the manager, below which all others stand.
pub const ROOT_PATH: &str = "/org/peermemd1";
/// Where `systemctl service-log-level` looks.
pub const LOG_CONTROL_PATH: &str = "/org/freedesktop/LogControl1";

/// The object path of a module.
pub fn module_path(module: &ModuleName) -> String {
    format!("{ROOT_PATH}/module/{}", path_element(module.as_str()))
}

/// The object path of a registered client.
pub fn client_path(client: &str) -> String {
    format!("{ROOT_PATH}/client/{}", path_element(client))
}

/// Writes bytes that a path cannot hold as `_xx`. Unlike `sd_bus_path_encode`, `_` stands for
/// itself, so that the path of a module is its name.
fn path_element(name: &str) -> String {
    let mut element = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || byte == b'_' {
            element.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(element, "_{byte:02x}");
        }
    }
    if element.is_empty() { "_".to_owned() } else { element }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn underscores_stay_and_other_bytes_are_escaped() {
        for (name, path) in [
            ("nv_mem", "/org/peermemd1/client/nv_mem"),
            ("nvidia-fs", "/org/peermemd1/client/nvidia_2dfs"),
            ("a.b/c", "/org/peermemd1/client/a_2eb_2fc"),
            ("\u{e9}", "/org/peermemd1/client/_c3_a9"),
            ("", "/org/peermemd1/client/_"),
        ] {
            assert_eq!(client_path(name), path);
            assert!(zbus::ObjectPath::try_from(path).is_ok());
        }
    }

    #[test]
    fn a_module_path_ends_with_the_kernel_name() {
        let module = ModuleName::new("nvidia-peermem").unwrap();
        assert_eq!(module_path(&module), "/org/peermemd1/module/nvidia_peermem");
    }
}
