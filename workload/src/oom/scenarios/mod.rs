//! All demonstrations, in the order in which one learns from them.

mod arena;
mod cache;
mod contend;
mod fill;
mod fragment;
mod huge;
mod leak;
mod not_memory;
mod pending;

use super::scenario::Scenario;

static ALL: [&Scenario; 8] = [
    &huge::HUGE,
    &fill::FILL,
    &leak::LEAK,
    &fragment::FRAGMENT,
    &cache::CACHE,
    &pending::ASYNC,
    &contend::CONTEND,
    &not_memory::NOT_MEMORY,
];

/// Every demonstration.
pub fn all() -> &'static [&'static Scenario] {
    &ALL
}

pub(crate) fn find(id: &str) -> Option<&'static Scenario> {
    all().iter().copied().find(|scenario| scenario.id == id)
}
