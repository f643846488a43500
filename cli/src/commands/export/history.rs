//! Rows of a server's history.

use std::{io::Write, ops::Range, time::Duration};

use anyhow::anyhow;
use gpumon_history::{
    database::TIERS,
    span::{DeviceSpan, HistorySpan, SpanPart},
    wanted::Metric,
};
use gpumon_probe::model::now_ms;
use serde_json::Value;

use super::{Format, GPU_KEYS};
use crate::{
    commands::show::csv::{self, Csv, DEVICE_KEYS, time},
    exit::{Result, usage},
    moment::{Beside, MomentSpan},
    past::{PastArgs, most_points},
};

pub(super) fn export(
    past: &PastArgs,
    span: MomentSpan,
    resolution: Option<Duration>,
    columns: &Csv,
    format: Format,
    out: &mut impl Write,
) -> Result {
    let span = span
        .resolve(&Beside::now(now_ms()))
        .map_err(|why| usage!(why))?;
    let asked = select_metrics(columns);
    if asked.is_empty() {
        return Err(usage!(
            "history has readings alone: name one, as power.draw_watts"
        ));
    }
    let ids: Vec<&str> = asked.iter().map(|metric| &*metric.id).collect();
    let resolution_ms = resolution.map(|resolution| (resolution.as_millis() as u64).max(1));
    let is_key = |name: &&'static str| GPU_KEYS.contains(name) || DEVICE_KEYS.contains(name);
    let keys = columns.names().filter(is_key).collect();
    let mut rows = Rows {
        asked,
        keys,
        format,
        has_range: None,
        is_begun: false,
        knows_time: false,
        last_ms: None,
    };
    for part in parts(past, &span, &ids, resolution_ms)? {
        rows.write(&past.ask(&part, &ids, resolution_ms)?, out)?;
    }
    if rows.has_range.is_none() && rows.knows_time {
        let names = ids.join(", ");
        return Err(anyhow!(
            "nothing on this machine told {names} in that time: name other readings; `gpumon export \
                            --metrics help` lists them"
        )
        .into());
    }
    if rows.has_range.is_none() {
        return Err(anyhow!("nothing is known of that time; {}", past.cure()).into());
    }
    Ok(())
}

/// The readings among the columns; the others tell of a moment, and not of a time.
fn select_metrics(columns: &Csv) -> Vec<&'static Metric> {
    let names: Vec<_> = columns.names().collect();
    Metric::all()
        .filter(|metric| names.contains(&&*column_name(metric)))
        .collect()
}

fn column_name(metric: &Metric) -> String {
    metric.id.replace('.', "_")
}

/// Spans of which each is answered at once, in a resolution that was asked for.
fn parts(
    past: &PastArgs,
    span: &Range<u64>,
    ids: &[&str],
    resolution_ms: Option<u64>,
) -> Result<Vec<Range<u64>>> {
    // One reading tells how far back anything is known.
    let known = past.ask(span, &ids[..1], None)?;
    let span = span.start.max(known.oldest_ms)..span.end;
    let Some(resolution_ms) = resolution_ms else {
        return Ok(vec![span]);
    };
    let part_ms = part_ms(resolution_ms);
    let first = span.start / part_ms * part_ms;
    let starts = (first..span.end).step_by(part_ms as usize);
    Ok(starts
        .map(|start| start.max(span.start)..span.end.min(start.saturating_add(part_ms)))
        .collect())
}

/// The time of a part: of as many rows as are answered at once, and a multiple of all rows that there are, where that is
/// possible. No row is then cut in two.
fn part_ms(resolution_ms: u64) -> u64 {
    let longest_ms = TIERS
        .iter()
        .map(|tier| tier.resolution_ms)
        .max()
        .unwrap_or(1);
    let most_ms = resolution_ms.saturating_mul(most_points());
    let common_ms = (1..=longest_ms).map(|times| resolution_ms.saturating_mul(times));
    let common_ms = common_ms
        .take_while(|ms| *ms <= most_ms)
        .find(|ms| ms.is_multiple_of(longest_ms));
    common_ms.map_or(most_ms, |common_ms| most_ms / common_ms * common_ms)
}

