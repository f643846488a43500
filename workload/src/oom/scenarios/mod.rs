//! All scenarios, in a suitable order for learning.

mod allocators;
mod limits;

use self::{
    allocators::{ASYNC, CACHE, FRAGMENT},
    limits::{CONTEND, FILL, HUGE, LEAK, NOT_MEMORY},
};
use super::scenario::Scenario;

static SCENARIOS: [&Scenario; 8] = [
    &HUGE,
    &FILL,
    &LEAK,
    &FRAGMENT,
    &CACHE,
    &ASYNC,
    &CONTEND,
    &NOT_MEMORY,
];

pub fn list_scenarios() -> &'static [&'static Scenario] {
    &SCENARIOS
}

pub(crate) fn find_scenario(id: &str) -> Option<&'static Scenario> {
    list_scenarios()
        .iter()
        .copied()
        .find(|scenario| scenario.id == id)
}
