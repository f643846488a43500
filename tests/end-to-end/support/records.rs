//! The output of `gpumon collect`, and the readings in it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Fake, json_lines, stderr, stdout};

pub(crate) struct Records(Vec<Value>);

/// The present readings by path, for example `sample.power.draw_watts`. List items have `[]`.
pub(crate) type Present = BTreeMap<String, BTreeSet<String>>;

/// The reasons of absent readings by path. A failure of the driver is `driver_error 999`.
pub(crate) type Absent = BTreeMap<String, String>;

impl Fake {
    /// Returns the output of `gpumon collect` with these arguments. The command must succeed.
    #[track_caller]
    pub(crate) fn collect(&self, arguments: &[&str]) -> Records {
        let output = self
            .gpumon(&[&["collect"], arguments].concat())
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}: {}",
            output.status,
            stderr(&output)
        );
        Records(json_lines(&stdout(&output)))
    }
}

impl Records {
    /// Returns the records of this type in order.
    pub(crate) fn of(&self, kind: &str) -> impl DoubleEndedIterator<Item = &Value> {
        self.0.iter().filter(move |record| record["type"] == kind)
    }

    #[track_caller]
    pub(crate) fn last(&self, kind: &str) -> &Value {
        self.of(kind)
            .next_back()
            .unwrap_or_else(|| panic!("no {kind} was written"))
    }

    /// Returns the records up to the last sample that has every reading, if there is one.
    pub(crate) fn up_to_complete_sample(mut self) -> Option<Self> {
        let last = self.0.iter().rposition(|record| {
            let is_complete =
                |text: &str| !text.contains("no_answer") && !text.contains("warming_up");
            record["type"] == "sample" && is_complete(&record.to_string())
        })?;
        self.0.truncate(last + 1);
        Some(self)
    }

    /// Returns the index and UUID of every GPU in the last inventory.
    pub(crate) fn identities(&self) -> Vec<(u64, Option<String>)> {
        let gpus = self.last("inventory")["gpus"].as_array().unwrap();
        gpus.iter()
            .map(|gpu| {
                (
                    gpu["index"].as_u64().unwrap(),
                    gpu["uuid"].as_str().map(str::to_owned),
                )
            })
            .collect()
    }

    /// Returns the readings of one GPU that were present at any time, and the reasons of the
    /// others. Some readings need two samples, and a busy machine may skip one.
    pub(crate) fn readings(&self, gpu: usize) -> (Present, Absent) {
        let (mut present, mut absent) = (Present::new(), Absent::new());
        let samples = self
            .of("sample")
            .map(|sample| ("sample", &sample["gpus"][gpu]));
        let details = self
            .of("details")
            .filter(|details| details["index"] == gpu)
            .map(|details| ("details", details));
        let identity = ("gpu", &self.last("inventory")["gpus"][gpu]);
        for (name, part) in samples.chain(details).chain([identity]) {
            look_through(part, name, &mut present, &mut absent);
        }
        absent.retain(|path, _| !present.contains_key(path));
        (present, absent)
    }
}

fn look_through(value: &Value, path: &str, present: &mut Present, absent: &mut Absent) {
    match value {
        Value::Null => {}
        Value::Array(entries) => {
            present.entry(path.to_owned()).or_default();
            for entry in entries {
                look_through(entry, &format!("{path}[]"), present, absent);
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
            (None, Some(earlier), 2) => look_through(earlier, path, present, absent),
            // Conditions, and the time since which a GPU does not respond, depend on the values, so
            // they are left out.
            _ => {
                for (name, field) in fields
                    .iter()
                    .filter(|(name, _)| !["conditions", "since_ms"].contains(&name.as_str()))
                {
                    look_through(field, &format!("{path}.{name}"), present, absent);
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
