//! The baseline of a GPU: its usual clock and power at each load.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::rule::{Hysteresis, Observation, View};
use crate::model::{GpuSample, SLOW_CLOCK_RATIO};

/// How long a load must have been observed before its usual values count as known.
pub(super) const EVIDENCE_MS: u64 = 300_000;
const EVIDENCE_S: f64 = EVIDENCE_MS as f64 / 1000.0;

/// The maximum distance of two loads that count as near each other and have about the same clock. A
/// load consists of two values, and neither value may differ by more than this many tenths of its
/// maximum.
const MAX_NEAR_DISTANCE: u16 = 2;

/// The largest plausible clock in MHz, which no chip exceeds.
const MAX_MHZ: f64 = 10_000.0;
const MAX_WATTS: f64 = 10_000.0;

/// The maximum relative change of the learned values per second: 1 % in an hour at the same load.
const MAX_CHANGE_PER_S: f64 = 0.01 / 3_600.0;

/// The usual clock and power of one GPU at each load, with its current settings. The baseline is
/// learned while the program runs, and can be saved.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Baseline {
    /// The settings for which the baseline was learned. The baseline is discarded if the settings
    /// change.
    settings: Settings,
    /// The learned values by load, as numbered by [`Load::to_number`].
    bands: BTreeMap<u16, Band>,
}

/// User settings that affect clocks and power.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Settings {
    pub(super) limit_watts: Option<f64>,
    /// The application clock of the graphics engine.
    pub(super) application_mhz: Option<u32>,
}

/// The usual values at one load.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Band {
    /// How long the load has been observed, in seconds, up to [`EVIDENCE_MS`].
    seconds: f64,
    /// The median clock of the multiprocessors, in MHz.
    pub(super) sm_mhz: f64,
    /// The median power draw, in watts.
    pub(super) watts: f64,
}

/// The load of a GPU, in tenths of the maximum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Load {
    /// Whether the load comes from the hardware's counters.
    pub(super) counted: bool,
    /// SM activity, or utilization if there are no hardware counters.
    pub(super) sm: u16,
    /// Tensor activity, or memory utilization if there are no hardware counters.
    pub(super) other: u16,
}

impl Load {
    pub(super) fn new(counted: bool, sm_percent: f64, other_percent: f64) -> Self {
        let tenth = |percent: f64| (percent / 10.0).clamp(0.0, 9.0) as u16;
        Self {
            counted,
            sm: tenth(sm_percent),
            other: tenth(other_percent),
        }
    }

    /// Returns `true` if two loads are about the same.
    pub(super) fn is_similar(self, other: Self) -> bool {
        self.counted == other.counted
            && self.sm.abs_diff(other.sm) <= 1
            && self.other.abs_diff(other.other) <= 1
    }

    fn to_number(self) -> u16 {
        u16::from(self.counted)
            .saturating_mul(100)
            .saturating_add(self.sm.saturating_mul(10))
            .saturating_add(self.other)
    }

    fn from_number(number: u16) -> Self {
        Self {
            counted: number >= 100,
            sm: number / 10 % 10,
            other: number % 10,
        }
    }

    /// Returns the distance to another load, or `None` if the loads are not near each other.
    fn distance_if_near(self, other: Self) -> Option<u16> {
        let (sm, rest) = (self.sm.abs_diff(other.sm), self.other.abs_diff(other.other));
        (self.counted == other.counted && sm <= MAX_NEAR_DISTANCE && rest <= MAX_NEAR_DISTANCE)
            .then_some(sm.saturating_add(rest))
    }
}

impl Baseline {
    pub(crate) fn is_empty(&self) -> bool {
        self.bands.is_empty()
    }

    /// Returns `true` if all values are plausible. A saved baseline can contain anything.
    pub(crate) fn is_plausible(&self) -> bool {
        self.bands.iter().all(|(number, band)| {
            *number < 200
                && (0.0..=EVIDENCE_S).contains(&band.seconds)
                && (1.0..=MAX_MHZ).contains(&band.sm_mhz)
                && (0.0..=MAX_WATTS).contains(&band.watts)
        })
    }

    /// Returns the usual values at `load`, or `None` if this load has not been observed for long
    /// enough.
    pub(super) fn usual_band(&self, load: Load) -> Option<Band> {
        self.bands
            .get(&load.to_number())
            .copied()
            .filter(|band| band.seconds >= EVIDENCE_S)
    }

