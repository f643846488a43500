//! Many machines at once, for a terminal: what commands share that show a fleet.
//!
//! - [`options`] say where it is read and how its nodes are reached; [`renamed`] has options of one command in another.
//! - [`rows`] is what each GPU is at, [`nodes`] the same summed up by node, the worst first; [`filter`] and
//!   [`comparison`] are words that choose some of them, [`free`] where GPUs are free. Page and terminal show the same: their
//!   forms in TypeScript are in `static/src/model/fleet/`.
//! - [`totals`] is what all come to, [`text`] what readings are in words; [`served`] is a server of a fleet.

#[cfg(test)]
mod cases;
pub(crate) mod comparison;
pub(crate) mod filter;
pub(crate) mod free;
pub(crate) mod hosts;
pub(crate) mod nodes;
pub(crate) mod options;
pub(crate) mod renamed;
pub(crate) mod rows;
pub(crate) mod served;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod text;
pub(crate) mod totals;
