//! Many machines at once.
//!
//! [`model`] is what is told of a fleet, by Prometheus or over ssh alike, and [`FleetReader`] is who tells it.
//! [`discovery`] is which machines there are, for Prometheus; [`hosts`] are read over ssh, [`prometheus`] reads it from
//! Prometheus, or from what has its HTTP API. [`credentials`] are files with what a client shows, and whom it trusts.

pub mod credentials;
pub mod discovery;
pub mod hosts;
pub mod model;
pub mod prometheus;
mod reader;

pub use reader::{Answer, FleetError, FleetReader, NodeAddress, Range, SharedFleet};
