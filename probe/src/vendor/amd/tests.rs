//! Whole cards, from recorded files and from files of our own.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use super::AmdSource;
use crate::{
    model::{Absence, Gpu, GpuDetails, GpuSample, Health, MemoryKind, Reading, ThrottleReason},
    vendor::{Device, DeviceError, ReadDepth, Roots, Source, SourceError},
};

/// A machine's files, which are removed with it.
struct Machine(tempfile::TempDir);

impl Machine {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("sys/class/drm")).unwrap();
        fs::create_dir_all(root.path().join("proc")).unwrap();
        Self(root)
    }

    fn sys(&self) -> PathBuf {
        self.0.path().join("sys")
    }

    fn source(&self) -> Result<AmdSource, SourceError> {
        let proc = self.0.path().join("proc");
        AmdSource::open(&Roots {
            nvml_lib: None,
            sys: self.sys(),
            proc,
        })
    }

    /// Writes files of the PCI device of `card0`, an RX 7900 XTX.
    fn write(&self, files: &[(&str, &str)]) {
        let device = self.sys().join("class/drm/card0/device");
        let event = "DRIVER=amdgpu\nPCI_ID=1002:744C\nPCI_SLOT_NAME=0000:03:00.0\n";
        for (name, content) in [("uevent", event)].iter().chain(files) {
            let file = device.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, format!("{}\n", content.trim_end())).unwrap();
        }
    }
}

fn read(device: &mut dyn Device) -> Result<GpuSample, DeviceError> {
    let mut sample = GpuSample::absent(0, None, 1, Health::Ok, &Absence::NoAnswer);
    device.read(&mut sample, ReadDepth::Full)?;
    Ok(sample)
}

fn read_details(device: &mut dyn Device) -> GpuDetails {
    let mut details = GpuDetails::absent(0, None, 1, &Absence::NoAnswer);
    device.details(&mut details).unwrap();
    details
}

/// The recorded cards, which are not part of the repository: name and folder.
fn recorded_cards() -> Vec<(String, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/reference/sysfs/amd");
    let Ok(boards) = fs::read_dir(root) else {
        return Vec::new();
    };
    let cards = boards.flatten().filter_map(|board| {
        let mut entries = fs::read_dir(board.path()).ok()?.flatten();
        let card = entries.find(|entry| entry.file_name().to_string_lossy().starts_with("card"))?;
        Some((
            board.file_name().to_string_lossy().into_owned(),
            card.path().canonicalize().ok()?,
        ))
    });
    cards.collect()
}

/// A machine with one recorded card.
fn machine_with(card: &Path) -> Machine {
    let machine = Machine::new();
    symlink(
        card,
        machine
            .sys()
            .join("class/drm")
            .join(card.file_name().unwrap()),
    )
    .unwrap();
    machine
}

/// A card's own files, to compare readings with.
struct Files(PathBuf);

/// Some recorded files are filled up with zeros to a whole page.
fn trim_zeros(text: &str) -> &str {
    text.trim_matches(|letter: char| letter.is_whitespace() || letter == '\0')
}

fn parse_number_in(file: &Path) -> Option<f64> {
    trim_zeros(&fs::read_to_string(file).ok()?).parse().ok()
}

impl Files {
    fn read_number(&self, name: &str) -> Option<f64> {
        parse_number_in(&self.0.join(name))
    }

    fn read_sensor(&self, kind: &str, label: &str, suffix: &str) -> Option<f64> {
        let folder = fs::read_dir(self.0.join("hwmon"))
            .ok()?
            .flatten()
            .next()?
            .path();
        let number = (1..20).find(|number| {
            let text = fs::read_to_string(folder.join(format!("{kind}{number}_label")));
            text.is_ok_and(|text| trim_zeros(&text) == label)
        })?;
        let file = folder.join(format!("{kind}{number}_{suffix}"));
        parse_number_in(&file)
    }

    fn read_hwmon(&self, name: &str) -> Option<f64> {
        let folder = fs::read_dir(self.0.join("hwmon"))
            .ok()?
            .flatten()
            .next()?
            .path();
        parse_number_in(&folder.join(name))
    }
}

