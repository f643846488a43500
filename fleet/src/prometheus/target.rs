//! The nodes and GPUs to which series belong.

use std::{collections::HashMap, sync::Arc};

use gpumon_probe::owner::clean_name;

use super::{answer::Labels, metrics::Family};
use crate::reader::NodeAddress;

/// The maximum GPU index, which is more than any machine has.
const MAX_GPUS: u32 = 1024;

/// A scrape target of Prometheus, according to the labels of its series.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Target {
    /// The cluster of the target, if several Prometheus servers share one address.
    pub(super) cluster: Arc<str>,
    /// The name of the node.
    pub(super) host: Arc<str>,
    /// The port in `instance`, if the host is from the same label.
    pub(super) port: Option<u16>,
    /// The unchanged label `instance`.
    pub(super) instance: Arc<str>,
}

impl Target {
    pub(super) fn to_node_address(&self) -> NodeAddress {
        let (host, port) = split_port(&self.instance);
        NodeAddress {
            host: clean_name(host),
            port,
        }
    }
}

/// A reader of labels that stores repeated texts only once.
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

    /// Returns an untrusted text, cleaned.
    pub(super) fn intern_cleaned_text(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return Arc::clone(known);
        }
        let clean: Arc<str> = clean_name(text).into();
        self.texts.insert(text.to_owned(), Arc::clone(&clean));
        clean
    }

    /// Returns the target of a series, or `None` if no label names a node.
    pub(super) fn intern_target(
        &mut self,
        labels: &Labels<'_>,
        family: Family,
    ) -> Option<Arc<Target>> {
        let instance = labels.get("instance");
        let named = self.node_label.map_or("", |label| labels.get(label));
        let named = if named.is_empty() && family.is_dcgm() {
            labels.first_value(&["Hostname", "hostname"])
        } else {
            named
        };
        let (host, port) = if named.is_empty() {
            split_port(instance)
        } else {
            (named, None)
        };
        if host.is_empty() {
            return None;
        }
        let verbatim: Arc<str> = self.intern_unchanged_text(instance);
        let target = Target {
            cluster: self.intern_cleaned_text(labels.get("cluster")),
            host: self.intern_cleaned_text(host),
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

    /// Returns a text unchanged, as needed in queries.
    fn intern_unchanged_text(&mut self, text: &str) -> Arc<str> {
        // The key contains a character that no label contains, so that it differs from the keys of
        // cleaned texts.
        let key = format!("\0{text}");
        Arc::clone(self.texts.entry(key).or_insert_with(|| text.into()))
    }
}

/// Returns NVML's index of the GPU.
pub(super) fn read_gpu_index(labels: &Labels<'_>) -> Option<u32> {
    labels
        .get("gpu")
        .parse()
        .ok()
        .filter(|index| *index < MAX_GPUS)
}

/// Splits a host from its port. IPv6 addresses are returned without brackets.
fn split_port(instance: &str) -> (&str, Option<u16>) {
    // Some relabeling rules write the instance as a URL.
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
    fn instance_splits_into_host_and_port() {
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
            assert_eq!(split_port(instance), (host, port), "{instance}");
        }
    }
}
