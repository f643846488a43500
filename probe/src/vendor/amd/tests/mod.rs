//! Tests of whole cards, using recorded and simulated files.

mod recorded;

use std::{collections::BTreeSet, fs, io::Write as _, path::Path, thread, time::Duration};

use fake_drm::{Card, CardFiles, MetricsTable, Tree, kfd::Package, products, scenario};

use super::AmdSource;
use crate::{
    model::{Absence, EnergySource, Gpu, MemoryKind, Reading, ThrottleReason},
    vendor::{
        Device, DeviceError, Source, SourceError,
        drm::testing::{make_roots, read_details, read_sample},
    },
};

const ADDRESS: &str = "0000:03:00.0";

/// Returns a Radeon card that is never suspended.
fn make_awake_radeon() -> Card {
    products::make_radeon(ADDRESS).with_files(&[("power/control", "on")])
}

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

    fn source(&self) -> AmdSource {
        AmdSource::open(&make_roots(&self.tree)).unwrap()
    }

    fn open(&self) -> Box<dyn Device> {
        self.source().open(0).unwrap()
    }
}

#[test]
fn active_card_has_identity_and_readings() {
    let card = make_awake_radeon().with_files(&[("product_name", "Radeon RX 7900 XTX")]);
    let card = card
        .with_sensors(&[("temp3_input", "0")])
        .without_file("gpu_metrics");
    let machine = TestMachine::new(&card);
    assert_eq!(machine.source().device_count(), Ok(1));
    let mut device = machine.open();
    let sample = read_sample(&mut *device).unwrap();
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
    assert_eq!(
        sample.pcie.generation,
        Reading::Now(4),
        "the slot's, and not that inside the card"
    );
    let Gpu {
        uuid,
        name,
        pci_bus_id,
        ..
    } = device.identify();
    assert_eq!(uuid.as_deref(), Some("GPU-aaaaaaa000003000"));
    assert_eq!(name, Reading::Now("AMD Radeon RX 7900 XTX".to_owned()));
    assert_eq!(pci_bus_id, Reading::Now("00000000:03:00.0".to_owned()));
}

/// Checks that every table version decodes correctly. The test encodes the fields with its own
/// tables, independent of the decoder's.
#[test]
fn readings_equal_encoded_table_values() {
    let bare = |metrics: MetricsTable| {
        let card = Card::new("amdgpu", [0x1002, 0x744c], ADDRESS);
        let machine = TestMachine::new(&card.with_binary_file("gpu_metrics", metrics.bytes()));
        read_sample(&mut *machine.open()).unwrap()
    };
    for (format, content, power) in [
        (1, 3, ("average_socket_power", 212)),
        (1, 6, ("curr_socket_power", 212)),
        (1, 8, ("curr_socket_power", 212)),
        (1, 9, ("curr_socket_power", 212)),
        (2, 1, ("average_socket_power", 3401)),
        (3, 0, ("average_socket_power", 212_000)),
    ] {
        let version = format!("{format}.{content}");
        let is_apu = format > 1;
        let centi = |value: u64| if is_apu { value * 100 } else { value };
        let temperature = if is_apu {
            "temperature_gfx"
        } else {
            "temperature_hotspot"
        };
        let activity = if version == "2.1" { 6300 } else { 63 };
        let clock = if is_apu {
            "average_gfxclk_frequency"
        } else {
            "current_gfxclk"
        };
        let table = MetricsTable::new(format, content)
            .with_field(power.0, &[power.1])
            .with_field(temperature, &[centi(47)])
            .with_field("average_gfx_activity", &[activity])
            .with_field(clock, &[1450]);
        let sample = bare(table);
        let watts = if version == "2.1" { 3.401 } else { 212.0 };
        assert_eq!(sample.power.draw_watts, Reading::Now(watts), "{version}");
        assert_eq!(
            sample.temperature.gpu_celsius,
            Reading::Now(47.0),
            "{version}"
        );
        assert_eq!(
            sample.utilization.gpu_percent,
            Reading::Now(63.0),
            "{version}"
        );
        assert_eq!(sample.clocks.sm_mhz, Reading::Now(1450), "{version}");
        assert_eq!(
            sample.memory_kind == MemoryKind::Unified,
            is_apu,
            "{version}"
        );
    }
}

