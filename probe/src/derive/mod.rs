//! What follows from several readings: rates, events, conditions.
//!
//! - [`HostRates`] derives rates from two neighboring samples.
//! - [`sanity_check`] removes impossible readings before anything else uses them.
//! - [`ConditionTracker`] derives the conditions of a GPU; [`is_memory_nearly_full`] and
//!   [`unlisted_bytes`] apply the rules of two of them to a single sample.
//! - [`found_after_ms`] is how long a new collector needs to find one that lasts.
//! - [`Baseline`] is what a GPU usually does, which one of the conditions learns.
//! - [`Clock`] and [`Hysteresis`] are how they begin and end in time; alerts do so in the same way.
//! - [`ProcessTracker`] and [`EccTracker`] derive events from changes.
//! - [`ErrorFilter`] removes duplicates of driver errors that are reported twice.

// Readings can be anything.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

mod conditions;
mod ecc;
mod error_filter;
mod processes;
mod rates;
pub mod sanity_check;

#[cfg(test)]
pub(crate) use conditions::learned_baseline;
pub use conditions::{
    Baseline, Clock, ConditionSettings, ConditionTracker, Hysteresis, Moment, Observation,
    could_hang, found_after_ms, is_memory_nearly_full, unlisted_bytes,
};
pub use ecc::EccTracker;
pub use error_filter::ErrorFilter;
pub use processes::ProcessTracker;
pub use rates::HostRates;

#[cfg(test)]
pub(crate) mod examples;
