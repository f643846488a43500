//! What follows from several readings: rates, events, conditions.
//!
//! - [`HostRates`] derives rates from two neighboring samples.
//! - [`sanity_check`] removes impossible readings before anything else uses them.
//! - [`ConditionTracker`] derives the conditions of a GPU; [`is_memory_nearly_full`] is the threshold of one
//!   for a single sample.
//! - [`ProcessTracker`] and [`EccTracker`] derive events from changes.
//! - [`XidFilter`] makes one report of an Xid that is told twice.

mod conditions;
mod ecc;
mod processes;
mod rates;
pub mod sanity_check;
mod xid_filter;

pub use conditions::{ConditionSettings, ConditionTracker, is_memory_nearly_full};
pub use ecc::EccTracker;
pub use processes::ProcessTracker;
pub use rates::HostRates;
pub use xid_filter::XidFilter;

#[cfg(test)]
pub(crate) mod examples;
