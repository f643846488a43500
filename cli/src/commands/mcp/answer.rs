//! Answers in the form for assistants: only selected keys, untrusted names in a separate object,
//! and times in UTC.

use serde_json::{Map, Value, json};

use gpumon_probe::untrusted::escaped;

use crate::{commands::show::csv::format_timestamp, json_text::TextRole};

/// The selection of all keys. As the end of a key, it selects everything below that key.
pub(super) const ALL: &str = "*";

/// The keys of a reading, which are always selected.
const READING: [&str; 3] = ["absent", "at_ms", "value"];

/// Keys of points in time, without their suffix `_ms`. Other keys with this suffix are durations.
const TIMES: [&str; 10] = [
    "at", "baseline", "from", "last", "measured", "oldest", "since", "started", "times", "to",
];

/// Returns the selected keys of an answer. Names and texts that other people chose are moved to
/// objects named `untrusted`. In texts, control characters and invisible characters are escaped.
pub(super) fn select_keys(value: Value, keys: &str) -> Value {
    select_within(value, keys, TextRole::Text)
}

fn select_within(value: Value, keys: &str, role: TextRole) -> Value {
    match value {
        Value::String(text) => escaped(&text).into(),
        Value::Array(items) => items
            .into_iter()
            .map(|item| select_within(item, keys, role))
            .collect(),
        Value::Object(object) => {
            let (mut trusted, mut untrusted) = (Map::new(), Map::new());
            for (key, value) in &object {
                let Some(keys) = keys_below(keys, key) else {
                    continue;
                };
                let role = TextRole::new(key, role, &object);
                let value = select_within(value.clone(), keys, role);
                let is_apart = is_text(&value) && role.is_untrusted(key, &object);
                let (key, value) = match time_key(key) {
                    Some(key) => (key, in_utc(value)),
                    None => (key.as_str(), value),
                };
                let target = if is_apart {
                    &mut untrusted
                } else {
                    &mut trusted
                };
                target.insert(key.to_owned(), value);
            }
            if !untrusted.is_empty() {
                trusted.insert("untrusted".to_owned(), untrusted.into());
            }
            trusted.into()
        }
        other => other,
    }
}

/// Returns the schema of the result of [`select_keys`] for a type of the API, without references.
/// Readings and values that are selected as a whole keep only their description. No key is
/// required, because some names are moved.
pub(super) fn select_schema(schema: &Value, types: &Map<String, Value>, keys: &str) -> Value {
    let within = |schema: &Value| select_schema(schema, types, keys);
    match schema {
        Value::Array(items) => items.iter().map(within).collect(),
        Value::Object(parts) => {
            let part = |(key, part): (&String, &Value)| match (key.as_str(), part) {
                ("required", _) => None,
                ("properties", Value::Object(properties)) => {
                    let property = |(key, schema): (&String, &Value)| {
                        let keys = keys_below(keys, key)?;
                        let time_key = time_key(key);
                        let schema = match schema.get("description") {
                            Some(text) if keys == ALL || time_key.is_some() => {
                                json!({ "description": text })
                            }
                            _ => within(schema),
                        };
                        Some((time_key.unwrap_or(key).to_owned(), schema))
                    };
                    let properties: Map<_, _> = properties.iter().filter_map(property).collect();
                    Some((key.clone(), properties.into()))
                }
                ("$ref", Value::String(name)) => {
                    let named = name.rsplit('/').next().and_then(|name| types.get(name));
                    let object = named.filter(|named| named.get("properties").is_some())?;
                    Some(("allOf".to_owned(), json!([within(object)])))
                }
                ("oneOf", _) => Some(("anyOf".to_owned(), within(part))),
                _ => Some((key.clone(), within(part))),
            };
            parts.iter().filter_map(part).collect::<Map<_, _>>().into()
        }
        other => other.clone(),
    }
}

/// Returns the keys that are selected below a key, or `None` if the key is not selected.
fn keys_below<'a>(keys: &'a str, key: &str) -> Option<&'a str> {
    if keys == ALL || READING.contains(&key) {
        return Some(keys);
    }
    keys.split(' ')
        .find_map(|word| match word.strip_suffix(ALL) {
            Some(whole) => (whole == key).then_some(ALL),
            None => (word == key).then_some(keys),
        })
}

/// Returns the key for a time in UTC if `key` is a time in milliseconds.
fn time_key(key: &str) -> Option<&str> {
    key.strip_suffix("_ms").filter(|key| TIMES.contains(key))
}

fn in_utc(value: Value) -> Value {
    match value {
        Value::Number(at_ms) => at_ms
            .as_u64()
            .map_or(Value::Null, |at_ms| format_timestamp(at_ms).into()),
        Value::Array(items) => items.into_iter().map(in_utc).collect(),
        Value::Object(reading) => reading
            .into_iter()
            .map(|(key, value)| (key, in_utc(value)))
            .collect::<Map<_, _>>()
            .into(),
        other => other,
    }
}

fn is_text(value: &Value) -> bool {
    match value {
        Value::String(_) => true,
        Value::Array(items) => items.iter().any(is_text),
        _ => false,
    }
}
