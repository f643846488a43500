//! Service discovery for Prometheus: [`group_targets`] returns lists of scrape targets in
//! the format of `file_sd` and `http_sd`, and [`parse_gpu_nodes`] returns a Slurm cluster's GPU
//! nodes.

use std::{
    collections::{BTreeMap, BTreeSet},
    str::FromStr,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::hosts::{NamesError, expand_names};

// Scrape targets in the format of Prometheus' `file_sd` and `http_sd`.

/// The maximum number of targets. No Prometheus scrapes more.
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
        let label = Self {
            name: name.to_owned(),
            value: value.to_owned(),
        };
        (is_label_name(name) && !value.is_empty() && !value.contains(char::is_control))
            .then_some(label)
            .ok_or_else(bad)
    }
}

/// Returns one group that contains `targets` at `port`. If there are no targets, returns no group,
/// so that Prometheus scrapes nothing.
pub fn group_targets(targets: &[Target], port: u16, labels: &[Label]) -> Vec<TargetGroup> {
    let targets: Vec<_> = targets
        .iter()
        .map(|target| join_host_and_port(&target.host, port))
        .collect();
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

/// Returns the address of a port. IPv6 addresses get brackets.
pub(crate) fn join_host_and_port(host: &str, port: u16) -> String {
    if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

/// Returns `true` if `text` is a valid name of a label in Prometheus.
pub(crate) fn is_label_name(text: &str) -> bool {
    let is_start = |character: char| character.is_ascii_alphabetic() || character == '_';
    text.starts_with(is_start)
        && text
            .chars()
            .all(|character| is_start(character) || character.is_ascii_digit())
}

// The GPU nodes of a Slurm cluster, parsed from the output of `sinfo` or `scontrol`.

/// The reasons why a list of nodes is invalid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NodesError {
    /// A line is neither `sinfo` nor `scontrol` output.
    #[error(
        "line {line} is not Slurm output: '{text}'; use the output of `sinfo -N -h -o '%N %G'` or \
         `scontrol show nodes`"
    )]
    Line {
        /// The line number, starting at 1.
        line: usize,
        /// The beginning of the line.
        text: String,
    },
    /// A list of node names is invalid.
    #[error("line {line}: {error}")]
    Names {
        /// The line number, starting at 1.
        line: usize,
        /// The problem with the list.
        error: NamesError,
    },
}

/// Returns the GPU nodes in order, without duplicates. The input consists of lines such as `node01
/// gpu:h100:8(S:0-1)` (from `sinfo -N -h -o '%N %G'`), or is the output of `scontrol show nodes`
/// with or without `-o`. If a node's address differs from its name, Prometheus scrapes the address.
///
/// # Errors
/// Returns a [`NodesError`] if a line is invalid.
pub fn parse_gpu_nodes(text: &str) -> Result<Vec<Target>, NodesError> {
    let mut nodes: Vec<SlurmNode> = Vec::new();
    for (line, content) in (1..).zip(text.lines()) {
        let mut words = content.split_ascii_whitespace();
        let Some(first) = words.next() else { continue };
        if first.contains('=') {
            parse_scontrol_line(content, &mut nodes);
        } else if first
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || "._-[],".contains(letter))
        {
            let gres = words.next().unwrap_or_default();
            let names = expand_names(first, MAX_TARGETS)
                .map_err(|error| NodesError::Names { line, error })?;
            nodes.extend(names.into_iter().map(|name| SlurmNode {
                name,
                address: None,
                has_gpus: has_gpus(gres),
            }));
        } else {
            let text = content
                .chars()
                .take(60)
                .collect::<String>()
                .escape_debug()
                .to_string();
            return Err(NodesError::Line { line, text });
        }
    }
    let with_gpus = nodes.into_iter().filter(|node| node.has_gpus);
    let mut seen = BTreeSet::new();
    let hosts = with_gpus
        .map(|node| node.address.unwrap_or(node.name))
        .filter(|host| seen.insert(host.clone()));
    Ok(hosts.map(|host| Target { host }).collect())
}

