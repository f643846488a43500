//! What GPUs did in the past.
//!
//! - [`span`] is what is answered, [`wanted`] which metrics are asked for.
//! - [`merge`] puts together what two servers know.
//! - [`plan`] chooses the resolution, [`grid`] puts whatever is known on one time axis.
//! - [`timeline`] has values over one time axis: what was sampled lately, and what is drawn.
//! - [`bucket`] sums up ten seconds of samples, of which all else is made.
//! - [`jobs`] is which job was on which GPU, [`usage`] who used how much.
//! - [`memory`] keeps them for hours, [`database`] for a year; [`writer`] is the thread between.

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
