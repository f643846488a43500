//! Whole cards, from recorded files and from files of our own.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use super::IntelSource;
use crate::{
    model::{Absence, GpuSample, Health, MemoryKind, Reading, ThrottleReason},
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

    fn source(&self) -> Result<IntelSource, SourceError> {
        let (sys, proc) = (self.0.path().join("sys"), self.0.path().join("proc"));
        IntelSource::open(&Roots {
            nvml_lib: None,
            sys,
            proc,
        })
    }

    /// Writes files below `/sys/class/drm/card0`.
    fn write(&self, files: &[(&str, &str)]) {
        for (name, content) in files {
            let file = self.0.path().join("sys/class/drm/card0").join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, format!("{content}\n")).unwrap();
        }
    }
}

fn read(device: &mut dyn Device) -> Result<GpuSample, DeviceError> {
    let mut sample = GpuSample::absent(0, None, 1, Health::Ok, &Absence::NoAnswer);
    device.read(&mut sample, ReadDepth::Full)?;
    Ok(sample)
}

/// A card of `xe`.
const XE: &[(&str, &str)] = &[
    (
        "device/uevent",
        "DRIVER=xe\nPCI_ID=8086:E20B\nPCI_SLOT_NAME=0000:03:00.0",
    ),
    (
        "device/resource",
        "0x0 0x0 0x0\n0x4000000000 0x42ffffffff 0x14220c",
    ),
    ("device/hwmon/hwmon4/name", "xe"),
    ("device/hwmon/hwmon4/energy1_label", "card"),
    ("device/hwmon/hwmon4/energy1_input", "0"),
    ("device/hwmon/hwmon4/energy2_label", "pkg"),
    ("device/hwmon/hwmon4/energy2_input", "29523753173"),
    ("device/hwmon/hwmon4/temp2_label", "pkg"),
    ("device/hwmon/hwmon4/temp2_input", "44000"),
    ("device/hwmon/hwmon4/temp2_crit", "100000"),
    ("device/hwmon/hwmon4/temp3_label", "vram"),
    ("device/hwmon/hwmon4/temp3_input", "48000"),
    ("device/hwmon/hwmon4/power1_max", "190000000"),
    ("device/tile0/gt0/freq0/act_freq", "2400"),
    ("device/tile0/gt0/freq0/rp0_freq", "2850"),
    ("device/tile0/gt0/gtidle/idle_residency_ms", "1000"),
    ("device/tile0/gt0/freq0/throttle/status", "1"),
    ("device/tile0/gt0/freq0/throttle/reason_pl1", "1"),
    ("device/tile0/gt0/freq0/throttle/reason_thermal", "0"),
];

#[test]
fn card_of_xe_has_readings() {
    let machine = Machine::new();
    machine.write(XE);
    let mut device = machine.source().unwrap().open(0).unwrap();
    let first = read(&mut *device).unwrap();
    assert_eq!(first.power.draw_watts, Reading::Absent(Absence::WarmingUp));
    assert_eq!(
        first.power.energy_joules_total,
        Reading::Now(29_523.753_173)
    );
    assert_eq!(first.temperature.gpu_celsius, Reading::Now(44.0));
    assert_eq!(first.temperature.memory_celsius, Reading::Now(48.0));
    assert_eq!(first.power.limit_watts, Reading::Now(190.0));
    assert_eq!(first.clocks.sm_mhz, Reading::Now(2400));
    let reasons = Reading::Now(vec![ThrottleReason::PowerLimit]);
    assert_eq!(first.throttle_reasons, reasons);
    assert_eq!(first.memory.total_bytes, Reading::NOT_SUPPORTED);
    assert_eq!(first.memory_kind, MemoryKind::Device);
    thread::sleep(Duration::from_millis(50));
    machine.write(&[("device/hwmon/hwmon4/energy2_input", "29543753173")]);
    let watts = *read(&mut *device)
        .unwrap()
        .power
        .draw_watts
        .value()
        .unwrap();
    assert!(
        (0.5..=400.0).contains(&watts),
        "20 J in at least 0.05 s: {watts}"
    );
    let identity = device.identity();
    assert_eq!(identity.uuid.as_deref(), Some("PCI-0000:03:00.0"));
    assert!(identity.name.value().unwrap().starts_with("Intel "));
    assert_eq!(identity.board.max_clocks.sm_mhz, Reading::Now(2850));
}

