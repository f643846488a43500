//! Detection of other processes on a GPU.

use gpumon_probe::{
    bounded,
    model::{GpuSample, Process, ProcessKind},
};
use rustix::process::geteuid;

use crate::protocol::{OtherProcesses, load::OtherProcess};

/// Returns the processes of other users that are computing on a GPU. A process that the operating
/// system does not know is in another container, and counts as another user's.
pub(super) fn find_other_users(sample: &GpuSample) -> OtherProcesses {
    let listed = computing_processes(sample)
        .filter(|process| !is_owned_by_current_user(process.pid))
        .map(OtherProcess::from)
        .collect();
    OtherProcesses {
        listed,
        omitted: sample.processes_omitted,
    }
}

/// Returns all processes that computed in any of these samples, except this process and its
/// children. `before` contains the PIDs that were computing before the work began. If the driver
/// uses different PIDs than this process sees, the first process that is not in `before` is taken
/// to be this process.
pub(super) fn find_other_processes<'a>(
    samples: impl Iterator<Item = &'a GpuSample>,
    before: &[u32],
) -> OtherProcesses {
    let mut found: Vec<OtherProcess> = Vec::new();
    let mut omitted = 0;
    for process in samples
        .inspect(|sample| omitted = sample.processes_omitted.max(omitted))
        .flat_map(computing_processes)
    {
        if !found.iter().any(|other| other.pid == process.pid) && !is_child(process.pid) {
            found.push(OtherProcess::from(process));
        }
    }
    let own = std::process::id();
    let own = found.iter().position(|other| other.pid == own);
    let own = own.or_else(|| {
        found
            .iter()
            .position(|other| other.user.is_none() && !before.contains(&other.pid))
    });
    if let Some(own) = own {
        found.remove(own);
    }
    OtherProcesses {
        listed: found,
        omitted,
    }
}

pub(super) fn computing_pids(sample: &GpuSample) -> Vec<u32> {
    computing_processes(sample)
        .map(|process| process.pid)
        .collect()
}

/// Returns the processes that are computing. Processes that only draw, such as a display server, do
/// not affect others.
fn computing_processes(sample: &GpuSample) -> impl Iterator<Item = &Process> {
    let processes = sample.processes.value().into_iter().flatten();
    processes.filter(|process| process.kind != ProcessKind::Graphics)
}

/// Returns `true` if the process has the same effective user as this process. A process that cannot
/// be seen counts as another user's.
fn is_owned_by_current_user(pid: u32) -> bool {
    status_numbers(pid, "Uid:").nth(1) == Some(geteuid().as_raw())
}

fn is_child(pid: u32) -> bool {
    status_numbers(pid, "PPid:").next() == Some(std::process::id())
}

/// Returns the numbers in a line of `/proc/PID/status`; none if the process cannot be seen.
fn status_numbers(pid: u32, line: &str) -> impl Iterator<Item = u32> {
    let status =
        bounded::read_text(format!("/proc/{pid}/status"), bounded::STAT_LIMIT).unwrap_or_default();
    let found = status
        .lines()
        .find_map(|own| own.strip_prefix(line))
        .unwrap_or_default();
    found
        .split_whitespace()
        .filter_map(|number| number.parse().ok())
        .collect::<Vec<_>>()
        .into_iter()
}

#[cfg(test)]
mod tests {
    use gpumon_probe::model::{Absence, Health, Reading};

    use super::*;

    fn make_process(pid: u32, user: Option<&str>) -> Process {
        let absent = || Reading::Absent(Absence::Unknown);
        Process {
            pid,
            kind: ProcessKind::Compute,
            memory_bytes: Reading::Now(1),
            sm_percent: absent(),
            memory_percent: absent(),
            encoder_percent: absent(),
            decoder_percent: absent(),
            name: Reading::Now("python".to_owned()),
            program: None,
            command: Reading::Absent(Absence::Unknown),
            user: user.map_or(Reading::Absent(Absence::Unknown), |user| {
                Reading::Now(user.to_owned())
            }),
            host_memory_bytes: Reading::Absent(Absence::Unknown),
            traced: Reading::Absent(Absence::Unknown),
            started_ms: Reading::Absent(Absence::Unknown),
            mig: None,
            mps: false,
            owner: Reading::Absent(Absence::Unknown),
        }
    }

    fn make_sample(processes: Vec<Process>) -> GpuSample {
        let processes = Reading::Now(processes);
        GpuSample {
            processes,
            ..GpuSample::new_absent(0, None, 1, Health::Ok, &Absence::Unknown)
        }
    }

    #[test]
    fn worker_and_graphics_processes_are_ignored() {
        let drawing = Process {
            kind: ProcessKind::Graphics,
            ..make_process(u32::MAX, Some("root"))
        };
        let all = make_sample(vec![
            make_process(std::process::id(), Some("me")),
            make_process(u32::MAX, None),
            drawing,
        ]);
        let foreign = find_other_users(&all);
        assert_eq!(
            foreign.to_string(),
            format!("python {} of an unknown user", u32::MAX)
        );
        assert_eq!(super::computing_pids(&all).len(), 2);
    }

    #[test]
    fn worker_process_is_found_despite_foreign_pid() {
        let pids = |others: &OtherProcesses| {
            others
                .listed
                .iter()
                .map(|other| other.pid)
                .collect::<Vec<_>>()
        };
        let own = std::process::id();
        let seen = make_sample(vec![
            make_process(7, Some("ana")),
            make_process(own, Some("me")),
            make_process(8, None),
        ]);
        assert_eq!(
            pids(&find_other_processes([&seen, &seen].into_iter(), &[])),
            [7, 8]
        );
        let elsewhere = make_sample(vec![
            make_process(7, None),
            make_process(8, None),
            make_process(9, None),
        ]);
        assert_eq!(
            pids(&find_other_processes([&elsewhere].into_iter(), &[7, 9])),
            [7, 9]
        );
        assert!(find_other_processes([].into_iter(), &[]).is_empty());
    }

    #[test]
    fn child_processes_are_ignored() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let seen = make_sample(vec![
            make_process(child.id(), Some("me")),
            make_process(std::process::id(), Some("me")),
        ]);
        assert!(find_other_processes([&seen].into_iter(), &[]).is_empty());
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn many_processes_are_counted() {
        let many = make_sample(
            (1..6)
                .map(|more| make_process(u32::MAX - more, Some("ana")))
                .collect(),
        );
        assert!(
            find_other_users(&many)
                .to_string()
                .ends_with(", and 2 more")
        );
    }

    #[test]
    fn truncated_list_means_gpu_may_be_used() {
        let cut = |processes, processes_omitted| GpuSample {
            processes_omitted,
            ..make_sample(processes)
        };
        let own = make_process(std::process::id(), Some("me"));
        let foreign = find_other_users(&cut(vec![own], 976));
        assert!(!foreign.is_empty() && !foreign.has_listed_processes());
        assert_eq!(foreign.to_string(), "976 processes that are not listed");
        let one = find_other_users(&cut(vec![make_process(u32::MAX, Some("ana"))], 1));
        assert!(
            one.to_string()
                .ends_with(" of ana, and 1 process that is not listed"),
            "{one}"
        );
        let meanwhile = find_other_processes([&cut(vec![], 2), &cut(vec![], 0)].into_iter(), &[]);
        assert_eq!(
            serde_json::to_string(&meanwhile).unwrap(),
            r#"{"others":[],"others_omitted":2}"#
        );
    }
}
