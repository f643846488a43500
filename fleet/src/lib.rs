//! Monitoring of many machines as a fleet.
//!
//! [`model`] contains the fleet's JSON types, and [`FleetReader`] reads a fleet: [`prometheus`]
//! from Prometheus or any server with its HTTP API, and [`hosts`] over ssh. Both use a
//! [`FleetBuilder`], which derives states, ranks, and sums. [`Rows`] provides row-wise access to a
//! fleet, and [`Summary`] aggregates rows. [`discovery`] lists scrape targets for Prometheus.
//! [`credentials`] reads a client's credentials and trusted certificates from files.

pub mod credentials;
pub mod discovery;
pub mod hosts;
pub mod model;
pub mod prometheus;
mod source;
mod summary;

pub use hosts::list::compare_names;
pub use source::{
    FleetBuilder, FleetError, FleetFuture, FleetReader, NewGpu, NewNode, NodeAddress, Range,
    SharedFleet,
};
pub use summary::{Rows, Summary};
