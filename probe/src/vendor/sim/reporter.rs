//! Events that a simulated driver reports without a request.

use std::{
    collections::VecDeque,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use crate::vendor::{Notice, Reporter};

use super::{Machine, ScheduledEvent};

/// The maximum time of a single wait.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// A reporter for the events of all GPUs that have been added.
pub(super) struct SimReporter {
    machine: Arc<Machine>,
    /// The upcoming events, sorted by time. Each comes with the driver's index of its GPU.
    to_come: VecDeque<(u32, ScheduledEvent)>,
}

impl SimReporter {
    pub(super) fn new(machine: Arc<Machine>) -> Self {
        Self {
            machine,
            to_come: VecDeque::new(),
        }
    }
}

impl Reporter for SimReporter {
    fn add(&mut self, gpu: u32) {
        let now_s = self.machine.timeline.elapsed_s();
        // Events that are already due are kept. The GPU's future events are replaced by those in
        // the scenario.
        self.to_come
            .retain(|(of, report)| *of != gpu || report.at_s <= now_s);
        let reports = self
            .machine
            .world
            .scenario()
            .list_events(self.machine.found[gpu as usize], now_s);
        self.to_come
            .extend(reports.into_iter().map(|report| (gpu, report)));
        self.to_come
            .make_contiguous()
            .sort_by(|(_, one), (_, other)| one.at_s.total_cmp(&other.at_s));
    }

    fn wait_for_event(&mut self) -> Option<(u32, Notice)> {
        let begun = Instant::now();
        loop {
            let now_s = self.machine.timeline.elapsed_s();
            if let Some((gpu, report)) = self
                .to_come
                .pop_front_if(|(_, report)| report.at_s <= now_s)
            {
                return Some((gpu, report.notice));
            }
            let left = MAX_WAIT
                .checked_sub(begun.elapsed())
                .filter(|left| !left.is_zero())?;
            self.machine.sleep_until_event(left);
        }
    }
}

impl Machine {
    /// Sleeps until the next event is reported or a fault starts or ends, but at most for
    /// `longest`.
    pub fn sleep_until_event(&self, longest: Duration) {
        let now_s = self.timeline.elapsed_s();
        let next_s = self.world.scenario().next_change_s(now_s);
        // Sleeping slightly longer ensures that the event's time has passed.
        let until = next_s
            .map(|next_s| Duration::from_secs_f64(next_s - now_s) + Duration::from_micros(100));
        thread::sleep(until.map_or(longest, |until| longest.min(until)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vendor::sim::Scenario;

    fn make_reporter(toml: &str) -> SimReporter {
        SimReporter::new(Arc::new(Machine::start(
            Scenario::from_toml(toml, "test").unwrap(),
        )))
    }

    #[test]
    fn reports_of_added_gpus_arrive_in_order() {
        let mut reporter = make_reporter(
            "gpus = 3\n[[event]]\ngpu = 0\nat_s = 0.3\nkind = \"ecc_uncorrected\"\n[[event]]\ngpu \
             = 2\nat_s = 0.2\nkind = \"mig\"\n[[event]]\ngpu = 1\nat_s = 0.1\nkind = \
             \"mig\"\n[[event]]\ngpu = 0\nat_s = 0.1\nkind = \"xid\"\ncode = 79\n",
        );
        reporter.add(2);
        reporter.add(0);
        // Adding the GPU again, as when it is reopened, must not duplicate events.
        reporter.add(0);
        let seen = [
            reporter.wait_for_event(),
            reporter.wait_for_event(),
            reporter.wait_for_event(),
        ]
        .map(Option::unwrap);
        assert_eq!(
            seen,
            [
                (0, Notice::Error { code: 79 }),
                (2, Notice::Partitions),
                (0, Notice::EccUncorrected)
            ]
        );
        let when_s = reporter.machine.timeline.elapsed_s();
        assert!((0.3..0.9).contains(&when_s), "it came at {when_s} s");
        assert_eq!(reporter.wait_for_event(), None);
        assert!(
            reporter.machine.timeline.elapsed_s() > when_s + 0.9,
            "it did not wait"
        );
    }

    #[test]
    fn past_reports_are_skipped() {
        let mut reporter = make_reporter(
            "start_ms = 1_700_000_000_000\n[[event]]\ngpu = 0\nat_s = 5\nkind = \"power_source\"\n\
             [[event]]\ngpu = 0\nat_s = 900000000\nkind = \"power_source\"\n",
        );
        reporter.add(0);
        assert_eq!(reporter.to_come.len(), 1);
    }
}