struct Rows {
    asked: Vec<&'static Metric>,
    /// The columns before those.
    keys: Vec<&'static str>,
    format: Format,
    /// Whether there are columns of minima and maxima, once that is known.
    has_range: Option<bool>,
    /// Whether the header was written.
    is_begun: bool,
    /// Whether anything was known of the time, be it nothing of what was asked for.
    knows_time: bool,
    /// The time of the last row: where parts are answered in different resolutions, the next begins before its end.
    last_ms: Option<u64>,
}

impl Rows {
    fn write(&mut self, span: &HistorySpan, out: &mut impl Write) -> Result {
        self.knows_time |= !span.times_ms.is_empty();
        let devices: Vec<_> = span.devices().collect();
        if devices.is_empty() {
            return Ok(());
        }
        let ranges =
            |device: &SpanPart<'_>| device.metrics.values().any(|series| series.min.is_some());
        let has_range = *self
            .has_range
            .get_or_insert_with(|| devices.iter().any(ranges));
        let names = self.names(has_range);
        if self.format == Format::Csv && !std::mem::replace(&mut self.is_begun, true) {
            out.write_all(csv::row(names.iter().cloned()).as_bytes())?;
        }
        let is_new = |at_ms: u64| self.last_ms.is_none_or(|last_ms| at_ms > last_ms);
        for (place, at_ms) in span
            .times_ms
            .iter()
            .enumerate()
            .filter(|(_, at_ms)| is_new(**at_ms))
        {
            for device in &devices {
                let values = self.values(device, place, has_range);
                // What was not there has no row.
                if values.iter().all(Option::is_none) {
                    continue;
                }
                out.write_all(self.row(device, *at_ms, &names, &values).as_bytes())?;
            }
        }
        self.last_ms = span.times_ms.last().copied().max(self.last_ms);
        Ok(())
    }

    fn names(&self, has_range: bool) -> Vec<String> {
        let of = |metric: &&Metric| {
            let name = column_name(metric);
            let ends = if has_range {
                &["", "_min", "_max"][..]
            } else {
                &[""][..]
            };
            ends.iter()
                .map(|end| format!("{name}{end}"))
                .collect::<Vec<_>>()
        };
        self.keys
            .iter()
            .map(|key| (*key).to_owned())
            .chain(self.asked.iter().flat_map(of))
            .collect()
    }

    fn values(&self, device: &SpanPart<'_>, place: usize, has_range: bool) -> Vec<Option<f64>> {
        let of = |metric: &&Metric| {
            let series = device.metrics.get(&*metric.id);
            let series = series.filter(|_| metric.device == device.kind);
            let stat = series.and_then(|series| series.stat_at(place));
            let parts = [
                stat.map(|stat| stat.mean),
                stat.map(|stat| stat.min),
                stat.map(|stat| stat.max),
            ];
            parts.into_iter().take(if has_range { 3 } else { 1 })
        };
        self.asked.iter().flat_map(of).collect()
    }

    fn row(
        &self,
        device: &SpanPart<'_>,
        at_ms: u64,
        names: &[String],
        values: &[Option<f64>],
    ) -> String {
        let keys = self.keys.iter().map(|key| key_value(device, key, at_ms));
        let values = values.iter().map(|value| Value::from(*value));
        self.format.line(names.iter().cloned(), keys.chain(values))
    }
}

/// The value of a column that identifies a row.
fn key_value(part: &SpanPart<'_>, key: &str, at_ms: u64) -> Value {
    let of =
        |read: fn(&DeviceSpan) -> Option<Value>| part.device.and_then(read).unwrap_or(Value::Null);
    match key {
        "time" => time(at_ms).into(),
        "time_ms" => at_ms.into(),
        "index" => of(|device| Some(device.index.into())),
        "uuid" => of(|device| Some(device.uuid.clone().into())),
        "name" => of(|device| device.name.clone().map(Value::from)),
        "parent" => of(|device| device.parent.clone().map(Value::from)),
        _ => part.kind.word().into(),
    }
}

#[cfg(test)]
mod tests {
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
    use crate::commands::show::csv::Rows as CsvRows;

    const DAY_MS: u64 = 86_400_000;
    /// A multiple of all resolutions.
    const FIRST_MS: u64 = 1_800_000_000_000;

    #[derive(Debug, Parser)]
    struct Typed {
        #[command(flatten)]
        past: PastArgs,
    }

