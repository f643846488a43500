//! The nodes, GPUs and owners to which series belong, according to their labels.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use gpumon_probe::owner::clean_name;

use super::{answer::Labels, metrics::Family};
use crate::{
    model::{FleetOwner, OwnerKind},
    source::NodeAddress,
};

/// The maximum GPU index, which is more than any machine has.
const MAX_GPUS: u32 = 1024;

/// A scrape target of Prometheus, according to the labels of its series.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Target {
    /// The cluster of the target, if several Prometheus servers share one address.
    pub(super) cluster: Arc<str>,
    /// The name of the node.
    pub(super) host: Arc<str>,
    /// The port in the label `instance`. `None` if this label has no port or is not the source of
    /// `host`.
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
    targets: HashSet<Arc<Target>>,
}

impl<'s> Interner<'s> {
    pub(super) fn new(node_label: Option<&'s str>) -> Self {
        Self {
            node_label,
            texts: HashMap::new(),
            targets: HashSet::new(),
        }
    }

    /// Returns an untrusted text after cleaning it with [`clean_name`].
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
        // The key of the unchanged instance contains a character that no label contains. It
        // therefore differs from all keys of cleaned texts.
        let key = format!("\0{instance}");
        let target = Target {
            cluster: self.intern_cleaned_text(labels.get("cluster")),
            host: self.intern_cleaned_text(host),
            port,
            instance: Arc::clone(self.texts.entry(key).or_insert_with(|| instance.into())),
        };
        if let Some(known) = self.targets.get(&target) {
            return Some(Arc::clone(known));
        }
        let kept = Arc::new(target);
        self.targets.insert(Arc::clone(&kept));
        Some(kept)
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

/// The labels that distinguish owners in gpumon's counters.
pub(super) const OWNER_LABELS: &str =
    "user, slurm_job, pbs_job, lsf_job, pod_uid, container, unit, notebook";

/// The labels of the scraped pod, which the Prometheus Operator adds to every series.
const TARGET_LABELS: [&str; 3] = ["pod", "namespace", "container"];

/// Returns a GPU's owner according to gpumon's labels. If several kinds of owner are given, the
/// most specific is used, as in gpumon's own usage data.
pub(super) fn read_owner(labels: &Labels<'_>, interner: &mut Interner<'_>) -> Option<FleetOwner> {
    let mut text = |label: &str| {
        let text = find_owner_label(labels, label);
        (!text.is_empty()).then(|| interner.intern_cleaned_text(text).to_string())
    };
    let user = text("user");
    let kinds = [
        ("notebook", OwnerKind::Notebook),
        ("slurm_job", OwnerKind::SlurmJob),
        ("pbs_job", OwnerKind::PbsJob),
        ("lsf_job", OwnerKind::LsfJob),
        ("pod", OwnerKind::Pod),
        ("pod_uid", OwnerKind::Pod),
        ("container", OwnerKind::Container),
        ("unit", OwnerKind::Unit),
    ];
    let found = kinds
        .into_iter()
        .find_map(|(label, kind)| Some((kind, text(label)?)));
    let of_user = || user.as_ref().map(|_| (OwnerKind::User, String::new()));
    let (kind, id) = found.or_else(of_user)?;
    let namespace = if kind == OwnerKind::Pod {
        text("namespace")
    } else {
        None
    };
    Some(FleetOwner {
        user,
        kind,
        id,
        namespace,
    })
}

/// Returns a GPU's owner according to dcgm-exporter's labels.
pub(super) fn read_pod(labels: &Labels<'_>) -> Option<FleetOwner> {
    let [id, namespace] =
        ["pod", "namespace"].map(|label| clean_name(find_owner_label(labels, label)));
    let namespace = (!namespace.is_empty()).then_some(namespace);
    (!id.is_empty()).then_some(FleetOwner {
        user: None,
        kind: OwnerKind::Pod,
        id,
        namespace,
    })
}

/// Returns a label that describes the GPU's owner rather than the exporter's pod.
fn find_owner_label<'a>(labels: &'a Labels<'_>, name: &str) -> &'a str {
    let at = TARGET_LABELS.iter().position(|label| *label == name);
    let Some(at) = at else {
        return labels.get(name);
    };
    // Prometheus adds its own labels to every series. If the target already has labels with the
    // same names, Prometheus renames the target's labels with the prefix `exported_`.
    let exported = ["exported_pod", "exported_namespace", "exported_container"];
    if exported.iter().any(|label| !labels.get(label).is_empty()) {
        return labels.get(exported[at]);
    }
    let container = labels.get("container");
    let is_exporter = container.contains("exporter") || container.contains("gpumon");
    if is_exporter { "" } else { labels.get(name) }
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

#[cfg(test)]
mod owner_tests {
    use super::*;
    use crate::prometheus::answer;

    fn read_owner_from_metric(
        metric: &str,
        read: impl Fn(&Labels<'_>, &mut Interner<'_>) -> Option<FleetOwner>,
    ) -> Option<FleetOwner> {
        let text = format!(
            r#"{{"status":"success","data":{{"result":[{{"metric":{metric},"value":[1,"1"]}}]}}}}"#
        );
        let answer = answer::parse_answer(text.as_bytes()).unwrap();
        read(&answer.rows[0].labels, &mut Interner::new(None))
    }

    fn expected_owner(
        kind: OwnerKind,
        id: &str,
        user: Option<&str>,
        namespace: Option<&str>,
    ) -> FleetOwner {
        let text = |text: &str| text.to_owned();
        FleetOwner {
            user: user.map(text),
            kind,
            id: text(id),
            namespace: namespace.map(text),
        }
    }

    #[test]
    fn owner_is_most_specific_label() {
        for (labels, expected) in [
            (
                r#"{"user":"ana","slurm_job":"7","unit":"slurmd.service"}"#,
                Some(expected_owner(OwnerKind::SlurmJob, "7", Some("ana"), None)),
            ),
            (
                r#"{"user":"ana","notebook":"k","slurm_job":"7"}"#,
                Some(expected_owner(OwnerKind::Notebook, "k", Some("ana"), None)),
            ),
            (
                r#"{"user":"ana","pbs_job":"7.server"}"#,
                Some(expected_owner(
                    OwnerKind::PbsJob,
                    "7.server",
                    Some("ana"),
                    None,
                )),
            ),
            (
                r#"{"user":"ana","lsf_job":"7[1]"}"#,
                Some(expected_owner(OwnerKind::LsfJob, "7[1]", Some("ana"), None)),
            ),
            (
                r#"{"user":"0","pod_uid":"u"}"#,
                Some(expected_owner(OwnerKind::Pod, "u", Some("0"), None)),
            ),
            (
                r#"{"user":"bo"}"#,
                Some(expected_owner(OwnerKind::User, "", Some("bo"), None)),
            ),
            (r#"{"gpu":"0"}"#, None),
            // A target that the Prometheus Operator scrapes.
            (
                r#"{"pod":"gpumon-x","namespace":"monitoring","container":"gpumon","exported_pod":"p","exported_namespace":"n","pod_uid":"u"}"#,
                Some(expected_owner(OwnerKind::Pod, "p", None, Some("n"))),
            ),
            (
                r#"{"pod":"gpumon-x","container":"gpumon","user":"ana"}"#,
                Some(expected_owner(OwnerKind::User, "", Some("ana"), None)),
            ),
        ] {
            assert_eq!(
                read_owner_from_metric(labels, read_owner),
                expected,
                "{labels}"
            );
        }
    }

    #[test]
    fn exporter_pod_is_not_taken_as_owner() {
        let pod = |labels: &str| read_owner_from_metric(labels, |labels, _| read_pod(labels));
        let held = Some(expected_owner(OwnerKind::Pod, "train-0", None, Some("ml")));
        assert_eq!(
            pod(r#"{"pod":"train-0","namespace":"ml","container":"main"}"#),
            held
        );
        assert_eq!(
            pod(
                r#"{"exported_pod":"train-0","exported_namespace":"ml","pod":"x","container":"nvidia-dcgm-exporter"}"#
            ),
            held
        );
        assert_eq!(
            pod(
                r#"{"pod":"nvidia-dcgm-exporter-x","namespace":"gpu","container":"nvidia-dcgm-exporter"}"#
            ),
            None
        );
        assert_eq!(pod(r#"{"modelName":"NVIDIA H200"}"#), None);
    }
}
