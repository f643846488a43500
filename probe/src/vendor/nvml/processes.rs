//! The processes on a GPU and their recent activity.

use std::time::{Duration, Instant};

use super::{
    cached::TimedAnswers,
    error::to_absence,
    paced::IntervalTimer,
    querier::Querier,
    shares::{DriverSample, ProcessShares},
    to_model,
};
use crate::model::{Process, Reading, now_ms};

/// The minimum time between two requests for process samples. A request costs 2 ms, and the driver
/// takes new samples at most once a second.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(1);

/// While nobody is watching, reading process samples of a GPU with several processes may take
/// 1/1000 of a core's time. History needs the samples to attribute the GPU's work, and the driver
/// keeps only each process's latest period.
const TIME_DIVISOR: u32 = 1000;
const MAX_SHARED_INTERVAL: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct ProcessReader {
    every: IntervalTimer,
    /// Whether the last request for process samples succeeded, or the reason why not.
    sampled: Reading<()>,
    shares: ProcessShares,
    /// The time of the last request, in milliseconds since 1970.
    asked_ms: u64,
    took: Duration,
}

impl ProcessReader {
    pub(super) fn new() -> Self {
        Self {
            every: IntervalTimer::new(SAMPLE_INTERVAL),
            sampled: Reading::Now(()),
            shares: ProcessShares::default(),
            asked_ms: 0,
            took: Duration::ZERO,
        }
    }

    /// Returns all processes on the GPU, sorted by PID, from lists that were read at or after
    /// `begun_ms`. `is_due` determines whether their activity is read. If several processes share
    /// the GPU, their activity is read even if it is not due, but less often, because only the
    /// activity shows which process is working.
    pub(super) fn read(
        &mut self,
        querier: &mut Querier,
        begun_ms: u64,
        is_due: bool,
    ) -> Reading<Vec<Process>> {
        let listed =
            match to_model::list_processes(TimedAnswers::new(&querier.read_cache(), begun_ms)) {
                Reading::Now(listed) | Reading::Earlier { value: listed, .. } => listed,
                Reading::Absent(reason) => return Reading::Absent(reason),
            };
        if listed.is_empty() {
            self.shares.retain(|_| false);
            return Reading::Now(Vec::new());
        }
        let is_shared = listed
            .keys()
            .any(|(pid, _)| Some(pid) != listed.keys().next().map(|(first, _)| first));
        let period = if querier.is_quick() {
            Duration::ZERO
        } else if is_due {
            SAMPLE_INTERVAL
        } else {
            self.took
                .saturating_mul(TIME_DIVISOR)
                .clamp(SAMPLE_INTERVAL, MAX_SHARED_INTERVAL)
        };
        if (is_due || is_shared) && self.every.is_due_after(period) {
            let (now, begun) = (now_ms(), Instant::now());
            let samples = querier.query_process_utilization(self.shares.newest_us());
            self.sampled = Reading::from(samples.map_err(to_absence)).map(|samples| {
                self.shares
                    .add_samples(&DriverSample::parse_all(&samples), now);
            });
            (self.asked_ms, self.took) = (now, begun.elapsed());
        }
        self.shares
            .retain(|pid| listed.keys().any(|(listed, _)| *listed == pid));
        Reading::Now(to_model::make_processes(
            &listed,
            &self.shares,
            &self.sampled,
            self.asked_ms,
            begun_ms,
        ))
    }
}
