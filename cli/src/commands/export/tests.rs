use std::{env, fs, path::Path, process};

use clap::Parser;
use gpumon_history::{
    bucket::{Bucket, Device, DeviceBucket},
    database::Database,
};
use gpumon_probe::{
    model::fields::{GPU_FIELDS, HOST_FIELDS},
    stat::Stat,
};

use super::*;

const DAY_MS: u64 = 86_400_000;
/// The start of the history. It is a multiple of all resolutions.
const FIRST_MS: u64 = 1_800_000_000_000;

#[derive(Debug, Parser)]
struct ParsedArgs {
    #[command(flatten)]
    past: PastArgs,
}

/// Fills a database with 18 hours of readings from two GPUs and a MIG device, at intervals of ten
/// seconds and one minute.
fn fill_database(folder: &Path) {
    let bucket = |at_ms| {
        let device = |index: u32| DeviceBucket {
            device: Device {
                uuid: format!("GPU-{index}"),
                index,
                ..Device::default()
            },
            samples: 10,
            stats: vec![Some(Stat::from_value(100.0)); GPU_FIELDS.len()],
        };
        let mut mig = device(0);
        let (uuid, name, parent) = (
            "MIG-7".to_owned(),
            Some("1g.18gb".to_owned()),
            Some("GPU-1".to_owned()),
        );
        mig.device = Device {
            uuid,
            index: 0,
            name,
            parent,
        };
        mig.stats = vec![Some(Stat::from_value(7.0)); GPU_FIELDS.len()];
        let host = vec![Some(Stat::from_value(1.0)); HOST_FIELDS.len()];
        Bucket {
            at_ms,
            devices: vec![device(0), device(1), mig],
            samples: 10,
            host,
            ..Bucket::default()
        }
    };
    let database = Database::open(folder).unwrap();
    for (tier, step_ms) in [(0, 10_000), (1, 60_000)] {
        database
            .import_buckets(
                tier,
                (FIRST_MS..FIRST_MS + DAY_MS / 4 * 3)
                    .step_by(step_ms)
                    .map(bucket),
            )
            .unwrap();
    }
}

fn list_times(folder: &Path, span: Range<u64>, resolution_ms: Option<u64>) -> Vec<u64> {
    let text = export_text(folder, span, resolution_ms, "power.draw_watts", Format::Csv);
    let of_first = text.lines().skip(1).filter(|line| line.contains("GPU-0"));
    of_first
        .map(|line| line.split(',').nth(1).unwrap().parse().unwrap())
        .collect()
}

fn export_text(
    folder: &Path,
    span: Range<u64>,
    resolution_ms: Option<u64>,
    metrics: &str,
    format: Format,
) -> String {
    let typed = ParsedArgs::parse_from(["export", "--data-dir", folder.to_str().unwrap()]);
    let at = |ms: u64| {
        format!(
            "{}",
            jiff::Timestamp::from_millisecond(ms.cast_signed()).unwrap()
        )
        .parse()
        .unwrap()
    };
    let moments = TypedTimeSpan::new(Some(at(span.start)), Some(at(span.end)));
    let columns = SelectedColumns::with_keys(RowKind::Devices, &GPU_KEYS, Some(metrics)).unwrap();
    let mut out = Vec::new();
    let resolution = resolution_ms.map(Duration::from_millis);
    assert!(export_history(&typed.past, moments, resolution, &columns, format, &mut out).is_ok());
    String::from_utf8(out).unwrap()
}

#[test]
fn mig_devices_and_host_have_separate_rows() {
    let folder = tempfile::tempdir().unwrap();
    fill_database(folder.path());
    let export = |metrics, format| {
        let moment = FIRST_MS..FIRST_MS + 10_000;
        export_text(folder.path(), moment, Some(10_000), metrics, format)
    };
    let csv = export(
        "power.draw_watts,host.cpu.count,mig.memory.used_bytes",
        Format::Csv,
    );
    let at = format!("{},{FIRST_MS}", format_timestamp(FIRST_MS));
    let columns = "power_draw_watts,power_draw_watts_min,power_draw_watts_max,\
                   mig_memory_used_bytes,\
                       mig_memory_used_bytes_min,mig_memory_used_bytes_max,\
                       host_cpu_count,host_cpu_count_min,\
                       host_cpu_count_max";
    let expected = [
        format!("time,time_ms,index,uuid,name,kind,parent,{columns}"),
        format!("{at},0,GPU-0,,gpu,,100,100,100,,,,,,"),
        format!("{at},1,GPU-1,,gpu,,100,100,100,,,,,,"),
        format!("{at},0,MIG-7,1g.18gb,mig,GPU-1,,,,7,7,7,,,"),
        format!("{at},,,,host,,,,,,,,1,1,1"),
    ];
    assert_eq!(csv.lines().collect::<Vec<_>>(), expected);
    let json = export("host.cpu.count", Format::Ndjson);
    assert_eq!(json.lines().count(), 1, "{json}");
    let row: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (&row["kind"], &row["index"], &row["host_cpu_count"]),
        (&"host".into(), &Value::Null, &1.0.into())
    );
}

#[test]
fn export_has_one_row_per_requested_time() {
    let folder = env::temp_dir().join(format!("gpumon-export-{}", process::id()));
    fs::create_dir_all(&folder).unwrap();
    fill_database(&folder);
    let rows = |from_ms: u64, to_ms: u64, step_ms: usize| {
        (from_ms..to_ms).step_by(step_ms).collect::<Vec<_>>()
    };
    let two_hours = FIRST_MS..FIRST_MS + 7_200_000;
    let minutes = list_times(&folder, two_hours.clone(), Some(60_000));
    assert_eq!(minutes, rows(two_hours.start, two_hours.end, 60_000));
    // This span is longer than one response can cover.
    let many = FIRST_MS + 35_000..FIRST_MS + 60_000_000;
    assert_eq!(
        list_times(&folder, many.clone(), Some(10_000)),
        rows(FIRST_MS + 30_000, many.end, 10_000)
    );
    let odd = FIRST_MS + 1..FIRST_MS + 7_000_001;
    assert_eq!(
        list_times(&folder, odd, Some(3_600_000)),
        [FIRST_MS, FIRST_MS + 3_600_000]
    );
    assert_eq!(
        list_times(&folder, two_hours.clone(), Some(7_000)).len(),
        720,
        "no row is shorter than what is kept"
    );
    assert_eq!(
        list_times(&folder, two_hours.start..two_hours.start + 60_000, None),
        rows(FIRST_MS, FIRST_MS + 60_000, 10_000)
    );
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn export_part_length_is_multiple_of_resolutions() {
    for (resolution_ms, expected) in [
        (10_000, 49_500_000),
        (60_000, 299_700_000),
        (7_000, 31_500_000),
        (1, 5000),
    ] {
        assert_eq!(
            find_part_length_ms(resolution_ms),
            expected,
            "{resolution_ms}"
        );
    }
}
