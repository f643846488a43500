//! The types of the document, which are generated from Rust types.

use gpumon_history::span::MetricSelection;
use gpumon_probe::model::fields::{GPU_FIELDS, HOST_FIELDS};
use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};

/// The location of type schemas in the OpenAPI document.
const SCHEMAS_PATH: &str = "/components/schemas";

/// The generators of schemas: one for types in responses, and one for types in requests.
pub(super) struct TypeSchemas {
    written: SchemaGenerator,
    read: SchemaGenerator,
}

impl TypeSchemas {
    pub(super) fn new() -> Self {
        let settings = || {
            SchemaSettings::draft2020_12()
                .with(|settings| settings.definitions_path = SCHEMAS_PATH.into())
        };
        Self {
            written: settings().for_serialize().into_generator(),
            read: settings().for_deserialize().into_generator(),
        }
    }

    pub(super) fn response_schema<T: JsonSchema>(&mut self) -> Value {
        self.written.subschema_for::<T>().to_value()
    }

    pub(super) fn request_schema<T: JsonSchema>(&mut self) -> Value {
        self.read.subschema_for::<T>().to_value()
    }

    /// Returns the keys of the type `T` as query parameters.
    pub(super) fn query_parameters<T: JsonSchema>(&mut self) -> Vec<Value> {
        let mut object = T::json_schema(&mut self.read).to_value();
        add_maximum(&mut object);
        let required = object["required"].take();
        let keys = object["properties"]
            .as_object_mut()
            .expect("an object with keys")
            .iter_mut();
        let mut parameters: Vec<Value> = keys
            .map(|(name, schema)| to_parameter(name, schema.take()))
            .collect();
        for named in parameters.iter_mut().filter(|named| {
            required
                .as_array()
                .is_some_and(|all| all.contains(&named["name"]))
        }) {
            named["required"] = Value::Bool(true);
        }
        parameters
    }

    /// Returns the schemas of all types by name. Fields are described by the texts of the field
    /// catalog.
    pub(super) fn into_schemas(mut self) -> Map<String, Value> {
        let mut kinds = self.written.take_definitions(true);
        for (name, mut kind) in self.read.take_definitions(true) {
            add_maximum(&mut kind);
            let other = kinds.insert(name.clone(), kind.clone());
            assert!(
                other.is_none_or(|other| other == kind),
                "{name} has different schemas for requests and responses: rename one"
            );
        }
        kinds.insert("Metric".to_owned(), metric_schema());
        let mut kinds = Value::Object(kinds);
        for field in GPU_FIELDS {
            describe_property(&mut kinds, "GpuSample", field.id, field.help);
        }
        // RAM and swap share a type with its own descriptions, so nested paths are skipped.
        let host = HOST_FIELDS
            .iter()
            .map(|field| (field.id.trim_start_matches("host."), field.help));
        for (path, help) in host.filter(|(path, _)| !path.contains('.')) {
            describe_property(&mut kinds, "HostSample", path, help);
        }
        let Value::Object(kinds) = kinds else {
            unreachable!("it was created as an object")
        };
        kinds
    }
}

fn metric_schema() -> Value {
    let mut all = MetricSelection::select_all();
    all.holders = true;
    let ids = all.ids();
    json!({ "description": "A metric of the catalogue.", "type": "string", "enum": ids })
}

/// Returns a query parameter. Unlike in JSON, optional parameters cannot be null, and lists are
/// comma-separated.
fn to_parameter(name: &str, mut schema: Value) -> Value {
    let text = schema
        .as_object_mut()
        .and_then(|schema| schema.remove("description"));
    if let Some(kind) = schema["type"]
        .as_array()
        .and_then(|kinds| kinds.iter().find(|kind| *kind != "null"))
        .cloned()
    {
        schema["type"] = kind;
    }
    let mut parameter =
        json!({ "name": name, "in": "query", "description": text, "schema": schema });
    if name == "metrics" {
        parameter["schema"] = json!({
            "type": "array", "items": { "$ref": format!("#{SCHEMAS_PATH}/Metric") }, "minItems": 1,
        });
        parameter["style"] = "form".into();
        parameter["explode"] = false.into();
    }
    parameter
}

/// Sets the maximum of each integer type in a request schema.
fn add_maximum(schema: &mut Value) {
    match schema {
        Value::Object(parts) => {
            let most = match parts.get("format").and_then(Value::as_str) {
                Some("uint64") => Some(u64::MAX),
                Some("uint32") => Some(u32::MAX.into()),
                _ => None,
            };
            if let Some(most) = most {
                parts.entry("maximum").or_insert_with(|| most.into());
            }
            parts.values_mut().for_each(add_maximum);
        }
        Value::Array(parts) => parts.iter_mut().for_each(add_maximum),
        _ => {}
    }
}

/// Sets the description of the property at `path` to `help`, the text of the field catalog. The
/// original description, which names the source of the value, becomes a comment.
fn describe_property(kinds: &mut Value, kind: &str, path: &str, help: &str) {
    let (first, rest) = path
        .split_once('.')
        .map_or((path, None), |(first, rest)| (first, Some(rest)));
    let Some(property) = kinds
        .get_mut(kind)
        .and_then(|kind| kind.pointer_mut(&format!("/properties/{first}")))
    else {
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
            for kind in find_types(kinds, &inner) {
                describe_property(kinds, &kind, rest, help);
            }
        }
    }
}

/// Returns the object types that a property refers to, including types within a reading.
fn find_types(kinds: &Value, property: &Value) -> Vec<String> {
    match property {
        Value::Object(parts) => {
            let named = parts
                .get("$ref")
                .and_then(Value::as_str)
                .and_then(|name| name.rsplit('/').next());
            let own: Vec<_> = match named {
                Some(reading) if reading.starts_with("Reading") => {
                    find_types(kinds, &kinds[reading])
                }
                Some(name) => vec![name.to_owned()],
                None => Vec::new(),
            };
            own.into_iter()
                .chain(parts.values().flat_map(|part| find_types(kinds, part)))
                .collect()
        }
        Value::Array(parts) => parts
            .iter()
            .flat_map(|part| find_types(kinds, part))
            .collect(),
        _ => Vec::new(),
    }
}
