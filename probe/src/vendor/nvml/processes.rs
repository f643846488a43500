//! What processes did lately, remembered between two reads.

use std::time::Duration;

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

#[derive(Debug)]
pub(super) struct ProcessReader {
    every: Every,
    /// What came of asking for samples last.
    sampled: Reading<()>,
    shares: Shares,
}

impl ProcessReader {
    pub(super) fn new() -> Self {
        Self { every: Every::new(SAMPLES_EVERY), sampled: Reading::Now(()), shares: Shares::default() }
    }

    /// Every process on the GPU, by PID, of the lists as they were answered from `begun_ms` on.
    pub(super) fn read(&mut self, querier: &mut Querier, begun_ms: u64) -> Reading<Vec<Process>> {
        let listed = match to_model::listed(Answers::new(&querier.cached(), begun_ms)) {
            Reading::Now(listed) | Reading::Earlier { value: listed, .. } => listed,
            Reading::Absent(reason) => return Reading::Absent(reason),
        };
        if listed.is_empty() {
            self.shares.retain(|_| false);
            return Reading::Now(Vec::new());
        }
        let now = now_ms();
        if self.every.is_due() {
            let samples = querier.process_utilization(self.shares.newest_us());
            self.sampled = Reading::from(samples.map_err(absence))
                .map(|samples| self.shares.take_in(&DriverSample::all(&samples), now));
        }
        self.shares.retain(|pid| listed.keys().any(|(listed, _)| *listed == pid));
        Reading::Now(to_model::processes(&listed, &self.shares, &self.sampled, now))
    }
}
