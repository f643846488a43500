//! The output of `gpumon collect`, and the readings in it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{FakeNvml, parse_json_lines, stderr_text, stdout_text};

pub(crate) struct Records(Vec<Value>);

/// The present readings by path, for example `sample.power.draw_watts`. List items have `[]`.
pub(crate) type PresentReadings = BTreeMap<String, BTreeSet<String>>;

/// The reasons why readings are absent, by path. A failure of the driver is `driver_error 999`.
pub(crate) type AbsentReadings = BTreeMap<String, String>;

impl FakeNvml {
    /// Returns the output of `gpumon collect` with these arguments. The command must succeed.
    #[track_caller]
    pub(crate) fn collect(&self, arguments: &[&str]) -> Records {
        let output = self
            .gpumon_command(&[&["collect"], arguments].concat())
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}: {}",
            output.status,
            stderr_text(&output)
        );
        Records(parse_json_lines(&stdout_text(&output)))
    }
}

impl Records {
    /// Returns the records of this type in order.
    pub(crate) fn records_of_type(&self, kind: &str) -> impl DoubleEndedIterator<Item = &Value> {
        self.0.iter().filter(move |record| record["type"] == kind)
    }

    #[track_caller]
    pub(crate) fn last_record_of_type(&self, kind: &str) -> &Value {
        self.records_of_type(kind)
            .next_back()
            .unwrap_or_else(|| panic!("there is no record of the type {kind}"))
    }

    /// Returns the records up to the last sample that has every reading, if there is one.
    pub(crate) fn truncate_after_complete_sample(mut self) -> Option<Self> {
        let last = self.0.iter().rposition(|record| {
            let is_complete =
                |text: &str| !text.contains("no_answer") && !text.contains("warming_up");
            record["type"] == "sample" && is_complete(&record.to_string())
        })?;
        self.0.truncate(last + 1);
        Some(self)
    }

    /// Returns the index and UUID of every GPU in the last inventory.
    pub(crate) fn gpu_identities(&self) -> Vec<(u64, Option<String>)> {
        let gpus = self.last_record_of_type("inventory")["gpus"]
            .as_array()
            .unwrap();
        gpus.iter()
            .map(|gpu| {
                (
                    gpu["index"].as_u64().unwrap(),
                    gpu["uuid"].as_str().map(str::to_owned),
                )
            })
            .collect()
    }

    /// Returns the readings of one GPU in two groups. The first group was present in at least one
    /// sample. The second was never present, and has the reasons for that. All samples count,
    /// because some readings need two samples, and a busy machine may skip one.
    pub(crate) fn classify_readings(&self, gpu: usize) -> (PresentReadings, AbsentReadings) {
        let (mut present, mut absent) = (PresentReadings::new(), AbsentReadings::new());
        let samples = self
            .records_of_type("sample")
            .map(|sample| ("sample", &sample["gpus"][gpu]));
        let details = self
            .records_of_type("details")
            .filter(|details| details["index"] == gpu)
            .map(|details| ("details", details));
        let identity = ("gpu", &self.last_record_of_type("inventory")["gpus"][gpu]);
        for (name, part) in samples.chain(details).chain([identity]) {
            collect_readings(part, name, &mut present, &mut absent);
        }
        absent.retain(|path, _| !present.contains_key(path));
        (present, absent)
    }
}

fn collect_readings(
    value: &Value,
    path: &str,
    present: &mut PresentReadings,
    absent: &mut AbsentReadings,
) {
    match value {
        Value::Null => {}
        Value::Array(entries) => {
            present.entry(path.to_owned()).or_default();
            for entry in entries {
                collect_readings(entry, &format!("{path}[]"), present, absent);
            }
        }
        Value::Object(fields) => match (fields.get("absent"), fields.get("value"), fields.len()) {
            (Some(reason), _, _) => {
                let code = fields
                    .get("code")
                    .map(|code| format!(" {code}"))
                    .unwrap_or_default();
                absent.insert(
                    path.to_owned(),
                    format!("{}{code}", reason.as_str().unwrap()),
                );
            }
            (None, Some(earlier), 2) => collect_readings(earlier, path, present, absent),
            // Three fields are left out, because they depend on the values: conditions, limits, and
            // the time since which a GPU does not respond.
            _ => {
                for (name, field) in fields.iter().filter(|(name, _)| {
                    !["conditions", "limits", "since_ms"].contains(&name.as_str())
                }) {
                    collect_readings(field, &format!("{path}.{name}"), present, absent);
                }
            }
        },
        other => drop(
            present
                .entry(path.to_owned())
                .or_default()
                .insert(other.to_string()),
        ),
    }
}
