//! An operation of the table, and its description in the document.

use axum::http::StatusCode;
use schemars::JsonSchema;
use serde_json::{Map, Value, json};

use super::types::Types;

/// The permission that an operation requires.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Leave {
    Read,
    /// Permission to start runs, with the header that pages of other origins cannot send.
    Run,
    /// Access through the unix socket as the server's own user or root.
    Socket,
}

/// An HTTP method of a path.
pub(super) struct Operation {
    pub(super) method: &'static str,
    /// The path in the router's syntax.
    pub(super) path: &'static str,
    described: Map<String, Value>,
    leave: Leave,
}

const TEXT: &str = "text/plain; charset=utf-8";

/// Creates an operation. The first sentence of `text` is its summary.
pub(super) fn operation(method: &'static str, path: &'static str, text: &str) -> Operation {
    let (summary, rest) = text
        .split_once(". ")
        .unwrap_or((text.trim_end_matches('.'), ""));
    let mut described = Map::from_iter([
        ("operationId".to_owned(), id(method, path).into()),
        ("summary".to_owned(), summary.into()),
    ]);
    if !rest.is_empty() {
        described.insert("description".to_owned(), rest.into());
    }
    let made = Operation {
        method,
        path,
        described,
        leave: Leave::Read,
    };
    // The middleware before all routes can return these.
    made.refuses(400)
        .refuses(401)
        .refuses(403)
        .refuses(408)
        .refuses(429)
        .refuses(503)
}

impl Operation {
    /// Adds a JSON response of this type.
    pub(super) fn json<T: JsonSchema>(self, status: u16, types: &mut Types) -> Self {
        let schema = types.answer::<T>();
        self.answers(status, "application/json", &schema)
    }

    /// Adds a text response.
    pub(super) fn text(self, status: u16, kind: &str) -> Self {
        self.answers(status, kind, &json!({ "type": "string" }))
    }

    pub(super) fn plain(self, status: u16) -> Self {
        self.text(status, TEXT)
    }

    /// Adds a JSON response without a documented type.
    pub(super) fn any_json(self, status: u16) -> Self {
        self.answers(status, "application/json", &json!({ "type": "object" }))
    }

    /// Marks an operation whose data can change in any version.
    pub(super) fn internal(mut self) -> Self {
        self.described.insert("x-internal".to_owned(), true.into());
        self
    }

    /// Adds a response without a body.
    pub(super) fn empty(mut self, status: u16) -> Self {
        self.part("responses")[&status.to_string()] = json!({ "description": reason(status) });
        self
    }

    /// Adds a refusal, whose body is a text with the reason.
    pub(super) fn refuses(mut self, status: u16) -> Self {
        let name = reason(status).replace(' ', "");
        self.part("responses")[&status.to_string()] =
            json!({ "$ref": format!("#/components/responses/{name}") });
        self
    }

    /// Adds the keys of this type as query parameters.
    pub(super) fn query<T: JsonSchema>(mut self, types: &mut Types) -> Self {
        let parameters = types.parameters::<T>();
        self.parameters().extend(parameters);
        self
    }

    /// Adds a text parameter in the path.
    pub(super) fn names(mut self, name: &str, text: &str) -> Self {
        let schema = json!({ "type": "string", "minLength": 1 });
        let named = json!({ "name": name, "in": "path", "required": true, "description": text, "schema": schema });
        self.parameters().push(named);
        self
    }

    /// Adds a required header whose value matches the pattern.
    pub(super) fn header(mut self, name: &str, text: &str, pattern: &str) -> Self {
        let schema = json!({ "type": "string", "pattern": pattern });
        let header = json!({ "name": name, "in": "header", "required": true, "description": text, "schema": schema });
        self.parameters().push(header);
        self
    }

    /// Adds a request body of lines, which can be sent over any length of time.
    pub(super) fn lines(mut self) -> Self {
        let content = json!({ "application/octet-stream": {} });
        self.described
            .insert("requestBody".to_owned(), json!({ "content": content }));
        self
    }

