//! `cli/src/commands/schema/schema.json`: the types of the JSON, a line each, described as the catalogue of fields does.

use gpumon_history::span::HistorySpan;
use gpumon_probe::model::{
    Record,
    fields::{GPU_FIELDS, HOST_FIELDS},
};
use gpumon_server::frame::{ServerFrame, Snapshot};
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

use super::check;

pub(super) fn types() -> Map<String, Value> {
    let mut generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    generator.subschema_for::<Snapshot>();
    generator.subschema_for::<Record>();
    generator.subschema_for::<ServerFrame>();
    generator.subschema_for::<HistorySpan>();
    let mut kinds: Value = generator.take_definitions(true).into();
    for field in GPU_FIELDS {
        describe(&mut kinds, "GpuSample", field.id, field.help);
    }
    // RAM and swap are of one kind, which says of itself what it is.
    let host = HOST_FIELDS.iter().map(|field| (field.id.trim_start_matches("host."), field.help));
    for (path, help) in host.filter(|(path, _)| !path.contains('.')) {
        describe(&mut kinds, "HostSample", path, help);
    }
    let Value::Object(kinds) = kinds else { unreachable!("it was one") };
    kinds
}

/// Gives what stands at a path below a kind of object the words of the catalogue; where it comes from, which the types'
/// own documentation tells, becomes its comment.
fn describe(kinds: &mut Value, kind: &str, path: &str, help: &str) {
    let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
    let Some(property) = kinds.get_mut(kind).and_then(|kind| kind.pointer_mut(&format!("/properties/{first}"))) else {
        return;
    };
    match rest {
        None => {
            let said = property["description"].take();
            property["description"] = help.into();
            property["$comment"] = said;
        }
        Some(rest) => {
            let inner = property.clone();
            for kind in kinds_within(kinds, &inner) {
                describe(kinds, &kind, rest, help);
            }
        }
    }
}

/// The kinds of objects that a property can have, also those in a reading.
fn kinds_within(kinds: &Value, property: &Value) -> Vec<String> {
    match property {
        Value::Object(parts) => {
            let named = parts.get("$ref").and_then(Value::as_str).and_then(|name| name.rsplit('/').next());
            let own: Vec<_> = match named {
                Some(reading) if reading.starts_with("Reading") => kinds_within(kinds, &kinds[reading]),
                Some(name) => vec![name.to_owned()],
                None => Vec::new(),
            };
            own.into_iter().chain(parts.values().flat_map(|part| kinds_within(kinds, part))).collect()
        }
        Value::Array(parts) => parts.iter().flat_map(|part| kinds_within(kinds, part)).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn the_reference_is_up_to_date() {
    let lines: Vec<_> = types().iter().map(|(name, kind)| format!("\"{name}\":{kind}")).collect();
    check("../../cli/src/commands/schema/schema.json", &format!("{{\n{}\n}}\n", lines.join(",\n")));
}
