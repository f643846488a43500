//! The history of GPUs.
//!
//! - [`span`] is the format of a span, [`wanted`] is the selection of metrics in a request.
//! - [`merge`] combines the spans of two servers.
//! - [`plan`] chooses the resolution, [`grid`] arranges all values on one time axis.
//! - [`timeline`] stores recent samples, and the values of charts, on one time axis.
//! - [`bucket`] aggregates samples into buckets of ten seconds, the source of all other data.
//! - [`jobs`] has the times of jobs on GPUs, [`usage`] the usage by owner.
//! - [`memory`] keeps buckets for hours, [`database`] for a year; [`writer`] is the thread that
//!   writes buckets to the database.

pub mod bucket;
pub mod database;
pub mod grid;
pub mod jobs;
pub mod memory;
pub mod merge;
pub mod span;
pub mod timeline;
pub mod writer;
