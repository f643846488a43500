//! What a demonstration is.

use serde::Serialize;

use super::{scenario_context::ScenarioContext, stop::Stop};

/// A demonstration of memory that runs out, or seems to: what it is, and what it teaches.
#[derive(Debug, Serialize)]
pub struct Scenario {
    /// Its name, as it is typed.
    pub id: &'static str,
    /// The same in a few words.
    pub title: &'static str,
    /// What one sees, in a sentence.
    pub shows: &'static str,
    /// Why it is so.
    pub cause: &'static str,
    /// What to do about it, with the settings of frameworks.
    #[serde(rename = "cures")]
    pub fixes: &'static [&'static str],
    /// What one learns from it.
    pub lesson: &'static str,
    /// Shows it, step by step. What it holds is given back when this returns. It fails where there
    /// is no room, somebody asks to stop, or it does not happen as it should.
    #[serde(skip)]
    pub(super) run: fn(&mut ScenarioContext<'_>) -> Result<(), Stop>,
}
