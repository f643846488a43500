//! The owners of GPUs, by the labels of series.

use gpumon_probe::owner::clean_name;

use super::{answer::Labels, target::Interner};
use crate::model::{FleetOwner, OwnerKind};

/// The labels of gpumon's counters that distinguish owners.
pub(super) const OWNER_LABELS: &str =
    "user, slurm_job, pbs_job, lsf_job, pod_uid, container, unit, notebook";

/// The labels of the scraped pod, which the Prometheus Operator adds to each series.
const TARGET_LABELS: [&str; 3] = ["pod", "namespace", "container"];

/// Returns the owner of a GPU from gpumon's labels. If there are several, the most specific one is
/// used, as in gpumon's own usage.
pub(super) fn owner(labels: &Labels<'_>, interner: &mut Interner<'_>) -> Option<FleetOwner> {
    let mut text = |label: &str| {
        let text = held(labels, label);
        (!text.is_empty()).then(|| interner.text(text).to_string())
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

/// Returns the owner of a GPU from dcgm-exporter's labels.
pub(super) fn pod(labels: &Labels<'_>) -> Option<FleetOwner> {
    let [id, namespace] = ["pod", "namespace"].map(|label| clean_name(held(labels, label)));
    let namespace = (!namespace.is_empty()).then_some(namespace);
    (!id.is_empty()).then_some(FleetOwner {
        user: None,
        kind: OwnerKind::Pod,
        id,
        namespace,
    })
}

/// Returns a label of the owner, and not of the exporter's own pod.
fn held<'a>(labels: &'a Labels<'_>, name: &str) -> &'a str {
    let at = TARGET_LABELS.iter().position(|label| *label == name);
    let Some(at) = at else {
        return labels.get(name);
    };
    // Prometheus renames labels of a target that have the names of its own labels.
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
    use crate::prometheus::answer;

    fn of(
        metric: &str,
        read: impl Fn(&Labels<'_>, &mut Interner<'_>) -> Option<FleetOwner>,
    ) -> Option<FleetOwner> {
        let text = format!(
            r#"{{"status":"success","data":{{"result":[{{"metric":{metric},"value":[1,"1"]}}]}}}}"#
        );
        let answer = answer::parse(text.as_bytes()).unwrap();
        read(&answer.rows[0].labels, &mut Interner::new(None))
    }

    fn is(kind: OwnerKind, id: &str, user: Option<&str>, namespace: Option<&str>) -> FleetOwner {
        let text = |text: &str| text.to_owned();
        FleetOwner {
            user: user.map(text),
            kind,
            id: text(id),
            namespace: namespace.map(text),
        }
    }

    #[test]
    fn a_holder_is_the_smallest_of_what_is_told() {
        for (labels, expected) in [
            (
                r#"{"user":"ana","slurm_job":"7","unit":"slurmd.service"}"#,
                Some(is(OwnerKind::SlurmJob, "7", Some("ana"), None)),
            ),
            (
                r#"{"user":"ana","notebook":"k","slurm_job":"7"}"#,
                Some(is(OwnerKind::Notebook, "k", Some("ana"), None)),
            ),
            (
                r#"{"user":"ana","pbs_job":"7.server"}"#,
                Some(is(OwnerKind::PbsJob, "7.server", Some("ana"), None)),
            ),
            (
                r#"{"user":"ana","lsf_job":"7[1]"}"#,
                Some(is(OwnerKind::LsfJob, "7[1]", Some("ana"), None)),
            ),
            (
                r#"{"user":"0","pod_uid":"u"}"#,
                Some(is(OwnerKind::Pod, "u", Some("0"), None)),
            ),
            (
                r#"{"user":"bo"}"#,
                Some(is(OwnerKind::User, "", Some("bo"), None)),
            ),
            (r#"{"gpu":"0"}"#, None),
            // This target is scraped by the Prometheus Operator.
            (
                r#"{"pod":"gpumon-x","namespace":"monitoring","container":"gpumon","exported_pod":"p","exported_namespace":"n","pod_uid":"u"}"#,
                Some(is(OwnerKind::Pod, "p", None, Some("n"))),
            ),
            (
                r#"{"pod":"gpumon-x","container":"gpumon","user":"ana"}"#,
                Some(is(OwnerKind::User, "", Some("ana"), None)),
            ),
        ] {
            assert_eq!(of(labels, owner), expected, "{labels}");
        }
    }

    #[test]
    fn the_pod_of_dcgm_exporter_itself_holds_nothing() {
        let pod = |labels: &str| of(labels, |labels, _| pod(labels));
        let held = Some(is(OwnerKind::Pod, "train-0", None, Some("ml")));
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
