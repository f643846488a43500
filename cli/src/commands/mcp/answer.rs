//! Conversion of tool results for assistants: only selected keys are kept, untrusted names are
//! moved to a separate object, and times are in UTC.

use serde_json::{Map, Value, json};

use gpumon_probe::untrusted::escape_untrusted;

use crate::{commands::show::csv::format_timestamp, json_text::TextRole};

/// Selects all keys. As the suffix of a key, selects everything below that key.
pub(super) const ALL_KEYS: &str = "*";

/// The keys of a reading, which are included whenever the reading is selected.
const READING_KEYS: [&str; 3] = ["absent", "at_ms", "value"];

/// The keys that contain a point in time, without the suffix `_ms`. Other keys with this suffix
/// contain durations.
const TIME_KEYS: [&str; 10] = [
    "at", "baseline", "from", "last", "measured", "oldest", "since", "started", "times", "to",
];

/// Returns `value` with only the selected keys. Names and text that other people chose are moved to
/// objects named `untrusted`, and control characters and invisible characters are escaped.
pub(super) fn select_keys(value: Value, keys: &str) -> Value {
    select_keys_within(value, keys, TextRole::Text)
}

fn select_keys_within(value: Value, keys: &str, role: TextRole) -> Value {
    match value {
        Value::String(text) => escape_untrusted(&text).into(),
        Value::Array(items) => items
            .into_iter()
            .map(|item| select_keys_within(item, keys, role))
            .collect(),
        Value::Object(object) => {
            let (mut trusted, mut untrusted) = (Map::new(), Map::new());
            for (key, value) in &object {
                let Some(keys) = find_selected_subkeys(keys, key) else {
                    continue;
                };
                let role = TextRole::new(key, role, &object);
                let value = select_keys_within(value.clone(), keys, role);
                let is_apart = is_text(&value) && role.is_untrusted(key, &object);
                let (key, value) = match derive_utc_key(key) {
                    Some(key) => (key, to_utc(value)),
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

/// Returns the schema of the values that [`select_keys`] returns for an API type. References are
/// resolved. For readings and for values selected as a whole, only the description is kept. No key
/// is required, because some names are moved.
pub(super) fn select_schema(schema: &Value, types: &Map<String, Value>, keys: &str) -> Value {
    let within = |schema: &Value| select_schema(schema, types, keys);
    match schema {
        Value::Array(items) => items.iter().map(within).collect(),
        Value::Object(parts) => {
            let part = |(key, part): (&String, &Value)| match (key.as_str(), part) {
                ("required", _) => None,
                ("properties", Value::Object(properties)) => {
                    let property = |(key, schema): (&String, &Value)| {
                        let keys = find_selected_subkeys(keys, key)?;
                        let time_key = derive_utc_key(key);
                        let schema = match schema.get("description") {
                            Some(text) if keys == ALL_KEYS || time_key.is_some() => {
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

/// Returns the selection that applies to the value of `key`, or `None` if `key` is not selected.
fn find_selected_subkeys<'a>(keys: &'a str, key: &str) -> Option<&'a str> {
    if keys == ALL_KEYS || READING_KEYS.contains(&key) {
        return Some(keys);
    }
    keys.split(' ')
        .find_map(|word| match word.strip_suffix(ALL_KEYS) {
            Some(whole) => (whole == key).then_some(ALL_KEYS),
            None => (word == key).then_some(keys),
        })
}

/// Returns the key without `_ms` if `key` contains a point in time, which is converted to UTC.
fn derive_utc_key(key: &str) -> Option<&str> {
    key.strip_suffix("_ms")
        .filter(|key| TIME_KEYS.contains(key))
}

fn to_utc(value: Value) -> Value {
    match value {
        Value::Number(at_ms) => at_ms
            .as_u64()
            .map_or(Value::Null, |at_ms| format_timestamp(at_ms).into()),
        Value::Array(items) => items.into_iter().map(to_utc).collect(),
        Value::Object(reading) => reading
            .into_iter()
            .map(|(key, value)| (key, to_utc(value)))
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
