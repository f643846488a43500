//! What a demonstration is.

use serde::Serialize;

use super::{scenario_context::ScenarioContext, stop::Stop};

/// A demonstration of memory that runs out, or seems to.
pub trait Scenario: Sync {
    /// What it is.
    fn about(&self) -> &About;

    /// Shows it, step by step. What it holds is given back when this returns.
    ///
    /// # Errors
    /// Where there is no room, somebody asks to stop, or it does not happen as it should.
    fn run(&self, context: &mut ScenarioContext<'_>) -> Result<(), Stop>;
}

/// What a demonstration is, and what it teaches.
#[derive(Debug, Serialize)]
pub struct About {
    /// Its name, as it is typed.
    pub id: &'static str,
    /// The same in a few words.
    pub title: &'static str,
    /// What one sees, in a sentence.
    pub shows: &'static str,
    /// Why it is so.
    pub cause: &'static str,
    /// What to do about it, with the settings of frameworks.
    pub cures: &'static [&'static str],
    /// What one learns from it.
    pub lesson: &'static str,
}
