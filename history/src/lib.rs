//! The history of GPUs.
//!
//! - [`span`] is the format of a span and of the request for it, and chooses the resolution.
//! - [`merge`] combines the spans of two servers.
//! - [`grid`] arranges all values on one time axis.
//! - [`timeline`] stores recent samples, and the values of charts, on one time axis.
//! - [`bucket`] aggregates samples into buckets of ten seconds, the source of all other data.
//! - [`jobs`] has the times of jobs on GPUs, [`database::usage`] the usage by owner.
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
