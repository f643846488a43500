//! `gpumon schema`: prints a JSON Schema of gpumon's JSON output.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::{exit::Result, terminal::output::print_raw};

/// The panic message for an API description that does not match the types. It never appears,
/// because a test verifies that they match.
const MISMATCH_MESSAGE: &str = "a test verifies that the API description matches the types";

/// Print the JSON Schema of gpumon's output
#[derive(Debug, clap::Args)]
pub(crate) struct SchemaArgs {
    /// Kind of output to describe
    #[arg(value_enum, default_value_t = SchemaKind::Snapshot)]
    what: SchemaKind,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum SchemaKind {
    /// `gpumon --json`, and the server's /api/v1/snapshot
    Snapshot,
    /// A record of `gpumon collect`
    Record,
    /// A frame of the server's /api/v1/stream
    Frame,
    /// `gpumon run --json`, and a measurement of the Python package
    Cost,
    /// `cell.metadata.gpumon` of a notebook
    StoredCost,
}

pub(crate) fn run(args: &SchemaArgs) -> Result {
    print_raw(&format!("{:#}\n", build_schema(args.what)))
}

/// Returns the schema of gpumon's JSON output. The schema does not describe input: gpumon may
/// accept other JSON as input.
pub(crate) fn build_schema(what: SchemaKind) -> Value {
    let mut types = load_type_schemas();
    let name = match what {
        SchemaKind::Snapshot => "Snapshot",
        SchemaKind::Record => "Record",
        SchemaKind::Frame => "ServerFrame",
        SchemaKind::Cost => "Cost",
        SchemaKind::StoredCost => "StoredCost",
    };
    let mut schema = types.remove(name).expect(MISMATCH_MESSAGE);
    let mut used = BTreeSet::new();
    collect_referenced_type_names(&schema, &types, &mut used);
    types.retain(|name, _| used.contains(name));
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!(name);
    schema["$defs"] = types.into();
    schema
}

/// Returns the schemas of the API's types, by type name.
pub(crate) fn load_type_schemas() -> Map<String, Value> {
    let text = gpumon_server::openapi::read_document().replace("#/components/schemas/", "#/$defs/");
    let mut document: Value = serde_json::from_str(&text).expect(MISMATCH_MESSAGE);
    match document["components"]["schemas"].take() {
        Value::Object(types) => types,
        _ => panic!("{MISMATCH_MESSAGE}"),
    }
}

/// Collects the names of all types that a schema refers to, directly or indirectly.
fn collect_referenced_type_names(
    schema: &Value,
    types: &Map<String, Value>,
    used: &mut BTreeSet<String>,
) {
    match schema {
        Value::Object(parts) => {
            let named = parts
                .get("$ref")
                .and_then(Value::as_str)
                .and_then(|name| name.rsplit('/').next());
            if let Some((name, inner)) = named.and_then(|name| types.get_key_value(name))
                && used.insert(name.clone())
            {
                collect_referenced_type_names(inner, types, used);
            }
            parts
                .values()
                .for_each(|part| collect_referenced_type_names(part, types, used));
        }
        Value::Array(parts) => parts
            .iter()
            .for_each(|part| collect_referenced_type_names(part, types, used)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use gpumon_probe::model::fields::GPU_FIELDS;

    use super::*;

    #[test]
    fn schema_descriptions_match_catalogue() {
        let schema = build_schema(SchemaKind::Snapshot);
        let described =
            |kind: &str, key: &str| schema["$defs"][kind]["properties"][key]["description"].clone();
        let help = |id| GPU_FIELDS.iter().find(|field| field.id == id).unwrap().help;
        assert_eq!(described("Power", "draw_watts"), help("power.draw_watts"));
        assert_eq!(
            described("Activity", "sm_percent"),
            help("activity.sm_percent"),
            "within a reading"
        );
        assert_eq!(described("GpuSample", "fan_percent"), help("fan_percent"));
    }

    #[test]
    fn every_snapshot_key_has_description() {
        let schema = build_schema(SchemaKind::Snapshot);
        let kinds = schema["$defs"].as_object().unwrap();
        assert!(kinds.len() > 40, "{}", kinds.len());
        for (kind, described) in kinds.iter().chain([(&"Snapshot".to_owned(), &schema)]) {
            for (key, value) in described["properties"].as_object().into_iter().flatten() {
                let is_said = value["description"].is_string() || value["const"].is_string();
                assert!(is_said, "{kind}.{key} has no description: {value}");
            }
        }
    }
}
