//! Comparison of a sample with a rule.

use gpumon_probe::{
    derive::Observation,
    model::{
        Condition, Gpu, GpuName, GpuSample, Health, Severity,
        fields::{GPU_FIELDS, HOST_FIELDS},
    },
};

use super::{
    Readings,
    place::{Place, PlaceState},
};
use crate::{
    describe,
    rules::{Bound, Check, Rate, Subject, Watch},
};

/// Returns the targets that a rule is evaluated for.
pub(super) fn places<'a>(
    check: &'a Check,
    readings: &Readings<'a>,
) -> Box<dyn Iterator<Item = Place> + 'a> {
    let is_absence = matches!(check.watch, Watch::Absent(_));
    if check.watch.is_of_host() {
        return Box::new(std::iter::once(Place::Machine));
    }
    let gpus: &[Gpu] = readings.inventory.map_or(&[], |inventory| &inventory.gpus);
    if check.gpus.is_empty() {
        let none = (is_absence && gpus.is_empty()).then_some(Place::Machine);
        return Box::new(gpus.iter().map(|gpu| Place::Gpu(gpu.index)).chain(none));
    }
    let is_named = |gpu: &&Gpu| check.gpus.iter().any(|name| name.is_name_of(gpu));
    let named = gpus.iter().filter(is_named);
    let is_missing = move |name: &&GpuName| !gpus.iter().any(|gpu| name.is_name_of(gpu));
    let missing = check
        .gpus
        .iter()
        .filter(move |name| is_absence && is_missing(name));
    let missing = missing.map(|name| match name {
        GpuName::Index(index) => Place::Gpu(*index),
        name => Place::Missing(name.to_string()),
    });
    Box::new(named.map(|gpu| Place::Gpu(gpu.index)).chain(missing))
}

/// Compares a sample with a rule for one target, and describes a match in a sentence. Once the rule
/// fires, it matches until the value reaches the threshold at which it clears.
pub(super) fn observe(
    check: &Check,
    place: &Place,
    readings: &Readings<'_>,
    state: &mut PlaceState,
) -> Observation<String> {
    let sample = readings.sample;
    let gpu = match place {
        Place::Gpu(index) => {
            sample.and_then(|sample| sample.gpus.iter().find(|gpu| gpu.index == *index))
        }
        Place::Machine | Place::Missing(_) => None,
    };
    match &check.watch {
        Watch::Value {
            subject,
            bound,
            rate,
        } => {
            let value = value(*subject, *bound, gpu, readings);
            let at_ms = sample.map(|sample| sample.at_ms);
            let compared = match (rate, &mut state.window) {
                (Some(Rate { per, .. }), Some(window)) => {
                    window.push(at_ms, value);
                    window.per_second().map(|change| change * per.seconds())
                }
                _ => value,
            };
            match compared {
                // After a start or a gap, a rate is unknown until half of its window has values.
                None if value.is_some() => Observation::Inconclusive,
                None => Observation::Unknown,
                Some(value) if bound.is_beyond(value, state.lasts()) => {
                    Observation::Active(describe::met_value(check, *subject, *bound, *rate, value))
                }
                Some(_) => Observation::Inactive,
            }
        }
        Watch::Absent(subject) => match absence(*subject, gpu, readings) {
            Some(why) => Observation::Active(describe::met_absence(check, *subject, &why)),
            None => Observation::Inactive,
        },
        Watch::Condition { kind, min_severity } => {
            let Some(gpu) = gpu else {
                return Observation::Unknown;
            };
            let met = condition(gpu, *kind, *min_severity);
            met.map_or(Observation::Inactive, |met| {
                Observation::Active(met.text.trim_end_matches('.').to_owned())
            })
        }
    }
}

/// Returns the most severe condition of a GPU with this kind and at least this severity.
pub(super) fn condition<'a>(
    gpu: &'a GpuSample,
    kind: Option<&str>,
    least: Severity,
) -> Option<&'a Condition> {
    gpu.conditions.iter().find(|condition| {
        condition.severity >= least && (kind.is_none() || condition.kind.tag() == kind)
    })
}

impl Bound {
    /// Returns `true` if the value is beyond the threshold. If the rule fires already (`was`), its
    /// clearing threshold is used.
    fn is_beyond(self, value: f64, was: bool) -> bool {
        let threshold = if was { self.clear } else { self.value };
        if self.is_above {
            value > threshold
        } else {
            value < threshold
        }
    }
}

/// Returns the value to compare; `None` if the GPU does not answer or has no such value.
fn value(
    subject: Subject,
    bound: Bound,
    gpu: Option<&GpuSample>,
    readings: &Readings<'_>,
) -> Option<f64> {
    let (value, limit) = match subject {
        Subject::Gpu(field) => {
            let gpu = gpu.filter(|gpu| gpu.health == Health::Ok)?;
            let board = readings
                .inventory
                .and_then(|all| all.gpus.iter().find(|board| board.index == gpu.index));
            (
                field.access.value(gpu)?,
                field.limit_value(GPU_FIELDS, gpu, board),
            )
        }
        Subject::Host(field) => {
            let host = &readings.sample?.host;
            (
                field.access.value(host)?,
                field.limit_value(HOST_FIELDS, host, None),
            )
        }
    };
    if bound.is_share {
        limit
            .filter(|limit| *limit > 0.0)
            .map(|limit| value / limit * 100.0)
    } else {
        Some(value)
    }
}

/// Returns why a reading or GPU is absent; `None` if it is present. A sleeping GPU is not expected
/// to have readings.
fn absence(
    subject: Option<Subject>,
    gpu: Option<&GpuSample>,
    readings: &Readings<'_>,
) -> Option<String> {
    let Some(sample) = readings.sample else {
        return Some("GPUs are not read".to_owned());
    };
    if let Some(Subject::Host(field)) = subject {
        return (field.access.read)(&sample.host).err().map(word);
    }
    let Some(gpu) = gpu else {
        return Some("there is no such GPU".to_owned());
    };
    match (&gpu.health, subject) {
        (Health::Ok, Some(Subject::Gpu(field))) => (field.access.read)(gpu).err().map(word),
        (Health::Ok | Health::Asleep { .. }, _) => None,
        (health, _) => Some(format!("the GPU is {}", health.word())),
    }
}

/// Returns the JSON name of a reason in words.
fn word(reason: &gpumon_probe::model::Absence) -> String {
    let reason = serde_json::to_value(reason).unwrap_or_default();
    reason["absent"]
        .as_str()
        .unwrap_or("unknown")
        .replace('_', " ")
}
