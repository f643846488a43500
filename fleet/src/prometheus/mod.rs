//! A fleet as Prometheus tells it, or what has its HTTP API: Thanos, Mimir or VictoriaMetrics.

mod settings;

pub use settings::{Authorization, ClientCertificate, Settings, SettingsError};
