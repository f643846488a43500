//! The idle power of a board: its draw at full clock while a program is on the GPU and runs
//! nothing. Kernels that only wait draw little more.
//!
//! Measured on an H200 (limit 700 W): 125 W with a context; with a kernel that spins, 125 W on one
//! multiprocessor, 123 W in a collective of NCCL on 24 of 132, 137 W with 24 blocks, 152 W with a
//! warp on each. Kernels that compute or reduce draw 250 W and more.

use super::{
    hysteresis::{Hysteresis, Observation},
    rule::View,
};
use crate::model::{GpuSample, Power};

/// The time until the draw has settled. Power is averaged over up to a second, and a hot chip has a
/// higher leakage current.
const SETTLED_MS: u64 = 5_000;

/// The maximum draw of a GPU whose kernels wait, relative to the idle draw.
const WAITING: f64 = 1.35;

/// The maximum draw of waiting kernels for boards whose idle draw with a context is not known: a
/// base, and a share of the limit. An H200 gets 165 W of 700 W.
const BASE_WATTS: f64 = 25.0;
const SHARE_OF_LIMIT: f64 = 0.2;

/// The ratio up to which two clocks are the same. The draw at a lower clock does not predict the
/// draw at a higher one.
const SAME_CLOCK: f64 = 1.05;

/// The learned idle power of one board.
#[derive(Debug)]
pub(super) struct IdlePower {
    idle: Hysteresis<()>,
    /// The lowest draw in watts, and the clock at which it was measured in MHz.
    known: Option<(f64, u32)>,
}

impl Default for IdlePower {
    fn default() -> Self {
        Self {
            idle: Hysteresis::new(SETTLED_MS, 0),
            known: None,
        }
    }
}

impl IdlePower {
    pub(super) fn learn(&mut self, view: &View<'_>) {
        let gpu_percent = view.fresh(&view.sample.utilization.gpu_percent);
        let is_held = view
            .fresh(&view.sample.processes)
            .is_some_and(|processes| !processes.is_empty());
        let is_idle = is_held && gpu_percent.is_some_and(|percent| *percent <= 0.0);
        let idle = if is_idle {
            Observation::Active(())
        } else {
            Observation::Inactive
        };
        let read =
            draw_watts(view, view.sample).zip(view.fresh(&view.sample.clocks.sm_mhz).copied());
        if let (Some(_), Some((watts, mhz))) = (self.idle.update(idle, view.now), read) {
            self.known = match self.known {
                Some((known, at)) if is_same_clock(at, mhz) => Some((known.min(watts), at)),
                Some((known, at)) if at > mhz => Some((known, at)),
                _ => Some((watts, mhz)),
            };
        }
    }

    /// Returns the maximum draw of kernels that only wait, or `None` if nothing is known about the
    /// board.
    pub(super) fn waiting_watts(&self, view: &View<'_>) -> Option<f64> {
        let mhz = view.fresh(&view.sample.clocks.sm_mhz).copied();
        let known = self
            .known
            .filter(|(_, at)| mhz.is_none_or(|mhz| mhz <= *at || is_same_clock(*at, mhz)));
        let limit = view.board.power_limits.default_watts.value().or(view
            .sample
            .power
            .limit_watts
            .value());
        known
            .map(|(watts, _)| watts * WAITING)
            .or_else(|| limit.map(|limit| BASE_WATTS + limit * SHARE_OF_LIMIT))
    }
}

/// Returns the board's draw, averaged over a second if the driver reports the average.
pub(super) fn draw_watts(view: &View<'_>, gpu: &GpuSample) -> Option<f64> {
    let Power {
        draw_watts,
        average_watts,
        ..
    } = &gpu.power;
    view.fresh(average_watts)
        .or(view.fresh(draw_watts))
        .copied()
}

fn is_same_clock(one: u32, other: u32) -> bool {
    f64::from(one.max(other)) <= f64::from(one.min(other)) * SAME_CLOCK
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        derive::{conditions::clock::Clock, examples},
        model::Reading,
    };

    fn gpu(gpu_percent: f64, watts: f64, mhz: u32) -> GpuSample {
        let mut sample = examples::sample(0);
        examples::use_gpu(&mut sample, gpu_percent, 0.0);
        sample.processes = Reading::Now(vec![examples::process(7, 1)]);
        sample.power.draw_watts = Reading::Now(watts);
        sample.power.limit_watts = Reading::Now(700.0);
        sample.clocks.sm_mhz = Reading::Now(mhz);
        sample
    }

    /// Returns the bound after these seconds, rounded.
    fn after(seconds: &[GpuSample]) -> u32 {
        let (mut power, mut clock, board) =
            (IdlePower::default(), Clock::default(), examples::board());
        let mut bound = None;
        for (second, sample) in seconds.iter().enumerate() {
            let now = clock.advance(1_000_000 + second as u64 * 1000, true);
            let view = View {
                sample,
                machine: &[],
                board: &board,
                details: None,
                below_baseline: None,
                now,
            };
            power.learn(&view);
            bound = power.waiting_watts(&view);
        }
        bound.unwrap().round() as u32
    }

    #[test]
    fn a_board_that_was_idle_for_a_while_is_known() {
        let (busy, idle) = (gpu(100.0, 123.0, 1980), gpu(0.0, 100.0, 1980));
        assert_eq!(after(std::slice::from_ref(&busy)), 165, "by its limit");
        assert_eq!(
            after(&[vec![idle.clone(); 4], vec![busy.clone()]].concat()),
            165
        );
        let hot = gpu(0.0, 120.0, 1980);
        assert_eq!(
            after(&[vec![hot; 7], vec![idle; 1], vec![busy]].concat()),
            135,
            "the lowest"
        );
    }

    #[test]
    fn a_draw_at_rest_says_nothing_of_one_at_full_clock() {
        let (busy, resting) = (gpu(100.0, 123.0, 1980), gpu(0.0, 80.0, 345));
        assert_eq!(
            after(&[vec![resting.clone(); 9], vec![busy.clone()]].concat()),
            165
        );
        let idle = gpu(0.0, 100.0, 1980);
        assert_eq!(
            after(&[vec![idle; 9], vec![resting; 9], vec![busy]].concat()),
            135
        );
        let mut free = gpu(0.0, 77.0, 1980);
        free.processes = Reading::Now(Vec::new());
        assert_eq!(after(&vec![free; 9]), 165, "nobody holds it");
    }
}