#[test]
fn sleeping_card_is_identified_and_not_read() {
    let machine = TestMachine::new(&products::make_radeon(ADDRESS));
    let mut device = machine.open();
    machine.files.suspend_card();
    let opened = machine.files.record_opened_files();
    let source = machine.source();
    assert!(source.is_asleep(0, Path::new("/sys")));
    assert!(matches!(source.open(0), Err(DeviceError::Asleep)));
    assert_eq!(read_sample(&mut *device), Err(DeviceError::Asleep));
    let gpu = source.identify_closed(0, &Absence::Asleep);
    assert_eq!(gpu.uuid.as_deref(), Some("GPU-aaaaaaa000003000"));
    assert_eq!(opened.take_waking_files(true), BTreeSet::new());
    machine.files.resume_card();
    read_sample(&mut *device).unwrap();
    assert!(opened.take_waking_files(true).contains("gpu_metrics"));
}

#[test]
fn idle_card_is_not_read_until_autosuspend() {
    let card = products::make_radeon(ADDRESS).with_files(&[
        ("gpu_busy_percent", "0"),
        ("power/autosuspend_delay_ms", "60000"),
    ]);
    let machine = TestMachine::new(&card);
    let mut device = machine.open();
    read_sample(&mut *device).unwrap();
    let details = read_details(&mut *device);
    let files = &machine.files;
    files.write(&[("gpu_busy_percent", "90"), ("mem_info_vram_used", "4096")]);
    let rested = read_sample(&mut *device).unwrap();
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
    files.write(&[("power/control", "on")]);
    assert_eq!(
        read_sample(&mut *device).unwrap().utilization.gpu_percent,
        Reading::Now(90.0)
    );
}

#[test]
fn vanished_card_is_lost() {
    let machine = TestMachine::new(&make_awake_radeon());
    let source = machine.source();
    let mut device = source.open(0).unwrap();
    machine.files.unplug_card();
    assert_eq!(read_sample(&mut *device), Err(DeviceError::Lost));
    assert!(matches!(source.open(0), Err(DeviceError::Lost)));
}

#[test]
fn garbage_values_do_not_affect_other_readings() {
    let card = make_awake_radeon()
        .with_files(&[
            ("gpu_busy_percent", "N/A"),
            ("mem_info_vram_used", ""),
            ("gpu_metrics", "truncated"),
        ])
        .with_sensors(&[("temp1_input", "hot")]);
    let sample = read_sample(&mut *TestMachine::new(&card).open()).unwrap();
    assert!(sample.utilization.gpu_percent.value().is_none());
    assert!(sample.memory.used_bytes.value().is_none());
    assert_eq!(sample.power.draw_watts, Reading::Now(35.0));
}

#[test]
fn missing_driver_error_explains_loading() {
    let tree = Tree::new();
    let open = || AmdSource::open(&make_roots(&tree)).err().unwrap();
    assert!(matches!(&open(), SourceError::NoDriver(text) if text.contains("modprobe amdgpu")));
    std::fs::create_dir_all(tree.sys().join("module/amdgpu")).unwrap();
    assert!(matches!(open(), SourceError::NoDevice(_)));
}

#[test]
fn energy_of_radeon_is_integrated() {
    let machine = TestMachine::new(&make_awake_radeon());
    let mut device = machine.open();
    let energy = |device: &mut dyn Device| read_sample(device).unwrap().power.energy_joules_total;
    assert_eq!(energy(&mut *device), Reading::Now(0.0));
    thread::sleep(Duration::from_millis(100));
    let joules = *energy(&mut *device).value().unwrap();
    assert!(
        (3.0..60.0).contains(&joules),
        "{joules} J after at least 0.1 s at 35 W"
    );
}

#[test]
fn throttle_reasons_of_rdna2_come_from_bits() {
    let table = MetricsTable::new(1, 3).with_field("indep_throttle_status", &[1]);
    let machine =
        TestMachine::new(&make_awake_radeon().with_binary_file("gpu_metrics", table.bytes()));
    let reasons = read_sample(&mut *machine.open()).unwrap().throttle_reasons;
    assert_eq!(reasons, Reading::Now(vec![ThrottleReason::PowerLimit]));
}

