//! The operations in the table: their type, the functions that describe them in the OpenAPI
//! document, and the schemas of their Rust types.

use axum::http::StatusCode;
use gpumon_history::span::MetricSelection;
use gpumon_probe::model::fields::{GPU_FIELDS, HOST_FIELDS};
use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};

/// The permission that an operation requires.
#[derive(Debug, Clone, Copy, PartialEq)]
enum RequiredAccess {
    Read,
    /// Permission to start runs, and the header that pages of other origins cannot send.
    Run,
    /// Access through the Unix socket, as the server's own user or root.
    Socket,
}

/// An HTTP method of a path, with its description in the OpenAPI document.
pub(super) struct Operation {
    pub(super) method: &'static str,
    /// The path in the router's syntax.
    pub(super) path: &'static str,
    described: Map<String, Value>,
    access: RequiredAccess,
}

const TEXT: &str = "text/plain; charset=utf-8";

/// Creates an operation. The first sentence of `text` becomes the summary.
pub(super) fn describe_operation(
    method: &'static str,
    path: &'static str,
    text: &str,
) -> Operation {
    let (summary, rest) = text
        .split_once(". ")
        .unwrap_or((text.trim_end_matches('.'), ""));
    let mut described = Map::from_iter([
        (
            "operationId".to_owned(),
            make_operation_id(method, path).into(),
        ),
        ("summary".to_owned(), summary.into()),
    ]);
    if !rest.is_empty() {
        described.insert("description".to_owned(), rest.into());
    }
    let made = Operation {
        method,
        path,
        described,
        access: RequiredAccess::Read,
    };
    // The middleware that runs before every route can return these statuses.
    made.with_refusals([400, 401, 403, 408, 429, 503])
}

impl Operation {
    /// Adds a JSON response of this type.
    pub(super) fn with_json_response<T: JsonSchema>(
        self,
        status: u16,
        types: &mut TypeSchemas,
    ) -> Self {
        let schema = types.response_schema::<T>();
        self.add_response(status, "application/json", &schema)
    }

    /// Adds a text response.
    pub(super) fn with_text_response(self, status: u16, kind: &str) -> Self {
        self.add_response(status, kind, &json!({ "type": "string" }))
    }

    pub(super) fn with_plain_response(self, status: u16) -> Self {
        self.with_text_response(status, TEXT)
    }

    /// Adds a JSON response without a documented type.
    pub(super) fn with_any_json_response(self, status: u16) -> Self {
        self.add_response(status, "application/json", &json!({ "type": "object" }))
    }

    /// Marks the operation as internal: its data can change in any version.
    pub(super) fn mark_internal(mut self) -> Self {
        self.described.insert("x-internal".to_owned(), true.into());
        self
    }

    /// Adds a response without a body.
    pub(super) fn with_empty_response(mut self, status: u16) -> Self {
        self.part_mut("responses")[&status.to_string()] =
            json!({ "description": status_text(status) });
        self
    }

    /// Adds refusals with these statuses. Their bodies are texts with the reason.
    pub(super) fn with_refusals<const N: usize>(mut self, statuses: [u16; N]) -> Self {
        for status in statuses {
            let name = status_text(status).replace(' ', "");
            self.part_mut("responses")[&status.to_string()] =
                json!({ "$ref": format!("#/components/responses/{name}") });
        }
        self
    }

    /// Adds the keys of the type `T` as query parameters.
    pub(super) fn with_query<T: JsonSchema>(mut self, types: &mut TypeSchemas) -> Self {
        let parameters = types.query_parameters::<T>();
        self.parameters_mut().extend(parameters);
        self
    }

    /// Adds a path parameter whose value is a text.
    pub(super) fn with_path_parameter(self, name: &str, text: &str) -> Self {
        let schema = json!({ "type": "string", "minLength": 1 });
        self.add_parameter("path", name, text, &schema)
    }

