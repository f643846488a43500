//! The decision whether to read hardware counters and process samples for a sample while nobody is
//! watching.

use crate::{derive::could_hang, model::GpuSample, vendor::ReadDepth};

/// The number of samples after a change for which the counters are read. The first of them also
/// covers the time before the change, and a process sample remains valid for two seconds.
const READS_AFTER_CHANGE: u32 = 4;

/// A GPU's recent activity, which determines whether expensive values are read.
#[derive(Debug, Default)]
pub(super) struct CounterSchedule {
    was_busy: bool,
    /// The number of samples since the GPU last started or stopped working.
    samples: u32,
}

impl CounterSchedule {
    /// Returns `true` if the counters must be read for `sample`, whose inexpensive fields are
    /// already set. While nobody is watching, the counters are read only:
    /// - at the end of a history step,
    /// - after the GPU starts or stops working, so that conditions start in time,
    /// - if the GPU may be hung, which only the counters can show,
    /// - if the GPU reports no utilization, as with MIG, so that only the counters show its work.
    pub(super) fn is_due(&mut self, sample: &GpuSample, depth: ReadDepth) -> bool {
        let busy = sample
            .utilization
            .gpu_percent
            .value()
            .map(|percent| *percent > 0.0);
        let is_busy = busy.unwrap_or(false);
        let is_same = std::mem::replace(&mut self.was_busy, is_busy) == is_busy;
        self.samples = if is_same {
            self.samples.saturating_add(1)
        } else {
            1
        };
        match depth {
            ReadDepth::Full => true,
            ReadDepth::OneShot | ReadDepth::Metered => false,
            ReadDepth::Unwatched { closes_step } => {
                closes_step
                    || self.samples <= READS_AFTER_CHANGE
                    || busy.is_none()
                    || could_hang(sample)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        derive::examples,
        model::{Absence, Reading},
    };

    const UNWATCHED: ReadDepth = ReadDepth::Unwatched { closes_step: false };

    /// Returns for each sample whether the counters would be read. A sample consists of the GPU
    /// utilization and the memory utilization in percent, and the power draw in watts. The power
    /// limit is 700 W.
    fn find_due_samples(samples: &[(f64, f64, f64)], depth: ReadDepth) -> Vec<bool> {
        let mut need = CounterSchedule::default();
        let read = |(gpu, memory, watts): &(f64, f64, f64)| {
            let mut sample = examples::make_sample(0);
            examples::set_gpu_use(&mut sample, *gpu, 0.0);
            sample.utilization.memory_percent = Reading::Now(*memory);
            sample.power.draw_watts = Reading::Now(*watts);
            sample.power.average_watts = Reading::Absent(Absence::NotSupported);
            sample.power.limit_watts = Reading::Now(700.0);
            need.is_due(&sample, depth)
        };
        samples.iter().map(read).collect()
    }

    #[test]
    fn counters_are_read_when_work_starts_or_ends() {
        let (idle, busy) = ((0.0, 0.0, 120.0), (98.0, 30.0, 600.0));
        let samples = [[idle; 6], [busy; 6], [idle; 6]].concat();
        let expected = [[true; 4].as_slice(), &[false; 2]].concat().repeat(3);
        assert_eq!(find_due_samples(&samples, UNWATCHED), expected);
        assert_eq!(
            find_due_samples(&samples, ReadDepth::Unwatched { closes_step: true }),
            [true; 18]
        );
        assert_eq!(find_due_samples(&samples, ReadDepth::Full), [true; 18]);
        assert_eq!(find_due_samples(&samples, ReadDepth::OneShot), [false; 18]);
    }

    #[test]
    fn suspected_hang_reads_counters_with_every_sample() {
        assert_eq!(
            find_due_samples(&[(100.0, 0.0, 140.0); 9], UNWATCHED),
            [true; 9]
        );
        assert!(
            !find_due_samples(&[(100.0, 0.0, 600.0); 9], UNWATCHED)[8],
            "it draws too much"
        );
    }

    #[test]
    fn missing_utilization_reads_counters_with_every_sample() {
        let mut need = CounterSchedule::default();
        let mut sample = examples::make_sample(0);
        sample.utilization.gpu_percent = Reading::Absent(Absence::NotSupported);
        assert!((0..9).all(|_| need.is_due(&sample, UNWATCHED)));
    }
}
