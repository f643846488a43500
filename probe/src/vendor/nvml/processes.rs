//! The processes on a GPU, and their recent activity.

use std::time::{Duration, Instant};

use super::{
    cached::Answers,
    error::absence,
    paced::Every,
    querier::Querier,
    shares::{DriverSample, Shares},
    to_model,
};
use crate::model::{Process, Reading, now_ms};

/// The minimum time between two requests for process samples. A request costs 2 ms, and the driver
/// makes new samples at most once a second.
const SAMPLES_EVERY: Duration = Duration::from_secs(1);

/// The reading of process samples for a GPU with several processes may use 1/1000 of a core's time
/// while nobody watches. History needs the samples to attribute the GPU's work, and the driver only
/// returns each process's latest period.
const SHARE: u32 = 1000;
const SHARED_AT_LEAST_EVERY: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct ProcessReader {
    every: Every,
    /// The result of the last request for process samples.
    sampled: Reading<()>,
    shares: Shares,
    /// The time of the last request in milliseconds since 1970, and its duration.
    asked_ms: u64,
    took: Duration,
}

impl ProcessReader {
    pub(super) fn new() -> Self {
        Self {
            every: Every::new(SAMPLES_EVERY),
            sampled: Reading::Now(()),
            shares: Shares::default(),
            asked_ms: 0,
            took: Duration::ZERO,
        }
    }

    /// Returns all processes on the GPU by PID, from lists that were read at or after `begun_ms`.
    /// `is_due` decides whether their activity is read. If several processes share the GPU, it is
    /// also read otherwise, but less often, because nothing else shows which process works.
    pub(super) fn read(
        &mut self,
        querier: &mut Querier,
        begun_ms: u64,
        is_due: bool,
    ) -> Reading<Vec<Process>> {
        let listed = match to_model::listed(Answers::new(&querier.cached(), begun_ms)) {
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
            SAMPLES_EVERY
        } else {
            self.took
                .saturating_mul(SHARE)
                .clamp(SAMPLES_EVERY, SHARED_AT_LEAST_EVERY)
        };
        if (is_due || is_shared) && self.every.is_due_after(period) {
            let (now, begun) = (now_ms(), Instant::now());
            let samples = querier.process_utilization(self.shares.newest_us());
            self.sampled = Reading::from(samples.map_err(absence))
                .map(|samples| self.shares.take_in(&DriverSample::all(&samples), now));
            (self.asked_ms, self.took) = (now, begun.elapsed());
        }
        self.shares
            .retain(|pid| listed.keys().any(|(listed, _)| *listed == pid));
        Reading::Now(to_model::processes(
            &listed,
            &self.shares,
            &self.sampled,
            self.asked_ms,
            begun_ms,
        ))
    }
}