    /// Adds a required header whose value matches the pattern.
    pub(super) fn with_required_header(self, name: &str, text: &str, pattern: &str) -> Self {
        let schema = json!({ "type": "string", "pattern": pattern });
        self.add_parameter("header", name, text, &schema)
    }

    fn add_parameter(mut self, place: &str, name: &str, text: &str, schema: &Value) -> Self {
        let parameter = json!({ "name": name, "in": place, "required": true, "description": text, "schema": schema });
        self.parameters_mut().push(parameter);
        self
    }

    /// Adds a request body that consists of lines. The client may send the lines over any length of
    /// time.
    pub(super) fn with_line_body(mut self) -> Self {
        let content = json!({ "application/octet-stream": {} });
        self.described
            .insert("requestBody".to_owned(), json!({ "content": content }));
        self
    }

    /// Adds a JSON request body of the type `T`.
    pub(super) fn with_body<T: JsonSchema>(self, example: &Value, types: &mut TypeSchemas) -> Self {
        self.add_request_body(&types.request_schema::<T>(), example)
    }

    /// Adds a JSON request body of a type that is also used in responses.
    pub(super) fn with_body_of_response_type<T: JsonSchema>(
        self,
        example: &Value,
        types: &mut TypeSchemas,
    ) -> Self {
        self.add_request_body(&types.response_schema::<T>(), example)
    }

    fn add_request_body(mut self, schema: &Value, example: &Value) -> Self {
        let content = json!({ "schema": schema, "example": example });
        let body = json!({ "required": true, "content": { "application/json": content } });
        self.described.insert("requestBody".to_owned(), body);
        self.with_refusals([413])
    }

    pub(super) fn require_run_permission(mut self) -> Self {
        self.access = RequiredAccess::Run;
        self.require_gpumon_header()
    }

    /// Requires the header that pages of other origins cannot send.
    pub(super) fn require_gpumon_header(mut self) -> Self {
        self.described
            .insert("security".to_owned(), json!([{ "header": [] }]));
        self
    }

    pub(super) fn require_socket(mut self) -> Self {
        self.access = RequiredAccess::Socket;
        self.described
            .insert("x-unix-socket-only".to_owned(), true.into());
        self
    }

    /// Returns the path, the method, and the operation's description in the OpenAPI document.
    pub(super) fn into_description(mut self) -> (String, String, Value) {
        let access = match self.access {
            RequiredAccess::Read => "",
            RequiredAccess::Run => {
                "For the server's own user and root; with `--allow-runs` for every user who can \
                 connect to the port."
            }
            RequiredAccess::Socket => "Unix socket only, for the server's own user and root.",
        };
        let text = self
            .described
            .get("description")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let text = [text, access]
            .iter()
            .filter(|part| !part.is_empty())
            .copied()
            .collect::<Vec<_>>()
            .join(" ");
        if !text.is_empty() {
            self.described.insert("description".to_owned(), text.into());
        }
        (
            self.path.replace("{*", "{"),
            self.method.to_lowercase(),
            self.described.into(),
        )
    }

    fn add_response(mut self, status: u16, kind: &str, schema: &Value) -> Self {
        let answer = &mut self.part_mut("responses")[&status.to_string()];
        if answer.get("$ref").is_some() {
            *answer = json!({});
        }
        answer["description"] = status_text(status).into();
        answer["content"][kind] = json!({ "schema": schema });
        self
    }

    fn part_mut(&mut self, key: &str) -> &mut Value {
        self.described.entry(key).or_insert_with(|| json!({}))
    }

    fn parameters_mut(&mut self) -> &mut Vec<Value> {
        self.described
            .entry("parameters")
            .or_insert_with(|| json!([]))
            .as_array_mut()
            .expect("the parameters are a list")
    }
}

