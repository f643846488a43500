//! The TOML structure of an alert file.

use std::fmt;

use gpumon_probe::{
    model::{GpuName, Severity},
    units::Amount,
};
use serde::Deserialize;
use toml::Spanned;

use super::{RateUnit, time::RuleDuration};

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AlertFile {
    #[serde(default)]
    pub(super) rule: Vec<RuleTable>,
    #[serde(default)]
    pub(super) webhook: Vec<WebhookTable>,
    #[serde(default)]
    pub(super) command: Vec<CommandTable>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RuleTable {
    pub(super) name: Spanned<String>,
    pub(super) field: Option<Spanned<String>>,
    pub(super) condition: Option<Spanned<String>>,
    pub(super) min_severity: Option<Spanned<Severity>>,
    pub(super) absent: Option<Spanned<bool>>,
    pub(super) above: Option<Spanned<Amount>>,
    pub(super) below: Option<Spanned<Amount>>,
    pub(super) clear_above: Option<Spanned<Amount>>,
    pub(super) clear_below: Option<Spanned<Amount>>,
    pub(super) per: Option<Spanned<RateUnit>>,
    pub(super) over: Option<Spanned<RuleDuration>>,
    #[serde(rename = "for")]
    pub(super) for_time: Option<RuleDuration>,
    pub(super) clear_for: Option<RuleDuration>,
    pub(super) gpus: Option<Spanned<Vec<GpuName>>>,
    pub(super) severity: Option<Severity>,
    pub(super) message: Option<Spanned<String>>,
    pub(super) repeat: Option<Spanned<RuleDuration>>,
    #[serde(default)]
    pub(super) silence: Vec<Spanned<String>>,
    pub(super) notify: Option<Vec<Spanned<String>>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WebhookTable {
    pub(super) name: Spanned<String>,
    pub(super) url: Option<Spanned<String>>,
    pub(super) url_file: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) format: WebhookFormat,
    pub(super) timeout: Option<Spanned<RuleDuration>>,
}

/// The format of a webhook's request body.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WebhookFormat {
    /// The alert's event as JSON, with the name of the machine.
    #[default]
    Json,
    /// A message for incoming webhooks of Slack or Mattermost.
    Slack,
}

impl fmt::Display for WebhookFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Json => "json",
            Self::Slack => "slack",
        })
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CommandTable {
    pub(super) name: Spanned<String>,
    pub(super) command: Spanned<Vec<Spanned<String>>>,
    pub(super) timeout: Option<Spanned<RuleDuration>>,
}
