//! Values derived from readings: rates, events and conditions.
//!
//! - [`HostRates`] derives rates from two consecutive samples.
//! - [`sanity_check`] removes impossible readings before they are used.
//! - [`ConditionTracker`] derives the conditions of a GPU; [`is_memory_nearly_full`] and
//!   [`unlisted_bytes`] apply two of its rules to a single sample.
//! - [`detection_time_ms`] is the time that a new collector needs to detect a lasting condition.
//! - [`Baseline`] contains the learned usual clock and power of a GPU.
//! - [`Clock`] and [`Hysteresis`] delay the start and end of conditions and alerts.
//! - [`ProcessTracker`] and [`EccTracker`] derive events from changes.
//! - [`ErrorFilter`] removes duplicates of driver errors that are reported twice.

// Readings can have any value, so arithmetic must not overflow.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

mod conditions;
mod events;
mod rates;
pub mod sanity_check;

#[cfg(test)]
pub(crate) use conditions::make_learned_baseline;
pub use conditions::{
    Baseline, Clock, ConditionSettings, ConditionTracker, Hysteresis, Moment, Observation,
    could_hang, detection_time_ms, is_memory_nearly_full, unlisted_bytes,
};
pub use events::EccTracker;
pub use events::ErrorFilter;
pub use events::ProcessTracker;
pub use rates::HostRates;

#[cfg(test)]
pub(crate) mod examples;
