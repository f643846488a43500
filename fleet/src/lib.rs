//! Monitoring of many machines as a fleet.
//!
//! [`model`] contains the fleet's JSON types, and [`FleetReader`] reads a fleet: [`prometheus`]
//! from Prometheus or any server with its HTTP API, and [`hosts`] over ssh. Both use a
//! [`FleetBuilder`], which derives states, ranks, and sums. [`Rows`] provides row-wise access to a
//! fleet, and [`Summary`] aggregates rows. [`discovery`] lists scrape targets for Prometheus.
//! [`credentials`] reads a client's credentials and trusted certificates from files.

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
pub use reader::{FleetError, FleetFuture, FleetReader, NodeAddress, Range, SharedFleet};
pub use rows::Rows;
pub use summary::Summary;