#[test]
fn each_partition_has_separate_use_and_processes() {
    let tree = Tree::new();
    scenario::add_mi300x_in_cpx(&tree);
    let source = AmdSource::open(&make_roots(&tree)).unwrap();
    assert_eq!(source.device_count(), Ok(2), "packages, and not partitions");
    let mut device = source.open(0).unwrap();
    let gpu = device.identify();
    assert_eq!(gpu.mig_devices.len(), 8);
    assert_eq!(
        gpu.mig_devices[7].profile,
        Reading::Now("CPX/NPS1".to_owned())
    );
    let sample = read_sample(&mut *device).unwrap();
    let partitions = sample.mig_devices.value().unwrap();
    let use_of = |number: usize| {
        let activity = partitions[number].activity.value().unwrap();
        activity.graphics_percent.value().copied()
    };
    assert_eq!([0, 1, 5].map(use_of), [Some(91.0), Some(0.0), Some(100.0)]);
    let processes = sample.processes.value().unwrap();
    let places: Vec<_> = processes
        .iter()
        .map(|own| (own.pid, own.mig.map(|part| part.gpu_instance)))
        .collect();
    assert_eq!(places, [(4100, Some(0)), (4101, Some(2)), (4102, Some(5))]);
    assert_eq!(processes[1].memory_bytes, Reading::Now(6 << 30));
}

// The following tests check the state that is kept between readings: sleep, energy, fatal errors,
// and partitions.

#[test]
fn energy_continues_after_card_is_opened_again() {
    let machine = TestMachine::new(&make_awake_radeon());
    let source = machine.source();
    let joules = || {
        let mut device = source.open(0).unwrap();
        let energy = read_sample(&mut *device).unwrap().power.energy_joules_total;
        assert_eq!(
            device.identify().board.energy_source,
            Some(EnergySource::Power)
        );
        *energy.value().unwrap()
    };
    assert!(joules().abs() < 1e-9);
    thread::sleep(Duration::from_millis(50));
    let first = joules();
    assert!(first > 1.0, "{first} J after 0.05 s at 35 W");
    assert!(joules() >= first);
}

#[test]
fn energy_of_mi300x_comes_from_counter() {
    let machine = TestMachine::new(&products::make_mi300x(ADDRESS));
    let mut device = machine.open();
    let energy = read_sample(&mut *device).unwrap().power.energy_joules_total;
    assert_eq!(energy, Reading::Now(1e6));
    assert_eq!(
        device.identify().board.energy_source,
        Some(EnergySource::Counter)
    );
}

#[test]
fn readings_after_short_sleep_are_dropped() {
    let machine = TestMachine::new(&products::make_radeon(ADDRESS));
    let mut device = machine.open();
    let use_of = |sample: &crate::model::GpuSample| sample.utilization.gpu_percent.clone();
    assert_eq!(
        use_of(&read_sample(&mut *device).unwrap()),
        Reading::Now(37.0)
    );
    // The card slept between two readings. Both readings found it awake, so only its total sleep
    // time shows that it slept.
    machine
        .files
        .write(&[("power/runtime_suspended_time", "900")]);
    let sample = read_sample(&mut *device).unwrap();
    assert_eq!(use_of(&sample), Reading::Absent(Absence::WarmingUp));
    assert_eq!(sample.power.draw_watts, Reading::Now(35.0));
}

#[test]
fn readings_after_reopening_woken_card_are_dropped() {
    let machine = TestMachine::new(&products::make_radeon(ADDRESS));
    let source = machine.source();
    let mut device = source.open(0).unwrap();
    machine.files.suspend_card();
    assert_eq!(read_sample(&mut *device), Err(DeviceError::Asleep));
    machine.files.resume_card();
    assert!(!source.is_asleep(0, Path::new("/sys")));
    // Simulates another thread that opens the card to identify it.
    drop(source.open(0));
    let sample = read_sample(&mut *source.open(0).unwrap()).unwrap();
    assert_eq!(sample.clocks.sm_mhz, Reading::Absent(Absence::WarmingUp));
}

#[test]
fn apu_is_recognized_once_metrics_table_is_readable() {
    let card = products::make_strix_halo(ADDRESS).without_file("hwmon/hwmon4/in1_label");
    let machine = TestMachine::new(&card.with_binary_file("gpu_metrics", Vec::new()));
    let mut device = machine.open();
    assert_eq!(
        read_sample(&mut *device).unwrap().memory_kind,
        MemoryKind::Device,
        "nothing shows what it is"
    );
    let table = MetricsTable::new(3, 0).bytes();
    machine.files.write_bytes("gpu_metrics", table);
    let sample = read_sample(&mut *device).unwrap();
    assert_eq!(sample.memory_kind, MemoryKind::Unified);
    assert_eq!(
        sample.memory.total_bytes,
        Reading::Now(536_870_912 + 67_108_864_000)
    );
}

