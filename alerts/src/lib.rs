//! Alerts: what people want to be told about, and how.
//!
//! - [`rules`] is the alert file: rules over fields and conditions, and receivers.
//! - [`evaluate`] makes alerts of samples, a state machine for each rule and GPU. It is pure: time
//!   is an argument.
//! - [`notify`] sends them to webhooks and commands, each on a thread of its own.
//! - [`prometheus`] writes the same rules for Prometheus.
//! - [`describe`] are the sentences of all of them.

#![forbid(unsafe_code)]

pub mod describe;
pub mod evaluate;
pub mod notify;
mod placeholder;
pub mod prometheus;
pub mod rules;
mod status;
