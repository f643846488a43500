//! Fills a directory with the history of eight GPUs over 30 days, for measurements, and prints its
//! size as JSON.
//!
//! GPUs are shared: a process starts or ends every nine seconds, and a short condition begins every
//! ten minutes.

#[path = "../tests/store/support.rs"]
mod support;

use std::{env, error::Error, fs, path::PathBuf};

use gpumon_history::{
    bucket::Bucket,
    database::{Database, FILE, TIERS},
    span::ConditionSpan,
};
use gpumon_probe::model::{
    Condition, ConditionKind, Event, EventKind, GpuRef, ProcessRef, Reading, Severity, now_ms,
};

const GPUS: u64 = 8;
const DAYS_MS: u64 = 30 * 24 * 3_600_000;

/// The time between two process events, in milliseconds.
const PROCESSES_MS: u64 = 9_000;
const CONDITIONS_MS: u64 = 600_000;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(env::args_os().nth(1).ok_or("name the folder")?);
    let database = Database::open(&folder)?;
    let (mut rows, mut values) = (0, 0);
    for (tier, stored) in TIERS.iter().enumerate() {
        let step = stored.resolution_ms;
        let to_ms = now_ms() / step * step;
        let times = (to_ms - stored.keep_ms.min(DAYS_MS)..to_ms).step_by(step as usize);
        let sums = times
            .map(|at_ms| support::bucket(at_ms, GPUS))
            .inspect(|sum| {
                rows += sum.devices.len() + 1;
                values += sum
                    .devices
                    .iter()
                    .flat_map(|device| &device.stats)
                    .chain(&sum.host)
                    .flatten()
                    .count();
            });
        database.import(tier, sums)?;
    }
    drop(database);
    let size = || fs::metadata(folder.join(FILE)).map(|file| file.len());
    let bytes = size()?;
    let database = Database::open(&folder)?;
    let now_ms = now_ms();
    let times = |step_ms: u64| (now_ms - DAYS_MS..now_ms).step_by(step_ms as usize);
    let mut events: Vec<_> = times(PROCESSES_MS).map(process_event).collect();
    let conditions: Vec<_> = times(CONDITIONS_MS).map(condition).collect();
    for span in &conditions {
        let event = |at_ms, what| Event {
            at_ms,
            gpu: Some(gpu(span.from_ms)),
            what,
        };
        events.push(event(
            span.from_ms,
            EventKind::ConditionBegan(span.condition.clone()),
        ));
        events.push(event(
            span.from_ms + 60_000,
            EventKind::ConditionEnded(span.condition.clone()),
        ));
    }
    events.sort_by_key(|event| event.at_ms);
    let count = events.len();
    database.import_events(events.into_iter())?;
    database.import(
        0,
        std::iter::once(Bucket {
            conditions,
            ..support::bucket(now_ms / 10_000 * 10_000, GPUS)
        }),
    )?;
    drop(database);
    println!(
        "{}",
        serde_json::json!({
            "bytes": bytes, "rows": rows, "values": values, "events": count, "event_bytes": size()? - bytes
        })
    );
    Ok(())
}

fn gpu(at_ms: u64) -> GpuRef {
    let index = at_ms / 1000 % GPUS;
    GpuRef {
        index: index as u32,
        uuid: Some(format!("GPU-{index:08}-0000-0000-0000-000000000000")),
    }
}

/// Returns the event of a process that has started or ended.
fn process_event(at_ms: u64) -> Event {
    let process = ProcessRef {
        pid: (at_ms / 18_000 % 4_000_000) as u32,
        name: Reading::Now("python3".to_owned()),
        program: None,
        user: Reading::Now("maria".to_owned()),
        started_ms: Reading::Now(at_ms),
    };
    let is_start = (at_ms / PROCESSES_MS).is_multiple_of(2);
    let what = if is_start {
        EventKind::ProcessStarted(process)
    } else {
        EventKind::ProcessEnded(process)
    };
    Event {
        at_ms,
        gpu: Some(gpu(at_ms)),
        what,
    }
}

fn condition(from_ms: u64) -> ConditionSpan {
    let condition = Condition {
        since_ms: from_ms,
        severity: Severity::Warning,
        text: "Page retirement pending".to_owned(),
        kind: ConditionKind::PageRetirementPending,
    };
    let uuid = gpu(from_ms).uuid.unwrap_or_default();
    ConditionSpan {
        uuid,
        from_ms,
        to_ms: Some(from_ms + 60_000),
        condition,
    }
}
