//! Alerts: rules, their evaluation, and notifications.
//!
//! - [`rules`] parses the alert file, which defines receivers, and rules about fields and
//!   conditions.
//! - [`evaluate`] turns samples into alerts, with a state machine for each rule and GPU. It reads
//!   no clock: the time is an argument.
//! - [`notify`] sends alerts to webhooks and commands, with one thread for each receiver.
//! - [`prometheus`] exports the rules to Prometheus.
//! - [`wording`] describes rules and alerts in sentences.

#![forbid(unsafe_code)]

pub mod evaluate;
pub mod notify;
pub mod prometheus;
pub mod rules;
pub mod wording;
