//! The history of GPUs.
//!
//! - [`span`] is the format of a span, [`wanted`] the list of metrics in a request.
//! - [`merge`] combines the spans of two servers.
//! - [`plan`] chooses the resolution, [`grid`] puts all values on one time axis.
//! - [`timeline`] has recent samples, and the values of charts, over one time axis.
//! - [`bucket`] sums up ten seconds of samples, from which all else is made.
//! - [`jobs`] has the times of jobs on GPUs, [`usage`] the usage of owners.
//! - [`memory`] keeps buckets for hours, [`database`] for a year; [`writer`] is the thread that
//!   writes them.

pub mod bucket;
pub mod database;
pub mod grid;
pub mod jobs;
pub mod memory;
pub mod merge;
pub mod plan;
pub mod span;
pub mod timeline;
pub mod usage;
pub mod wanted;
pub mod writer;