#[test]
fn readings_of_recorded_cards_equal_their_files() {
    for (name, card) in recorded_cards() {
        let machine = machine_with(&card);
        let source = machine.source();
        if name == "hd7870" {
            assert!(
                matches!(source, Err(SourceError::NoDriver(_))),
                "the driver is radeon"
            );
            continue;
        }
        let mut device = source.unwrap().open(0).unwrap();
        let sample = read(&mut *device).unwrap();
        let files = Files(card.join("device"));
        let is_apu = matches!(name.as_str(), "phoenix" | "vangogh");
        assert_eq!(sample.memory_kind == MemoryKind::Unified, is_apu, "{name}");
        let sum = |one: Option<f64>, other: Option<f64>| Some(one? + other?);
        let vram = |part: &str| {
            let own = files.read_number(&format!("mem_info_vram_{part}"));
            if is_apu {
                sum(own, files.read_number(&format!("mem_info_gtt_{part}")))
            } else {
                own
            }
        };
        let whole = |reading: &Reading<u64>| reading.value().map(|value| *value as f64);
        let temperature = &sample.temperature;
        let mut compared = 0;
        for (what, read, expected) in [
            (
                "utilization",
                sample.utilization.gpu_percent.value().copied(),
                files.read_number("gpu_busy_percent"),
            ),
            (
                "total memory",
                whole(&sample.memory.total_bytes),
                vram("total"),
            ),
            (
                "used memory",
                whole(&sample.memory.used_bytes),
                vram("used"),
            ),
            (
                "GTT",
                whole(&sample.memory.gtt_used_bytes),
                files.read_number("mem_info_gtt_used"),
            ),
            (
                "edge",
                temperature.gpu_celsius.value().map(|own| own * 1e3),
                files.read_sensor("temp", "edge", "input"),
            ),
            (
                "junction",
                temperature.junction_celsius.value().map(|own| own * 1e3),
                files.read_sensor("temp", "junction", "input"),
            ),
            (
                "power",
                sample.power.draw_watts.value().map(|own| own * 1e6),
                files
                    .read_hwmon("power1_average")
                    .or(files.read_hwmon("power1_input")),
            ),
            (
                "limit",
                sample.power.limit_watts.value().map(|own| own * 1e6),
                files.read_hwmon("power1_cap"),
            ),
            (
                "clock",
                sample.clocks.sm_mhz.value().map(|own| f64::from(*own)),
                files
                    .read_sensor("freq", "sclk", "input")
                    .map(|hertz| (hertz / 1e6).floor()),
            ),
        ] {
            if let Some(expected) = expected {
                let read =
                    read.unwrap_or_else(|| panic!("{name}: {what} is absent, not {expected}"));
                assert!(
                    (read - expected).abs() < 0.5,
                    "{name}: {what} {read}, not {expected}"
                );
                compared += 1;
            }
        }
        let identity = device.identity();
        assert!(compared >= 3, "{name}: {compared}");
        assert!(identity.name.value().unwrap().starts_with("AMD "), "{name}");
        read_details(&mut *device);
    }
}

/// A card that is on, with a few readings.
const ACTIVE: &[(&str, &str)] = &[
    ("unique_id", "1f2e3d4c5b6a7980"),
    ("product_name", "Radeon RX 7900 XTX"),
    ("power/runtime_status", "active"),
    ("gpu_busy_percent", "37"),
    ("mem_info_vram_total", "25753026560"),
    ("mem_info_vram_used", "1073741824"),
    ("hwmon/hwmon4/name", "amdgpu"),
    ("hwmon/hwmon4/temp1_label", "edge"),
    ("hwmon/hwmon4/temp1_input", "45000"),
    ("hwmon/hwmon4/temp3_label", "mem"),
    ("hwmon/hwmon4/temp3_input", "0"),
    ("hwmon/hwmon4/power1_average", "35000000"),
    ("hwmon/hwmon4/power1_cap", "339000000"),
    ("hwmon/hwmon4/fan1_input", "29"),
    ("hwmon/hwmon4/fan1_max", "3300"),
];

#[test]
fn active_card_has_identity_and_readings() {
    let machine = Machine::new();
    machine.write(ACTIVE);
    let source = machine.source().unwrap();
    assert_eq!(source.device_count(), Ok(1));
    let mut device = source.open(0).unwrap();
    let sample = read(&mut *device).unwrap();
    assert_eq!(sample.utilization.gpu_percent, Reading::Now(37.0));
    assert_eq!(
        sample.memory.free_bytes,
        Reading::Now(25_753_026_560 - 1_073_741_824)
    );
    assert_eq!(
        sample.temperature.memory_celsius,
        Reading::NOT_SUPPORTED,
        "0 is no sensor"
    );
    assert_eq!(sample.power.draw_watts, Reading::Now(35.0));
    assert_eq!(
        sample.fan_percent,
        Reading::Now(0.0),
        "noise of a resting fan"
    );
    let Gpu {
        uuid,
        name,
        pci_bus_id,
        ..
    } = device.identity();
    assert_eq!(uuid.as_deref(), Some("GPU-1f2e3d4c5b6a7980"));
    assert_eq!(name, Reading::Now("AMD Radeon RX 7900 XTX".to_owned()));
    assert_eq!(pci_bus_id, Reading::Now("00000000:03:00.0".to_owned()));
}

