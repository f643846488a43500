//! Tests with the nvidia-smi output of several drivers, and with unusual output.

use std::time::Duration;

use gpumon_probe::model::{
    Absence, ComputeMode, EventKind, GpuSample, Health, Inventory, Reading, Record, Sample,
    ThrottleReason,
};

use super::{Converter, columns::COLUMNS, list_query_fields};

const CAPTURES: [(&str, &str); 5] = [
    (
        "590.48.01",
        include_str!("../../../../tests/end-to-end/captures/h200-590.48.01/query-gpu.txt"),
    ),
    (
        "590.48.01",
        include_str!("../../../../tests/end-to-end/captures/h100-mig-590.48.01/query-gpu.txt"),
    ),
    (
        "595.80",
        include_str!("../../../../tests/end-to-end/captures/l40s-595.80/query-gpu.txt"),
    ),
    (
        "595.71.05",
        include_str!("../../../../tests/end-to-end/captures/geforce-595.71.05/query-gpu.txt"),
    ),
    (
        "610.57.04",
        include_str!("../../../../tests/end-to-end/captures/geforce-610.57.04/query-gpu.txt"),
    ),
];

const UUID: &str = "GPU-00000000-0000-0000-0000-000000000000";

/// Returns the field names and the row that the remote command would print, derived from a capture
/// of all fields.
fn simulate_query(capture: &str) -> (String, String) {
    let mut lines = capture
        .lines()
        .filter(|line| !line.starts_with(['$', '!', '>', '?']) && line.contains(", "));
    let names: Vec<_> = lines
        .next()
        .unwrap()
        .split(", ")
        .map(|name| name.split(' ').next().unwrap())
        .collect();
    let cells: Vec<_> = lines.next().unwrap().split(", ").collect();
    assert_eq!(names.len(), cells.len());
    let found = list_query_fields().into_iter().filter_map(|field| {
        let place = names.iter().position(|name| *name == field)?;
        // The capture contains units, but the remote command queries nvidia-smi with `nounits`. The
        // units are therefore removed.
        let cell = cells[place];
        let unit = ["MiB", "MHz", "W", "%"]
            .into_iter()
            .find_map(|unit| cell.strip_suffix(unit)?.strip_suffix(' '));
        Some((field, unit.unwrap_or(cell)))
    });
    let (fields, cells): (Vec<_>, Vec<_>) = found.unzip();
    (format!("#fields {}", fields.join(",")), cells.join(", "))
}

fn new_converter() -> Converter {
    Converter::new("n1", Duration::from_secs(2))
}

fn feed_lines(converter: &mut Converter, lines: &[&str], now_ms: u64) -> Vec<Record> {
    lines
        .iter()
        .flat_map(|line| converter.handle_line(line, now_ms).unwrap())
        .collect()
}

fn find_sample(records: &[Record]) -> &Sample {
    let last = records.iter().rev().find_map(|it| {
        if let Record::Sample(sample) = it {
            Some(sample)
        } else {
            None
        }
    });
    last.expect("there is a sample")
}

fn find_inventory(records: &[Record]) -> &Inventory {
    let first = records.iter().find_map(|it| {
        if let Record::Inventory(it) = it {
            Some(it)
        } else {
            None
        }
    });
    first.expect("there is an inventory")
}

fn list_events(records: &[Record]) -> Vec<EventKind> {
    let event = |it: &Record| {
        if let Record::Event(event) = it {
            Some(event.what.clone())
        } else {
            None
        }
    };
    records.iter().filter_map(event).collect()
}

