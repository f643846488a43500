//! Shared parts of the commands that show fleets in the terminal.
//!
//! - [`options`] defines the options for the source of a fleet and the access to its nodes.
//!   [`renamed`] gives the options of one command other names in another command.
//! - [`nodes`] lists nodes and GPUs in order, with their totals. [`columns`] contains the columns
//!   of their tables. [`filter`] and [`comparison`] parse filters in the same way as the web page
//!   in `static/src/model/fleet/`. [`free`] finds free GPUs.
//! - [`text`] formats readings. [`served`] contains the settings of a fleet server.

pub(crate) mod filter;
#[cfg(test)]
mod filter_tests;
pub(crate) mod nodes;
pub(crate) mod options;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod text;