#[test]
fn sleeping_card_is_not_read() {
    let machine = Machine::new();
    machine.write(ACTIVE);
    let mut device = machine.source().unwrap().open(0).unwrap();
    machine.write(&[("power/runtime_status", "suspended")]);
    // A read of this waits for a writer, and the test fails by its time limit.
    let gated = machine.sys().join("class/drm/card0/device/gpu_metrics");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &gated,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    let source = machine.source().unwrap();
    assert!(source.is_asleep(0, Path::new("/sys")));
    assert!(matches!(source.open(0), Err(DeviceError::Asleep)));
    assert_eq!(read(&mut *device), Err(DeviceError::Asleep));
}

#[test]
fn idle_card_is_left_alone_to_fall_asleep() {
    let machine = Machine::new();
    machine.write(ACTIVE);
    machine.write(&[
        ("gpu_busy_percent", "0"),
        ("power/control", "auto"),
        ("power/autosuspend_delay_ms", "60000"),
    ]);
    let mut device = machine.source().unwrap().open(0).unwrap();
    read(&mut *device).unwrap();
    let details = read_details(&mut *device);
    machine.write(&[("gpu_busy_percent", "90"), ("mem_info_vram_used", "4096")]);
    let rested = read(&mut *device).unwrap();
    let earlier = Reading::Earlier {
        value: 0.0,
        at_ms: 1,
    };
    assert_eq!(rested.utilization.gpu_percent, earlier);
    assert_eq!(
        rested.memory.used_bytes,
        Reading::Now(4096),
        "it does not wake the card"
    );
    assert_eq!(read_details(&mut *device), details);
    machine.write(&[("power/control", "on")]);
    assert_eq!(
        read(&mut *device).unwrap().utilization.gpu_percent,
        Reading::Now(90.0)
    );
}

#[test]
fn vanished_card_is_lost() {
    let machine = Machine::new();
    machine.write(ACTIVE);
    let source = machine.source().unwrap();
    let mut device = source.open(0).unwrap();
    fs::remove_dir_all(machine.sys().join("class/drm/card0")).unwrap();
    assert_eq!(read(&mut *device), Err(DeviceError::Lost));
    assert!(matches!(source.open(0), Err(DeviceError::Lost)));
}

#[test]
fn garbage_is_absent_and_other_readings_remain() {
    let machine = Machine::new();
    machine.write(ACTIVE);
    machine.write(&[
        ("gpu_busy_percent", "N/A"),
        ("mem_info_vram_used", ""),
        ("hwmon/hwmon4/temp1_input", "hot"),
        ("gpu_metrics", "truncated"),
    ]);
    let mut device = machine.source().unwrap().open(0).unwrap();
    let sample = read(&mut *device).unwrap();
    assert!(sample.utilization.gpu_percent.value().is_none());
    assert!(sample.memory.used_bytes.value().is_none());
    assert_eq!(sample.power.draw_watts, Reading::Now(35.0));
}

#[test]
fn machine_without_driver_says_how_to_load_it() {
    let machine = Machine::new();
    let error = machine.source().err().unwrap();
    assert!(matches!(&error, SourceError::NoDriver(text) if text.contains("modprobe amdgpu")));
    fs::create_dir_all(machine.sys().join("module/amdgpu")).unwrap();
    assert!(matches!(
        machine.source().err(),
        Some(SourceError::NoDevice(_))
    ));
}

#[test]
fn energy_of_radeon_is_integrated() {
    let machine = Machine::new();
    machine.write(ACTIVE);
    let mut device = machine.source().unwrap().open(0).unwrap();
    assert_eq!(
        read(&mut *device).unwrap().power.energy_joules_total,
        Reading::Now(0.0)
    );
    std::thread::sleep(std::time::Duration::from_millis(100));
    let later = read(&mut *device).unwrap().power.energy_joules_total;
    let joules = *later.value().unwrap();
    assert!(
        (3.0..60.0).contains(&joules),
        "{joules} J after at least 0.1 s at 35 W"
    );
}

#[test]
fn reasons_of_rdna2_come_from_bits() {
    let machine = Machine::new();
    machine.write(ACTIVE);
    let mut table = vec![0_u8; 120];
    table[..4].copy_from_slice(&[120, 0, 1, 3]);
    table[112] = 1;
    fs::write(
        machine.sys().join("class/drm/card0/device/gpu_metrics"),
        table,
    )
    .unwrap();
    let mut device = machine.source().unwrap().open(0).unwrap();
    let reasons = read(&mut *device).unwrap().throttle_reasons;
    assert_eq!(reasons, Reading::Now(vec![ThrottleReason::PowerLimit]));
}