#[test]
fn output_of_every_driver_is_parsed() {
    for (driver, capture) in CAPTURES {
        let (fields, row) = simulate_query(capture);
        assert!(
            fields.split(',').count() > 50,
            "{driver} has most fields: {fields}"
        );
        let records = feed_lines(&mut new_converter(), &[&fields, &row], 20_000);
        let (inventory, sample) = (find_inventory(&records), find_sample(&records));
        assert_eq!(inventory.hostname, "n1");
        assert_eq!(
            inventory.platform.drivers[0].version,
            Reading::Now(driver.to_owned())
        );
        let (gpu, reported) = (&inventory.gpus[0], &sample.gpus[0]);
        assert!(gpu.name.value().unwrap().starts_with("NVIDIA "), "{gpu:?}");
        assert_eq!((gpu.uuid.as_deref(), gpu.index), (Some(UUID), 0));
        for reading in [
            &reported.power.draw_watts,
            &reported.temperature.gpu_celsius,
        ] {
            assert!(
                reading.value().is_some_and(|value| *value > 0.0),
                "{driver}: {reported:?}"
            );
        }
        assert!(
            reported.memory.total_bytes.value().unwrap() >= &(8 << 30),
            "{driver}"
        );
        assert!(
            reported.clocks.sm_mhz.value().is_some() && reported.throttle_reasons.value().is_some(),
            "{driver}"
        );
        assert!(
            reported
                .performance_state
                .value()
                .is_some_and(|state| *state < 16),
            "{driver}"
        );
        assert_eq!(reported.activity, Reading::Absent(Absence::NeedsGpumon));
        assert_eq!(sample.host.cpu.count, Reading::Absent(Absence::NeedsGpumon));
        let Some(Record::Details(details)) =
            records.iter().find(|it| matches!(it, Record::Details(_)))
        else {
            panic!()
        };
        assert_eq!(details.modes.compute, Reading::Now(ComputeMode::Default));
        assert!(details.modes.persistence.value().is_some(), "{driver}");
        let written = records
            .iter()
            .map(|it| Record::decode(&serde_json::to_string(it).unwrap()).unwrap());
        assert!(
            written.eq(records.iter().cloned()),
            "a server reads them as it does gpumon's own"
        );
    }
}

#[test]
fn parsed_values_match_captured_output() {
    let (fields, row) = simulate_query(CAPTURES[0].1);
    let records = feed_lines(&mut new_converter(), &[&fields, &row], 20_000);
    let gpu = &find_sample(&records).gpus[0];
    assert_eq!(gpu.power.draw_watts, Reading::Now(77.71));
    assert_eq!(gpu.power.limit_watts, Reading::Now(700.0));
    assert_eq!(
        gpu.throttle_reasons,
        Reading::Now(vec![ThrottleReason::GpuIdle])
    );
    assert_eq!(gpu.fan_percent, Reading::Absent(Absence::NotSupported));
    assert_eq!(
        find_inventory(&records).gpus[0]
            .pci_bus_id
            .value()
            .unwrap()
            .len(),
        16
    );
    let mig = simulate_query(CAPTURES[1].1);
    let records = feed_lines(&mut new_converter(), &[&mig.0, &mig.1], 20_000);
    let gpu = &find_sample(&records).gpus[0];
    assert_eq!(
        gpu.utilization.gpu_percent,
        Reading::Absent(Absence::NotSupported),
        "of MIG, nobody tells"
    );
    assert_eq!(gpu.mig_devices, Reading::Absent(Absence::NeedsGpumon));
}

#[test]
fn old_driver_has_fewer_and_renamed_fields() {
    let fields = "#fields \
                  index,uuid,name,pci.bus_id,driver_version,memory.total,memory.used,utilization.gpu,clocks_throttle_reasons.active,pcie.link.gen.current,power.draw";
    let row = "0, GPU-1, Tesla K80, 00000000:00:04.0, 470.82.01, 11441, 5, 0, 0x0000000000000001, \
               3, [Not Supported]";
    let mut converter = new_converter();
    assert_eq!(
        feed_lines(&mut converter, &[fields, row], 20_000),
        [],
        "how many GPUs there are is not told"
    );
    assert_eq!(converter.take_due_records(20_100), []);
    let records = converter.take_due_records(20_500);
    let gpu = &find_sample(&records).gpus[0];
    assert_eq!(
        gpu.throttle_reasons,
        Reading::Now(vec![ThrottleReason::GpuIdle])
    );
    assert_eq!(
        (&gpu.pcie.generation, gpu.memory.total_bytes.value()),
        (&Reading::Now(3), Some(&(11_441 << 20)))
    );
    assert_eq!(gpu.power.draw_watts, Reading::Absent(Absence::NotSupported));
    assert_eq!(
        gpu.memory.free_bytes,
        Reading::Absent(Absence::NeedsGpumon),
        "nobody asked"
    );
}

const FIELDS: &str = "#fields index,count,uuid,pci.bus_id,memory.total,memory.used,utilization.gpu";

fn format_row(index: u32) -> String {
    format!("{index}, 2, GPU-{index}, 00000000:0{index}:00.0, 81559, 5, 7")
}

fn feed_both_gpus(converter: &mut Converter, now_ms: u64) -> Vec<Record> {
    feed_lines(converter, &[FIELDS, &format_row(0), &format_row(1)], now_ms)
}

fn list_health_names(gpus: &[GpuSample]) -> Vec<&'static str> {
    gpus.iter().map(|gpu| gpu.health.json_name()).collect()
}

