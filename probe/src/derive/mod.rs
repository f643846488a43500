//! What no single reading tells: rates, what began and ended, what is the matter.
//!
//! - [`HostRates`] makes rates of two neighbouring samples.
//! - [`plausible`] throws out what cannot be, before anything else looks at it.
//! - [`ConditionTracker`] says what is the matter with a GPU, and when it is over; [`is_memory_nearly_full`] tells it
//!   of one look.
//! - [`ProcessTracker`] and [`EccTracker`] make events of what changed.
//! - [`XidFilter`] makes one report of an Xid that is told twice.

mod conditions;
mod ecc;
pub mod plausible;
mod processes;
mod rates;
mod xid_filter;

pub use conditions::{ConditionSettings, ConditionTracker, is_memory_nearly_full};
pub use ecc::EccTracker;
pub use processes::ProcessTracker;
pub use rates::HostRates;
pub use xid_filter::XidFilter;

#[cfg(test)]
pub(crate) mod examples;
