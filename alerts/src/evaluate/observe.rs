//! Comparison of a sample with a rule. A restarted collector needs time to detect conditions. Until
//! then, the absence of a condition is ignored.

use std::collections::BTreeMap;

use gpumon_probe::{
    derive::{ConditionSettings, Moment, Observation, detection_time_ms},
    model::{
        Condition, Gpu, GpuName, GpuSample, Health, Severity,
        fields::{GPU_FIELDS, HOST_FIELDS},
    },
};

use super::{
    EvaluationInput,
    target::{AlertTarget, TargetState},
};
use crate::{
    rules::{Rate, RuleCheck, Threshold, Watch, WatchedField},
    wording,
};

/// Returns the targets that a rule is evaluated for: GPUs, including missing ones, or the machine.
pub(super) fn list_targets<'a>(
    check: &'a RuleCheck,
    readings: &EvaluationInput<'a>,
) -> Box<dyn Iterator<Item = AlertTarget> + 'a> {
    let is_absence = matches!(check.watch, Watch::Absent(_));
    if check.watch.is_about_host() {
        return Box::new(std::iter::once(AlertTarget::Machine));
    }
    let gpus: &[Gpu] = readings.inventory.map_or(&[], |inventory| &inventory.gpus);
    if check.gpus.is_empty() {
        let none = (is_absence && gpus.is_empty()).then_some(AlertTarget::Machine);
        return Box::new(
            gpus.iter()
                .map(|gpu| AlertTarget::Gpu(gpu.index))
                .chain(none),
        );
    }
    let is_named = |gpu: &&Gpu| check.gpus.iter().any(|name| name.is_name_of(gpu));
    let named = gpus.iter().filter(is_named);
    let is_missing = move |name: &&GpuName| !gpus.iter().any(|gpu| name.is_name_of(gpu));
    let missing = check
        .gpus
        .iter()
        .filter(move |name| is_absence && is_missing(name));
    let missing = missing.map(|name| match name {
        GpuName::Index(index) => AlertTarget::Gpu(*index),
        name => AlertTarget::Missing(name.to_string()),
    });
    Box::new(named.map(|gpu| AlertTarget::Gpu(gpu.index)).chain(missing))
}

/// Compares a sample with a rule for one target. If the rule matches, describes the match in a
/// sentence. A firing rule matches until the value reaches the clearing threshold.
pub(super) fn observe_target(
    check: &RuleCheck,
    place: &AlertTarget,
    readings: &EvaluationInput<'_>,
    state: &mut TargetState,
) -> Observation<String> {
    let sample = readings.sample;
    let gpu = match place {
        AlertTarget::Gpu(index) => {
            sample.and_then(|sample| sample.gpus.iter().find(|gpu| gpu.index == *index))
        }
        AlertTarget::Machine | AlertTarget::Missing(_) => None,
    };
    match &check.watch {
        Watch::Value {
            subject,
            bound,
            rate,
        } => {
            let value = compared_value(*subject, *bound, gpu, readings);
            let at_ms = sample.map(|sample| sample.at_ms);
            let compared = match (rate, &mut state.window) {
                (Some(Rate { per, .. }), Some(window)) => {
                    window.push(at_ms, value);
                    window
                        .rate_per_second()
                        .map(|change| change * per.length_in_seconds())
                }
                _ => value,
            };
            match compared {
                // After a start or a gap in the samples, the rate is unknown until the values cover
                // half of the rate's window.
                None if value.is_some() => Observation::Inconclusive,
                None => Observation::Unknown,
                Some(value) if bound.is_exceeded_by(value, state.is_firing()) => {
                    Observation::Active(wording::describe_match(
                        check, *subject, *bound, *rate, value,
                    ))
                }
                Some(_) => Observation::Inactive,
            }
        }
        Watch::Absent(subject) => match absence_reason(*subject, gpu, readings) {
            Some(why) => Observation::Active(wording::describe_absence(check, *subject, &why)),
            None => Observation::Inactive,
        },
        Watch::Condition { kind, min_severity } => {
            let Some(gpu) = gpu else {
                return Observation::Unknown;
            };
            let met = find_worst_condition(gpu, *kind, *min_severity);
            met.map_or(Observation::Inactive, |met| {
                Observation::Active(met.text.trim_end_matches('.').to_owned())
            })
        }
        Watch::LimitedBy(cause) => {
            let responding = gpu.filter(|gpu| gpu.health == Health::Ok);
            let Some((gpu, limits)) = responding.and_then(|gpu| Some((gpu, gpu.limits.value()?)))
            else {
                return Observation::Unknown;
            };
            match &mut state.causes {
                None if limits.main == *cause => Observation::Active(wording::describe_main_cause(
                    &limits.summary(),
                    &limits.advice,
                )),
                None => Observation::Inactive,
                Some(causes) => {
                    causes.push(gpu.limits.read_at_ms(gpu.at_ms), limits);
                    match causes.summary() {
                        None => Observation::Inconclusive,
                        Some(mean) if mean.main() == Some(*cause) => Observation::Active(
                            wording::describe_main_cause(&mean.headline(), &mean.advice),
                        ),
                        Some(_) => Observation::Inactive,
                    }
                }
            }
        }
    }
}

