//! All scenarios, in the order that is best for learning.

mod allocators;
mod limits;

use self::{
    allocators::{ASYNC, CACHE, FRAGMENT},
    limits::{CONTEND, FILL, HUGE, LEAK, NOT_MEMORY},
};
use super::scenario::Scenario;

static ALL: [&Scenario; 8] = [
    &HUGE,
    &FILL,
    &LEAK,
    &FRAGMENT,
    &CACHE,
    &ASYNC,
    &CONTEND,
    &NOT_MEMORY,
];

pub fn all() -> &'static [&'static Scenario] {
    &ALL
}

pub(crate) fn find(id: &str) -> Option<&'static Scenario> {
    all().iter().copied().find(|scenario| scenario.id == id)
}
