//! Classification of strings in gpumon's JSON: fixed words, names, and free-form text.

use gpumon_probe::model::ConditionKind;
use serde_json::{Map, Value};

/// A kind of name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum NameKind {
    User,
    Host,
    /// UUIDs of GPUs and MIG devices, and IDs of kernels, pods and containers.
    Id,
    Serial,
    Program,
    Command,
    Notebook,
    Path,
    Job,
    Unit,
    Address,
    /// Sentences that contain process names, and text written by users.
    Text,
}

/// The role of a string in gpumon's JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextRole {
    Name(NameKind),
    /// A fixed word of gpumon or the driver, which identifies nobody.
    Word,
    Text,
}

/// Keys with fixed words as values. The last five keys occur in `versions.json` in a bundle.
const WORD_KEYS: &str = "\
    absent action advice architecture cause compute compute_capability condition confidence \
    cuda_version driver_version dtype energy_source kind library_version location main meaning \
    memory_kind name nvml_version part_number path pci_bus_id profile reasons recovery_action \
    remote remote_pci_bus_id run runtime severity source state status throttle_reasons \
    vbios_version vendor version what workload gpumon kernel libc os packages";

impl TextRole {
    /// Returns the role of the string at `key` in `object`. `outer` is the role of `object` itself.
    pub(crate) fn new(key: &str, outer: Self, object: &Map<String, Value>) -> Self {
        let is = |key: &str, words: &[&str]| {
            object
                .get(key)
                .and_then(Value::as_str)
                .is_some_and(|it| words.contains(&it))
        };
        let has = |keys: &[&str]| keys.iter().any(|key| object.contains_key(*key));
        let condition = object.get("condition").and_then(Value::as_str);
        let is_naming = || {
            is("what", &["mark"])
                || condition.is_some_and(ConditionKind::texts_contain_process_names)
        };
        Self::Name(match key {
            // In a reading with a time, the string is in `value`, and it has the role of the whole
            // reading.
            "value" => return outer,
            "user" => NameKind::User,
            "hostname" => NameKind::Host,
            "uuid" | "cluster_uuid" | "kernel_id" | "cell_id" | "uid" | "id" | "namespace"
            | "pod" | "container" => NameKind::Id,
            "serial" => NameKind::Serial,
            "command" => NameKind::Command,
            "job_id" => NameKind::Job,
            "unit" => NameKind::Unit,
            "kernel_name" | "program" => NameKind::Program,
            // The `name` of a process comes with a `pid`; the `name` of a GPU does not.
            "name" if has(&["pid"]) => NameKind::Program,
            "name" if has(&["id", "uid", "runtime"]) => NameKind::Id,
            // The `path` of a notebook comes with one of these keys; the `path` between two GPUs
            // does not.
            "path" if has(&["id", "kernel_id"]) => NameKind::Notebook,
            "notebook" => NameKind::Notebook,
            "text" if is_naming() => NameKind::Text,
            // The text about what limits a GPU contains only numbers besides gpumon's own words.
            "text" if has(&["evidence"]) => return Self::Word,
            _ if WORD_KEYS.split(' ').any(|word| word == key) => return Self::Word,
            // If an object has the role of a fixed word, all its values are fixed words, whatever
            // their keys are. The keys can be names of packages, for example.
            _ if outer == Self::Word => return Self::Word,
            _ => return Self::Text,
        })
    }

    /// Returns `true` if the string at `key` in `object` may have been chosen by other people.
    pub(crate) fn is_untrusted(self, key: &str, object: &Map<String, Value>) -> bool {
        match self {
            // The only untrusted fixed word is the ID of a run, which is chosen by the terminal
            // that announces the run.
            Self::Word => key == "run",
            Self::Name(_) => !["uuid", "serial"].contains(&key),
            // The text of a condition is written by gpumon. The text of a condition that names
            // processes has the role [`TextRole::Name`] instead.
            Self::Text => !(key == "text" && object.contains_key("condition")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::commands::schema::{SchemaKind, build_schema};

    /// Keys of free-form text from gpumon or a driver, which may contain a name, such as a
    /// directory's name.
    const FREE_TEXT_KEYS: [&str; 7] = [
        "joined", "message", "rule", "step", "text", "title", "value",
    ];

    fn accepts_any_string(schema: &Value) -> bool {
        let kind = &schema["type"];
        let is_string = kind == "string"
            || kind
                .as_array()
                .is_some_and(|kinds| kinds.contains(&"string".into()));
        is_string && schema.get("const").is_none() && schema.get("enum").is_none()
    }

    /// Collects the keys for which the schema allows any string, including strings inside readings.
    fn collect_free_text_keys(value: &Value, kinds: &Value, keys: &mut BTreeSet<String>) {
        let of_readings = |schema: &Value| {
            let kind = schema["$ref"]
                .as_str()
                .and_then(|name| kinds[name.rsplit('/').next()?]["anyOf"].as_array());
            kind.is_some_and(|forms| forms.iter().any(accepts_any_string))
        };
        for (key, schema) in value
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            if accepts_any_string(schema) || of_readings(schema) {
                keys.insert(key.clone());
            }
        }
        match value {
            Value::Object(parts) => parts
                .values()
                .for_each(|part| collect_free_text_keys(part, kinds, keys)),
            Value::Array(parts) => parts
                .iter()
                .for_each(|part| collect_free_text_keys(part, kinds, keys)),
            _ => {}
        }
    }

    #[test]
    fn text_role_is_chosen_for_every_string_key() {
        let mut keys = BTreeSet::new();
        let schema = build_schema(SchemaKind::Snapshot);
        collect_free_text_keys(&schema, &schema["$defs"], &mut keys);
        assert!(
            ["user", "serial", "driver_version", "message"]
                .iter()
                .all(|key| keys.contains(*key)),
            "{keys:?}"
        );
        for key in keys {
            let role = TextRole::new(&key, TextRole::Text, &Map::new());
            assert!(
                role != TextRole::Text || FREE_TEXT_KEYS.contains(&key.as_str()),
                "decide what {key} is: name, word or text"
            );
        }
    }
}
