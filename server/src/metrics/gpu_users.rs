//! Metrics of the jobs, processes and owners that use GPUs.

use std::{cmp::Reverse, collections::BTreeSet};

use gpumon_probe::{
    model::{Job, JobKind, Owner, Process},
    usage::{Joules, OwnerUsage},
};

use super::{
    scrape::{GpuScrape, Scrape, reading_text, to_float, to_ratio},
    text::{
        Labels, Page,
        SeriesKind::{Counter, Gauge},
    },
};

// The jobs of each GPU: one series for each GPU and job, for joins in queries.

/// The maximum number of jobs per GPU. Only a program that starts jobs without limit exceeds it.
const MAX_JOBS_PER_GPU: usize = 64;

/// The number of digits of a container's ID that are shown, as in `docker ps`.
const CONTAINER_DIGITS: usize = 12;

pub(super) fn write_job_metrics(page: &mut Page, scrape: &Scrape<'_>) {
    let jobs = scrape.gpus.iter().map(|reported| {
        let processes = reported.readings.and_then(|gpu| gpu.processes.value());
        processes.map(|processes| {
            processes
                .iter()
                .map(process_labels)
                .filter(|job| !job.is_empty())
                .collect::<BTreeSet<_>>()
        })
    });
    let jobs: Vec<_> = scrape
        .gpus
        .iter()
        .zip(jobs)
        .filter_map(|(reported, jobs)| Some((reported, jobs?)))
        .collect();
    let help =
        "User, notebook, batch job, pod, container and service of processes on the GPU; always 1.";
    let mut family = page.start_family("gpumon_gpu_job_info", Gauge, help);
    for (reported, jobs) in &jobs {
        for job in jobs.iter().take(MAX_JOBS_PER_GPU) {
            family.add_series(&reported.labels.join(job), &[], Some(1.0));
        }
    }
    let help = "Number of jobs on the GPU that have no series, because at most 64 jobs per GPU \
     are exported.";
    let mut family = page.start_family("gpumon_gpu_jobs_omitted", Gauge, help);
    for (reported, jobs) in &jobs {
        family.add_series(
            &reported.labels,
            &[],
            Some(jobs.len().saturating_sub(MAX_JOBS_PER_GPU) as f64),
        );
    }
}

/// Returns the labels of a process. A notebook is identified by its kernel's ID, because its path
/// is private.
fn process_labels(process: &Process) -> Labels {
    let owner = process.owner.value();
    let of = |read: fn(&Owner) -> Option<&str>| owner.and_then(read).unwrap_or_default();
    Labels::new([
        ("user", reading_text(&process.user)),
        ("slurm_job", of(|owner| Some(&owner.slurm.as_ref()?.job_id))),
        ("pbs_job", of(|owner| Some(&owner.pbs.as_ref()?.job_id))),
        ("lsf_job", of(|owner| Some(&owner.lsf.as_ref()?.job_id))),
        (
            "namespace",
            of(|owner| owner.pod.as_ref()?.namespace.as_deref()),
        ),
        ("pod", of(|owner| owner.pod.as_ref()?.name.as_deref())),
        ("pod_uid", of(|owner| Some(&owner.pod.as_ref()?.uid))),
        (
            "container",
            of(|owner| Some(owner.container.as_ref()?.label())),
        ),
        ("unit", of(Owner::service)),
        (
            "notebook",
            of(|owner| Some(&owner.notebook.as_ref()?.kernel_id)),
        ),
    ])
}

/// Returns the labels of a user or job in the usage metrics. They are a subset of a process's
/// labels.
pub(super) fn job_labels(user: Option<&str>, job: Option<&Job>) -> Labels {
    let user = ("user", user.unwrap_or_default());
    let Some(Job { kind, id, .. }) = job else {
        return Labels::new([user]);
    };
    let job = match kind {
        JobKind::Notebook => ("notebook", id.as_str()),
        JobKind::Slurm => ("slurm_job", id.as_str()),
        JobKind::Pbs => ("pbs_job", id.as_str()),
        JobKind::Lsf => ("lsf_job", id.as_str()),
        JobKind::Pod => ("pod_uid", id.as_str()),
        JobKind::Container => ("container", id.get(..CONTAINER_DIGITS).unwrap_or(id)),
        JobKind::Service => ("unit", id.as_str()),
    };
    Labels::new([user, job])
}

// Metrics of processes, which are only written on request. Every process creates new series, so
// their number is limited.

/// The maximum number of processes on a page. The processes with the most memory are kept.
const MAX_PROCESSES: usize = 100;

/// A metric of processes: its name, help text, and a function that returns a process's value.
type ProcessMetric = (&'static str, &'static str, fn(&Process) -> Option<f64>);

const PROCESS_METRICS: &[ProcessMetric] = &[
    (
        "gpumon_process_memory_bytes",
        "Device memory used by the process.",
        |process| to_float(&process.memory_bytes),
    ),
    (
        "gpumon_process_sm_utilization_ratio",
        "GPU utilization of the process.",
        |process| to_ratio(&process.sm_percent),
    ),
];

