//! Which strings of gpumon's JSON are names, which are words of gpumon's own, and which are texts.

use gpumon_probe::model::ConditionKind;
use serde_json::{Map, Value};

use super::{Kind, Scrubber};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Named(Kind),
    /// A word of gpumon's or the driver's, which stays as it is even where somebody has it for a name.
    Word,
    Text,
}

/// Keys of words, the last five those of `versions.json`; the key of everything that is neither here nor below is one of texts.
const WORDS: &str = "\
    absent action advice architecture compute compute_capability condition cuda_version driver_version dtype \
    kind location meaning name nvml_version part_number path pci_bus_id profile reasons recovery_action \
    remote remote_pci_bus_id run runtime severity source state status throttle_reasons vbios_version \
    version what workload gpumon kernel libc os packages";

/// The first pass: replaces names and knows them from then on.
pub(in super::super) fn names(scrubber: &mut Scrubber, value: &mut Value) {
    walk(value, Place::Text, &mut |place, text| match place {
        Place::Named(kind) => {
            scrubber.know(kind, text);
            *text = scrubber.name(kind, text);
        }
        Place::Word => {}
        Place::Text => scrubber.learn_from(text),
    });
}

/// The second pass: replaces what is known in texts.
pub(in super::super) fn texts(scrubber: &mut Scrubber, value: &mut Value) {
    walk(value, Place::Text, &mut |place, text| {
        if place == Place::Text {
            *text = scrubber.text(text);
        }
    });
}

fn walk(value: &mut Value, place: Place, visit: &mut impl FnMut(Place, &mut String)) {
    match value {
        Value::String(text) => visit(place, text),
        Value::Array(items) => items.iter_mut().for_each(|item| walk(item, place, visit)),
        Value::Object(object) => {
            // A reading of earlier is an object: its value is what the reading is.
            let places = object.keys().map(|key| {
                if key == "value" {
                    place
                } else {
                    place_of(key, place, object)
                }
            });
            let places: Vec<_> = places.collect();
            object
                .values_mut()
                .zip(places)
                .for_each(|(value, place)| walk(value, place, visit));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn place_of(key: &str, outer: Place, object: &Map<String, Value>) -> Place {
    let is = |key: &str, words: &[&str]| {
        object
            .get(key)
            .and_then(Value::as_str)
            .is_some_and(|it| words.contains(&it))
    };
    let condition = object.get("condition").and_then(Value::as_str);
    match key {
        "user" => Place::Named(Kind::User),
        "hostname" => Place::Named(Kind::Host),
        "uuid" | "cluster_uuid" | "kernel_id" | "cell_id" | "uid" | "id" | "namespace" | "pod"
        | "container" => Place::Named(Kind::Id),
        "serial" => Place::Named(Kind::Serial),
        "command" => Place::Named(Kind::Command),
        "job_id" => Place::Named(Kind::Job),
        "unit" => Place::Named(Kind::Unit),
        "kernel_name" | "program" => Place::Named(Kind::Program),
        // Not that of a GPU.
        "name" if object.contains_key("pid") => Place::Named(Kind::Program),
        // Of a pod or a container.
        "name" if object.contains_key("uid") || object.contains_key("runtime") => {
            Place::Named(Kind::Id)
        }
        // Not the way from GPU to GPU.
        "path" if object.contains_key("kernel_id") => Place::Named(Kind::Notebook),
        "notebook" => Place::Named(Kind::Notebook),
        // The processes of a condition may have ended, so that nothing else has their names.
        "text"
            if is("what", &["mark"]) || condition.is_some_and(ConditionKind::names_processes) =>
        {
            Place::Named(Kind::Text)
        }
        _ if WORDS.split(' ').any(|word| word == key) => Place::Word,
        // Below the key of words, keys say what each is of.
        _ if outer == Place::Word => Place::Word,
        _ => Place::Text,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::commands::schema::{What, schema};

    /// Keys of texts: what gpumon or the driver says, possibly with a name in it, as that of a home folder.
    const TEXTS: [&str; 7] = [
        "joined", "message", "rule", "step", "text", "title", "value",
    ];

    fn is_free(schema: &Value) -> bool {
        let kind = &schema["type"];
        let is_string = kind == "string"
            || kind
                .as_array()
                .is_some_and(|kinds| kinds.contains(&"string".into()));
        is_string && schema.get("const").is_none() && schema.get("enum").is_none()
    }

    /// The keys of strings that can be anything, also in readings.
    fn free(value: &Value, kinds: &Value, keys: &mut BTreeSet<String>) {
        let of_readings = |schema: &Value| {
            let kind = schema["$ref"]
                .as_str()
                .and_then(|name| kinds[name.rsplit('/').next()?]["anyOf"].as_array());
            kind.is_some_and(|forms| forms.iter().any(is_free))
        };
        for (key, schema) in value
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            if is_free(schema) || of_readings(schema) {
                keys.insert(key.clone());
            }
        }
        match value {
            Value::Object(parts) => parts.values().for_each(|part| free(part, kinds, keys)),
            Value::Array(parts) => parts.iter().for_each(|part| free(part, kinds, keys)),
            _ => {}
        }
    }

    #[test]
    fn of_every_string_of_a_snapshot_it_is_known_whether_it_names_somebody() {
        let mut keys = BTreeSet::new();
        let schema = schema(What::Snapshot);
        free(&schema, &schema["$defs"], &mut keys);
        assert!(
            ["user", "serial", "driver_version", "message"]
                .iter()
                .all(|key| keys.contains(*key)),
            "{keys:?}"
        );
        for key in keys {
            let place = place_of(&key, Place::Text, &Map::new());
            assert!(
                place != Place::Text || TEXTS.contains(&key.as_str()),
                "decide what {key} is: name, word or text"
            );
        }
    }
}
