//! Shared parts of the commands that show fleets in the terminal.
//!
//! - [`options`] defines the options for the source of a fleet and the access to its nodes, and the
//!   settings of a fleet server.
//! - [`nodes`] lists nodes and GPUs in order, with their totals, and finds free GPUs.
//! - [`filter`] parses filters in the same way as the web page in `static/src/model/fleet/`.
//! - [`text`] formats readings, and defines the columns of the tables of nodes and GPUs.

pub(crate) mod filter;
pub(crate) mod nodes;
pub(crate) mod options;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod text;
