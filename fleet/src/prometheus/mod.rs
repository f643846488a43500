//! A fleet as Prometheus tells it, or what has its HTTP API: Thanos, Mimir or VictoriaMetrics.
//!
//! `questions` is every query about now, and how often it is asked; `client` asks within limits,
//! `answer` reads, `facts` is what single series say, and `assemble` puts them together; `spans` is
//! about what was. `reader` has what was read for all who ask.

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
