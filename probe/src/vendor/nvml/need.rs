//! Whether the counters of the hardware and of processes are read with a sample that nobody
//! watches.

use crate::{derive::could_hang, model::GpuSample, vendor::ReadDepth};

/// So many readings behind a change: the first is of the time before it, too, and what a process
/// did stands for two seconds.
const AFTER_CHANGE: u32 = 4;

/// What a GPU did at the samples before.
#[derive(Debug, Default)]
pub(super) struct Need {
    was_busy: bool,
    /// For how many samples that has been so.
    samples: u32,
}

impl Need {
    /// Whether they are read now, where `sample` has what is cheap: at the end of a step of
    /// history; where the GPU has just begun or ceased to work, so that a condition begins when its
    /// cause does; and at every sample of a GPU that may hang, which is found by counters that do
    /// not move, or whose work nothing else tells of, as that of one with MIG.
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

    /// At which of these samples, each of a utilization, of memory's and of a power draw out of 700
    /// W, they are read.
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
