//! The usage by owner since the server's start. The series are counters, which continue even if
//! there are no samples.

use std::collections::BTreeSet;

use gpumon_probe::usage::{Joules, OwnerUsage};

use super::{
    jobs::labels_of_job,
    scrape::Scrape,
    text::{
        Kind::{Counter, Gauge},
        Page,
    },
};

/// The maximum number of owners, those with the most energy.
const MOST: usize = 500;

/// A metric of owners: its name, help, and a function that returns the value.
type Series = (&'static str, &'static str, fn(&OwnerUsage) -> Option<f64>);

const SERIES: &[Series] = &[
    (
        "gpumon_owner_energy_joules_total",
        "Energy used by the owner: exact where the owner had a GPU alone, estimated where several shared it.",
        |usage| joules(usage, |it| it.estimate),
    ),
    (
        "gpumon_owner_energy_min_joules_total",
        "The least that the energy of the owner was.",
        |usage| joules(usage, |it| it.least),
    ),
    (
        "gpumon_owner_energy_max_joules_total",
        "The most that the energy of the owner was.",
        |usage| joules(usage, |it| it.most),
    ),
    (
        "gpumon_owner_gpu_seconds_total",
        "Time in which processes of the owner held a GPU; two GPUs count twice.",
        |usage| Some(usage.gpu_seconds),
    ),
    (
        "gpumon_owner_exclusive_gpu_seconds_total",
        "Of that, time in which nobody else held the same GPU.",
        |usage| Some(usage.exclusive_seconds),
    ),
    (
        "gpumon_owner_active_gpu_seconds_total",
        "Of that, time in which kernels of the owner ran.",
        |usage| Some(usage.active_seconds),
    ),
];

pub(super) fn write(page: &mut Page, scrape: &Scrape<'_>) {
    let usage = &scrape.known.usage;
    if usage.since_ms == 0 || scrape.known.is_played() {
        return;
    }
    let told = usage.owners.iter().take(MOST);
    let mut owners: Vec<_> = told
        .map(|owner| {
            (
                owner,
                labels_of_job(owner.user.as_deref(), owner.job.as_ref()),
            )
        })
        .collect();
    // Two series with the same labels would make the page invalid.
    let mut known = BTreeSet::new();
    owners.retain(|(_, labels)| known.insert(labels.clone()));
    for (name, help, read) in SERIES {
        let mut family = page.family(name, Counter, help);
        for (owner, labels) in &owners {
            family.add(labels, &[], read(owner));
        }
    }
    let omitted = usage.owners.len().saturating_sub(MOST) as f64;
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
        page.add_single(name, kind, help, Some(value));
    }
}

fn joules(usage: &OwnerUsage, read: fn(Joules) -> f64) -> Option<f64> {
    usage.joules.map(read)
}

#[cfg(test)]
mod tests {
    use gpumon_probe::{
        model::{Job, JobKind},
        usage::{UnheldUsage, Usage},
    };

    use super::super::tests::{example, lines};
    use super::*;

    #[test]
    fn energy_and_time_are_counted_by_owner_with_their_bounds() {
        let mut used = example();
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
        let page = used.own();
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
        assert_eq!(lines(&page, "gpumon_owner_gpu_seconds_total").len(), 500);
        assert!(
            !page.contains(r#"energy_joules_total{user="ana",slurm_job="0"}"#),
            "it has told no power"
        );
    }
}