#[test]
fn sample_is_emitted_after_last_gpu() {
    let mut converter = new_converter();
    assert_eq!(
        feed_lines(&mut converter, &[FIELDS, &format_row(0)], 20_000),
        []
    );
    let records = feed_lines(&mut converter, &[&format_row(1)], 20_010);
    assert_eq!(list_health_names(&find_sample(&records).gpus), ["ok", "ok"]);
    let next = feed_both_gpus(&mut converter, 22_000);
    assert_eq!(find_sample(&next).seq, 1);
    assert_eq!(next.len(), 1, "nothing has changed: {next:?}");
}

#[test]
fn lost_gpu_keeps_index_while_others_continue() {
    let mut converter = new_converter();
    feed_both_gpus(&mut converter, 20_000);
    let lost = "Unable to determine the device handle for GPU0000:01:00.0: GPU is lost.  Reboot \
                the system to recover this GPU";
    let lines = [
        lost,
        "#ended 15",
        "#gpu 0000:00:00.0",
        &format_row(0),
        "#gpu 0000:01:00.0",
        lost,
        "#asked",
    ];
    let records = feed_lines(&mut converter, &lines, 22_000);
    let gpus = &find_sample(&records).gpus;
    assert_eq!(list_health_names(gpus), ["ok", "lost"]);
    assert_eq!(gpus[1].health, Health::Lost { since_ms: 22_000 });
    assert!(
        matches!(gpus[1].memory.total_bytes, Reading::Earlier { .. }),
        "how large it was stays"
    );
    assert_eq!(list_events(&records), [EventKind::GpuLost]);
    let later = feed_lines(&mut converter, &lines, 26_000);
    assert_eq!(
        find_sample(&later).gpus[1].health,
        Health::Lost { since_ms: 22_000 }
    );
    let back = feed_both_gpus(&mut converter, 28_000);
    assert_eq!(
        (
            list_health_names(&find_sample(&back).gpus),
            list_events(&back)
        ),
        (vec!["ok", "ok"], vec![EventKind::GpuBack])
    );
    let in_cells = "1, 2, GPU-1, 00000000:01:00.0, [GPU is lost], [GPU is lost], [GPU is lost]";
    let records = feed_lines(&mut converter, &[&format_row(0), in_cells], 30_000);
    assert_eq!(
        list_health_names(&find_sample(&records).gpus),
        ["ok", "lost"]
    );
}

#[test]
fn initially_lost_gpu_gets_index_by_bus_id() {
    let mut converter = new_converter();
    let unknown = "Unable to determine the device handle for GPU0: 0000:00:00.0: Unknown Error";
    let lines = [
        FIELDS,
        unknown,
        "#ended 255",
        "#gpu 0000:00:00.0",
        unknown,
        "#gpu 0000:01:00.0",
        &format_row(1),
        "#asked",
    ];
    let records = feed_lines(&mut converter, &lines, 20_000);
    assert_eq!(
        list_health_names(&find_sample(&records).gpus),
        ["failed", "ok"]
    );
    let gpus = &find_inventory(&records).gpus;
    assert_eq!(
        gpus[0].pci_bus_id,
        Reading::Now("00000000:00:00.0".to_owned())
    );
    assert_eq!(
        (gpus[0].uuid.as_deref(), gpus[1].uuid.as_deref()),
        (None, Some("GPU-1"))
    );
}

#[test]
fn silent_nvidia_smi_is_treated_as_hung_driver() {
    let mut converter = new_converter();
    feed_both_gpus(&mut converter, 20_000);
    assert_eq!(converter.take_due_records(25_000), []);
    let records = converter.take_due_records(26_000);
    assert_eq!(
        find_sample(&records).gpus[0].health,
        Health::Hung { since_ms: 20_000 }
    );
    assert_eq!(
        find_sample(&records).gpus[0].utilization.gpu_percent,
        Reading::Now(7.0),
        "as it was last"
    );
    assert_eq!(
        list_events(&records),
        [EventKind::GpuHung, EventKind::GpuHung]
    );
    assert_eq!(converter.take_due_records(27_000), []);
    let back = feed_both_gpus(&mut converter, 40_000);
    assert_eq!(list_health_names(&find_sample(&back).gpus), ["ok", "ok"]);
}

#[test]
fn nvidia_smi_message_becomes_error() {
    let message = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. \
                   Make sure that the latest NVIDIA driver is installed and running.";
    let mut converter = new_converter();
    feed_lines(&mut converter, &[FIELDS, message, "#ended 9"], 20_000);
    assert_eq!(
        converter.handle_line("#asked", 20_000),
        Err(message.to_owned())
    );
    for message in [
        "No devices were found",
        "Failed to initialize NVML: Driver/library version mismatch",
    ] {
        feed_lines(&mut converter, &[message, "", "#ended 6"], 20_000);
        assert_eq!(
            converter.handle_line("#asked", 20_000),
            Err(message.to_owned())
        );
    }
}