struct SlurmNode {
    name: String,
    address: Option<String>,
    has_gpus: bool,
}

/// Parses a line of `scontrol show nodes`. Without `-o`, `scontrol` prints several lines per node.
fn parse_scontrol_line(line: &str, nodes: &mut Vec<SlurmNode>) {
    for (key, value) in line
        .split_ascii_whitespace()
        .filter_map(|word| word.split_once('='))
    {
        match (key, nodes.last_mut()) {
            ("NodeName", _) => nodes.push(SlurmNode {
                name: value.to_owned(),
                address: None,
                has_gpus: false,
            }),
            ("NodeAddr", Some(node)) if !value.starts_with('(') => {
                node.address = Some(value.to_owned());
            }
            ("Gres", Some(node)) => node.has_gpus = has_gpus(value),
            _ => {}
        }
    }
}

/// Returns `true` if a node's generic resources, such as `gpu:h100:8(S:0-1),nic:2`, include a GPU.
fn has_gpus(gres: &str) -> bool {
    gres.split(',').any(|resource| {
        let resource = resource.split('(').next().unwrap_or_default();
        let mut parts = resource.split(':');
        parts.next() == Some("gpu") && parts.next_back() != Some("0")
    })
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
        assert_eq!(group_targets(&[], 9400, &labels), []);
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

#[cfg(test)]
mod slurm_tests {
    use super::*;

    fn list_hosts(text: &str) -> Vec<String> {
        parse_gpu_nodes(text)
            .unwrap()
            .into_iter()
            .map(|target| target.host)
            .collect()
    }

    #[test]
    fn sinfo_node_of_several_partitions_is_listed_once() {
        let text = "cpu01 (null)\ngpu01 gpu:h100:8(S:0-1)\ngpu01 gpu:h100:8(S:0-1)\ngpu02 \
                    nic:2,gpu:4\nold gpu:0\nfpga fpga:2\n\n";
        assert_eq!(list_hosts(text), ["gpu01", "gpu02"]);
        assert_eq!(
            list_hosts("gpu[01-03,07] gpu:a100:4\n"),
            ["gpu01", "gpu02", "gpu03", "gpu07"]
        );
        assert_eq!(
            list_hosts("gpu01 gpu:nvidia_a100_1g.5gb:7(S:0),gpu:0\n"),
            ["gpu01"]
        );
    }

    #[test]
    fn scontrol_output_may_have_several_lines_per_node() {
        let lines = "NodeName=gpu01 Arch=x86_64 CoresPerSocket=32\n   CPUAlloc=0 CPUEfctv=64\n   \
                     Gres=gpu:h100:4(S:0-1)\n   NodeAddr=gpu01 NodeHostName=gpu01 \
                     Version=24.05.4\n   OS=Linux 5.14.0 #1 SMP\n   Reason=a = b\n\nNodeName=cpu01 \
                     Arch=x86_64\n   Gres=(null)\n   NodeAddr=cpu01 \
                     NodeHostName=cpu01\n\nNodeName=gpu02 Arch=x86_64\n   Gres=gpu:1\n   \
                     NodeAddr=10.0.0.2 NodeHostName=gpu02\n";
        assert_eq!(list_hosts(lines), ["gpu01", "10.0.0.2"]);
        let one_line = "NodeName=gpu01 Gres=gpu:2 NodeAddr=gpu01 State=IDLE\nNodeName=c \
                        Gres=(null) NodeAddr=c\n";
        assert_eq!(list_hosts(one_line), ["gpu01"]);
    }

    #[test]
    fn invalid_slurm_output_is_refused_with_line_number() {
        let error = parse_gpu_nodes("gpu01 gpu:1\n<html>\u{1b}\n")
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with(
                "line 2 is not Slurm output: '<html>\\u{1b}'; use the output of `sinfo"
            ),
            "{error}"
        );
        assert!(matches!(
            parse_gpu_nodes("n[1-999999999] gpu:1"),
            Err(NodesError::Names { line: 1, .. })
        ));
    }
}