/// Returns the operation ID for client generators, such as `getRunsRun`.
fn make_operation_id(method: &str, path: &str) -> String {
    let words = path
        .trim_start_matches("/api/v1")
        .split(|letter: char| !letter.is_alphanumeric());
    let capital = |word: &str| word[..1].to_uppercase() + &word[1..];
    let words: Vec<_> = words.filter(|word| !word.is_empty()).map(capital).collect();
    let words = if words.is_empty() {
        "Page".to_owned()
    } else {
        words.concat()
    };
    method.to_lowercase() + &words
}

/// Returns the responses for these refusal statuses. The operations of the document refer to them.
pub(super) fn describe_refusals(statuses: impl Iterator<Item = u16>) -> Value {
    let one = |status| {
        let content = json!({ TEXT: { "schema": { "type": "string" } } });
        (
            status_text(status).replace(' ', ""),
            json!({ "description": describe_status(status), "content": content }),
        )
    };
    Value::Object(statuses.map(one).collect())
}

fn status_text(status: u16) -> &'static str {
    StatusCode::from_u16(status)
        .ok()
        .and_then(|status| status.canonical_reason())
        .expect("a status")
}

/// Returns the meaning of a refusal with this status.
fn describe_status(status: u16) -> &'static str {
    match status {
        400 => "The request is invalid; the response explains what is expected.",
        401 => "The client is not signed in: the server requires a token or a password.",
        403 => {
            "The Host, Origin or Fetch Metadata headers belong to another site, or the client \
             does not have permission."
        }
        404 => "The resource does not exist.",
        408 => "The request took too long.",
        409 => "The request conflicts with the current state of the server.",
        413 => "The body is too large.",
        429 => "The client sent too many requests.",
        502 => "The node cannot be reached, or is not a gpumon server.",
        503 => "The server is too busy, or something that it needs is not available.",
        504 => "The node did not respond in time.",
        _ => panic!("add the meaning of status {status} to `describe_status`"),
    }
}

// Schemas of types.

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
        set_integer_maximums(&mut object);
        let required = object["required"].take();
        let keys = object["properties"]
            .as_object_mut()
            .expect("an object with keys")
            .iter_mut();
        let mut parameters: Vec<Value> = keys
            .map(|(name, schema)| build_query_parameter(name, schema.take()))
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
            set_integer_maximums(&mut kind);
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
            unreachable!("`kinds` was created as an object")
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
fn build_query_parameter(name: &str, mut schema: Value) -> Value {
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
fn set_integer_maximums(schema: &mut Value) {
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
            parts.values_mut().for_each(set_integer_maximums);
        }
        Value::Array(parts) => parts.iter_mut().for_each(set_integer_maximums),
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
        // If several fields share a type, its property has been described already.
        None if property["description"] == help => {}
        None => {
            let said = property["description"].take();
            property["description"] = help.into();
            property["$comment"] = said;
        }
        Some(rest) => {
            let inner = property.clone();
            for kind in find_referenced_types(kinds, &inner) {
                describe_property(kinds, &kind, rest, help);
            }
        }
    }
}

/// Returns the object types that a property refers to, including types within a reading.
fn find_referenced_types(kinds: &Value, property: &Value) -> Vec<String> {
    match property {
        Value::Object(parts) => {
            let named = parts
                .get("$ref")
                .and_then(Value::as_str)
                .and_then(|name| name.rsplit('/').next());
            let own: Vec<_> = match named {
                Some(reading) if reading.starts_with("Reading") => {
                    find_referenced_types(kinds, &kinds[reading])
                }
                Some(name) => vec![name.to_owned()],
                None => Vec::new(),
            };
            own.into_iter()
                .chain(
                    parts
                        .values()
                        .flat_map(|part| find_referenced_types(kinds, part)),
                )
                .collect()
        }
        Value::Array(parts) => parts
            .iter()
            .flat_map(|part| find_referenced_types(kinds, part))
            .collect(),
        _ => Vec::new(),
    }
}
