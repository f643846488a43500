//! The past: as sampled for minutes, summed up in memory for hours, and on disk for a year.

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
    writer::{Restored, Settings, Writer},
};
use gpumon_probe::{
    model::{Event, Sample},
    usage::Period,
};

use self::recent::RecentSamples;
pub(crate) use self::{jobs::jobs, span::span, usage::usage};

/// How far back samples are kept as they came.
pub(crate) const DEPTH_MS: u64 = 10 * 60 * 1000;

/// What has been written stays in memory for so long, so that who is just reading the disk misses
/// nothing.
const OVERLAP_MS: u64 = 30_000;

/// So long after the end of ten seconds, their last sample has come.
pub(crate) const LATE_MS: u64 = 250;

/// What is known of the past in this process.
#[derive(Debug, Default)]
pub(crate) struct Past {
    /// As sampled.
    pub(crate) recent: RecentSamples,
    pub(crate) buckets: Buckets,
    memory: MemoryTier,
    writer: Option<Arc<Writer>>,
}

impl Past {
    /// Takes in a sample. `used` is asked, once in ten seconds, for what has become known of who
    /// used how much.
    pub(crate) fn push(&mut self, sample: &Sample, used: impl FnOnce() -> Vec<Period>) {
        self.recent.push(sample);
        if let Some(bucket) = self.buckets.push(sample) {
            self.keep(bucket, used());
        }
    }

    /// Ends the ten seconds in progress where they are over, however long the next sample takes.
    pub(crate) fn end_bucket(&mut self, now_ms: u64, used: impl FnOnce() -> Vec<Period>) {
        if let Some(bucket) = self.buckets.end_if_over(now_ms) {
            self.keep(bucket, used());
        }
    }

    /// Keeps its values. What else it has is remembered elsewhere, in smaller numbers: conditions
    /// and jobs in [`Buckets`], usage in the usage meter.
    fn keep(&mut self, bucket: Bucket, usage: Vec<Period>) {
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

    /// Puts what an earlier process has seen before what this one has.
    pub(crate) fn restore(&mut self, minutes: Grid) {
        let minutes = minutes.into_span(BUCKET_MS, |_| Device::default());
        self.recent.restore(&minutes);
    }

    /// Takes in what happened.
    pub(crate) fn add_event(&self, event: &Event) {
        if let Some(writer) = &self.writer {
            writer.add_event(event.clone());
        }
    }

    /// From now on, it is written to disk. `restore` gets what is there already, off this thread.
    ///
    /// # Errors
    /// Where there can be no more threads.
    pub(crate) fn write_to(
        &mut self,
        settings: Settings,
        restore: impl FnOnce(Restored) + Send + 'static,
    ) -> io::Result<()> {
        let writer = Writer::start(settings, DEPTH_MS, restore, |told| tracing::warn!("{told}"))?;
        self.writer = Some(Arc::new(writer));
        Ok(())
    }

    /// How large it may become on disk from now on.
    pub(crate) fn limit(&self, size_bytes: u64) {
        if let Some(writer) = &self.writer {
            writer.limit(size_bytes);
        }
    }

    /// The way to the disk, of which what has been begun is on its way now.
    pub(crate) fn end(&mut self, used: impl FnOnce() -> Vec<Period>) -> Option<Arc<Writer>> {
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
    fn memory_keeps_no_conditions_and_jobs() {
        let mut past = Past::default();
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
            let mut gpu = GpuSample::absent(
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
