//! Explanations of why no GPU of a fleet has a particular reading.

use std::collections::BTreeMap;

use super::{
    super::metrics::{Families, Family, Reading},
    Inputs,
};
use crate::model::{Fleet, READINGS, Resolution};

pub(super) fn find_reasons(inputs: &Inputs<'_>, fleet: &Fleet) -> BTreeMap<String, String> {
    let mut missing = BTreeMap::new();
    let Fleet { gpus, owners, .. } = fleet;
    if gpus.index.is_empty() {
        return missing;
    }
    let has_own = inputs.present.contains(Family::Own);
    for id in READINGS {
        let column = gpus.readings.get(id);
        if column.is_none_or(|column| column.iter().all(Option::is_none)) {
            missing.insert(id.to_owned(), explain_reading(id, inputs));
        }
    }
    let dcgm_lacks = |what: &str| {
        format!(
            "dcgm-exporter does not export {what}; gpumon does: run `gpumon serve` on the nodes"
        )
    };
    if gpus.processes.iter().all(Option::is_none) {
        let why = match inputs.resolution {
            Resolution::Node => {
                "the number of processes is read for each GPU, and the fleet has too many GPUs for \
                 that; open a node to see its processes"
                    .to_owned()
            }
            Resolution::Gpu if has_own => explain_absence("gpumon_gpu_processes"),
            Resolution::Gpu => dcgm_lacks("the number of processes on each GPU"),
        };
        missing.insert("processes".to_owned(), why);
    }
    if owners.is_empty() && !has_own {
        let why = "dcgm-exporter exports only pods, and only if DCGM_EXPORTER_KUBERNETES is true; \
                   gpumon also exports users and jobs";
        missing.insert("owners".to_owned(), why.to_owned());
    }
    if !has_own {
        missing.insert(
            "conditions".to_owned(),
            dcgm_lacks("conditions other than Xids"),
        );
    }
    missing
}

fn explain_reading(id: &str, inputs: &Inputs<'_>) -> String {
    let names = |families| {
        Reading::find(id)
            .map(|reading| reading.list_names(families))
            .unwrap_or_default()
    };
    if inputs.resolution == Resolution::Node {
        return "Prometheus has no recorded sums of this reading; load deploy/prometheus/fleet.yml \
                of this gpumon version in Prometheus"
            .to_owned();
    }
    if inputs.present.own {
        return explain_absence(
            &names(Families {
                own: true,
                ..Families::default()
            })
            .join(", "),
        );
    }
    let names = names(Families {
        own: false,
        ..inputs.present
    });
    format!(
        "dcgm-exporter does not export {}; add it to the collectors file of dcgm-exporter (option \
         --collectors)",
        names.join(" or ")
    )
}

fn explain_absence(metric: &str) -> String {
    format!(
        "Prometheus has no {metric}: the GPUs do not report it, or a rule of Prometheus drops it"
    )
}
