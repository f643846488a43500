//! What a tool has, and how it is answered.

use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use rmcp::model::{self, JsonObject, ToolAnnotations};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{
    answer::{select_keys, select_schema},
    sources::Sources,
};
use crate::{commands::schema::load_types, exit::Failure};

/// A tool, which is a structure of its arguments. It changes nothing.
pub(super) trait Tool: DeserializeOwned + JsonSchema + 'static {
    const NAME: &'static str;
    /// For people.
    const TITLE: &'static str;
    /// The type of the API that it answers with.
    const TYPE: &'static str;
    /// The keys of that type that are in the answer, separated by spaces.
    const KEYS: &'static str;

    /// Describes what it answers, and when to use it.
    fn description() -> String;

    /// Answers it. This may wait for a server or the driver.
    ///
    /// # Errors
    /// It cannot be answered. The error contains the cure.
    fn find_answer(self, sources: &Sources) -> Result<Answer, Failure>;
}

/// An answer, before it is shortened.
pub(super) struct Answer {
    /// A value of the API.
    pub(super) api: Value,
    /// An object of what is added to it as it is: numbers, and gpumon's own words.
    pub(super) own: Value,
}

/// A tool as the protocol's side sees it.
pub(super) struct Entry {
    pub(super) name: &'static str,
    pub(super) describe: fn() -> model::Tool,
    pub(super) call: fn(&Sources, JsonObject) -> Result<Value, Failure>,
}

impl Entry {
    pub(super) const fn new<T: Tool>() -> Self {
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
    let types = load_types();
    let schema = match select_schema(&types[T::TYPE], &types, T::KEYS) {
        Value::Object(schema) => schema,
        _ => JsonObject::default(),
    };
    model::Tool::new(T::NAME, T::description(), Arc::<JsonObject>::default())
        .with_title(T::TITLE)
        .with_input_schema::<T>()
        .with_raw_output_schema(Arc::new(schema))
        .with_annotations(annotations.open_world(false))
}

fn call<T: Tool>(sources: &Sources, arguments: JsonObject) -> Result<Value, Failure> {
    let tool: T = serde_json::from_value(Value::Object(arguments)).map_err(|error| {
        anyhow!(
            "wrong arguments: {error}; see the input schema of {}",
            T::NAME
        )
    })?;
    let Answer { api, own } = tool.find_answer(sources)?;
    let mut answer = select_keys(api, T::KEYS);
    let object = answer.as_object_mut().context("the answer is no object")?;
    if let Value::Object(own) = own {
        object.extend(own);
    }
    Ok(answer)
}
