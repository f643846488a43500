//! The NVML calls that nvml-wrapper lacks, gets wrong, or makes dearer than they need be. The only unsafe code of the
//! probe.
//!
//! Every function takes its symbol from the loaded library and fails with [`NvmlError::FailedToLoadSymbol`] where an
//! older driver does not have it.

mod events;
mod fields;
mod processes;
mod samples;
mod scalars;

pub(super) use events::{EventSet, REPORTED};
pub(super) use fields::{Field, field_values};
pub(super) use processes::{
    Held, compute_processes, graphics_processes, memory_info_v1, mps_processes, process_utilization,
};
pub(super) use samples::{Buffer, samples};
pub(super) use scalars::{
    RowHistogram, c2c_enabled, common_ancestor, confidential_compute, fabric, jpeg_utilization, margin_celsius,
    mig_instance, nvlink_remote, ofa_utilization, remapped_rows, row_histogram,
};
