//! The power state of GPUs that the system can power down, as in laptops. It is read from sysfs,
//! which does not wake the GPU.

use std::{fs, path::Path};

use crate::bounded;

const NVIDIA_VENDOR_ID: &str = "0x10de";

/// The PCI class prefix of display controllers: 0300 is for GPUs with a display, 0302 for GPUs
/// without one.
const DISPLAY_CLASS_PREFIX: &str = "0x03";

/// Returns `true` if the NVIDIA GPU with the given index is powered down. The driver orders GPUs by
/// PCI address and reports `count` GPUs. If the system has a different number, indices cannot be
/// matched, so no GPU counts as asleep.
pub(in crate::vendor::nvml) fn is_asleep(sys_root: &Path, index: u32, count: u32) -> bool {
    let Ok(devices) = fs::read_dir(sys_root.join("bus/pci/devices")) else {
        return false;
    };
    let mut gpus: Vec<_> = devices
        .flatten()
        .map(|device| device.path())
        .filter(|device| is_gpu(device))
        .collect();
    gpus.sort();
    let gpu = gpus
        .get(index as usize)
        .filter(|_| gpus.len() == count as usize);
    gpu.is_some_and(|gpu| file_starts_with(&gpu.join("power/runtime_status"), "suspended"))
}

fn is_gpu(device: &Path) -> bool {
    file_starts_with(&device.join("vendor"), NVIDIA_VENDOR_ID)
        && file_starts_with(&device.join("class"), DISPLAY_CLASS_PREFIX)
}

fn file_starts_with(file: &Path, beginning: &str) -> bool {
    bounded::read_text(file, bounded::VALUE_LIMIT).is_ok_and(|text| text.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn add_device(root: &Path, address: &str, vendor: &str, class: &str, status: &str) {
        let folder = root.join("bus/pci/devices").join(address);
        fs::create_dir_all(folder.join("power")).unwrap();
        for (file, text) in [
            ("vendor", vendor),
            ("class", class),
            ("power/runtime_status", status),
        ] {
            fs::write(folder.join(file), format!("{text}\n")).unwrap();
        }
    }

    fn make_machine(name: &str) -> PathBuf {
        let root = std::env::temp_dir().join(format!("gpumon-sys-{}-{name}", std::process::id()));
        add_device(&root, "0000:00:02.0", "0x8086", "0x030000", "suspended");
        add_device(
            &root,
            "0000:01:00.0",
            NVIDIA_VENDOR_ID,
            "0x030200",
            "suspended",
        );
        add_device(
            &root,
            "0000:01:00.1",
            NVIDIA_VENDOR_ID,
            "0x040300",
            "suspended",
        );
        add_device(
            &root,
            "0000:02:00.0",
            NVIDIA_VENDOR_ID,
            "0x030000",
            "active",
        );
        root
    }

    #[test]
    fn only_suspended_nvidia_gpu_is_asleep() {
        let root = make_machine("sleeps");
        assert!(is_asleep(&root, 0, 2));
        assert!(!is_asleep(&root, 1, 2));
        assert!(!is_asleep(&root, 2, 2));
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn gpu_is_considered_awake_if_totals_differ() {
        let root = make_machine("differs");
        assert!(!is_asleep(&root, 0, 1));
        assert!(!is_asleep(Path::new("/nowhere"), 0, 1));
        fs::remove_dir_all(root).unwrap();
    }
}
