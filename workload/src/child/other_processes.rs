//! Other processes on a GPU.

use gpumon_probe::{
    bounded,
    model::{GpuSample, Process, ProcessKind},
};
use rustix::process::geteuid;

use crate::protocol::{OtherProcesses, load::OtherProcess};

/// Returns the processes of other users that compute on a GPU. A process that the operating system
/// does not know is in another container.
pub(super) fn of_other_users(sample: &GpuSample) -> OtherProcesses {
    let listed = computing(sample)
        .filter(|process| !is_own_user(process.pid))
        .map(OtherProcess::from)
        .collect();
    OtherProcesses {
        listed,
        omitted: sample.processes_omitted,
    }
}

/// Returns all processes that computed in any of these samples, except this process and its
/// children. `before` are the PIDs from before the work. If the driver uses other PIDs than this
/// process does, this process is the first one that is not in `before`.
pub(super) fn other_than_this_process<'a>(
    samples: impl Iterator<Item = &'a GpuSample>,
    before: &[u32],
) -> OtherProcesses {
    let mut found: Vec<OtherProcess> = Vec::new();
    let mut omitted = 0;
    for process in samples
        .inspect(|sample| omitted = sample.processes_omitted.max(omitted))
        .flat_map(computing)
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

pub(super) fn pids(sample: &GpuSample) -> Vec<u32> {
    computing(sample).map(|process| process.pid).collect()
}

/// Returns the processes that compute. Those that only draw, such as a display server, take nothing
/// from others.
fn computing(sample: &GpuSample) -> impl Iterator<Item = &Process> {
    let processes = sample.processes.value().into_iter().flatten();
    processes.filter(|process| process.kind != ProcessKind::Graphics)
}

/// Returns `true` if the process has the same effective user. Processes that cannot be seen count
/// as those of others.
fn is_own_user(pid: u32) -> bool {
    numbers(pid, "Uid:").nth(1) == Some(geteuid().as_raw())
}

fn is_child(pid: u32) -> bool {
    numbers(pid, "PPid:").next() == Some(std::process::id())
}

/// Returns the numbers in a line of `/proc/PID/status`; none if the process cannot be seen.
fn numbers(pid: u32, line: &str) -> impl Iterator<Item = u32> {
    let status = bounded::text(format!("/proc/{pid}/status"), bounded::STAT).unwrap_or_default();
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

    fn process(pid: u32, user: Option<&str>) -> Process {
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

    fn sample(processes: Vec<Process>) -> GpuSample {
        let processes = Reading::Now(processes);
        GpuSample {
            processes,
            ..GpuSample::absent(0, None, 1, Health::Ok, &Absence::Unknown)
        }
    }

    #[test]
    fn own_processes_are_nobody_elses_and_who_only_draws_is_in_nobodys_way() {
        let drawing = Process {
            kind: ProcessKind::Graphics,
            ..process(u32::MAX, Some("root"))
        };
        let all = sample(vec![
            process(std::process::id(), Some("me")),
            process(u32::MAX, None),
            drawing,
        ]);
        let foreign = of_other_users(&all);
        assert_eq!(
            foreign.to_string(),
            format!("python {} of an unknown user", u32::MAX)
        );
        assert_eq!(super::pids(&all).len(), 2);
    }

    #[test]
    fn this_process_is_found_also_where_the_driver_gives_it_another_pid() {
        let pids = |others: &OtherProcesses| {
            others
                .listed
                .iter()
                .map(|other| other.pid)
                .collect::<Vec<_>>()
        };
        let own = std::process::id();
        let seen = sample(vec![
            process(7, Some("ana")),
            process(own, Some("me")),
            process(8, None),
        ]);
        assert_eq!(
            pids(&other_than_this_process([&seen, &seen].into_iter(), &[])),
            [7, 8]
        );
        let elsewhere = sample(vec![process(7, None), process(8, None), process(9, None)]);
        assert_eq!(
            pids(&other_than_this_process([&elsewhere].into_iter(), &[7, 9])),
            [7, 9]
        );
        assert!(other_than_this_process([].into_iter(), &[]).is_empty());
    }

    #[test]
    fn what_this_process_started_is_nobody_elses() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let seen = sample(vec![
            process(child.id(), Some("me")),
            process(std::process::id(), Some("me")),
        ]);
        assert!(other_than_this_process([&seen].into_iter(), &[]).is_empty());
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn many_are_counted() {
        let many = sample(
            (1..6)
                .map(|more| process(u32::MAX - more, Some("ana")))
                .collect(),
        );
        assert!(of_other_users(&many).to_string().ends_with(", and 2 more"));
    }

    #[test]
    fn a_list_that_is_cut_leaves_a_gpu_to_nobody() {
        let cut = |processes, processes_omitted| GpuSample {
            processes_omitted,
            ..sample(processes)
        };
        let own = process(std::process::id(), Some("me"));
        let foreign = of_other_users(&cut(vec![own], 976));
        assert!(!foreign.is_empty() && !foreign.is_anybody_listed());
        assert_eq!(foreign.to_string(), "976 processes that are not listed");
        let one = of_other_users(&cut(vec![process(u32::MAX, Some("ana"))], 1));
        assert!(
            one.to_string()
                .ends_with(" of ana, and 1 process that is not listed"),
            "{one}"
        );
        let meanwhile =
            other_than_this_process([&cut(vec![], 2), &cut(vec![], 0)].into_iter(), &[]);
        assert_eq!(
            serde_json::to_string(&meanwhile).unwrap(),
            r#"{"others":[],"others_omitted":2}"#
        );
    }
}
