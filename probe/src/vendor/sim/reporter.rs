//! Events that a simulated driver reports on its own.

use std::{
    collections::VecDeque,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use crate::vendor::{Notice, Reporter};

use super::{Machine, Report};

/// The maximum time of one wait.
const PATIENCE: Duration = Duration::from_secs(1);

/// A reporter of the events of added GPUs.
pub(super) struct SimReporter {
    machine: Arc<Machine>,
    /// The coming reports in order of time, each with the driver's index of its GPU.
    to_come: VecDeque<(u32, Report)>,
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
        // Reports that are due are kept, and future ones are looked up again.
        self.to_come
            .retain(|(of, report)| *of != gpu || report.at_s <= now_s);
        let reports = self
            .machine
            .world
            .scenario()
            .reports(self.machine.found[gpu as usize], now_s);
        self.to_come
            .extend(reports.into_iter().map(|report| (gpu, report)));
        self.to_come
            .make_contiguous()
            .sort_by(|(_, one), (_, other)| one.at_s.total_cmp(&other.at_s));
    }

    fn wait(&mut self) -> Option<(u32, Notice)> {
        let begun = Instant::now();
        loop {
            let now_s = self.machine.timeline.elapsed_s();
            if let Some((gpu, report)) = self
                .to_come
                .pop_front_if(|(_, report)| report.at_s <= now_s)
            {
                return Some((gpu, report.notice));
            }
            let left = PATIENCE
                .checked_sub(begun.elapsed())
                .filter(|left| !left.is_zero())?;
            self.machine.sleep_until_event(left);
        }
    }
}

impl Machine {
    /// Sleeps until the next report, or until a fault starts or ends, but at most for `longest`.
    pub fn sleep_until_event(&self, longest: Duration) {
        let now_s = self.timeline.elapsed_s();
        let next_s = self.world.scenario().next_moment_s(now_s);
        // The sleep is slightly longer, so that the moment has passed.
        let until = next_s
            .map(|next_s| Duration::from_secs_f64(next_s - now_s) + Duration::from_micros(100));
        thread::sleep(until.map_or(longest, |until| longest.min(until)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vendor::sim::Scenario;

    fn reporter(toml: &str) -> SimReporter {
        SimReporter::new(Arc::new(Machine::start(
            Scenario::from_toml(toml, "test").unwrap(),
        )))
    }

    #[test]
    fn every_report_of_an_added_gpu_comes_once_and_in_order() {
        let mut reporter = reporter(
            "gpus = 3\n[[event]]\ngpu = 0\nat_s = 0.3\nkind = \"ecc_uncorrected\"\n\
             [[event]]\ngpu = 2\nat_s = 0.2\nkind = \"mig\"\n[[event]]\ngpu = 1\nat_s = 0.1\nkind = \"mig\"\n\
             [[event]]\ngpu = 0\nat_s = 0.1\nkind = \"xid\"\ncode = 79\n",
        );
        reporter.add(2);
        reporter.add(0);
        // The GPU was opened again, which must not duplicate reports.
        reporter.add(0);
        let seen = [reporter.wait(), reporter.wait(), reporter.wait()].map(Option::unwrap);
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
        assert_eq!(reporter.wait(), None);
        assert!(
            reporter.machine.timeline.elapsed_s() > when_s + 0.9,
            "it did not wait"
        );
    }

    #[test]
    fn what_was_reported_before_a_gpu_was_added_does_not_come() {
        let mut reporter = reporter(
            "start_ms = 1_700_000_000_000\n[[event]]\ngpu = 0\nat_s = 5\nkind = \"power_source\"\n\
             [[event]]\ngpu = 0\nat_s = 900000000\nkind = \"power_source\"\n",
        );
        reporter.add(0);
        assert_eq!(reporter.to_come.len(), 1);
    }
}