    /// Returns the usual values at the nearest known load. If several known loads are equally near,
    /// returns the values of the load with the lowest clock. The nearest load is needed because a
    /// GPU whose clock decreases can have loads that were never observed.
    pub(super) fn nearest_usual_band(&self, load: Load) -> Option<Band> {
        let known = self
            .bands
            .iter()
            .filter(|(_, band)| band.seconds >= EVIDENCE_S);
        let near = known.filter_map(|(number, band)| {
            Some((load.distance_if_near(Load::from_number(*number))?, *band))
        });
        let nearest =
            near.min_by(|(one, a), (other, b)| one.cmp(other).then(a.sm_mhz.total_cmp(&b.sm_mhz)));
        nearest.map(|(_, band)| band)
    }

    /// Sets the settings, and discards the learned values if the settings have changed. A setting
    /// that is `None` counts as unchanged.
    pub(super) fn reset_if_settings_changed(&mut self, settings: Settings) {
        let is_same = |was: Option<f64>, is: Option<f64>| {
            was.zip(is).is_none_or(|(was, is)| (was - is).abs() < 0.5)
        };
        let (was, mhz) = (self.settings, |settings: Settings| {
            settings.application_mhz.map(f64::from)
        });
        if !is_same(was.limit_watts, settings.limit_watts) || !is_same(mhz(was), mhz(settings)) {
            self.bands.clear();
        }
        self.settings = Settings {
            limit_watts: settings.limit_watts.or(was.limit_watts),
            application_mhz: settings.application_mhz.or(was.application_mhz),
        };
    }

    /// Updates the usual values at `load` with values that were observed for the given number of
    /// seconds. If the load is not yet known, and the clock is far below that of a nearby known
    /// load, learning starts from the known load's values, because a slow GPU must not define the
    /// baseline.
    pub(super) fn learn(&mut self, load: Load, seconds: f64, sm_mhz: f64, watts: f64) {
        if seconds <= 0.0 {
            return;
        }
        let near = self
            .nearest_usual_band(load)
            .filter(|near| sm_mhz < near.sm_mhz * SLOW_CLOCK_RATIO);
        let band = self.bands.entry(load.to_number()).or_insert(Band {
            seconds: 0.0,
            sm_mhz,
            watts,
        });
        if let Some(near) = near.filter(|_| band.seconds < EVIDENCE_S) {
            *band = near;
        }
        let is_known = band.seconds >= EVIDENCE_S;
        band.seconds = (band.seconds + seconds).min(EVIDENCE_S);
        for (usual, now) in [(&mut band.sm_mhz, sm_mhz), (&mut band.watts, watts)] {
            *usual = if is_known {
                // The value approaches the median in fixed steps, however large the difference is.
                let step = *usual * MAX_CHANGE_PER_S * seconds;
                *usual + (now - *usual).clamp(-step, step)
            } else {
                *usual + (now - *usual) * (seconds / band.seconds)
            };
        }
    }
}

// The idle power of a board: its power draw at full clock while a program is on the GPU but runs
// nothing. Kernels that only wait draw little more.
//
// Measured on an H200 with a limit of 700 W: 125 W with an idle context, and also with a kernel
// that spins on one multiprocessor. An NCCL collective that waits on 24 of the 132 multiprocessors
// draws 123 W. Kernels that spin draw 137 W with 24 blocks, and 152 W with one warp on every
// multiprocessor. Kernels that compute or reduce draw 250 W and more.

/// How long a GPU must have been idle before its power draw counts as idle power. The reported
/// power is averaged over up to a second, and a chip that is still hot has a higher leakage
/// current.
const SETTLED_MS: u64 = 5_000;

/// The maximum draw of a GPU whose kernels only wait, relative to its idle draw.
const MAX_WAITING_RATIO: f64 = 1.35;

/// If a board's idle draw is unknown, waiting kernels are assumed to draw at most this many watts
/// plus a share of the power limit: 165 W for an H200 with a limit of 700 W.
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
                Some((known, at)) if are_clocks_similar(at, mhz) => Some((known.min(watts), at)),
                Some((known, at)) if at > mhz => Some((known, at)),
                _ => Some((watts, mhz)),
            };
        }
    }

    /// Returns the maximum draw of kernels that only wait, or `None` if neither the idle draw nor
    /// the power limit is known.
    pub(super) fn max_watts_of_waiting_kernels(&self, view: &View<'_>) -> Option<f64> {
        let mhz = view.fresh_value(&view.sample.clocks.sm_mhz).copied();
        let known = self
            .known
            .filter(|(_, at)| mhz.is_none_or(|mhz| mhz <= *at || are_clocks_similar(*at, mhz)));
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
    view.fresh_value(&gpu.power.average_watts)
        .or(view.fresh_value(&gpu.power.draw_watts))
        .copied()
}

