//! Fills a directory with a 30-day history of eight GPUs, for measurements, and prints the size of
//! the history as JSON.
//!
//! The history is that of shared GPUs: a process starts or ends every nine seconds, and a short
//! condition begins every ten minutes.

#[path = "../tests/store/support.rs"]
mod support;

use std::{env, error::Error, fs, path::PathBuf};

use gpumon_history::{
    bucket::Bucket,
    database::{Database, FILE_NAME, TIERS},
    span::ConditionSpan,
};
use gpumon_probe::model::{
    Condition, ConditionKind, Event, EventKind, GpuRef, ProcessRef, Reading, Severity, now_ms,
};

const GPU_COUNT: u64 = 8;
const DAYS_MS: u64 = 30 * 24 * 3_600_000;

/// The time between two process events, in milliseconds.
const PROCESS_EVENT_INTERVAL_MS: u64 = 9_000;
const CONDITION_INTERVAL_MS: u64 = 600_000;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(
        env::args_os()
            .nth(1)
            .ok_or("specify the folder as the first argument")?,
    );
    let database = Database::open(&folder)?;
    let (mut rows, mut values) = (0, 0);
    for (tier, stored) in TIERS.iter().enumerate() {
        let step = stored.resolution_ms;
        let to_ms = now_ms() / step * step;
        let times = (to_ms - stored.keep_ms.min(DAYS_MS)..to_ms).step_by(step as usize);
        let sums = times
            .map(|at_ms| support::make_bucket(at_ms, GPU_COUNT))
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
        database.import_buckets(tier, sums)?;
    }
    drop(database);
    let size = || fs::metadata(folder.join(FILE_NAME)).map(|file| file.len());
    let bytes = size()?;
    let database = Database::open(&folder)?;
    let now_ms = now_ms();
    let times = |step_ms: u64| (now_ms - DAYS_MS..now_ms).step_by(step_ms as usize);
    let mut events: Vec<_> = times(PROCESS_EVENT_INTERVAL_MS)
        .map(make_process_event)
        .collect();
    let conditions: Vec<_> = times(CONDITION_INTERVAL_MS).map(make_condition).collect();
    for span in &conditions {
        let event = |at_ms, what| Event {
            at_ms,
            gpu: Some(make_gpu_ref(span.from_ms)),
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
    database.import_buckets(
        0,
        std::iter::once(Bucket {
            conditions,
            ..support::make_bucket(now_ms / 10_000 * 10_000, GPU_COUNT)
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

fn make_gpu_ref(at_ms: u64) -> GpuRef {
    let index = at_ms / 1000 % GPU_COUNT;
    GpuRef {
        index: index as u32,
        uuid: Some(format!("GPU-{index:08}-0000-0000-0000-000000000000")),
    }
}

/// Returns an event that a process has started or ended.
fn make_process_event(at_ms: u64) -> Event {
    let process = ProcessRef {
        pid: (at_ms / 18_000 % 4_000_000) as u32,
        name: Reading::Now("python3".to_owned()),
        program: None,
        user: Reading::Now("maria".to_owned()),
        started_ms: Reading::Now(at_ms),
    };
    let is_start = (at_ms / PROCESS_EVENT_INTERVAL_MS).is_multiple_of(2);
    let what = if is_start {
        EventKind::ProcessStarted(process)
    } else {
        EventKind::ProcessEnded(process)
    };
    Event {
        at_ms,
        gpu: Some(make_gpu_ref(at_ms)),
        what,
    }
}

fn make_condition(from_ms: u64) -> ConditionSpan {
    let condition = Condition {
        since_ms: from_ms,
        severity: Severity::Warning,
        text: "Page retirement pending".to_owned(),
        kind: ConditionKind::PageRetirementPending,
    };
    let uuid = make_gpu_ref(from_ms).uuid.unwrap_or_default();
    ConditionSpan {
        uuid,
        from_ms,
        to_ms: Some(from_ms + 60_000),
        condition,
    }
}
