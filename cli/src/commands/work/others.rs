//! Who else is on a GPU.

use std::fmt;

use gpumon_probe::{
    bounded,
    model::{GpuSample, Process, ProcessKind},
};
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};

/// As many as are named in a sentence.
const NAMED: usize = 3;

/// Processes of others.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Others {
    #[serde(rename = "others")]
    listed: Vec<Other>,
    /// Processes that the samples leave out, at most: they may compute, and may be anybody's.
    #[serde(rename = "others_omitted", default, skip_serializing_if = "is_zero")]
    omitted: u32,
}

/// A process that is not this one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Other {
    pid: u32,
    /// Left out where nobody knows, as in a container.
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
}

impl Others {
    /// Those of other users that compute there. One of whom the system knows nothing is in another container.
    pub(super) fn foreign(sample: &GpuSample) -> Self {
        let listed = computing(sample).filter(|process| !is_own_user(process.pid)).map(Other::of).collect();
        Self { listed, omitted: sample.processes_omitted }
    }

    /// Everybody who computed there, in any of these samples, but this process. `before` are the PIDs of before it
    /// worked: where the driver counts PIDs differently than this process, it is the first that came after that.
    pub(super) fn than_this_process<'a>(samples: impl Iterator<Item = &'a GpuSample>, before: &[u32]) -> Self {
        let mut found: Vec<Other> = Vec::new();
        let mut omitted = 0;
        for process in samples.inspect(|sample| omitted = sample.processes_omitted.max(omitted)).flat_map(computing) {
            if !found.iter().any(|other| other.pid == process.pid) {
                found.push(Other::of(process));
            }
        }
        let own = std::process::id();
        let own = found.iter().position(|other| other.pid == own);
        let own = own.or_else(|| found.iter().position(|other| other.user.is_none() && !before.contains(&other.pid)));
        if let Some(own) = own {
            found.remove(own);
        }
        Self { listed: found, omitted }
    }

    pub(super) fn pids(sample: &GpuSample) -> Vec<u32> {
        computing(sample).map(|process| process.pid).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.listed.is_empty() && self.omitted == 0
    }

    /// Whether there is somebody for certain.
    pub(super) fn is_anybody_listed(&self) -> bool {
        !self.listed.is_empty()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// What only draws, as a display server, takes nothing from anybody.
fn computing(sample: &GpuSample) -> impl Iterator<Item = &Process> {
    let processes = sample.processes.value().into_iter().flatten();
    processes.filter(|process| process.kind != ProcessKind::Graphics)
}

impl Other {
    fn of(process: &Process) -> Self {
        Self { pid: process.pid, user: process.user.value().cloned(), name: process.name.value().cloned() }
    }
}

/// By its effective user. Of a process that cannot be seen, nobody knows.
fn is_own_user(pid: u32) -> bool {
    let status = bounded::text(format!("/proc/{pid}/status"), bounded::STAT).unwrap_or_default();
    let uids = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    let effective = uids.and_then(|uids| uids.split_whitespace().nth(1)?.parse().ok());
    effective == Some(geteuid().as_raw())
}

impl fmt::Display for Others {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, other) in self.listed.iter().take(NAMED).enumerate() {
            let name = other.name.as_deref().unwrap_or("process");
            let user = other.user.as_deref().map_or_else(|| "an unknown user".to_owned(), ToOwned::to_owned);
            write!(f, "{}{name} {} of {user}", if at > 0 { ", " } else { "" }, other.pid)?;
        }
        match self.listed.len().saturating_sub(NAMED) {
            0 => {}
            more => write!(f, ", and {more} more")?,
        }
        let and = if self.listed.is_empty() { "" } else { ", and " };
        match self.omitted {
            0 => Ok(()),
            1 => write!(f, "{and}1 process that is not listed"),
            count => write!(f, "{and}{count} processes that are not listed"),
        }
    }
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
            command: Reading::Absent(Absence::Unknown),
            user: user.map_or(Reading::Absent(Absence::Unknown), |user| Reading::Now(user.to_owned())),
            started_ms: Reading::Absent(Absence::Unknown),
            mig: None,
            mps: false,
            owner: Reading::Absent(Absence::Unknown),
        }
    }

    fn sample(processes: Vec<Process>) -> GpuSample {
        let processes = Reading::Now(processes);
        GpuSample { processes, ..GpuSample::absent(0, None, 1, Health::Ok, &Absence::Unknown) }
    }

    #[test]
    fn own_processes_are_nobody_elses_and_who_only_draws_is_in_nobodys_way() {
        let drawing = Process { kind: ProcessKind::Graphics, ..process(u32::MAX, Some("root")) };
        let all = sample(vec![process(std::process::id(), Some("me")), process(u32::MAX, None), drawing]);
        let foreign = Others::foreign(&all);
        assert_eq!(foreign.to_string(), format!("python {} of an unknown user", u32::MAX));
        assert_eq!(Others::pids(&all).len(), 2);
    }

    #[test]
    fn this_process_is_found_also_where_the_driver_gives_it_another_pid() {
        let pids = |others: &Others| others.listed.iter().map(|other| other.pid).collect::<Vec<_>>();
        let own = std::process::id();
        let seen = sample(vec![process(7, Some("ana")), process(own, Some("me")), process(8, None)]);
        assert_eq!(pids(&Others::than_this_process([&seen, &seen].into_iter(), &[])), [7, 8]);
        let elsewhere = sample(vec![process(7, None), process(8, None), process(9, None)]);
        assert_eq!(pids(&Others::than_this_process([&elsewhere].into_iter(), &[7, 9])), [7, 9]);
        assert!(Others::than_this_process([].into_iter(), &[]).is_empty());
    }

    #[test]
    fn many_are_counted() {
        let many = sample((1..6).map(|more| process(u32::MAX - more, Some("ana"))).collect());
        assert!(Others::foreign(&many).to_string().ends_with(", and 2 more"));
    }

    #[test]
    fn a_list_that_is_cut_leaves_a_gpu_to_nobody() {
        let cut = |processes, processes_omitted| GpuSample { processes_omitted, ..sample(processes) };
        let own = process(std::process::id(), Some("me"));
        let foreign = Others::foreign(&cut(vec![own], 976));
        assert!(!foreign.is_empty() && !foreign.is_anybody_listed());
        assert_eq!(foreign.to_string(), "976 processes that are not listed");
        let one = Others::foreign(&cut(vec![process(u32::MAX, Some("ana"))], 1));
        assert!(one.to_string().ends_with(" of ana, and 1 process that is not listed"), "{one}");
        let meanwhile = Others::than_this_process([&cut(vec![], 2), &cut(vec![], 0)].into_iter(), &[]);
        assert_eq!(serde_json::to_string(&meanwhile).unwrap(), r#"{"others":[],"others_omitted":2}"#);
    }
}
