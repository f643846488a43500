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

/// All that there are.
static ALL: [&dyn Scenario; 8] = [
    &huge::Huge,
    &fill::Fill,
    &leak::Leak,
    &fragment::Fragment,
    &cache::Cache,
    &pending::Async,
    &contend::Contend,
    &not_memory::NotMemory,
];

/// Every demonstration.
pub fn all() -> &'static [&'static dyn Scenario] {
    &ALL
}

/// The one with this name.
pub fn find(id: &str) -> Option<&'static dyn Scenario> {
    all().iter().copied().find(|scenario| scenario.about().id == id)
}
