//! Fleets of many machines.
//!
//! [`model`] contains the JSON types of a fleet, and [`FleetReader`] reads a fleet: [`prometheus`]
//! from Prometheus or anything with its HTTP API, and [`hosts`] over ssh. Both use a
//! [`FleetBuilder`], which derives states, ranks, and sums. [`Rows`] accesses a fleet by rows, and
//! [`Summary`] sums up rows. [`discovery`] lists machines for Prometheus. [`credentials`] reads a
//! client's identity and trusted certificates from files.

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
