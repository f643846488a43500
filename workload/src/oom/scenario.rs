//! The definition of a demonstration.

use serde::Serialize;

use super::{scenario_context::ScenarioContext, stop::DemoError};

/// A demonstration of running out of memory, or of errors that look like it. It includes
/// explanations.
#[derive(Debug, Serialize)]
pub struct Scenario {
    /// The scenario's name, as typed by users.
    pub id: &'static str,
    /// A title of a few words.
    pub title: &'static str,
    /// A sentence that describes the visible effect.
    pub shows: &'static str,
    /// The reason why the demonstration runs out of memory.
    pub cause: &'static str,
    /// The remedies, including the settings of frameworks.
    #[serde(rename = "cures")]
    pub fixes: &'static [&'static str],
    /// The lesson that the scenario teaches.
    pub lesson: &'static str,
    /// The function that runs the scenario step by step. When it returns, all of its memory is
    /// released. It fails if there is not enough memory, if the run is interrupted, or if the
    /// effect does not occur.
    #[serde(skip)]
    pub(super) run: fn(&mut ScenarioContext<'_>) -> Result<(), DemoError>,
}