    /// A day of two GPUs, every ten seconds and every minute.
    fn fill(folder: &Path) {
        let bucket = |at_ms| {
            let device = |index: u32| DeviceBucket {
                device: Device {
                    uuid: format!("GPU-{index}"),
                    index,
                    ..Device::default()
                },
                samples: 10,
                stats: vec![Some(Stat::of(100.0)); GPU_FIELDS.len()],
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
            mig.stats = vec![Some(Stat::of(7.0)); GPU_FIELDS.len()];
            let host = vec![Some(Stat::of(1.0)); HOST_FIELDS.len()];
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
                .import(
                    tier,
                    (FIRST_MS..FIRST_MS + DAY_MS / 4 * 3)
                        .step_by(step_ms)
                        .map(bucket),
                )
                .unwrap();
        }
    }

    fn times(folder: &Path, span: Range<u64>, resolution_ms: Option<u64>) -> Vec<u64> {
        let text = exported(folder, span, resolution_ms, "power.draw_watts", Format::Csv);
        let of_first = text.lines().skip(1).filter(|line| line.contains("GPU-0"));
        of_first
            .map(|line| line.split(',').nth(1).unwrap().parse().unwrap())
            .collect()
    }

    fn exported(
        folder: &Path,
        span: Range<u64>,
        resolution_ms: Option<u64>,
        metrics: &str,
        format: Format,
    ) -> String {
        let typed = Typed::parse_from(["export", "--data-dir", folder.to_str().unwrap()]);
        let at = |ms: u64| {
            format!(
                "{}",
                jiff::Timestamp::from_millisecond(ms.cast_signed()).unwrap()
            )
            .parse()
            .unwrap()
        };
        let moments = MomentSpan::new(Some(at(span.start)), Some(at(span.end)));
        let columns = Csv::with_keys(CsvRows::Devices, &GPU_KEYS, Some(metrics)).unwrap();
        let mut out = Vec::new();
        let resolution = resolution_ms.map(Duration::from_millis);
        assert!(export(&typed.past, moments, resolution, &columns, format, &mut out).is_ok());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn mig_devices_and_the_host_have_rows_and_columns_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        fill(folder.path());
        let export = |metrics, format| {
            let moment = FIRST_MS..FIRST_MS + 10_000;
            exported(folder.path(), moment, Some(10_000), metrics, format)
        };
        let csv = export(
            "power.draw_watts,host.cpu.count,mig.memory.used_bytes",
            Format::Csv,
        );
        let at = format!("{},{FIRST_MS}", time(FIRST_MS));
        let columns = "power_draw_watts,power_draw_watts_min,power_draw_watts_max,mig_memory_used_bytes,\
                       mig_memory_used_bytes_min,mig_memory_used_bytes_max,host_cpu_count,host_cpu_count_min,\
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
    fn rows_have_the_time_that_was_asked_for_and_none_comes_twice() {
        let folder = env::temp_dir().join(format!("gpumon-export-{}", process::id()));
        fs::create_dir_all(&folder).unwrap();
        fill(&folder);
        let rows = |from_ms: u64, to_ms: u64, step_ms: usize| {
            (from_ms..to_ms).step_by(step_ms).collect::<Vec<_>>()
        };
        let two_hours = FIRST_MS..FIRST_MS + 7_200_000;
        let minutes = times(&folder, two_hours.clone(), Some(60_000));
        assert_eq!(minutes, rows(two_hours.start, two_hours.end, 60_000));
        // More than are answered at once.
        let many = FIRST_MS + 35_000..FIRST_MS + 60_000_000;
        assert_eq!(
            times(&folder, many.clone(), Some(10_000)),
            rows(FIRST_MS + 30_000, many.end, 10_000)
        );
        let odd = FIRST_MS + 1..FIRST_MS + 7_000_001;
        assert_eq!(
            times(&folder, odd, Some(3_600_000)),
            [FIRST_MS, FIRST_MS + 3_600_000]
        );
        assert_eq!(
            times(&folder, two_hours.clone(), Some(7_000)).len(),
            720,
            "no row is shorter than what is kept"
        );
        assert_eq!(
            times(&folder, two_hours.start..two_hours.start + 60_000, None),
            rows(FIRST_MS, FIRST_MS + 60_000, 10_000)
        );
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_part_ends_where_rows_of_all_resolutions_do() {
        for (resolution_ms, expected) in [
            (10_000, 49_500_000),
            (60_000, 299_700_000),
            (7_000, 31_500_000),
            (1, 5000),
        ] {
            assert_eq!(part_ms(resolution_ms), expected, "{resolution_ms}");
        }
    }
}