#[test]
fn only_visible_partitions_are_listed() {
    let tree = Tree::new();
    tree.add_card(0, &products::make_mi300x_in_cpx(ADDRESS));
    tree.add_packages(&[Package::make_mi300x_in_cpx(ADDRESS, 1, 128)]);
    let nodes = tree.kfd().join("topology/nodes");
    for number in (1..=8).filter(|number| *number != 6) {
        fs::remove_dir_all(nodes.join(number.to_string())).unwrap();
    }
    let source = AmdSource::open(&make_roots(&tree)).unwrap();
    let mut device = source.open(0).unwrap();
    let [part] = &device.identify().mig_devices[..] else {
        panic!("{:?}", device.identify())
    };
    assert!(part.uuid.ends_with(".5"), "{part:?}");
    let sample = read_sample(&mut *device).unwrap();
    let activity = sample.mig_devices.value().unwrap()[0].activity.clone();
    let percent = activity.value().unwrap().graphics_percent.clone();
    assert_eq!(percent, Reading::Now(100.0));
}

#[test]
fn compute_process_of_another_apu_user_is_listed() {
    let tree = Tree::new();
    tree.add_card(0, &products::make_strix_halo(ADDRESS));
    let package = Package {
        compute_units: 40,
        target: 110_501,
        ..Package::make_mi300x(ADDRESS, 1, 128)
    };
    tree.add_packages(std::slice::from_ref(&package));
    tree.add_compute_usage(7, package.gpu_id(0), 0, None);
    let source = AmdSource::open(&make_roots(&tree)).unwrap();
    let sample = read_sample(&mut *source.open(0).unwrap()).unwrap();
    let [process] = &sample.processes.value().unwrap()[..] else {
        panic!("{sample:?}")
    };
    assert_eq!(process.pid, 7);
    assert_eq!(process.memory_bytes, Reading::Absent(Absence::NoPermission));
    assert_eq!(process.sm_percent, Reading::NOT_SUPPORTED);
}

/// Appends a driver message to the file that replaces the kernel log.
fn append_log(file: &Path, message: &str) {
    let mut log = fs::OpenOptions::new().append(true).open(file).unwrap();
    writeln!(log, "6,1,1,-;amdgpu {ADDRESS}: amdgpu: {message}").unwrap();
}

#[test]
fn sensors_are_not_trusted_until_reset() {
    let machine = TestMachine::new(&make_awake_radeon());
    let kernel_log = tempfile::NamedTempFile::new().unwrap();
    let file = kernel_log.path();
    let source = machine.source();
    let mut device = source.open(0).unwrap();
    read_sample(&mut *device).unwrap();
    let mut logs = source.error_logs(file);
    append_log(
        file,
        "uncorrectable hardware error(ERREVENT_ATHUB_INTERRUPT) detected!",
    );
    logs[0].wait_for_error().unwrap();
    let sample = read_sample(&mut *device).unwrap();
    let distrusted = Absence::Distrusted;
    assert_eq!(sample.power.draw_watts, Reading::Absent(distrusted.clone()));
    assert_eq!(
        sample.utilization.gpu_percent,
        Reading::Absent(distrusted.clone())
    );
    assert_eq!(sample.throttle_reasons, Reading::Absent(distrusted));
    assert_eq!(sample.memory.used_bytes, Reading::Now(1 << 30));
    assert!(sample.processes.value().is_some());
    read_details(&mut *device);
    // If gpumon starts after the error, it must still find the error.
    let later = machine.source();
    later.error_logs(file);
    let sample = read_sample(&mut *later.open(0).unwrap()).unwrap();
    assert!(sample.power.draw_watts.value().is_none());
    append_log(file, "GPU reset(1) succeeded!");
    append_log(file, "1 correctable hardware errors detected in umc block");
    logs[0].wait_for_error().unwrap();
    let sample = read_sample(&mut *device).unwrap();
    assert_eq!(sample.power.draw_watts, Reading::Now(35.0));
}
