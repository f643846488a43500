//! Many machines at once, for a terminal: what commands share that show a fleet.
//!
//! - [`options`] say where it is read and how its nodes are reached; [`renamed`] has options of one
//!   command in another.
//! - [`nodes`] lists nodes and GPUs in order with their sums, [`columns`] has the columns of their
//!   tables. [`filter`] and [`comparison`] parse the words that choose GPUs, as the page does in
//!   `static/src/model/fleet/`. [`free`] finds free GPUs.
//! - [`text`] formats readings; [`served`] is a server of a fleet.

pub(crate) mod columns;
pub(crate) mod comparison;
pub(crate) mod filter;
#[cfg(test)]
mod filter_tests;
pub(crate) mod free;
pub(crate) mod hosts;
pub(crate) mod nodes;
pub(crate) mod options;
pub(crate) mod renamed;
pub(crate) mod served;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod text;
