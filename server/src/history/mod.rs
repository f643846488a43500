//! The history: samples of the last few minutes, aggregates of the last hours in memory, and a year
//! in a database.

mod holders;
mod recent;
pub(crate) mod routes;

use std::{
    io,
    ops::Range,
    sync::{Arc, RwLock},
};

use gpumon_history::{
    bucket::{BUCKET_MS, Bucket, Buckets, Device},
    database::{
        Database, DatabaseError, REACH_MS, StoredSpan,
        usage::{self, StoredUsage, UsageInMemory},
    },
    grid::Grid,
    jobs::{JobList, JobSpan, merge_jobs},
    memory::{self, MemoryTier},
    span::{ConditionSpan, HistorySpan, Plan, SpanRequest, Storage, Tier},
    writer::{RestoredHistory, Writer, WriterSettings},
};
use gpumon_probe::{
    model::{Event, Sample},
    usage::{Period, Usage, UsageMeter},
};

use self::recent::RecentSamples;
use crate::lock;

/// The time for which samples are kept, in milliseconds.
pub(crate) const RETENTION_MS: u64 = 10 * 60 * 1000;

/// The time for which buckets stay in memory after they were written to disk. A reader that read
/// the disk just before the write then still finds them in memory.
const OVERLAP_MS: u64 = 30_000;

/// How long after the end of a bucket its last sample may still arrive, in milliseconds.
pub(crate) const BUCKET_DELAY_MS: u64 = 250;

/// The history as kept by this process.
#[derive(Debug, Default)]
pub(crate) struct HistoryStore {
    pub(crate) recent: RecentSamples,
    pub(crate) buckets: Buckets,
    memory: MemoryTier,
    writer: Option<Arc<Writer>>,
}

impl HistoryStore {
    /// Adds a sample. If this completes a bucket, `used` is called and returns the usage since the
    /// last bucket.
    pub(crate) fn push(&mut self, sample: &Sample, used: impl FnOnce() -> Vec<Period>) {
        self.recent.push(sample);
        if let Some(bucket) = self.buckets.push(sample) {
            self.store_bucket(bucket, used());
        }
    }

    /// Completes the current bucket if its time has passed, even if the next sample is delayed.
    pub(crate) fn end_bucket(&mut self, now_ms: u64, used: impl FnOnce() -> Vec<Period>) {
        if let Some(bucket) = self.buckets.end_bucket_if_over(now_ms) {
            self.store_bucket(bucket, used());
        }
    }

    /// Stores a completed bucket. The copy in memory leaves out data that is kept elsewhere:
    /// [`Buckets`] keeps conditions and jobs, with smaller limits, and the usage meter keeps the
    /// usage.
    fn store_bucket(&mut self, bucket: Bucket, usage: Vec<Period>) {
        let written_ms = self.writer.as_ref().map_or(0, |writer| {
            writer.add_bucket(Bucket {
                usage,
                ..bucket.clone()
            });
            writer.status().written_ms
        });
        self.memory.push(Bucket {
            conditions: Vec::new(),
            jobs: Vec::new(),
            ..bucket
        });
        self.memory
            .drop_before(written_ms.saturating_sub(OVERLAP_MS));
    }

    /// Adds the history of an earlier process before the history of this process.
    pub(crate) fn restore(&mut self, minutes: Grid) {
        let minutes = minutes.into_span(BUCKET_MS, |_| Device::default());
        self.recent.restore(&minutes);
    }

    /// Passes an event to the writer, if the history is written to disk.
    pub(crate) fn add_event(&self, event: &Event) {
        if let Some(writer) = &self.writer {
            writer.add_event(event.clone());
        }
    }

    /// Starts writing to disk. `restore` receives the stored history on another thread.
    ///
    /// # Errors
    /// Returns an error if the thread cannot be created.
    pub(crate) fn start_writing(
        &mut self,
        settings: WriterSettings,
        restore: impl FnOnce(RestoredHistory) + Send + 'static,
    ) -> io::Result<()> {
        let writer = Writer::start(settings, RETENTION_MS, restore, |reported| {
            tracing::warn!("{reported}");
        })?;
        self.writer = Some(Arc::new(writer));
        Ok(())
    }

    /// Sets the size limit of the history on disk.
    pub(crate) fn set_size_limit(&self, size_bytes: u64) {
        if let Some(writer) = &self.writer {
            writer.set_size_limit(size_bytes);
        }
    }

