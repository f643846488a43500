//! When a GPU's memory will be full, from how it has grown; by the same rules as on the page.

use gpumon_probe::model::{ConditionKind, GpuSample, Health};

use super::{
    history::Line,
    metrics::position,
    text::bytes,
    words::{Weight, Words},
    world::World,
};
use crate::table::units::duration;

/// Growth is judged by so many seconds of the past.
const TREND_S: usize = 30;
/// A forecast from less than this is a guess.
const TREND_LEAST: usize = 20;
/// Growth that has slowed down during this time is no trend.
const RECENT: usize = 8;
/// What is further away than this need not worry anybody yet, in seconds.
const FORECAST_S: f64 = 300.0;

/// What will become of a GPU's memory; `None` where it lasts, or is nearly full already.
pub(super) fn memory(gpu: &GpuSample, world: &World) -> Option<Words> {
    let is_told = |kind: &ConditionKind| matches!(kind, ConditionKind::MemoryNearlyFull { .. });
    if gpu.health != Health::Ok || gpu.conditions.iter().any(|condition| is_told(&condition.kind)) {
        return None;
    }
    let total = *gpu.memory.total_bytes.value()? as f64;
    let reserved = gpu.memory.reserved_bytes.value().copied().unwrap_or(0) as f64;
    let left = total - *gpu.memory.used_bytes.value()? as f64 - reserved;
    let past = world.line(Line::Gpu(gpu.index, position("memory")?), TREND_S as u64 * 1000, TREND_S);
    let growth = trend(&past)?;
    // Growth by less than a hundredth of the memory in a minute is noise.
    let seconds = (left / growth).max(0.0);
    if growth * 60.0 < 0.01 * total || seconds > FORECAST_S {
        return None;
    }
    // A forecast has no more than one digit worth telling.
    let rough_s = if seconds < 60.0 { (seconds / 10.0).ceil() * 10.0 } else { (seconds / 60.0).round() * 60.0 };
    let rate = bytes(growth);
    let text = if seconds < 5.0 {
        format!("memory is full: it grew {rate}/s")
    } else {
        format!("full in about {}: grows {rate}/s", duration(rough_s as u64 * 1000))
    };
    Some(Words { text, weight: if seconds < 60.0 { Weight::Alarm } else { Weight::Notice } })
}

/// The growth per second, where it has been steady and still goes on.
fn trend(per_second: &[Option<f64>]) -> Option<f64> {
    // As far back as there is no hole; the newest second may still be without a value.
    let newest = per_second.iter().rposition(Option::is_some)?;
    let from = per_second[..newest].iter().rposition(Option::is_none).map_or(0, |hole| hole + 1);
    let values: Vec<f64> = per_second[from..=newest].iter().flatten().copied().collect();
    if values.len() < TREND_LEAST {
        return None;
    }
    let (whole, steadiness) = slope(&values)?;
    let (recent, _) = slope(&values[values.len() - RECENT..])?;
    // Loading a model grows steadily too, but it levels off: only growth that does not is a leak.
    (steadiness >= 0.95 && whole > 0.0 && recent >= 0.7 * whole).then_some(whole)
}

/// The slope of a straight line by least squares, and the share of the changes that it explains.
fn slope(values: &[f64]) -> Option<(f64, f64)> {
    let count = values.len() as f64;
    let mean_x = (count - 1.0) / 2.0;
    let mean_y = values.iter().sum::<f64>() / count;
    let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
    for (x, y) in values.iter().enumerate() {
        let (x, y) = (x as f64 - mean_x, y - mean_y);
        xx += x * x;
        xy += x * y;
        yy += y * y;
    }
    (xx > 0.0).then(|| (xy / xx, if yy > 0.0 { xy * xy / (xx * yy) } else { 1.0 }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(value: impl Fn(f64) -> f64) -> Vec<Option<f64>> {
        (0..30).map(|second| Some(value(f64::from(second)))).collect()
    }

    #[test]
    fn only_growth_that_is_steady_and_goes_on_is_a_trend() {
        let steady = trend(&line(|second| 100.0 + 2.0 * second)).unwrap();
        assert!((steady - 2.0).abs() < 1e-9);
        assert_eq!(trend(&line(|_| 5.0)), None, "nothing grows");
        assert_eq!(trend(&line(|second| 60.0 - second)), None, "it shrinks");
        assert_eq!(trend(&line(|second| second.min(20.0))), None, "it has levelled off");
        assert_eq!(trend(&line(|second| if second < 15.0 { 0.0 } else { 50.0 })), None, "one jump");
        let mut broken = line(|second| second);
        broken[15] = None;
        assert_eq!(trend(&broken), None, "too short since the hole");
        broken[15] = Some(15.0);
        broken[29] = None;
        assert!(trend(&broken).is_some());
    }
}
