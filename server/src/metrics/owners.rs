//! The usage by owner since the server's start. The series are counters, which continue without
//! samples.

use std::collections::BTreeSet;

use gpumon_probe::usage::{Joules, OwnerUsage};

use super::{
    jobs::job_labels,
    scrape::Scrape,
    text::{
        Page,
        SeriesKind::{Counter, Gauge},
    },
};

/// The maximum number of owners on a page. The owners with the most energy are kept.
const MAX_OWNERS: usize = 500;

/// A metric of owners: its name, help text, and a function that returns an owner's value.
type OwnerMetric = (&'static str, &'static str, fn(&OwnerUsage) -> Option<f64>);

const OWNER_METRICS: &[OwnerMetric] = &[
    (
        "gpumon_owner_energy_joules_total",
        "Energy used by the owner: exact where the owner had a GPU alone, estimated where several \
         shared it.",
        |usage| read_joules(usage, |it| it.estimate),
    ),
    (
        "gpumon_owner_energy_min_joules_total",
        "Lower bound of the energy used by the owner.",
        |usage| read_joules(usage, |it| it.least),
    ),
    (
        "gpumon_owner_energy_max_joules_total",
        "Upper bound of the energy used by the owner.",
        |usage| read_joules(usage, |it| it.most),
    ),
    (
        "gpumon_owner_gpu_seconds_total",
        "Time in which processes of the owner held a GPU; two GPUs count twice.",
        |usage| Some(usage.gpu_seconds),
    ),
    (
        "gpumon_owner_exclusive_gpu_seconds_total",
        "Part of the GPU time in which nobody else held the same GPU.",
        |usage| Some(usage.exclusive_seconds),
    ),
    (
        "gpumon_owner_active_gpu_seconds_total",
        "Part of the GPU time in which kernels of the owner ran.",
        |usage| Some(usage.active_seconds),
    ),
];

pub(super) fn write_owner_metrics(page: &mut Page, scrape: &Scrape<'_>) {
    let usage = &scrape.known.usage;
    if usage.since_ms == 0 || scrape.known.is_from_recording() {
        return;
    }
    let reported = usage.owners.iter().take(MAX_OWNERS);
    let mut owners: Vec<_> = reported
        .map(|owner| (owner, job_labels(owner.user.as_deref(), owner.job.as_ref())))
        .collect();
    // A page with two series of equal labels would be invalid.
    let mut known = BTreeSet::new();
    owners.retain(|(_, labels)| known.insert(labels.clone()));
    for (name, help, read) in OWNER_METRICS {
        let mut family = page.start_family(name, Counter, help);
        for (owner, labels) in &owners {
            family.add_series(labels, &[], read(owner));
        }
    }
    let omitted = usage.owners.len().saturating_sub(MAX_OWNERS) as f64;
    let singles = [
        (
            "gpumon_unheld_energy_joules_total",
            Counter,
            "Energy of GPUs while no listed process held them.",
            usage.unheld.joules,
        ),
        (
            "gpumon_unheld_gpu_seconds_total",
            Counter,
            "Time in which no listed process held a GPU.",
            usage.unheld.gpu_seconds,
        ),
        (
            "gpumon_owners_omitted",
            Gauge,
            "Number of owners without series because of the limit of 500.",
            omitted,
        ),
    ];
    for (name, kind, help, value) in singles {
        page.add_single_series(name, kind, help, Some(value));
    }
}

fn read_joules(usage: &OwnerUsage, read: fn(Joules) -> f64) -> Option<f64> {
    usage.joules.map(read)
}

#[cfg(test)]
mod tests {
    use gpumon_probe::{
        model::{Job, JobKind},
        usage::{UnheldUsage, Usage},
    };

    use super::super::tests::{family_lines, make_example};
    use super::*;

    #[test]
    fn energy_and_time_are_counted_by_owner() {
        let mut used = make_example();
        let owner = |id: u32| OwnerUsage {
            user: Some("ana".to_owned()),
            job: Some(Job {
                kind: JobKind::Slurm,
                id: id.to_string(),
                name: None,
                path: None,
                private: false,
            }),
            gpu_seconds: 60.0,
            exclusive_seconds: 30.5,
            active_seconds: 10.0,
            joules: (id > 0).then_some(Joules {
                least: 1.0,
                most: 9.0,
                estimate: 5.0,
            }),
        };
        let unheld = UnheldUsage {
            gpu_seconds: 4.0,
            joules: 2.0,
        };
        used.usage = Usage {
            since_ms: 1,
            at_ms: 2,
            owners: (0..501).map(owner).collect(),
            unheld,
            oldest_ms: None,
        };
        let page = used.render_gpumon_page();
        for series in [
            r#"gpumon_owner_energy_joules_total{user="ana",slurm_job="1"} 5"#,
            r#"gpumon_owner_energy_min_joules_total{user="ana",slurm_job="1"} 1"#,
            r#"gpumon_owner_energy_max_joules_total{user="ana",slurm_job="1"} 9"#,
            r#"gpumon_owner_gpu_seconds_total{user="ana",slurm_job="0"} 60"#,
            r#"gpumon_owner_exclusive_gpu_seconds_total{user="ana",slurm_job="0"} 30.5"#,
            "gpumon_unheld_energy_joules_total 2",
            "gpumon_owners_omitted 1",
        ] {
            assert!(page.lines().any(|line| line == series), "{series}: {page}");
        }
        assert_eq!(
            family_lines(&page, "gpumon_owner_gpu_seconds_total").len(),
            500
        );
        assert!(
            !page.contains(r#"energy_joules_total{user="ana",slurm_job="0"}"#),
            "it has told no power"
        );
    }
}