#[test]
fn residency_tells_awake_time() {
    let machine = Machine::new();
    machine.write(XE);
    let mut device = machine.source().unwrap().open(0).unwrap();
    let first = read(&mut *device).unwrap();
    assert_eq!(
        first.utilization.gpu_percent,
        Reading::Absent(Absence::WarmingUp)
    );
    thread::sleep(Duration::from_millis(20));
    let share = *read(&mut *device)
        .unwrap()
        .utilization
        .gpu_percent
        .value()
        .unwrap();
    assert!((share - 100.0).abs() < 1e-9, "it was never idle: {share}");
    machine.write(&[("device/tile0/gt0/gtidle/idle_residency_ms", "100000")]);
    let share = *read(&mut *device)
        .unwrap()
        .utilization
        .gpu_percent
        .value()
        .unwrap();
    assert!(share.abs() < 1e-9, "it was idle all the time: {share}");
}

#[test]
fn integrated_gpu_has_memory_of_machine() {
    let machine = Machine::new();
    machine.write(&[
        (
            "device/uevent",
            "DRIVER=i915\nPCI_ID=8086:9A49\nPCI_SLOT_NAME=0000:00:02.0",
        ),
        ("gt/gt0/rps_act_freq_mhz", "300"),
        ("gt/gt0/throttle_reason_status", "0"),
    ]);
    let meminfo = "MemTotal:       16000000 kB\nMemFree:  1 kB\nMemAvailable:   8000000 kB\n";
    fs::write(machine.0.path().join("proc/meminfo"), meminfo).unwrap();
    let mut device = machine.source().unwrap().open(0).unwrap();
    let sample = read(&mut *device).unwrap();
    assert_eq!(sample.memory_kind, MemoryKind::Unified);
    assert_eq!(sample.memory.total_bytes, Reading::Now(16_000_000 << 10));
    assert_eq!(sample.memory.free_bytes, Reading::Now(8_000_000 << 10));
    assert_eq!(sample.memory.used_bytes, Reading::Now(0));
    assert_eq!(sample.throttle_reasons, Reading::Now(Vec::new()));
    assert_eq!(sample.pcie.width, Reading::NOT_SUPPORTED);
}

#[test]
fn sleeping_card_is_not_opened() {
    let machine = Machine::new();
    machine.write(XE);
    let source = machine.source().unwrap();
    let mut device = source.open(0).unwrap();
    machine.write(&[("device/power/runtime_status", "suspended")]);
    assert!(source.is_asleep(0, Path::new("/sys")));
    assert!(matches!(source.open(0), Err(DeviceError::Asleep)));
    assert_eq!(read(&mut *device), Err(DeviceError::Asleep));
}

#[test]
fn virtual_functions_are_left_out() {
    let machine = Machine::new();
    machine.write(XE);
    machine.write(&[("device/physfn/vendor", "0x8086")]);
    assert!(matches!(machine.source(), Err(SourceError::NoDriver(_))));
}

#[test]
fn recorded_cards_are_read() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/reference/sysfs/intel");
    let Ok(boards) = fs::read_dir(root) else {
        return;
    };
    for board in boards.flatten() {
        let mut entries = fs::read_dir(board.path()).unwrap().flatten();
        let card = entries.find(|entry| entry.file_name().to_string_lossy().starts_with("card"));
        let card: PathBuf = card.unwrap().path().canonicalize().unwrap();
        let machine = Machine::new();
        let link = machine
            .0
            .path()
            .join("sys/class/drm")
            .join(card.file_name().unwrap());
        symlink(&card, link).unwrap();
        let mut device = machine.source().unwrap().open(0).unwrap();
        let sample = read(&mut *device).unwrap();
        let number = |file: &str| -> Option<f64> {
            fs::read_to_string(card.join(file))
                .ok()?
                .trim()
                .parse()
                .ok()
        };
        let clock =
            number("gt/gt0/rps_act_freq_mhz").or_else(|| number("device/tile0/gt0/freq0/act_freq"));
        let read_clock = sample.clocks.sm_mhz.value().map(|mhz| f64::from(*mhz));
        assert_eq!(read_clock, clock, "{}", card.display());
        let hwmon = fs::read_dir(card.join("device/hwmon")).ok();
        if let Some(folder) = hwmon.and_then(|mut folders| folders.next()?.ok()) {
            let energy = |file: &str| number(folder.path().join(file).to_str().unwrap());
            let energy = energy("energy1_input")
                .filter(|energy| *energy > 0.0)
                .or_else(|| energy("energy2_input"));
            let joules = sample.power.energy_joules_total.value().copied();
            assert_eq!(
                joules,
                energy.map(|micro| micro / 1e6),
                "{}",
                card.display()
            );
            assert!(
                sample.temperature.gpu_celsius.value().is_some(),
                "{}",
                card.display()
            );
        }
    }
}
