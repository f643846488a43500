//! Readings that come from sysfs, because NVML does not provide them: the readings of a Jetson
//! module's GPU, and the power state of GPUs that the system can power down.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{
    bounded,
    model::{GpuSample, Reading},
    vendor::drm::{Attributes, list_names},
};

/// The GPU's possible names in the device tree: Pascal, Volta, Ampere, Blackwell, and Maxwell.
const JETSON_GPU_NAMES: [&str; 5] = ["gp10b", "gv11b", "ga10b", "gb10b", "gpu"];
/// The devfreq folder for Thor's GPU clock. The device tree has no name for Thor's GPU.
const THOR_CLOCK: &str = "gpu-gpc-0";
const JETSON_THERMAL_ZONES: [&str; 2] = ["gpu-thermal", "GPU-therm"];

/// The sysfs folders of a Jetson module's GPU. Load and clock come from the kernel's devfreq
/// folders, and the temperature comes from a thermal zone.
#[derive(Debug, Default)]
pub(super) struct Devfreq {
    clock: Option<Attributes>,
    thermal: Option<Attributes>,
}

impl Devfreq {
    /// Fills in readings that NVML does not support. The kernel may load the GPU's driver later
    /// than NVML's driver, so each call searches for the folders until they exist.
    pub(super) fn fill_missing_readings(&mut self, sys_root: &Path, sample: &mut GpuSample) {
        let clocks = &mut sample.clocks;
        let busy = &mut sample.utilization.gpu_percent;
        // On Thor, NVML reports a clock of 0.
        let lacks_clock = matches!(clocks.sm_mhz, Reading::NOT_SUPPORTED | Reading::Now(0));
        if busy.is_not_supported() || lacks_clock {
            self.clock = self.clock.take().or_else(|| find_clock(sys_root));
        }
        let read = |file: &str| self.clock.as_ref()?.read_number::<i64>(file).ok();
        if lacks_clock && let Some(hertz) = read("cur_freq") {
            let mhz = u32::try_from(hertz / 1_000_000).unwrap_or(u32::MAX);
            (clocks.graphics_mhz, clocks.sm_mhz) = (Reading::Now(mhz), Reading::Now(mhz));
        }
        // The file contains the load in thousandths, for example 500 for 50%.
        if busy.is_not_supported()
            && let Some(load @ 0..=1000) = read("device/load")
        {
            *busy = Reading::Now(load as f64 / 10.0);
        }
        let celsius = &mut sample.temperature.gpu_celsius;
        if celsius.is_not_supported() {
            self.thermal = self.thermal.take().or_else(|| find_thermal_zone(sys_root));
            let read = |zone: &Attributes| zone.read_number::<i64>("temp").ok();
            // If the GPU is powered down, its sensor cannot be read or reports -256 degrees.
            if let Some(millidegrees @ 0..=200_000) = self.thermal.as_ref().and_then(read) {
                *celsius = Reading::Now(millidegrees as f64 / 1e3);
            }
        }
    }
}

fn find_folder(parent: PathBuf, is_wanted: impl Fn(&Attributes) -> bool) -> Option<Attributes> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let mut folders = entries.map(|entry| Attributes::new(entry.path()));
    folders.find(is_wanted)
}

fn find_clock(sys_root: &Path) -> Option<Attributes> {
    find_folder(sys_root.join("class/devfreq"), |own| {
        let name = own.read_text("device/of_node/name");
        name.is_ok_and(|name| JETSON_GPU_NAMES.contains(&name.as_str()))
            || own.folder().ends_with(THOR_CLOCK)
    })
}

fn find_thermal_zone(sys_root: &Path) -> Option<Attributes> {
    find_folder(sys_root.join("class/thermal"), |own| {
        let kind = own.read_text("type");
        kind.is_ok_and(|kind| JETSON_THERMAL_ZONES.contains(&kind.as_str()))
    })
}

const NVIDIA_VENDOR_ID: &str = "0x10de";

/// The PCI class prefix of display controllers: 0300 is for GPUs with a display, 0302 for GPUs
/// without one.
const DISPLAY_CLASS_PREFIX: &str = "0x03";