    /// Passes the current, incomplete ten-second bucket to the writer, and returns the writer.
    pub(crate) fn end_writing(
        &mut self,
        used: impl FnOnce() -> Vec<Period>,
    ) -> Option<Arc<Writer>> {
        let writer = self.writer.take()?;
        if let Some(bucket) = self.buckets.end_bucket() {
            writer.add_bucket(Bucket {
                usage: used(),
                ..bucket
            });
        }
        Some(writer)
    }
}

/// Returns a span of history, combined from memory and disk. `events` are the events in memory. The
/// disk is read without holding the lock.
pub(crate) fn read_span(
    past: &RwLock<HistoryStore>,
    request: &SpanRequest,
    events: Vec<Event>,
) -> HistorySpan {
    let writer = lock::read(past).writer.clone();
    let (disk, mut problem) = open_history_database(writer.as_ref());
    let mut failed = |error: &DatabaseError| {
        if let (Some(writer), Some(disk)) = (&writer, &disk) {
            writer.report_read_error(disk, error);
        }
        problem = Some(error.to_string());
    };
    let on_disk = disk
        .as_ref()
        .map(Database::list_tiers)
        .transpose()
        .inspect_err(&mut failed)
        .unwrap_or_default();
    let tiers = list_tiers(&lock::read(past), &on_disk.unwrap_or_default());
    let plan = Plan::new(request, &tiers);
    let mut grid = plan.new_grid(&request.wanted);
    let mut stored = StoredSpan::default();
    if let Some(disk) = &disk
        && let Err(error) = stored.read(disk, &plan, tiers.get(plan.tier), &mut grid)
    {
        failed(&error);
    }
    let past = lock::read(past);
    if !tiers.get(plan.tier).is_some_and(|tier| tier.is_sampled) {
        past.memory.add_to_grid(&mut grid, stored.end_ms);
        let end_ms = past
            .memory
            .time_range_ms()
            .map_or(0, |(_, newest_ms)| newest_ms + BUCKET_MS);
        stored.end_ms = stored.end_ms.max(end_ms);
    }
    past.recent.add_to_grid(&mut grid, stored.end_ms);
    let storage = Storage {
        on_disk: disk.is_some(),
        problem,
        reach_ms: if disk.is_some() {
            REACH_MS
        } else {
            memory::REACH_MS
        },
    };
    let known = |uuid: &str| past.buckets.find_device(uuid);
    let mut span = stored.into_span(&plan, grid, storage, known);
    // The conditions in memory are at least as recent as those on disk. They are added last, so
    // that they replace older versions of the same conditions.
    past.buckets
        .conditions(plan.from_ms, plan.to_ms)
        .for_each(|condition| add_or_replace_condition(&mut span.conditions, condition));
    span.conditions.sort_by_key(|condition| condition.from_ms);
    for event in events
        .into_iter()
        .filter(|event| (plan.from_ms..=plan.to_ms).contains(&event.at_ms))
    {
        if !span.events.contains(&event) {
            span.events.push(event);
        }
    }
    span.events.sort_by_key(|event| event.at_ms);
    span
}

/// Returns the database if it can be opened, and the writer's or reader's problem if there is one.
fn open_history_database(writer: Option<&Arc<Writer>>) -> (Option<Database>, Option<String>) {
    let Some(writer) = writer else {
        return (None, None);
    };
    match writer.open_reader() {
        Ok(disk) => (disk, writer.status().problem),
        Err(error) => (None, Some(error.to_string())),
    }
}

/// Returns the available tiers: samples, buckets in memory or on disk, and the coarser tiers on
/// disk.
fn list_tiers(past: &HistoryStore, stored: &[(usize, Tier)]) -> Vec<Tier> {
    let recent = past.recent.time_range_ms().map(|(oldest_ms, _)| Tier {
        resolution_ms: past.recent.sample_spacing_ms(),
        oldest_ms,
        is_sampled: true,
    });
    let (finest, coarser) = stored.split_at(stored.partition_point(|(tier, _)| *tier == 0));
    let in_memory = past.memory.time_range_ms().map(|(oldest_ms, _)| oldest_ms);
    let oldest_ms = finest
        .iter()
        .map(|(_, tier)| tier.oldest_ms)
        .chain(in_memory)
        .min();
    let tens = oldest_ms.map(|oldest_ms| Tier {
        resolution_ms: BUCKET_MS,
        oldest_ms,
        is_sampled: false,
    });
    recent
        .into_iter()
        .chain(tens)
        .chain(coarser.iter().map(|(_, tier)| *tier))
        .collect()
}

