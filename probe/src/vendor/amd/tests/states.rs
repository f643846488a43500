//! Tests of the state that is kept between readings: sleep, energy, fatal errors, and partitions.

use std::{fs, io::Write as _, path::Path, thread, time::Duration};

use fake_drm::{MetricsTable, Tree, kfd::Package, products};

use super::{ADDRESS, AmdSource, TestMachine, make_awake_radeon};
use crate::{
    model::{Absence, EnergySource, MemoryKind, Reading},
    vendor::{
        DeviceError, Source,
        drm::testing::{make_roots, read_details, read_sample},
    },
};

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
    // The card slept between two readings, so only its total sleep time reveals the sleep.
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
fn apu_is_recognized_after_refused_opening() {
    let card = products::make_strix_halo(ADDRESS).remove("hwmon/hwmon4/in1_label");
    let machine = TestMachine::new(&card.with_bytes("gpu_metrics", Vec::new()));
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
