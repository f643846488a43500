//! The jobs and users that use a GPU: one series for each GPU and job, for joins in queries.

use std::collections::BTreeSet;

use gpumon_probe::model::{Job, JobKind, Owner, Process};

use super::{
    scrape::{Scrape, reading_text},
    text::{Labels, Page, SeriesKind::Gauge},
};

/// The maximum number of jobs per GPU. Only a program that starts jobs without limit exceeds it.
const MAX_JOBS_PER_GPU: usize = 64;

/// The number of digits shown of a container's ID, as in `docker ps`.
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
    let help = "Number of jobs on the GPU without series because of the limit of 64.";
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
        JobKind::Container => ("container", shorten_id(id)),
        JobKind::Service => ("unit", id.as_str()),
    };
    Labels::new([user, job])
}

fn shorten_id(id: &str) -> &str {
    id.get(..CONTAINER_DIGITS).unwrap_or(id)
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
