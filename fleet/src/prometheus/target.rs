//! Which node and GPU a series is of.

use std::{collections::HashMap, sync::Arc};

use gpumon_probe::owner::clean_name;

use super::{answer::Labels, metrics::Family};
use crate::reader::NodeAddress;

/// More GPUs than a machine has.
const MOST_GPUS: u32 = 1024;

/// What Prometheus scrapes, as its series name it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Target {
    /// Of several Prometheus servers behind one address, whose they are.
    pub(super) cluster: Arc<str>,
    /// What the node is called.
    pub(super) host: Arc<str>,
    /// The port in `instance`, where the host is of it.
    pub(super) port: Option<u16>,
    /// The label itself, as it stands.
    pub(super) instance: Arc<str>,
}

impl Target {
    pub(super) fn address(&self) -> NodeAddress {
        let (host, port) = split(&self.instance);
        NodeAddress {
            host: clean_name(host),
            port,
        }
    }
}

/// Reads labels; texts that many series have are kept once.
pub(super) struct Interner<'s> {
    node_label: Option<&'s str>,
    texts: HashMap<String, Arc<str>>,
    targets: HashMap<Target, Arc<Target>>,
}

impl<'s> Interner<'s> {
    pub(super) fn new(node_label: Option<&'s str>) -> Self {
        Self {
            node_label,
            texts: HashMap::new(),
            targets: HashMap::new(),
        }
    }

    /// A text of a stranger, cleaned.
    pub(super) fn text(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return Arc::clone(known);
        }
        let clean: Arc<str> = clean_name(text).into();
        self.texts.insert(text.to_owned(), Arc::clone(&clean));
        clean
    }

    /// `None` where nothing names a node.
    pub(super) fn target(&mut self, labels: &Labels<'_>, family: Family) -> Option<Arc<Target>> {
        let instance = labels.get("instance");
        let named = self.node_label.map_or("", |label| labels.get(label));
        let named = if named.is_empty() && family.is_dcgm() {
            labels.first(&["Hostname", "hostname"])
        } else {
            named
        };
        let (host, port) = if named.is_empty() {
            split(instance)
        } else {
            (named, None)
        };
        if host.is_empty() {
            return None;
        }
        let verbatim: Arc<str> = self.verbatim(instance);
        let target = Target {
            cluster: self.text(labels.get("cluster")),
            host: self.text(host),
            port,
            instance: verbatim,
        };
        if let Some(known) = self.targets.get(&target) {
            return Some(Arc::clone(known));
        }
        let kept = Arc::new(target.clone());
        self.targets.insert(target, Arc::clone(&kept));
        Some(kept)
    }

    /// As a query has to have it.
    fn verbatim(&mut self, text: &str) -> Arc<str> {
        // Beside the cleaned ones, under a name that no label has.
        let key = format!("\0{text}");
        Arc::clone(self.texts.entry(key).or_insert_with(|| text.into()))
    }
}

/// NVML's index.
pub(super) fn gpu(labels: &Labels<'_>) -> Option<u32> {
    labels
        .get("gpu")
        .parse()
        .ok()
        .filter(|index| *index < MOST_GPUS)
}

/// A host, and the port where there is one; an IPv6 address has no brackets.
fn split(instance: &str) -> (&str, Option<u16>) {
    // As some write it who rename labels.
    let instance = instance
        .split_once("://")
        .map_or(instance, |(_, rest)| rest);
    let instance = instance.split('/').next().unwrap_or(instance);
    if let Some((host, rest)) = instance
        .strip_prefix('[')
        .and_then(|rest| rest.split_once(']'))
    {
        return (
            host,
            rest.strip_prefix(':').and_then(|port| port.parse().ok()),
        );
    }
    match instance.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') => match port.parse() {
            Ok(port) => (host, Some(port)),
            Err(_) => (instance, None),
        },
        _ => (instance, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_is_a_host_and_a_port() {
        for (instance, host, port) in [
            ("node1.example.org:9124", "node1.example.org", Some(9124)),
            ("node1", "node1", None),
            ("[fd00::1]:9124", "fd00::1", Some(9124)),
            ("fd00::1", "fd00::1", None),
            ("https://node1:9124/metrics", "node1", Some(9124)),
            ("node1:port", "node1:port", None),
            ("node1:99999", "node1:99999", None),
            ("", "", None),
        ] {
            assert_eq!(split(instance), (host, port), "{instance}");
        }
    }
}