/// Returns `true` if the NVIDIA GPU with the given index is powered down, as in laptops. Reading
/// this from sysfs does not wake the GPU. The driver orders its `count` GPUs by PCI address. If
/// sysfs has a different number of GPUs, indices cannot be matched, so no GPU counts as asleep.
pub(super) fn is_asleep(sys_root: &Path, index: u32, count: u32) -> bool {
    let parent = sys_root.join("bus/pci/devices");
    let devices = list_names(&parent).into_iter();
    let gpus: Vec<_> = devices
        .map(|name| parent.join(name))
        .filter(|device| is_gpu(device))
        .collect();
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
    use crate::model::{Absence, Health};

    fn write_file(root: &Path, path: &str, text: &str) {
        let file = root.join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    fn new_sample() -> GpuSample {
        GpuSample::new_absent(0, None, 0, Health::Ok, &Absence::NotSupported)
    }

    #[test]
    fn orin_is_read_after_driver_is_loaded() {
        let root = tempfile::tempdir().unwrap();
        let (mut devfreq, mut sample) = (Devfreq::default(), new_sample());
        write_file(
            root.path(),
            "class/devfreq/15340000.vic/device/of_node/name",
            "vic\0",
        );
        devfreq.fill_missing_readings(root.path(), &mut sample);
        assert_eq!(sample, new_sample());
        let gpu = "class/devfreq/17000000.gpu";
        write_file(
            root.path(),
            &format!("{gpu}/device/of_node/name"),
            "ga10b\0",
        );
        write_file(root.path(), &format!("{gpu}/device/load"), "437\n");
        write_file(root.path(), &format!("{gpu}/cur_freq"), "918000000\n");
        write_file(
            root.path(),
            "class/thermal/thermal_zone0/type",
            "cpu-thermal\n",
        );
        write_file(root.path(), "class/thermal/thermal_zone0/temp", "50000\n");
        write_file(
            root.path(),
            "class/thermal/thermal_zone1/type",
            "gpu-thermal\n",
        );
        write_file(root.path(), "class/thermal/thermal_zone1/temp", "47500\n");
        devfreq.fill_missing_readings(root.path(), &mut sample);
        assert_eq!(sample.utilization.gpu_percent, Reading::Now(43.7));
        assert_eq!(sample.clocks.sm_mhz, Reading::Now(918));
        assert_eq!(sample.temperature.gpu_celsius, Reading::Now(47.5));
    }

    #[test]
    fn thor_readings_missing_in_nvml_come_from_sysfs() {
        let root = tempfile::tempdir().unwrap();
        write_file(
            root.path(),
            "class/devfreq/gpu-gpc-0/cur_freq",
            "1575000000\n",
        );
        let mut sample = new_sample();
        sample.clocks.sm_mhz = Reading::Now(0);
        sample.utilization.gpu_percent = Reading::Now(12.0);
        sample.temperature.gpu_celsius = Reading::Now(40.0);
        Devfreq::default().fill_missing_readings(root.path(), &mut sample);
        assert_eq!(sample.clocks.sm_mhz, Reading::Now(1575));
        assert_eq!(sample.utilization.gpu_percent, Reading::Now(12.0));
        assert_eq!(sample.temperature.gpu_celsius, Reading::Now(40.0));
    }

    #[test]
    fn impossible_values_are_skipped() {
        let root = tempfile::tempdir().unwrap();
        let gpu = "class/devfreq/17000000.gpu";
        write_file(
            root.path(),
            &format!("{gpu}/device/of_node/name"),
            "ga10b\0",
        );
        write_file(root.path(), &format!("{gpu}/device/load"), "4294967295\n");
        write_file(root.path(), &format!("{gpu}/cur_freq"), "no\n");
        write_file(
            root.path(),
            "class/thermal/thermal_zone1/type",
            "GPU-therm\n",
        );
        write_file(root.path(), "class/thermal/thermal_zone1/temp", "-256000\n");
        let mut sample = new_sample();
        Devfreq::default().fill_missing_readings(root.path(), &mut sample);
        assert_eq!(sample, new_sample());
    }
}

#[cfg(test)]
mod power_state_tests {
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
    fn gpu_counts_as_awake_if_gpu_counts_differ() {
        let root = make_machine("differs");
        assert!(!is_asleep(&root, 0, 1));
        assert!(!is_asleep(Path::new("/nowhere"), 0, 1));
        fs::remove_dir_all(root).unwrap();
    }
}