#[test]
fn processes_have_names_memory_and_users() {
    let mut converter = new_converter();
    let lines = [
        "#process GPU-1, 21180, 2296, /root/tools/memhog",
        "#process GPU-1, 7, [N/A], [Not Found]",
        "#process GPU-0, 21198, 7484, python, with, commas",
        "#process No devices were found",
        "#user 21180 ana 90",
        "#processes 0",
    ];
    feed_lines(&mut converter, &lines, 100_000);
    let records = feed_both_gpus(&mut converter, 101_000);
    let gpus = &find_sample(&records).gpus;
    let Reading::Earlier {
        value: processes,
        at_ms: 100_000,
    } = &gpus[1].processes
    else {
        panic!("{gpus:?}")
    };
    let [unknown, memhog] = &processes[..] else {
        panic!("{processes:?}")
    };
    assert_eq!(
        (
            memhog.name.value().unwrap().as_str(),
            memhog.user.value().unwrap().as_str()
        ),
        ("memhog", "ana")
    );
    assert_eq!(
        (&memhog.memory_bytes, &memhog.started_ms),
        (&Reading::Now(2296 << 20), &Reading::Now(10_000))
    );
    assert_eq!(
        (&unknown.name, &unknown.user),
        (
            &Reading::Absent(Absence::NotInProc),
            &Reading::Absent(Absence::NotInProc)
        )
    );
    assert_eq!(unknown.memory_bytes, Reading::Absent(Absence::NotSupported));
    assert_eq!(
        gpus[0].processes.value().unwrap()[0].name,
        Reading::Now("python, with, commas".to_owned())
    );
    feed_lines(
        &mut converter,
        &[
            "#process GPU-1, 21180, 2296, /root/tools/memhog",
            "#processes 0",
        ],
        105_000,
    );
    let records = feed_both_gpus(&mut converter, 105_100);
    assert_eq!(list_events(&records).len(), 2, "two have ended");
    feed_lines(&mut converter, &["#processes 9"], 110_000);
    let records = feed_both_gpus(&mut converter, 110_100);
    assert_eq!(
        find_sample(&records).gpus[0].processes,
        Reading::Absent(Absence::Unknown)
    );
}

#[test]
fn garbage_in_host_output_is_ignored() {
    let mut converter = new_converter();
    feed_both_gpus(&mut converter, 20_000);
    let garbage = [
        "#",
        "#fields",
        "#gpu",
        "#process",
        "#user x y z",
        "#processes",
        "#process GPU-1, 4294967296, 1, x",
        "\u{0}, \u{1}",
        "0, 2, GPU-0, x, 99999999999999999999, -5, nan",
        "GPU ::::: lost",
        "#new word",
    ];
    feed_lines(&mut converter, &garbage, 20_500);
    feed_lines(&mut converter, &[FIELDS], 20_500);
    for index in 0..1000 {
        feed_lines(&mut converter, &[&format_row(index)], 20_600);
    }
    let records = feed_both_gpus(&mut converter, 22_000);
    assert!(find_sample(&records).gpus.len() <= 64);
    let long = format!("#process GPU-0, 1, 1, {}", "x".repeat(1 << 20));
    for _ in 0..2000 {
        feed_lines(&mut converter, &[&long], 22_000);
    }
    feed_lines(&mut converter, &["#processes 0"], 22_000);
    let records = feed_both_gpus(&mut converter, 24_000);
    assert!(serde_json::to_string(find_sample(&records)).unwrap().len() < 2 << 20);
}

#[test]
fn nvidia_smi_samples_start_conditions() {
    let mut converter = new_converter();
    let full = "0, 1, GPU-0, 00000000:00:00.0, 81559, 81500, 7, 59";
    let mut records = feed_lines(&mut converter, &[&format!("{FIELDS},memory.free")], 0);
    for second in 0..200 {
        records = feed_lines(&mut converter, &[full], 20_000 + second * 2000);
    }
    let conditions = &find_sample(&records).gpus[0].conditions;
    assert!(
        conditions.iter().any(|it| it.text.contains("emory")),
        "{conditions:?}"
    );
}

#[test]
fn each_field_is_queried_once() {
    let mut names = list_query_fields();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), COLUMNS.len());
    let fit = |name: &str| {
        name.bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._".contains(&byte))
    };
    assert!(
        names.iter().all(|name| fit(name)),
        "they stand in a command: {names:?}"
    );
}
