//! Fleets in the terminal: the parts that the commands for fleets share.
//!
//! - [`options`] define the source of a fleet and the access to its nodes. [`renamed`] contains
//!   options of one command under other names in another.
//! - [`nodes`] lists nodes and GPUs in order, with their sums. [`columns`] contains the columns of
//!   their tables. [`filter`] and [`comparison`] parse filters, as the web page does in
//!   `static/src/model/fleet/`. [`free`] finds free GPUs.
//! - [`text`] formats readings. [`served`] contains the settings of a fleet server.

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