pub(super) fn write_process_metrics(page: &mut Page, scrape: &Scrape<'_>) {
    let mut all: Vec<(&GpuScrape<'_>, &Process)> = Vec::new();
    for reported in &scrape.gpus {
        let processes = reported.readings.and_then(|gpu| gpu.processes.value());
        all.extend(
            processes
                .into_iter()
                .flatten()
                .map(|process| (reported, process)),
        );
    }
    all.sort_by_key(|(_, process)| Reverse(process.memory_bytes.value().copied()));
    // A process can be listed twice, if it both computes and renders, or if it uses two MIG
    // devices.
    let mut known = BTreeSet::new();
    all.retain(|(reported, process)| known.insert((reported.gpu.index, process.pid)));
    // Like this page, a sample omits processes if there are too many. These are also counted.
    let unlisted: u32 = scrape
        .gpus
        .iter()
        .filter_map(|reported| Some(reported.readings?.processes_omitted))
        .sum();
    let omitted = all.len().saturating_sub(MAX_PROCESSES) + unlisted as usize;
    all.truncate(MAX_PROCESSES);
    for (name, help, read) in PROCESS_METRICS {
        let mut family = page.start_family(name, Gauge, help);
        for (reported, process) in &all {
            let pid = process.pid.to_string();
            let rest = [
                ("pid", pid.as_str()),
                ("name", reading_text(&process.name)),
                ("user", reading_text(&process.user)),
            ];
            family.add_series(&reported.labels, &rest, read(process));
        }
    }
    let help = "Number of processes that have no series, because at most 100 processes are \
     exported.";
    let omitted = scrape.sample.map(|_| omitted as f64);
    page.add_single_series("gpumon_processes_omitted", Gauge, help, omitted);
}

// The usage by owner since the server's start. The series are counters, so they are also written
// while there are no samples.

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
    // Owners with the same labels as an earlier one are left out, because a page with two series of
    // equal labels would be invalid.
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
            "Number of owners that have no series, because at most 500 owners are exported.",
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
    use gpumon_probe::model::{BatchJob, Notebook, Reading};

    use super::super::tests::{family_lines, make_example, make_process};
    use super::*;

    #[test]
    fn jobs_of_gpu_are_unique_and_limited() {
        let of = |pid, user: &str, owner: Owner| {
            let user = Reading::Now(user.to_owned());
            Process {
                user,
                owner: Reading::Now(owner),
                ..make_process(pid)
            }
        };
        let slurm = || {
            Some(BatchJob {
                job_id: "4711".to_owned(),
                step: Some("0".to_owned()),
                private: false,
            })
        };
        let path = Reading::Now("secret.ipynb".to_owned());
        let notebook = Notebook {
            kernel_id: "k-1".to_owned(),
            kernel_name: None,
            path,
            kernel_pid: 3,
        };
        let unit = |unit: &str| Some(unit.to_owned());
        let mut busy = make_example();
        let processes = vec![
            of(
                1,
                "ana",
                Owner {
                    slurm: slurm(),
                    unit: unit("session-1.scope"),
                    ..Owner::default()
                },
            ),
            of(
                2,
                "ana",
                Owner {
                    slurm: slurm(),
                    ..Owner::default()
                },
            ),
            of(
                4,
                "bo",
                Owner {
                    pbs: slurm(),
                    ..Owner::default()
                },
            ),
            of(
                5,
                "bo",
                Owner {
                    lsf: slurm(),
                    ..Owner::default()
                },
            ),
            of(
                3,
                "bo",
                Owner {
                    notebook: Some(notebook),
                    unit: unit("jupyter.service"),
                    ..Owner::default()
                },
            ),
        ];
        busy.sample.gpus[0].processes = Reading::Now(processes);
        busy.sample.gpus[2].processes = Reading::Now(
            (0..70)
                .map(|it| of(it, &format!("u{it}"), Owner::default()))
                .collect(),
        );
        let page = busy.render_gpumon_page();
        let reported = family_lines(&page, "gpumon_gpu_job_info");
        assert_eq!(
            reported[..4],
            [
                r#"gpumon_gpu_job_info{gpu="0",uuid="GPU-0",user="ana",slurm_job="4711"} 1"#,
                r#"gpumon_gpu_job_info{gpu="0",uuid="GPU-0",user="bo",lsf_job="4711"} 1"#,
                r#"gpumon_gpu_job_info{gpu="0",uuid="GPU-0",user="bo",pbs_job="4711"} 1"#,
                r#"gpumon_gpu_job_info{gpu="0",uuid="GPU-0",user="bo",unit="jupyter.service",notebook="k-1"} 1"#,
            ]
        );
        assert_eq!(reported.len(), 4 + 64);
        let omitted = family_lines(&page, "gpumon_gpu_jobs_omitted");
        assert_eq!(
            omitted,
            [
                r#"gpumon_gpu_jobs_omitted{gpu="0",uuid="GPU-0"} 0"#,
                r#"gpumon_gpu_jobs_omitted{gpu="2",uuid="GPU-2"} 6"#
            ]
        );
        assert!(!page.contains("secret"), "{page}");
    }
}

#[cfg(test)]
mod owner_tests {
    use gpumon_probe::{
        model::{Job, JobKind},
        usage::{UnheldUsage, Usage},
    };

    use super::super::tests::{family_lines, make_example};
    use super::*;

    #[test]
    fn gpu_energy_and_time_are_counted_by_owner() {
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
