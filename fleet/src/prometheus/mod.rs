//! Reading of a fleet from Prometheus or a server with the same HTTP API, such as Thanos, Mimir or
//! VictoriaMetrics.
//!
//! `questions` lists the queries about the current state and how often they are sent. `client`
//! sends queries within limits, `answer` parses responses, `facts` extracts values from individual
//! series, and `assemble` combines them. `spans` reads data about time ranges. `reader` caches the
//! results for all viewers.

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