fn are_clocks_similar(one: u32, other: u32) -> bool {
    f64::from(one.max(other)) <= f64::from(one.min(other)) * SAME_CLOCK_RATIO
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns a baseline learned in five minutes at one load.
    pub(crate) fn make_learned_baseline() -> Baseline {
        let mut baseline = Baseline::default();
        baseline.reset_if_settings_changed(Settings {
            limit_watts: Some(700.0),
            application_mhz: None,
        });
        for _ in 0..301 {
            baseline.learn(Load::new(true, 90.0, 55.0), 1.0, 1980.0, 500.0);
        }
        baseline
    }

    const LOAD: Load = Load {
        counted: true,
        sm: 9,
        other: 5,
    };

    fn learn_baseline(seconds: u32) -> Baseline {
        let mut baseline = Baseline::default();
        baseline.reset_if_settings_changed(Settings {
            limit_watts: Some(700.0),
            application_mhz: None,
        });
        for second in 0..seconds {
            baseline.learn(
                LOAD,
                1.0,
                1980.0,
                if second % 2 == 0 { 500.0 } else { 520.0 },
            );
        }
        baseline
    }

    #[test]
    fn usual_clock_is_learned_after_five_minutes() {
        assert_eq!(learn_baseline(299).usual_band(LOAD), None);
        let band = learn_baseline(301).usual_band(LOAD).unwrap();
        assert!(
            (band.sm_mhz - 1980.0).abs() < 1e-6 && (band.watts - 510.0).abs() < 1.0,
            "{band:?}"
        );
        assert_eq!(learn_baseline(301).usual_band(Load { sm: 8, ..LOAD }), None);
        assert_eq!(
            learn_baseline(301).usual_band(Load {
                counted: false,
                ..LOAD
            }),
            None
        );
    }

    #[test]
    fn usual_clock_of_similar_load_replaces_missing_one() {
        let mut baseline = learn_baseline(301);
        let (near, far) = (
            Load {
                sm: 7,
                other: 6,
                ..LOAD
            },
            Load { sm: 6, ..LOAD },
        );
        assert!(
            baseline
                .nearest_usual_band(near)
                .is_some_and(|usual| (usual.sm_mhz - 1980.0).abs() < 1e-6)
        );
        assert_eq!(
            [
                far,
                Load {
                    counted: false,
                    ..LOAD
                }
            ]
            .map(|load| baseline.nearest_usual_band(load)),
            [None, None]
        );
        for _ in 0..3_600 {
            baseline.learn(near, 1.0, 1410.0, 330.0);
            baseline.learn(far, 1.0, 1900.0, 330.0);
        }
        let clock = |load| baseline.usual_band(load).unwrap().sm_mhz;
        assert!(
            (0.985..0.995).contains(&(clock(near) / 1980.0)),
            "{}",
            clock(near)
        );
        assert!((clock(far) - 1900.0).abs() < 1.0, "{}", clock(far));
    }

    #[test]
    fn baseline_changes_slowly() {
        let mut baseline = learn_baseline(400);
        for _ in 0..3_600 {
            baseline.learn(LOAD, 1.0, 1000.0, 200.0);
        }
        let band = baseline.usual_band(LOAD).unwrap();
        assert!((0.985..0.995).contains(&(band.sm_mhz / 1980.0)), "{band:?}");
        for _ in 0..100 * 3_600 {
            baseline.learn(LOAD, 1.0, 1000.0, 200.0);
        }
        assert!((baseline.usual_band(LOAD).unwrap().sm_mhz - 1000.0).abs() < 1.0);
    }

    #[test]
    fn changed_settings_reset_baseline() {
        let mut baseline = learn_baseline(400);
        baseline.reset_if_settings_changed(Settings::default());
        baseline.reset_if_settings_changed(Settings {
            limit_watts: Some(700.0),
            application_mhz: Some(1980),
        });
        assert!(baseline.usual_band(LOAD).is_some());
        for settings in [
            Settings {
                limit_watts: Some(500.0),
                application_mhz: None,
            },
            Settings {
                limit_watts: None,
                application_mhz: Some(1200),
            },
        ] {
            let mut baseline = baseline.clone();
            baseline.reset_if_settings_changed(settings);
            assert_eq!(baseline.usual_band(LOAD), None);
        }
    }

    #[test]
    fn baseline_survives_serialization() {
        let baseline = learn_baseline(400);
        let kept = serde_json::to_string(&baseline).unwrap();
        assert_eq!(serde_json::from_str::<Baseline>(&kept).unwrap(), baseline);
    }
}

#[cfg(test)]
mod idle_power_tests {
    use super::*;
    use crate::{
        derive::{conditions::rule::Clock, examples},
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

    /// Learns the idle power from samples that are one second apart, and returns the resulting
    /// maximum draw of waiting kernels, rounded.
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
            bound = power.max_watts_of_waiting_kernels(&view);
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
