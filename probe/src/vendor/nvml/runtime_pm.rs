//! The power state of GPUs that the system can power down, as laptops do. It is read from sysfs,
//! which does not wake the GPU.

use std::{fs, path::Path};

use crate::bounded;

const NVIDIA: &str = "0x10de";

/// The prefix of the PCI class codes of display controllers: 0300 with a display, 0302 without.
const DISPLAY: &str = "0x03";

/// Returns `true` if the NVIDIA GPU with this index is powered down. The driver orders GPUs by PCI
/// address. If the system does not have `count` GPUs, the number that the driver reports, the
/// indices cannot be matched, and no GPU counts as asleep.
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
    gpu.is_some_and(|gpu| says(&gpu.join("power/runtime_status"), "suspended"))
}

fn is_gpu(device: &Path) -> bool {
    says(&device.join("vendor"), NVIDIA) && says(&device.join("class"), DISPLAY)
}

fn says(file: &Path, beginning: &str) -> bool {
    bounded::text(file, bounded::VALUE).is_ok_and(|text| text.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn device(root: &Path, address: &str, vendor: &str, class: &str, status: &str) {
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

    fn machine(name: &str) -> PathBuf {
        let root = std::env::temp_dir().join(format!("gpumon-sys-{}-{name}", std::process::id()));
        device(&root, "0000:00:02.0", "0x8086", "0x030000", "suspended");
        device(&root, "0000:01:00.0", NVIDIA, "0x030200", "suspended");
        device(&root, "0000:01:00.1", NVIDIA, "0x040300", "suspended");
        device(&root, "0000:02:00.0", NVIDIA, "0x030000", "active");
        root
    }

    #[test]
    fn a_suspended_gpu_sleeps_and_its_sound_card_and_the_processors_gpu_do_not_count() {
        let root = machine("sleeps");
        assert!(is_asleep(&root, 0, 2));
        assert!(!is_asleep(&root, 1, 2));
        assert!(!is_asleep(&root, 2, 2));
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn where_system_and_driver_do_not_agree_nobody_sleeps() {
        let root = machine("differs");
        assert!(!is_asleep(&root, 0, 1));
        assert!(!is_asleep(Path::new("/nowhere"), 0, 1));
        fs::remove_dir_all(root).unwrap();
    }
}
