//! A fleet from Prometheus or another server with its HTTP API: Thanos, Mimir or VictoriaMetrics.
//!
//! `questions` contains all queries about the current state and how often they are sent. `client`
//! sends queries within limits, `answer` parses their answers, `facts` reads single series, and
//! `assemble` combines them. `spans` reads data about time ranges. `reader` caches the results for
//! all viewers.

mod address;
mod answer;
mod ask;
mod assemble;
mod cached;
mod client;
mod facts;
mod metrics;
mod now;
mod owners;
mod promql;
mod questions;
mod reader;
mod settings;
mod spans;
mod target;
#[cfg(test)]
mod tests;

pub use reader::PrometheusReader;
pub use settings::{Authorization, ClientCertificate, Settings, SettingsError};
