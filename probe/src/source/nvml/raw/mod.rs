//! The NVML calls that nvml-wrapper lacks, gets wrong, or makes dearer than they need be. The only unsafe code of the
//! probe.
//!
//! Every function takes its symbol from the loaded library and fails with [`NvmlError::FailedToLoadSymbol`] where an
//! older driver does not have it. Two ways lead to the library: the wrapper's [`Device`](nvml_wrapper::Device), for
//! what is watched, and the own [`Library`], for questions that are one call each: it looks up what is asked for, by
//! the names and types in [`function`].

mod calls;
mod counters;
mod events;
mod fields;
pub(super) mod function;
mod gpm;
mod instances;
mod library;
mod plain;
mod processes;
mod samples;
mod scalars;

pub(super) use counters::Number;
pub(super) use events::{EventSet, REPORTED};
pub(super) use fields::{Field, field_values};
pub(super) use gpm::Sample;
pub(super) use library::{Device, Function, Library, Plain, text, version_of};
pub(super) use plain::{RemappedRowsInfo, UnrepairableMemory};
pub(super) use processes::{
    Entry, Held, compute_processes, graphics_processes, memory_info_v1, mps_processes, process_utilization,
};
pub(super) use samples::{Buffer, samples};
pub(super) use scalars::{
    RowHistogram, c2c_enabled, common_ancestor, confidential_compute, fabric, jpeg_utilization, margin_celsius,
    mig_instance, nvlink_remote, ofa_utilization, remapped_rows, row_histogram,
};
