//! The history: samples of the last few minutes, aggregates of the last hours in memory, and a year
//! in a database.

mod holders;
mod jobs;
mod recent;
mod span;
mod usage;

use std::{io, sync::Arc};

use gpumon_history::{
    bucket::{BUCKET_MS, Bucket, Buckets, Device},
    grid::Grid,
    memory::MemoryTier,
    writer::{RestoredHistory, Writer, WriterSettings},
};
use gpumon_probe::{
    model::{Event, Sample},
    usage::Period,
};

use self::recent::RecentSamples;
pub(crate) use self::{jobs::list_jobs, span::read_span, usage::read_usage};

/// The time for which samples are kept, in milliseconds.
pub(crate) const RETENTION_MS: u64 = 10 * 60 * 1000;

/// The time for which buckets stay in memory after they were written, so that they are not missed
/// by readers that read the disk just before.
const OVERLAP_MS: u64 = 30_000;

/// The delay in milliseconds after which the last sample of a bucket is expected to have arrived.
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
        if let Some(bucket) = self.buckets.end_if_over(now_ms) {
            self.store_bucket(bucket, used());
        }
    }

    /// Stores a completed bucket. The copy in memory has no conditions and jobs, because
    /// [`Buckets`] keeps them with smaller limits, and no usage, because the usage meter keeps it.
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

    /// Passes the current bucket to the writer, and returns the writer.
    pub(crate) fn end_writing(
        &mut self,
        used: impl FnOnce() -> Vec<Period>,
    ) -> Option<Arc<Writer>> {
        let writer = self.writer.take()?;
        if let Some(bucket) = self.buckets.end() {
            writer.add_bucket(Bucket {
                usage: used(),
                ..bucket
            });
        }
        Some(writer)
    }
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
            let buckets = past.memory.take_oldest();
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
