//! Memory that will not last: what follows from the last half minute and no single sample tells. By the same rules as on
//! the page.

use std::collections::VecDeque;

use gpumon_probe::model::{GpuSample, Reading};

use super::{
    memory::size,
    phrase::{Level, Phrase},
};
use crate::table::units::rough;

/// Bytes in use by the millisecond in which they were read, the oldest first.
pub(crate) type Past = VecDeque<(u64, f64)>;

/// Growth is judged by this much of the past.
const TREND_MS: u64 = 30_000;
/// A forecast from less than this is a guess.
const TREND_LEAST_MS: u64 = 20_000;
/// Growth that has slowed down during this time is no trend.
const RECENT_MS: u64 = 8_000;
/// What is further away than this need not worry anybody yet.
const FORECAST_MS: f64 = 300_000.0;
/// A longer hole in the past breaks a trend.
const HOLE_MS: u64 = 5_000;
/// Nobody can do much in less time.
const URGENT_MS: u64 = 60_000;

/// When a GPU's memory will be full; `None` where it will not be soon.
pub(super) fn phrase(gpu: &GpuSample, past: &Past) -> Option<Phrase> {
    let Forecast { in_ms, per_ms } = forecast(gpu, past)?;
    let level = if in_ms < URGENT_MS { Level::Act } else { Level::Warn };
    let (soon, rate) = (rough(in_ms), size(per_ms * 1000.0));
    Some(Phrase::new(level, format!("full in {soon}"), format!("memory full in about {soon}: grows {rate}/s")))
}

struct Forecast {
    in_ms: u64,
    /// Bytes per millisecond.
    per_ms: f64,
}

fn forecast(gpu: &GpuSample, past: &Past) -> Option<Forecast> {
    let memory = &gpu.memory;
    let (Reading::Now(total), Reading::Now(used)) = (&memory.total_bytes, &memory.used_bytes) else { return None };
    // Bytes that the driver keeps are not there to be allocated.
    let left = total.saturating_sub(*used).saturating_sub(memory.reserved_bytes.value().copied().unwrap_or(0)) as f64;
    let per_ms = trend(past)?;
    // Growth by less than a hundredth of the memory in a minute is noise.
    let is_growth = per_ms * 60_000.0 >= 0.01 * *total as f64;
    (is_growth && left / per_ms <= FORECAST_MS).then_some(Forecast { in_ms: (left / per_ms) as u64, per_ms })
}

/// The growth per millisecond, where it has been steady and still goes on.
fn trend(series: &Past) -> Option<f64> {
    let (whole, recent) = (slope(series, TREND_MS)?, slope(series, RECENT_MS)?);
    let is_steady = whole.spanned_ms >= TREND_LEAST_MS && whole.steadiness >= 0.95;
    // Loading a model grows steadily too, but it levels off: only growth that does not is a leak.
    (is_steady && whole.per_ms > 0.0 && recent.per_ms >= 0.7 * whole.per_ms).then_some(whole.per_ms)
}

struct Slope {
    per_ms: f64,
    /// The share of the changes that a straight line explains, 0 to 1.
    steadiness: f64,
    spanned_ms: u64,
}

/// A straight line through the newest `span_ms`, by least squares, as far back as there is no hole.
fn slope(series: &Past, span_ms: u64) -> Option<Slope> {
    let (end_ms, end) = *series.back()?;
    let (mut n, mut x, mut y, mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0);
    let mut before_ms = end_ms;
    for (at_ms, value) in series.iter().rev() {
        if end_ms - at_ms > span_ms || before_ms - at_ms > HOLE_MS {
            break;
        }
        before_ms = *at_ms;
        // Measured from the end, since squares of bytes leave few digits for a difference.
        let (dx, dy) = (-((end_ms - at_ms) as f64), value - end);
        (n, x, y, xx, xy, yy) = (n + 1.0, x + dx, y + dy, xx + dx * dx, xy + dx * dy, yy + dy * dy);
    }
    let (spread_x, spread_y, together) = (n * xx - x * x, n * yy - y * y, n * xy - x * y);
    if n < 3.0 || spread_x <= 0.0 {
        return None;
    }
    let steadiness = if spread_y <= 0.0 { 1.0 } else { together * together / (spread_x * spread_y) };
    Some(Slope { per_ms: together / spread_x, steadiness, spanned_ms: end_ms - before_ms })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::examples::{self, GIB};

    /// The forecast where the memory in use was so at each second, and is as it was last.
    fn left_ms(used_gib: impl Iterator<Item = f64>) -> Option<u64> {
        let mut gpu = examples::sample(1).gpus.remove(0);
        let past: Past = used_gib.zip(0..).map(|(gib, second)| (second * 1000, gib * GIB as f64)).collect();
        gpu.memory.used_bytes = Reading::Now(past.back().unwrap().1 as u64);
        gpu.memory.total_bytes = Reading::Now(80 * GIB);
        gpu.memory.reserved_bytes = Reading::Now(0);
        forecast(&gpu, &past).map(|forecast| forecast.in_ms)
    }

    #[test]
    fn steady_growth_tells_when_it_ends() {
        let left = left_ms((0..=30).map(|second| 10.0 + f64::from(second))).unwrap();
        assert!((39_000..=41_000).contains(&left), "40 GiB at one a second: {left}");
    }

    #[test]
    fn what_levels_off_or_is_slow_or_new_or_jumps_is_no_trend() {
        assert_eq!(left_ms((0..=30).map(|second| 10.0 + f64::from(second.min(22)))), None, "it levelled off");
        assert_eq!(left_ms((0..=30).map(|second| 10.0 + f64::from(second) * 0.01)), None, "noise");
        assert_eq!(left_ms((0..=15).map(|second| 10.0 + f64::from(second))), None, "too new");
        assert_eq!(left_ms((0..=30).map(|second| if second < 20 { 10.0 } else { 60.0 })), None, "a jump");
        assert_eq!(left_ms((0..=30).map(|second| 40.0 - f64::from(second))), None, "it shrinks");
    }
}
