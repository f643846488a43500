//! Tests of whole cards, using recorded and simulated files.

use std::{collections::BTreeSet, fs, path::Path, thread, time::Duration};

use fake_drm::{Card, CardFiles, Tree, products};

use super::IntelSource;
use crate::{
    model::{Absence, MemoryKind, Reading, ThrottleReason},
    vendor::{
        Device, DeviceError, Source, SourceError,
        drm::testing::{find_recorded_cards, make_roots, read_sample},
    },
};

const ADDRESS: &str = "0000:03:00.0";

/// A simulated machine with one card.
struct TestMachine {
    tree: Tree,
    files: CardFiles,
}

impl TestMachine {
    fn new(card: &Card) -> Self {
        let tree = Tree::new();
        let files = tree.add_card(0, card);
        Self { tree, files }
    }

    fn source(&self) -> Result<IntelSource, SourceError> {
        IntelSource::open(&make_roots(&self.tree))
    }

    fn open(&self) -> Box<dyn Device> {
        self.source().unwrap().open(0).unwrap()
    }
}

#[test]
fn xe_card_has_readings() {
    let machine = TestMachine::new(&products::make_arc_b580(ADDRESS));
    let mut device = machine.open();
    let first = read_sample(&mut *device).unwrap();
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
    machine
        .files
        .write(&[("hwmon/hwmon4/energy2_input", "29543753173")]);
    let watts = *read_sample(&mut *device)
        .unwrap()
        .power
        .draw_watts
        .value()
        .unwrap();
    assert!(
        (0.5..=400.0).contains(&watts),
        "20 J in at least 0.05 s: {watts}"
    );
    let identity = device.identify();
    assert_eq!(identity.uuid.as_deref(), Some("PCI-0000:03:00.0"));
    assert!(identity.name.value().unwrap().starts_with("Intel "));
    assert_eq!(identity.board.max_clocks.sm_mhz, Reading::Now(2850));
}

#[test]
fn gpu_utilization_is_derived_from_idle_residency() {
    let machine = TestMachine::new(&products::make_arc_b580(ADDRESS));
    let mut device = machine.open();
    let first = read_sample(&mut *device).unwrap();
    assert_eq!(
        first.utilization.gpu_percent,
        Reading::Absent(Absence::WarmingUp)
    );
    thread::sleep(Duration::from_millis(20));
    let share = *read_sample(&mut *device)
        .unwrap()
        .utilization
        .gpu_percent
        .value()
        .unwrap();
    assert!((share - 100.0).abs() < 1e-9, "it was never idle: {share}");
    machine
        .files
        .write(&[("tile0/gt0/gtidle/idle_residency_ms", "100000")]);
    let share = *read_sample(&mut *device)
        .unwrap()
        .utilization
        .gpu_percent
        .value()
        .unwrap();
    assert!(share.abs() < 1e-9, "it was idle all the time: {share}");
}

#[test]
fn integrated_gpu_reports_memory_of_machine() {
    let machine = TestMachine::new(&products::make_tiger_lake());
    machine.tree.set_memory(16_000_000 << 10, 8_000_000 << 10);
    let sample = read_sample(&mut *machine.open()).unwrap();
    assert_eq!(sample.memory_kind, MemoryKind::Unified);
    assert_eq!(sample.memory.total_bytes, Reading::Now(16_000_000 << 10));
    assert_eq!(sample.memory.free_bytes, Reading::Now(8_000_000 << 10));
    assert_eq!(sample.memory.used_bytes, Reading::Now(0));
    assert_eq!(sample.throttle_reasons, Reading::Now(Vec::new()));
    assert_eq!(sample.pcie.width, Reading::NOT_SUPPORTED);
}

#[test]
fn sleeping_card_is_identified_and_not_read() {
    let machine = TestMachine::new(&products::make_arc_b580(ADDRESS));
    let source = machine.source().unwrap();
    let mut device = source.open(0).unwrap();
    machine.files.suspend_card();
    let opened = machine.files.record_opened_files();
    assert!(source.is_asleep(0, Path::new("/sys")));
    assert!(matches!(source.open(0), Err(DeviceError::Asleep)));
    assert_eq!(read_sample(&mut *device), Err(DeviceError::Asleep));
    let gpu = source.identify_closed(0, &Absence::Asleep);
    assert_eq!(gpu.uuid.as_deref(), Some("PCI-0000:03:00.0"));
    assert_eq!(opened.take_waking_files(false), BTreeSet::new());
    machine.files.resume_card();
    read_sample(&mut *device).unwrap();
    assert!(!opened.take_waking_files(false).is_empty());
}

#[test]
fn virtual_functions_are_skipped() {
    let card = products::make_arc_b580(ADDRESS).with_files(&[("physfn/vendor", "0x8086")]);
    let source = TestMachine::new(&card).source();
    assert!(matches!(source, Err(SourceError::NoDriver(_))));
}

#[test]
fn recorded_cards_are_read() {
    for (_, card) in find_recorded_cards("intel") {
        let tree = Tree::new();
        tree.add_recorded_card(&card);
        let source = IntelSource::open(&make_roots(&tree)).unwrap();
        let mut device = source.open(0).unwrap();
        let sample = read_sample(&mut *device).unwrap();
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
