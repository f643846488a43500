//! What is told of a fleet.
//!
//! [`Fleet`] is how all GPUs are now, [`FleetUsage`] who used how much of them, [`FleetEvents`]
//! what went wrong, [`FleetHistory`] how the whole, or one node, did over time. Whatever there is
//! one of for each GPU comes in columns of the same length, so that ten thousand GPUs are a few
//! hundred kilobytes.

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
