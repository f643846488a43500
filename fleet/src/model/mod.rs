//! The JSON types of a fleet.
//!
//! [`Fleet`] is the current state of all GPUs, [`FleetUsage`] is the usage by owner,
//! [`FleetEvents`] contains problems, and [`FleetHistory`] contains readings of the fleet or one
//! node over time. Per-GPU values are stored in columns of equal length, so that ten thousand GPUs
//! take a few hundred kilobytes.

mod events;
mod history;
mod now;
mod readings;
mod usage;

pub use events::{FleetEvent, FleetEventKind, FleetEvents};
pub use history::{FleetHistory, FleetSeries};
pub use now::{
    Fleet, FleetCondition, FleetGpus, FleetHold, FleetNodes, FleetOwner, FleetSource,
    FleetSourceKind, FleetState, FleetSums, GpuHealth, GpuState, NodeHealth, OwnerKind, Resolution,
};
pub use readings::{
    HELD_BYTES, MEMORY_TOTAL, MEMORY_USED, POWER, POWER_LIMIT, READINGS, TEMPERATURE, UTILIZATION,
    is_plausible,
};
pub(crate) use usage::sort_groups;
pub use usage::{Amounts, FleetUsage, OwnerUsage, UsageGroup, add_amounts, sum_known};
