//! The definition of a demonstration.

use serde::Serialize;

use super::{scenario_context::ScenarioContext, stop::Stop};

/// A demonstration of running out of memory, or of errors that look like it, with explanations.
#[derive(Debug, Serialize)]
pub struct Scenario {
    /// The name as typed by users.
    pub id: &'static str,
    /// A title of a few words.
    pub title: &'static str,
    /// A description of the visible effect, in one sentence.
    pub shows: &'static str,
    /// The cause of the effect.
    pub cause: &'static str,
    /// The remedies, with the settings of frameworks.
    #[serde(rename = "cures")]
    pub fixes: &'static [&'static str],
    /// The lesson of the scenario.
    pub lesson: &'static str,
    /// Runs the scenario step by step. All of its memory is released when this returns. The
    /// function fails if there is not enough memory, if the run is interrupted, or if the effect
    /// does not occur.
    #[serde(skip)]
    pub(super) run: fn(&mut ScenarioContext<'_>) -> Result<(), Stop>,
}
