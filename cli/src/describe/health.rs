//! Phrases for GPUs without readings.

use gpumon_probe::{
    model::{Absence, GpuSample, Health, Reading, join_advice},
    units::format_duration,
};

use super::phrase::{Level, Phrase};
use crate::terminal::units::format_clock;

/// The minimum age of a state, in milliseconds, from which its duration is shown.
const JUST_NOW_MS: u64 = 5_000;

pub(super) fn find_health_phrase(gpu: &GpuSample, now_ms: u64) -> Option<Phrase> {
    let history = |since_ms: u64, text: &dyn Fn() -> String| {
        if now_ms.saturating_sub(since_ms) < JUST_NOW_MS {
            String::new()
        } else {
            text()
        }
    };
    let lasting = |since_ms: u64| {
        history(since_ms, &|| {
            format!(" for {}", format_duration(now_ms - since_ms))
        })
    };
    let since = |since_ms: u64| {
        history(since_ms, &|| {
            format!(" since {}", format_clock(since_ms, now_ms))
        })
    };
    Some(match &gpu.health {
        Health::Ok if gpu.power.draw_watts == Reading::Absent(Absence::NoAnswer) => Phrase::new(
            Level::Warn,
            "not read yet",
            "not read yet: waiting for the driver",
        ),
        Health::Ok => return None,
        Health::Asleep { since_ms } => Phrase::new(
            Level::Quiet,
            format!("asleep{}", lasting(*since_ms)),
            format!("asleep{} to save power", since(*since_ms)),
        ),
        Health::Hung { since_ms } => Phrase::new(
            Level::Act,
            Some(lasting(*since_ms))
                .filter(|lasting| !lasting.is_empty())
                .map_or_else(
                    || "not responding".to_owned(),
                    |lasting| format!("hung{lasting}"),
                ),
            format!(
                "not responding{} (driver hang){}",
                since(*since_ms),
                if gpu.uuid.is_some() {
                    ", showing the last values"
                } else {
                    ": see gpumon doctor"
                }
            ),
        ),
        Health::Lost { since_ms } => Phrase::new(
            Level::Act,
            format!("GPU lost{}", lasting(*since_ms)),
            format!("GPU lost{}: see gpumon doctor", since(*since_ms)),
        ),
        Health::Failed {
            since_ms,
            reason,
            meaning,
            advice,
        } => {
            let explained = join_advice(meaning, advice);
            let why = if explained.is_empty() {
                format!("{reason}; see gpumon doctor")
            } else {
                explained
            };
            Phrase::new(
                Level::Act,
                "cannot be read",
                format!("cannot be read{}: {why}", since(*since_ms)),
            )
        }
    })
}

/// Returns when a GPU's state without readings started, and the phrase for the state. Returns
/// `None` if the GPU has readings.
pub(crate) fn find_unreadable_state(gpu: &GpuSample) -> Option<(u64, Phrase)> {
    let (Health::Asleep { since_ms }
    | Health::Hung { since_ms }
    | Health::Lost { since_ms }
    | Health::Failed { since_ms, .. }) = gpu.health
    else {
        return None;
    };
    Some((since_ms, find_health_phrase(gpu, since_ms)?))
}