fn add_or_replace_condition(conditions: &mut Vec<ConditionSpan>, condition: &ConditionSpan) {
    match conditions
        .iter_mut()
        .find(|known| known.is_same_condition(condition))
    {
        Some(known) => known.clone_from(condition),
        None => conditions.push(condition.clone()),
    }
}

/// Returns all jobs and their GPUs from memory and disk, or only the jobs named `called`. The disk
/// is read without holding the lock.
pub(crate) fn list_jobs(past: &RwLock<HistoryStore>, called: Option<&str>) -> JobList {
    let (writer, known) = {
        let past = lock::read(past);
        let is_meant = |span: &&JobSpan| called.is_none_or(|text| span.matches_id_or_name(text));
        let known: Vec<_> = past.buckets.jobs().filter(is_meant).cloned().collect();
        (past.writer.clone(), known)
    };
    let stored = read_from_disk(writer, |disk| disk.read_jobs(called)).unwrap_or_default();
    // `merge_jobs` prefers its first argument, and the jobs in memory are newer.
    JobList {
        jobs: merge_jobs(known, stored),
    }
}

/// Returns the usage by owner in all quarters of an hour that overlap a span, from memory and disk.
/// The disk is read without holding the lock.
pub(crate) fn read_usage(
    past: &RwLock<HistoryStore>,
    meter: &RwLock<UsageMeter>,
    span: &Range<u64>,
) -> Usage {
    let writer = lock::read(past).writer.clone();
    let memory = UsageInMemory::from_meter(&lock::read(meter));
    let stored = read_from_disk(writer, |disk| StoredUsage::read(disk, &memory, span));
    usage::combine_usage(memory, stored.flatten(), span)
}

/// Reads from the disk if the history is written to disk. Disk errors are ignored here, because the
/// history endpoint reports them.
fn read_from_disk<T>(
    writer: Option<Arc<Writer>>,
    read: impl FnOnce(&Database) -> Result<T, DatabaseError>,
) -> Option<T> {
    let writer = writer?;
    let disk = writer.open_reader().ok().flatten()?;
    read(&disk)
        .inspect_err(|error| writer.report_read_error(&disk, error))
        .ok()
}

#[cfg(test)]
mod tests {
    use gpumon_probe::{
        host::HostReader,
        model::{Absence, Allocation, Condition, ConditionKind, GpuSample, Health, Severity},
    };

    use super::*;

    #[test]
    fn memory_does_not_keep_conditions_or_jobs() {
        let mut past = HistoryStore::default();
        let kind = ConditionKind::HeldIdle {
            bytes: 1,
            idle_ms: 1,
            pids: vec![7],
        };
        let text = "train.py (PID 7) idle".to_owned();
        let condition = Condition {
            since_ms: 1,
            severity: Severity::Notice,
            text,
            kind,
        };
        let host = HostReader::new().read();
        for second in 0..400 {
            let at_ms = 1_000_000 + second * 1_000;
            let mut gpu = GpuSample::new_absent(
                0,
                Some("GPU-0".to_owned()),
                at_ms,
                Health::Ok,
                &Absence::NotSupported,
            );
            gpu.conditions = vec![Condition {
                since_ms: at_ms,
                ..condition.clone()
            }];
            let slurm = Allocation::Slurm {
                job_id: second.to_string(),
                user: None,
            };
            gpu.allocated_to = vec![slurm];
            let sample = Sample {
                seq: second,
                at_ms,
                interval_ms: 1_000,
                gpus: vec![gpu],
                host: host.clone(),
            };
            past.push(&sample, Vec::new);
        }
        assert!(
            past.buckets.jobs().count() >= 300
                && past.buckets.conditions(0, u64::MAX).count() >= 200
        );
        let mut kept = 0;
        loop {
            let buckets = past.memory.take_oldest_buckets();
            if buckets.is_empty() {
                break;
            }
            kept += buckets.len();
            assert!(
                buckets
                    .iter()
                    .all(|bucket| bucket.conditions.is_empty() && bucket.jobs.is_empty())
            );
        }
        assert_eq!(kept, 39, "the last is in progress");
    }
}
