//! The decision whether hardware counters and process samples are read for a sample while nobody
//! watches.

use crate::{derive::could_hang, model::GpuSample, vendor::ReadDepth};

/// The number of readings after a change. The first reading also covers the time before the change,
/// and a process sample remains valid for two seconds.
const AFTER_CHANGE: u32 = 4;

/// The recent activity of a GPU, which decides whether expensive values are read.
#[derive(Debug, Default)]
pub(super) struct Need {
    was_busy: bool,
    /// The number of samples since the GPU started or stopped working.
    samples: u32,
}

impl Need {
    /// Returns `true` if the counters are read with this sample, in which the inexpensive fields
    /// are already set. While nobody watches, that is the case:
    /// - at the end of a history step,
    /// - after the GPU starts or stops working, so that conditions start when their cause does,
    /// - if the GPU may hang, which only the counters can show,
    /// - if the GPU has no utilization, as with MIG, so that only the counters show its work.
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
                closes_step || self.samples <= AFTER_CHANGE || busy.is_none() || could_hang(sample)
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

    /// Returns for each sample whether the counters are read. A sample consists of the GPU's and
    /// the memory's utilization in percent, and the power draw in watts with a limit of 700 W.
    fn due(samples: &[(f64, f64, f64)], depth: ReadDepth) -> Vec<bool> {
        let mut need = Need::default();
        let read = |(gpu, memory, watts): &(f64, f64, f64)| {
            let mut sample = examples::sample(0);
            examples::use_gpu(&mut sample, *gpu, 0.0);
            sample.utilization.memory_percent = Reading::Now(*memory);
            sample.power.draw_watts = Reading::Now(*watts);
            sample.power.average_watts = Reading::Absent(Absence::NotSupported);
            sample.power.limit_watts = Reading::Now(700.0);
            need.is_due(&sample, depth)
        };
        samples.iter().map(read).collect()
    }

    #[test]
    fn they_are_read_when_work_begins_and_ends_and_in_between_for_history_alone() {
        let (idle, busy) = ((0.0, 0.0, 120.0), (98.0, 30.0, 600.0));
        let samples = [[idle; 6], [busy; 6], [idle; 6]].concat();
        let expected = [[true; 4].as_slice(), &[false; 2]].concat().repeat(3);
        assert_eq!(due(&samples, UNWATCHED), expected);
        assert_eq!(
            due(&samples, ReadDepth::Unwatched { closes_step: true }),
            [true; 18]
        );
        assert_eq!(due(&samples, ReadDepth::Full), [true; 18]);
        assert_eq!(due(&samples, ReadDepth::OneShot), [false; 18]);
    }

    #[test]
    fn a_gpu_that_may_hang_is_read_at_every_sample() {
        assert_eq!(due(&[(100.0, 0.0, 140.0); 9], UNWATCHED), [true; 9]);
        assert!(
            !due(&[(100.0, 0.0, 600.0); 9], UNWATCHED)[8],
            "it draws too much"
        );
    }

    #[test]
    fn so_is_one_that_nothing_else_tells_of() {
        let mut need = Need::default();
        let mut sample = examples::sample(0);
        sample.utilization.gpu_percent = Reading::Absent(Absence::NotSupported);
        assert!((0..9).all(|_| need.is_due(&sample, UNWATCHED)));
    }
}
