//! The types of the document, which are generated from Rust types.

use gpumon_history::wanted::Wanted;
use gpumon_probe::model::fields::{GPU_FIELDS, HOST_FIELDS};
use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};

/// The location of types in the document.
const PLACE: &str = "/components/schemas";

/// The schemas of types in responses, and of those in requests.
pub(super) struct Types {
    written: SchemaGenerator,
    read: SchemaGenerator,
}

impl Types {
    pub(super) fn new() -> Self {
        let settings = || {
            SchemaSettings::draft2020_12().with(|settings| settings.definitions_path = PLACE.into())
        };
        Self {
            written: settings().for_serialize().into_generator(),
            read: settings().for_deserialize().into_generator(),
        }
    }

    pub(super) fn answer<T: JsonSchema>(&mut self) -> Value {
        self.written.subschema_for::<T>().to_value()
    }

    pub(super) fn request<T: JsonSchema>(&mut self) -> Value {
        self.read.subschema_for::<T>().to_value()
    }

    /// Returns the keys of an object as query parameters.
    pub(super) fn parameters<T: JsonSchema>(&mut self) -> Vec<Value> {
        let mut object = T::json_schema(&mut self.read).to_value();
        bound(&mut object);
        let required = object["required"].take();
        let keys = object["properties"]
            .as_object_mut()
            .expect("an object with keys")
            .iter_mut();
        let mut parameters: Vec<Value> = keys
            .map(|(name, schema)| parameter(name, schema.take()))
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

    /// Returns all types by name. Fields have their descriptions from the catalogue.
    pub(super) fn all(mut self) -> Map<String, Value> {
        let mut kinds = self.written.take_definitions(true);
        for (name, mut kind) in self.read.take_definitions(true) {
            bound(&mut kind);
            let other = kinds.insert(name.clone(), kind.clone());
            assert!(
                other.is_none_or(|other| other == kind),
                "{name} is read otherwise than it is written: rename one"
            );
        }
        kinds.insert("Metric".to_owned(), metric());
        let mut kinds = Value::Object(kinds);
        for field in GPU_FIELDS {
            describe(&mut kinds, "GpuSample", field.id, field.help);
        }
        // RAM and swap share a type, which has its own descriptions.
        let host = HOST_FIELDS
            .iter()
            .map(|field| (field.id.trim_start_matches("host."), field.help));
        for (path, help) in host.filter(|(path, _)| !path.contains('.')) {
            describe(&mut kinds, "HostSample", path, help);
        }
        let Value::Object(kinds) = kinds else {
            unreachable!("it was one")
        };
        kinds
    }
}

fn metric() -> Value {
    let mut all = Wanted::all();
    all.holders = true;
    let ids = all.ids();
    json!({ "description": "A metric of the catalogue.", "type": "string", "enum": ids })
}

/// Returns a query parameter. Unlike in JSON, optional parameters cannot be null, and lists are
/// separated by commas.
fn parameter(name: &str, mut schema: Value) -> Value {
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
            "type": "array", "items": { "$ref": format!("#{PLACE}/Metric") }, "minItems": 1,
        });
        parameter["style"] = "form".into();
        parameter["explode"] = false.into();
    }
    parameter
}

/// Sets the maximum of integers in requests.
fn bound(schema: &mut Value) {
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
            parts.values_mut().for_each(bound);
        }
        Value::Array(parts) => parts.iter_mut().for_each(bound),
        _ => {}
    }
}

/// Sets the description of the property at a path to the text of the catalogue. The description
/// from the type's documentation, which names the source, becomes a comment.
fn describe(kinds: &mut Value, kind: &str, path: &str, help: &str) {
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
            for kind in kinds_within(kinds, &inner) {
                describe(kinds, &kind, rest, help);
            }
        }
    }
}

/// Returns the object types of a property, including those within a reading.
fn kinds_within(kinds: &Value, property: &Value) -> Vec<String> {
    match property {
        Value::Object(parts) => {
            let named = parts
                .get("$ref")
                .and_then(Value::as_str)
                .and_then(|name| name.rsplit('/').next());
            let own: Vec<_> = match named {
                Some(reading) if reading.starts_with("Reading") => {
                    kinds_within(kinds, &kinds[reading])
                }
                Some(name) => vec![name.to_owned()],
                None => Vec::new(),
            };
            own.into_iter()
                .chain(parts.values().flat_map(|part| kinds_within(kinds, part)))
                .collect()
        }
        Value::Array(parts) => parts
            .iter()
            .flat_map(|part| kinds_within(kinds, part))
            .collect(),
        _ => Vec::new(),
    }
}
