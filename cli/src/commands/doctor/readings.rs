//! Which readings this machine has, and why the others are missing: walked over the JSON, so that none is forgotten.

use std::collections::{BTreeMap, BTreeSet};

use gpumon_probe::model::Absence;
use serde::Serialize;
use serde_json::Value;

use crate::driver::Answer;

/// What is there and what is not, of the GPUs that answer.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(super) struct Readings {
    /// Paths in the sample or the details, as `power.draw_watts`, that at least one GPU has.
    pub(super) present: Vec<String>,
    /// What is missing, those that are for the same reason on the same GPUs together.
    pub(super) missing: Vec<Missing>,
}

#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Missing {
    pub(super) reason: String,
    /// NVML's indices of the GPUs that lack them.
    pub(super) gpus: Vec<u32>,
    pub(super) readings: Vec<String>,
}

/// What says who, when and how rather than being read.
const NO_READINGS: [&str; 5] = ["index", "uuid", "at_ms", "health", "conditions"];

impl Readings {
    pub(super) fn of(answer: &Answer) -> Self {
        let mut all = Vec::new();
        for (sample, details) in answer.well() {
            let mut of_one = Vec::new();
            for value in [serde_json::to_value(sample), serde_json::to_value(details)]
                .into_iter()
                .flatten()
            {
                walk(&value, String::new(), &mut of_one);
            }
            all.push((sample.index, of_one));
        }
        group(all)
    }
}

/// A reading's path, and why it is absent if it is.
type Found = (String, Option<String>);

fn walk(value: &Value, path: String, found: &mut Vec<Found>) {
    match value {
        Value::Object(fields) if fields.contains_key("absent") => {
            // The words for people are the model's own.
            let reason =
                serde_json::from_value::<Absence>(value.clone()).map(|absence| absence.to_string());
            found.push((
                path,
                Some(reason.unwrap_or_else(|_| fields["absent"].to_string())),
            ));
        }
        Value::Object(fields)
            if !(fields.contains_key("value") && fields.contains_key("at_ms")) =>
        {
            for (name, value) in fields {
                match path.as_str() {
                    "" if NO_READINGS.contains(&name.as_str()) => {}
                    "" => walk(value, name.clone(), found),
                    _ => walk(value, format!("{path}.{name}"), found),
                }
            }
        }
        Value::Null if path.is_empty() => {}
        _ => found.push((path, None)),
    }
}

fn group(all: Vec<(u32, Vec<Found>)>) -> Readings {
    let mut present = BTreeSet::new();
    // By path and reason, the GPUs.
    let mut absent: BTreeMap<(String, String), Vec<u32>> = BTreeMap::new();
    for (index, found) in all {
        for (path, reason) in found {
            match reason {
                None => drop(present.insert(path)),
                Some(reason) => absent.entry((path, reason)).or_default().push(index),
            }
        }
    }
    let mut grouped: BTreeMap<(String, Vec<u32>), Vec<String>> = BTreeMap::new();
    for ((path, reason), gpus) in absent {
        grouped.entry((reason, gpus)).or_default().push(path);
    }
    let missing = grouped
        .into_iter()
        .map(|((reason, gpus), readings)| Missing {
            reason,
            gpus,
            readings,
        });
    Readings {
        present: present.into_iter().collect(),
        missing: missing.collect(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(value: &Value) -> Vec<Found> {
        let mut found = Vec::new();
        walk(value, String::new(), &mut found);
        found
    }

    #[test]
    fn every_reading_is_present_or_missing_for_a_reason() {
        let value = json!({
            "index": 0, "uuid": null, "health": {"state": "ok"},
            "power": {"draw_watts": 5.0, "limit_watts": {"value": 7, "at_ms": 1}},
            "fan_percent": {"absent": "not_supported"},
            "processes": [{"name": {"absent": "unknown"}}],
            "modes": {"ecc": {"current": true, "pending": true}, "mig": {"absent": "driver_error", "code": 999}},
        });
        let readings = group(vec![
            (0, found(&value)),
            (1, found(&json!({"fan_percent": 30.0}))),
        ]);
        let expected = [
            "fan_percent",
            "modes.ecc.current",
            "modes.ecc.pending",
            "power.draw_watts",
            "power.limit_watts",
            "processes",
        ];
        assert_eq!(readings.present, expected);
        let missing: Vec<_> = readings
            .missing
            .iter()
            .map(|it| {
                (
                    it.reason.as_str(),
                    it.gpus.as_slice(),
                    it.readings.join(" "),
                )
            })
            .collect();
        assert_eq!(
            missing,
            [
                ("driver error 999", &[0][..], "modes.mig".to_owned()),
                (
                    "not on this board or driver",
                    &[0][..],
                    "fan_percent".to_owned()
                )
            ]
        );
    }
}
