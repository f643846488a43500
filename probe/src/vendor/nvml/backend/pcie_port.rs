//! The capabilities of the PCIe port above a GPU, read from the kernel because NVML does not report
//! them.

use std::path::Path;

use crate::{
    bounded,
    model::sysfs_device_path,
    vendor::{
        drm::parse_pcie_generation,
        nvml::query::{Answer, Code, Value},
    },
};

/// Returns the highest PCIe generation that the port above a device supports. `bus_id` identifies
/// the device, and `sys_root` is `/sys` except in tests. Returns [`Code::NOT_SUPPORTED`] if there
/// is no port above the device, as in virtual machines.
pub(in crate::vendor::nvml) fn read_max_generation(sys_root: &Path, bus_id: &str) -> Answer {
    // The sysfs entry is a symbolic link into the device tree, where the parent folder is the port.
    let place = sysfs_device_path(sys_root, bus_id)
        .canonicalize()
        .map_err(|_| Code::NOT_SUPPORTED)?;
    let port = place.parent().ok_or(Code::NOT_SUPPORTED)?;
    let speed = bounded::read_text(port.join("max_link_speed"), bounded::VALUE_LIMIT)
        .map_err(|_| Code::NOT_SUPPORTED)?;
    parse_pcie_generation(&speed)
        .map(Value::from_number)
        .ok_or(Code::NOT_SUPPORTED)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn pcie_generation_comes_from_port_above_gpu() {
        let root = std::env::temp_dir().join(format!("gpumon-port-{}", std::process::id()));
        let port = root.join("pci0000:3a/0000:3a:00.0");
        let (devices, own) = (root.join("bus/pci/devices"), port.join("0000:3b:00.0"));
        fs::create_dir_all(&own).unwrap();
        fs::create_dir_all(&devices).unwrap();
        symlink(&own, devices.join("0000:3b:00.0")).unwrap();
        symlink(&port, devices.join("0000:3a:00.0")).unwrap();
        fs::write(own.join("max_link_speed"), "16.0 GT/s PCIe\n").unwrap();
        fs::write(port.join("max_link_speed"), "32.0 GT/s PCIe\n").unwrap();
        assert_eq!(
            read_max_generation(&root, "00000000:3B:00.0"),
            Ok(Value::from_number(5))
        );
        assert_eq!(
            read_max_generation(&root, "00000000:3A:00.0"),
            Err(Code::NOT_SUPPORTED),
            "on the root of the bus"
        );
        assert_eq!(
            read_max_generation(&root, "00000000:01:00.0"),
            Err(Code::NOT_SUPPORTED)
        );
        fs::remove_dir_all(root).unwrap();
    }
}
