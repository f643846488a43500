//! The capabilities of the PCIe port above a GPU. They are read from the kernel, because NVML does
//! not report them.

use std::path::Path;

use crate::{
    bounded,
    model::sysfs_device,
    vendor::{
        drm::pcie_generation,
        nvml::query::{Answer, Code, Value},
    },
};

/// Returns the highest PCIe generation of the port above the device with this bus ID. `sys_root` is
/// `/sys` except in tests. Returns [`Code::NOT_SUPPORTED`] if there is no device above, as in
/// virtual machines.
pub(in crate::vendor::nvml) fn max_generation(sys_root: &Path, bus_id: &str) -> Answer {
    // The entry is a link to the device's folder in the device tree.
    let place = sysfs_device(sys_root, bus_id)
        .canonicalize()
        .map_err(|_| Code::NOT_SUPPORTED)?;
    let port = place.parent().ok_or(Code::NOT_SUPPORTED)?;
    let speed = bounded::text(port.join("max_link_speed"), bounded::VALUE)
        .map_err(|_| Code::NOT_SUPPORTED)?;
    pcie_generation(&speed)
        .map(Value::number)
        .ok_or(Code::NOT_SUPPORTED)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn the_port_above_a_gpu_tells_its_speed() {
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
            max_generation(&root, "00000000:3B:00.0"),
            Ok(Value::number(5))
        );
        assert_eq!(
            max_generation(&root, "00000000:3A:00.0"),
            Err(Code::NOT_SUPPORTED),
            "on the root of the bus"
        );
        assert_eq!(
            max_generation(&root, "00000000:01:00.0"),
            Err(Code::NOT_SUPPORTED)
        );
        fs::remove_dir_all(root).unwrap();
    }
}