/// Returns the most severe condition of a GPU with this kind and at least this severity.
pub(super) fn find_worst_condition<'a>(
    gpu: &'a GpuSample,
    kind: Option<&str>,
    least: Severity,
) -> Option<&'a Condition> {
    gpu.conditions.iter().find(|condition| {
        condition.severity >= least && (kind.is_none() || condition.kind.tag() == kind)
    })
}

impl Threshold {
    /// Returns `true` if `value` is beyond the threshold. For a rule that is already firing
    /// (`was`), the clearing threshold applies.
    fn is_exceeded_by(self, value: f64, was: bool) -> bool {
        let threshold = if was { self.clear } else { self.value };
        if self.is_above {
            value > threshold
        } else {
            value < threshold
        }
    }
}

/// Returns the value to compare; `None` if the GPU does not respond or has no such value.
fn compared_value(
    subject: WatchedField,
    bound: Threshold,
    gpu: Option<&GpuSample>,
    readings: &EvaluationInput<'_>,
) -> Option<f64> {
    let (value, limit) = match subject {
        WatchedField::Gpu(field) => {
            let gpu = gpu.filter(|gpu| gpu.health == Health::Ok)?;
            let board = readings
                .inventory
                .and_then(|all| all.gpus.iter().find(|board| board.index == gpu.index));
            (
                field.access.value(gpu)?,
                field.limit_value(GPU_FIELDS, gpu, board),
            )
        }
        WatchedField::Host(field) => {
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

/// Returns the reason why a reading or GPU is absent; `None` if it is present. A sleeping GPU is
/// not expected to have readings.
fn absence_reason(
    subject: Option<WatchedField>,
    gpu: Option<&GpuSample>,
    readings: &EvaluationInput<'_>,
) -> Option<String> {
    let Some(sample) = readings.sample else {
        return Some("no GPU readings are available".to_owned());
    };
    if let Some(WatchedField::Host(field)) = subject {
        return (field.access.read)(&sample.host)
            .err()
            .map(describe_absence_reason);
    }
    let Some(gpu) = gpu else {
        return Some("the GPU was not found".to_owned());
    };
    match (&gpu.health, subject) {
        (Health::Ok, Some(WatchedField::Gpu(field))) => {
            (field.access.read)(gpu).err().map(describe_absence_reason)
        }
        (Health::Ok | Health::Asleep { .. }, _) => None,
        (health, _) => Some(format!("the GPU's state is {}", health.json_name())),
    }
}

/// Returns the JSON name of an absence reason with spaces instead of underscores.
fn describe_absence_reason(reason: &gpumon_probe::model::Absence) -> String {
    let reason = serde_json::to_value(reason).unwrap_or_default();
    reason["absent"]
        .as_str()
        .unwrap_or("unknown")
        .replace('_', " ")
}

/// The time for which each GPU has responded since the collector was started.
///
/// A restarted collector needs minutes to detect conditions again. Until then, an absent condition
/// proves nothing, so a firing alert continues.
#[derive(Debug, Default)]
pub(super) struct TimeSinceStart {
    started_ms: Option<u64>,
    last: Option<Moment>,
    /// The time for which each GPU has responded, in milliseconds, by GPU index.
    answered_ms: BTreeMap<u32, u64>,
}

impl TimeSinceStart {
    /// Adds the time since the previous call for every GPU that responds now.
    pub(super) fn add_elapsed_time(&mut self, readings: &EvaluationInput<'_>, now: Moment) {
        if self.started_ms.replace(readings.started_ms) != Some(readings.started_ms) {
            self.answered_ms.clear();
        }
        let step_ms = self.last.replace(now).map_or(0, |last| now.ms_since(last));
        for gpu in gpus_in_sample(readings)
            .iter()
            .filter(|gpu| gpu.health == Health::Ok)
        {
            *self.answered_ms.entry(gpu.index).or_default() += step_ms;
        }
    }

    /// Returns `true` if the rule's condition is absent, but the collector was started too recently
    /// to have detected it. Always `false` for a sleeping GPU, which has no conditions.
    pub(super) fn may_condition_be_undetected(
        &self,
        check: &RuleCheck,
        place: &AlertTarget,
        readings: &EvaluationInput<'_>,
        settings: &ConditionSettings,
    ) -> bool {
        let (Watch::Condition { kind, min_severity }, AlertTarget::Gpu(index)) =
            (&check.watch, place)
        else {
            return false;
        };
        let Some(gpu) = gpus_in_sample(readings)
            .iter()
            .find(|gpu| gpu.index == *index)
        else {
            return false;
        };
        let answered_ms = self.answered_ms.get(index).copied().unwrap_or(0);
        !matches!(gpu.health, Health::Asleep { .. })
            && find_worst_condition(gpu, *kind, *min_severity).is_none()
            && answered_ms < detection_time_ms(*kind, settings)
    }
}

fn gpus_in_sample<'a>(readings: &EvaluationInput<'a>) -> &'a [GpuSample] {
    readings.sample.map_or(&[], |sample| &sample.gpus)
}
