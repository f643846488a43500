//! What GPUs did in the past.
//!
//! - [`span`] is what is answered, [`wanted`] which metrics are asked for.
//! - [`plan`] chooses the resolution, [`grid`] puts whatever is known on one time axis.

pub mod grid;
pub mod plan;
pub mod span;
pub mod wanted;
