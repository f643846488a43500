//! What processes did lately, remembered between two reads.

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

/// A call for the samples costs 2 ms, and there is a new one once a second at most.
const SAMPLES_EVERY: Duration = Duration::from_secs(1);

/// While nobody watches, it may take a thousandth of a core's time where processes share the GPU,
/// so that history can tell whose its work was. The driver tells of its newest period alone.
const SHARE: u32 = 1000;
const SHARED_AT_LEAST_EVERY: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct ProcessReader {
    every: Every,
    /// What came of asking for samples last.
    sampled: Reading<()>,
    shares: Shares,
    /// When that was, and how long it took.
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

    /// Every process on the GPU, by PID, of the lists as they were answered from `begun_ms` on;
    /// `is_due`: whether what they did is to be read now. It is, more rarely, of several in any
    /// case: nothing else tells them apart.
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
