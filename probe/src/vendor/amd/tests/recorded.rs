//! Tests with recorded cards and packages.

use std::{
    fs,
    path::{Path, PathBuf},
};

use fake_drm::{Tree, products};

use super::AmdSource;
use crate::{
    model::{MemoryKind, Reading},
    vendor::{
        Source, SourceError,
        amd::kfd::tests::write_recorded,
        drm::testing::{find_recorded_cards, make_roots, read_details, read_sample},
    },
};

/// A card's recorded files. The tests compare the readings with these files.
struct RecordedFiles(PathBuf);

/// Removes the NUL characters that pad some recorded files to a full page.
fn trim_zeros(text: &str) -> &str {
    text.trim_matches(|letter: char| letter.is_whitespace() || letter == '\0')
}

fn parse_number_in(file: &Path) -> Option<f64> {
    trim_zeros(&fs::read_to_string(file).ok()?).parse().ok()
}

impl RecordedFiles {
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
    for (name, card) in find_recorded_cards("amd") {
        let tree = Tree::new();
        tree.add_recorded_card(&card);
        let source = AmdSource::open(&make_roots(&tree));
        if name == "hd7870" {
            assert!(
                matches!(source, Err(SourceError::NoDriver(_))),
                "the driver is radeon"
            );
            continue;
        }
        let mut device = source.unwrap().open(0).unwrap();
        let sample = read_sample(&mut *device).unwrap();
        let files = RecordedFiles(card.join("device"));
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
        let identity = device.identify();
        assert!(compared >= 3, "{name}: {compared}");
        assert!(identity.name.value().unwrap().starts_with("AMD "), "{name}");
        read_details(&mut *device);
    }
}

#[test]
fn recorded_mi308x_packages_have_four_partitions() {
    let tree = Tree::new();
    if !write_recorded(&tree.sys(), "mi308x-cpx-32.txt") {
        return;
    }
    // The recording contains only the KFD files of the eight packages, so the test adds their
    // cards.
    let addresses = [
        "0000:0a", "0000:80", "0000:a4", "0000:c8", "0001:0b", "0001:81", "0001:a5", "0001:c9",
    ];
    for (number, address) in (0..).zip(addresses) {
        let address = format!("{address}:00.0");
        tree.add_card(8 * number, &products::make_mi300x_in_cpx(&address));
    }
    let source = AmdSource::open(&make_roots(&tree)).unwrap();
    assert_eq!(source.device_count(), Ok(8));
    for number in 0..8 {
        let mut device = source.open(number).unwrap();
        let gpu = device.identify();
        let package = gpu.uuid.clone().unwrap();
        let uuids: Vec<_> = gpu.mig_devices.iter().map(|own| own.uuid.clone()).collect();
        assert_eq!(
            uuids,
            (0..4)
                .map(|part| format!("{package}.{part}"))
                .collect::<Vec<_>>()
        );
        let units = gpu
            .mig_devices
            .iter()
            .map(|own| own.multiprocessors.value().copied());
        assert!(units.eq([Some(20); 4]), "{gpu:?}");
        let sample = read_sample(&mut *device).unwrap();
        let partitions = sample.mig_devices.value().unwrap();
        let gibibytes = partitions
            .iter()
            .map(|own| own.memory.total_bytes.value().unwrap() >> 30);
        // The expected size is a quarter of 192 GiB, minus the memory that the driver reserves.
        assert!(
            gibibytes.clone().all(|size| (47..=48).contains(&size)),
            "{partitions:?}"
        );
        let used = |own: &crate::model::MigSample| own.memory.used_bytes.value().copied();
        assert!(
            partitions
                .iter()
                .all(|own| used(own).is_some_and(|used| used > 0))
        );
    }
}
