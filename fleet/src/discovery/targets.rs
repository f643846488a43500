//! Scrape targets in the format of Prometheus' `file_sd` and `http_sd`.

use std::{collections::BTreeMap, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The maximum number of targets, more than any Prometheus scrapes.
pub const MAX_TARGETS: usize = 100_000;

/// Targets with the same labels: one element of the list that Prometheus reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TargetGroup {
    /// Hosts with their ports, such as `node01:9400`.
    pub targets: Vec<String>,
    /// Labels of all time series of these targets.
    pub labels: BTreeMap<String, String>,
}

/// A host to scrape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// A host name or an IP address. IPv6 addresses have no brackets.
    pub host: String,
}

/// A label to add to targets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    pub name: String,
    pub value: String,
}

/// The error for an invalid label.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "'{0}' is not a label; expected NAME=VALUE, such as cluster=alps, with only letters, digits \
     and underscores in NAME"
)]
pub struct LabelError(String);

impl FromStr for Label {
    type Err = LabelError;

    fn from_str(text: &str) -> Result<Self, LabelError> {
        let bad = || LabelError(text.escape_debug().to_string());
        let (name, value) = text.split_once('=').ok_or_else(bad)?;
        let is_start = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
        let is_name = name
            .bytes()
            .all(|byte| is_start(byte) || byte.is_ascii_digit())
            && name.bytes().next().is_some_and(is_start);
        let label = Self {
            name: name.to_owned(),
            value: value.to_owned(),
        };
        (is_name && !value.is_empty() && !value.contains(char::is_control))
            .then_some(label)
            .ok_or_else(bad)
    }
}

/// Returns one group of these targets at this port, or no group without targets, so that Prometheus
/// scrapes nothing.
pub fn group_targets(targets: &[Target], port: u16, labels: &[Label]) -> Vec<TargetGroup> {
    let address = |target: &Target| {
        let host = &target.host;
        if host.contains(':') {
            format!("[{host}]:{port}")
        } else {
            format!("{host}:{port}")
        }
    };
    let targets: Vec<_> = targets.iter().map(address).collect();
    let labels = labels
        .iter()
        .map(|label| (label.name.clone(), label.value.clone()))
        .collect();
    if targets.is_empty() {
        Vec::new()
    } else {
        vec![TargetGroup { targets, labels }]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn target_groups_have_prometheus_format() {
        let target = |host: &str| Target {
            host: host.to_owned(),
        };
        let labels = [
            "cluster=alps".parse().unwrap(),
            "__metrics_path__=/metrics/dcgm".parse().unwrap(),
        ];
        let groups = group_targets(&[target("n1"), target("fe80::1")], 9400, &labels);
        assert_eq!(
            serde_json::to_string(&groups).unwrap(),
            r#"[{"targets":["n1:9400","[fe80::1]:9400"],"labels":{"__metrics_path__":"/metrics/dcgm","cluster":"alps"}}]"#
        );
        assert_eq!(super::group_targets(&[], 9400, &labels), []);
    }

    #[test]
    fn invalid_label_is_refused() {
        for text in ["", "=", "a", "a=", "=b", "1a=b", "a-b=c", "a=b\nc"] {
            assert!(
                text.parse::<Label>()
                    .unwrap_err()
                    .to_string()
                    .contains("NAME=VALUE"),
                "{text}"
            );
        }
        assert_eq!("a=b=c".parse::<Label>().unwrap().value, "b=c");
    }
}
