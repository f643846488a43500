//! What a tool has, and how it is answered.

use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use gpumon_probe::untrusted::escaped;
use rmcp::model::{self, JsonObject, ToolAnnotations};
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::sources::Sources;
use crate::exit::Failure;

/// A tool, which is a structure of its arguments. It changes nothing.
pub(super) trait Tool: DeserializeOwned + JsonSchema + 'static {
    const NAME: &'static str;
    /// For people.
    const TITLE: &'static str;
    type Answer: Serialize + JsonSchema + 'static;

    /// What it tells, and when to use it.
    fn description() -> String;

    /// Answers it. This may wait for a server or the driver.
    ///
    /// # Errors
    /// Where it cannot, with the cure.
    fn answer(self, sources: &Sources) -> Result<Self::Answer, Failure>;
}

/// A tool as the protocol's side sees it.
pub(super) struct Entry {
    pub(super) name: &'static str,
    pub(super) describe: fn() -> model::Tool,
    pub(super) call: fn(&Sources, JsonObject) -> Result<Value, Failure>,
}

impl Entry {
    pub(super) const fn of<T: Tool>() -> Self {
        Self {
            name: T::NAME,
            describe: describe::<T>,
            call: call::<T>,
        }
    }
}

fn describe<T: Tool>() -> model::Tool {
    let annotations = ToolAnnotations::with_title(T::TITLE)
        .read_only(true)
        .destructive(false)
        .idempotent(true);
    model::Tool::new(T::NAME, T::description(), Arc::<JsonObject>::default())
        .with_title(T::TITLE)
        .with_input_schema::<T>()
        .with_output_schema::<T::Answer>()
        .with_annotations(annotations.open_world(false))
}

fn call<T: Tool>(sources: &Sources, arguments: JsonObject) -> Result<Value, Failure> {
    let tool: T = serde_json::from_value(Value::Object(arguments)).map_err(|error| {
        anyhow!(
            "wrong arguments: {error}; see the input schema of {}",
            T::NAME
        )
    })?;
    let mut answer =
        serde_json::to_value(tool.answer(sources)?).context("cannot write the answer as JSON")?;
    make_visible(&mut answer);
    Ok(answer)
}

/// Spells out what a reader would not see in a text: control characters, and what hides or turns other text.
fn make_visible(value: &mut Value) {
    match value {
        Value::String(text) => *text = escaped(text),
        Value::Array(items) => items.iter_mut().for_each(make_visible),
        Value::Object(fields) => fields.values_mut().for_each(make_visible),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