    /// Adds a JSON request body of this type.
    pub(super) fn body<T: JsonSchema>(self, example: &Value, types: &mut Types) -> Self {
        self.takes(&types.request::<T>(), example)
    }

    /// Adds a JSON request body of a type that is also used in responses.
    pub(super) fn same_body<T: JsonSchema>(self, example: &Value, types: &mut Types) -> Self {
        self.takes(&types.answer::<T>(), example)
    }

    fn takes(mut self, schema: &Value, example: &Value) -> Self {
        let content = json!({ "schema": schema, "example": example });
        let body = json!({ "required": true, "content": { "application/json": content } });
        self.described.insert("requestBody".to_owned(), body);
        self.refuses(413)
    }

    pub(super) fn may_run(mut self) -> Self {
        self.leave = Leave::Run;
        self.with_header()
    }

    /// Requires the header that pages of other origins cannot send.
    pub(super) fn with_header(mut self) -> Self {
        self.described
            .insert("security".to_owned(), json!([{ "header": [] }]));
        self
    }

    pub(super) fn over_socket(mut self) -> Self {
        self.leave = Leave::Socket;
        self.described
            .insert("x-unix-socket-only".to_owned(), true.into());
        self
    }

    /// Returns the path, the method and their description in the document.
    pub(super) fn described(mut self) -> (String, String, Value) {
        let leave = match self.leave {
            Leave::Read => "",
            Leave::Run => {
                "For the server's own user and root; with `--allow-runs` for every user who can connect to the port."
            }
            Leave::Socket => "Unix socket only, for the server's own user and root.",
        };
        let text = self
            .described
            .get("description")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let text = [text, leave]
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

    fn answers(mut self, status: u16, kind: &str, schema: &Value) -> Self {
        let answer = &mut self.part("responses")[&status.to_string()];
        if answer.get("$ref").is_some() {
            *answer = json!({});
        }
        answer["description"] = reason(status).into();
        answer["content"][kind] = json!({ "schema": schema });
        self
    }

    fn part(&mut self, key: &str) -> &mut Value {
        self.described.entry(key).or_insert_with(|| json!({}))
    }

    fn parameters(&mut self) -> &mut Vec<Value> {
        self.described
            .entry("parameters")
            .or_insert_with(|| json!([]))
            .as_array_mut()
            .expect("it is a list")
    }
}

/// Returns the operation ID for client generators, such as `getRunsRun`.
fn id(method: &str, path: &str) -> String {
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

/// Returns the refusals that operations refer to.
pub(super) fn refusals(statuses: impl Iterator<Item = u16>) -> Value {
    let one = |status| {
        let content = json!({ TEXT: { "schema": { "type": "string" } } });
        (
            reason(status).replace(' ', ""),
            json!({ "description": why(status), "content": content }),
        )
    };
    Value::Object(statuses.map(one).collect())
}

fn reason(status: u16) -> &'static str {
    StatusCode::from_u16(status)
        .ok()
        .and_then(|status| status.canonical_reason())
        .expect("a status")
}

/// Returns the meaning of a refusal with this status.
fn why(status: u16) -> &'static str {
    match status {
        400 => "The request is not valid; the text says what would be.",
        401 => "Nobody is signed in: the server asks for a token or a password.",
        403 => {
            "Host, Origin or Fetch Metadata are those of another site, or whoever asks may not do that."
        }
        404 => "There is no such thing.",
        408 => "The request took too long.",
        409 => "It does not fit what the server is doing.",
        413 => "The body is too large.",
        429 => "There were too many of them.",
        502 => "The node cannot be reached, or is no server of gpumon.",
        503 => "The server is too busy, or what it needs is not there now.",
        504 => "The node sent nothing in time.",
        _ => panic!("say in `why` when {status} is answered"),
    }
}
