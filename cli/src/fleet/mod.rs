//! Many machines at once, for a terminal: what commands share that show a fleet.
//!
//! [`options`] say where it is read and how its nodes are reached; [`renamed`] has options of one command in another.

pub(crate) mod options;
pub(crate) mod renamed;
