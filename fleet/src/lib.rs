//! Many machines at once.
//!
//! [`model`] is the JSON of a fleet, and [`FleetReader`] reads it: [`prometheus`] from Prometheus
//! or anything with its HTTP API, [`hosts`] over ssh. Both use a [`FleetBuilder`], which derives
//! states, ranks and sums; [`Rows`] is a fleet row by row, and [`Summary`] sums up rows.
//! [`discovery`] lists machines for Prometheus. [`credentials`] are files with the identity of a
//! client and the authorities that it trusts.

mod builder;
pub mod credentials;
pub mod discovery;
pub mod hosts;
pub mod model;
mod natural;
pub mod prometheus;
mod reader;
mod rows;
mod summary;

pub use builder::{FleetBuilder, NewGpu, NewNode};
pub use natural::compare_names;
pub use reader::{Answer, FleetError, FleetReader, NodeAddress, Range, SharedFleet};
pub use rows::Rows;
pub use summary::Summary;
