//! Many machines at once.
//!
//! [`model`] is what is told of a fleet, by Prometheus or over ssh alike.

pub mod model;
