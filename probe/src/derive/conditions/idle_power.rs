//! The idle power of a board: its power draw at full clock while a program is on the GPU but runs
//! nothing. Kernels that only wait draw little more.
//!
//! Measured on an H200 with a limit of 700 W: 125 W with an idle context, and also with a kernel
//! that spins on one multiprocessor. An NCCL collective that waits on 24 of the 132 multiprocessors
//! draws 123 W. Kernels that spin draw 137 W with 24 blocks, and 152 W with one warp on every
//! multiprocessor. Kernels that compute or reduce draw 250 W and more.

use super::{
    hysteresis::{Hysteresis, Observation},
    rule::View,
};
use crate::model::{GpuSample, Power};

/// The time until the power draw has settled. Power is averaged over up to a second, and a hot chip
/// has a higher leakage current.
const SETTLED_MS: u64 = 5_000;

/// The maximum draw of a GPU whose kernels only wait, relative to its idle draw.
const MAX_WAITING_RATIO: f64 = 1.35;

/// The base of the maximum draw of waiting kernels, for boards whose idle draw is unknown. A share
/// of the power limit is added: for an H200 with a limit of 700 W, the maximum is 165 W.
const BASE_WATTS: f64 = 25.0;
const SHARE_OF_LIMIT: f64 = 0.2;

/// The maximum ratio of two clocks that count as the same. The draw at a lower clock does not
/// predict the draw at a higher clock.
const SAME_CLOCK_RATIO: f64 = 1.05;

/// The learned idle power of one board.
#[derive(Debug)]
pub(super) struct IdlePower {
    idle: Hysteresis<()>,
    /// The lowest draw in watts, and the clock in MHz at which it was measured.
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
        let gpu_percent = view.fresh_value(&view.sample.utilization.gpu_percent);
        let is_held = view
            .fresh_value(&view.sample.processes)
            .is_some_and(|processes| !processes.is_empty());
        let is_idle = is_held && gpu_percent.is_some_and(|percent| *percent <= 0.0);
        let idle = if is_idle {
            Observation::Active(())
        } else {
            Observation::Inactive
        };
        let read = draw_watts(view, view.sample)
            .zip(view.fresh_value(&view.sample.clocks.sm_mhz).copied());
        if let (Some(_), Some((watts, mhz))) = (self.idle.update(idle, view.now), read) {
            self.known = match self.known {
                Some((known, at)) if is_same_clock(at, mhz) => Some((known.min(watts), at)),
                Some((known, at)) if at > mhz => Some((known, at)),
                _ => Some((watts, mhz)),
            };
        }
    }

    /// Returns the maximum draw of kernels that only wait, or `None` if neither the idle draw nor
    /// the power limit is known.
    pub(super) fn max_waiting_watts(&self, view: &View<'_>) -> Option<f64> {
        let mhz = view.fresh_value(&view.sample.clocks.sm_mhz).copied();
        let known = self
            .known
            .filter(|(_, at)| mhz.is_none_or(|mhz| mhz <= *at || is_same_clock(*at, mhz)));
        let limit = view.board.power_limits.default_watts.value().or(view
            .sample
            .power
            .limit_watts
            .value());
        known
            .map(|(watts, _)| watts * MAX_WAITING_RATIO)
            .or_else(|| limit.map(|limit| BASE_WATTS + limit * SHARE_OF_LIMIT))
    }
}

/// Returns the board's power draw, averaged over a second if the driver reports the average.
pub(super) fn draw_watts(view: &View<'_>, gpu: &GpuSample) -> Option<f64> {
    let Power {
        draw_watts,
        average_watts,
        ..
    } = &gpu.power;
    view.fresh_value(average_watts)
        .or(view.fresh_value(draw_watts))
        .copied()
}

fn is_same_clock(one: u32, other: u32) -> bool {
    f64::from(one.max(other)) <= f64::from(one.min(other)) * SAME_CLOCK_RATIO
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        derive::{conditions::clock::Clock, examples},
        model::Reading,
    };

    fn make_gpu(gpu_percent: f64, watts: f64, mhz: u32) -> GpuSample {
        let mut sample = examples::make_sample(0);
        examples::set_gpu_use(&mut sample, gpu_percent, 0.0);
        sample.processes = Reading::Now(vec![examples::make_process(7, 1)]);
        sample.power.draw_watts = Reading::Now(watts);
        sample.power.limit_watts = Reading::Now(700.0);
        sample.clocks.sm_mhz = Reading::Now(mhz);
        sample
    }

    /// Returns the rounded maximum draw of waiting kernels after these samples, which are a second
    /// apart.
    fn compute_bound_after(seconds: &[GpuSample]) -> u32 {
        let (mut power, mut clock, board) = (
            IdlePower::default(),
            Clock::default(),
            examples::make_board(),
        );
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
            bound = power.max_waiting_watts(&view);
        }
        bound.unwrap().round() as u32
    }

    #[test]
    fn idle_power_is_learned_after_a_while() {
        let (busy, idle) = (make_gpu(100.0, 123.0, 1980), make_gpu(0.0, 100.0, 1980));
        assert_eq!(
            compute_bound_after(std::slice::from_ref(&busy)),
            165,
            "by its limit"
        );
        assert_eq!(
            compute_bound_after(&[vec![idle.clone(); 4], vec![busy.clone()]].concat()),
            165
        );
        let hot = make_gpu(0.0, 120.0, 1980);
        assert_eq!(
            compute_bound_after(&[vec![hot; 7], vec![idle; 1], vec![busy]].concat()),
            135,
            "the lowest"
        );
    }

    #[test]
    fn power_at_low_clock_is_ignored() {
        let (busy, resting) = (make_gpu(100.0, 123.0, 1980), make_gpu(0.0, 80.0, 345));
        assert_eq!(
            compute_bound_after(&[vec![resting.clone(); 9], vec![busy.clone()]].concat()),
            165
        );
        let idle = make_gpu(0.0, 100.0, 1980);
        assert_eq!(
            compute_bound_after(&[vec![idle; 9], vec![resting; 9], vec![busy]].concat()),
            135
        );
        let mut free = make_gpu(0.0, 77.0, 1980);
        free.processes = Reading::Now(Vec::new());
        assert_eq!(compute_bound_after(&vec![free; 9]), 165, "nobody holds it");
    }
}
