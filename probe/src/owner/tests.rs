//! Tests of reading processes, including processes whose files block forever.

use std::{
    fs::{self, OpenOptions},
    path::PathBuf,
    thread::sleep,
    time::{Duration, Instant},
};

use rustix::fs::{CWD, Mode, mkfifoat};

use super::*;
use crate::model::{Absence, Process, ProcessKind, Reading};

/// The time limit for everything that must not block.
const MAX_WAIT: Duration = Duration::from_mins(1);

/// The time that a running sampler waits for details.
const SHORT_WAIT: Duration = Duration::from_millis(50);

fn make_process(pid: u32) -> Process {
    Process {
        pid,
        kind: ProcessKind::Compute,
        memory_bytes: Reading::Now(1),
        sm_percent: Reading::Now(0.0),
        memory_percent: Reading::Now(0.0),
        encoder_percent: Reading::Now(0.0),
        decoder_percent: Reading::Now(0.0),
        name: Reading::Absent(Absence::NoAnswer),
        program: None,
        command: Reading::Absent(Absence::NoAnswer),
        user: Reading::Absent(Absence::NoAnswer),
        host_memory_bytes: Reading::Absent(Absence::NoAnswer),
        traced: Reading::Absent(Absence::NoAnswer),
        started_ms: Reading::Absent(Absence::NoAnswer),
        mig: None,
        mps: false,
        owner: Reading::Absent(Absence::NoAnswer),
    }
}

/// A fake `/proc`, in which the command lines of some processes are pipes. Reading such a command
/// line blocks until something is written to the pipe.
struct FakeProc(PathBuf);

impl FakeProc {
    fn new(name: &str) -> Self {
        let root =
            std::env::temp_dir().join(format!("gpumon-finder-{}-{name}", std::process::id()));
        fs::create_dir_all(&root).unwrap();
        fs::write(root.join("stat"), "btime 1000\n").unwrap();
        Self(root)
    }

    fn add(&self, pid: u32, uid: u32, answers: bool) {
        let folder = self.0.join(pid.to_string());
        fs::create_dir_all(&folder).unwrap();
        let fields: Vec<_> = (5..=52).map(|field| field.to_string()).collect();
        fs::write(
            folder.join("stat"),
            format!("{pid} (x) S 1 {}", fields.join(" ")),
        )
        .unwrap();
        fs::write(
            folder.join("status"),
            format!("Uid:\t{uid}\t{uid}\nGid:\t{uid}\t{uid}\n"),
        )
        .unwrap();
        fs::write(folder.join("comm"), "python3\n").unwrap();
        if answers {
            fs::write(folder.join("cmdline"), "python3\0train.py").unwrap();
        } else {
            mkfifoat(CWD, folder.join("cmdline"), Mode::RUSR | Mode::WUSR).unwrap();
        }
    }

    /// Waits until the pipe has a reader, and unblocks the reader.
    fn unblock(&self, pid: u32) {
        drop(
            OpenOptions::new()
                .write(true)
                .open(self.0.join(pid.to_string()).join("cmdline"))
                .unwrap(),
        );
    }
}

impl Drop for FakeProc {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn fill(resolver: &mut Resolver, pids: &[u32], patience: Duration) -> Vec<Process> {
    let mut processes: Vec<_> = pids.iter().map(|pid| make_process(*pid)).collect();
    resolver.fill_details(&mut processes, patience);
    processes
}

/// Reads the processes repeatedly until `is_right` returns `true`.
#[track_caller]
fn wait_until(resolver: &mut Resolver, pids: &[u32], is_right: impl Fn(&[Process]) -> bool) {
    let begun = Instant::now();
    loop {
        let processes = fill(resolver, pids, SHORT_WAIT);
        if is_right(&processes) {
            return;
        }
        assert!(begun.elapsed() < MAX_WAIT, "{processes:#?}");
        sleep(Duration::from_millis(20));
    }
}

fn is_identified(process: &Process) -> bool {
    process.name == Reading::Now("train.py".to_owned()) && process.owner.value().is_some()
}

/// Returns `true` if only the first stage of reading the process is complete.
fn has_first_stage_only(process: &Process) -> bool {
    let not_read = Some(&Absence::NotReadYet);
    (process.command.absence(), process.owner.absence()) == (not_read, not_read)
        && process.name == Reading::Now("python3".to_owned())
        && process.user.value().is_some()
        && process.started_ms.value().is_some()
}

#[test]
fn process_of_current_user_is_described() {
    let mut resolver = Resolver::new("/proc", CommandLines::Own);
    let [this] = &fill(&mut resolver, &[std::process::id()], MAX_WAIT)[..] else {
        panic!()
    };
    assert!(
        this.name
            .value()
            .is_some_and(|name| name.starts_with("gpumon_probe")),
        "{:?}",
        this.name
    );
    assert!(
        this.command
            .value()
            .is_some_and(|command| command.contains("gpumon_probe")),
        "{:?}",
        this.command
    );
    assert!(this.user.value().is_some());
    let Reading::Earlier { value, at_ms } = this.host_memory_bytes else {
        panic!("{:?}", this.host_memory_bytes)
    };
    assert!(
        value > 1 << 20 && crate::model::now_ms() - at_ms < 60_000,
        "{value} at {at_ms}"
    );
    let age_ms = crate::model::now_ms().saturating_sub(*this.started_ms.value().unwrap());
    assert!(
        age_ms < 3_600_000,
        "a test runs for less than an hour, not {age_ms} ms"
    );
}

#[test]
fn ended_process_has_unknown_details() {
    let mut resolver = Resolver::new("/proc", CommandLines::All);
    let processes = fill(&mut resolver, &[u32::MAX - 1], MAX_WAIT);
    assert_eq!(processes[0].name, Reading::Absent(Absence::Unknown));
    assert_eq!(
        processes[0].host_memory_bytes,
        Reading::Absent(Absence::NotInProc)
    );
    assert_eq!(processes[0].memory_bytes, Reading::Now(1));
}

#[test]
fn service_hides_command_lines_unless_all_are_shown() {
    let own = [std::process::id()];
    let hidden = fill(
        &mut Finder::with_uid("/proc", CommandLines::Own, u32::MAX - 1).new_resolver(),
        &own,
        MAX_WAIT,
    );
    assert_eq!(hidden[0].command, Reading::Absent(Absence::Hidden));
    assert!(hidden[0].name.value().is_some());
    let shown = fill(
        &mut Finder::with_uid("/proc", CommandLines::All, u32::MAX - 1).new_resolver(),
        &own,
        MAX_WAIT,
    );
    assert!(shown[0].command.value().is_some());
}

#[test]
fn hung_process_blocks_only_its_user() {
    let proc = FakeProc::new("stuck");
    let (stuck, same_user, other) = (20, 21, 30);
    proc.add(stuck, 71_000, false);
    proc.add(same_user, 71_000, true);
    proc.add(other, 72_000, true);
    let mut resolver = Finder::with_uid(&proc.0, CommandLines::All, 1).new_resolver();
    let pids = [stuck, same_user, other];
    let begun = Instant::now();
    fill(&mut resolver, &pids, SHORT_WAIT);
    assert!(
        begun.elapsed() < Duration::from_millis(450),
        "{:?}",
        begun.elapsed()
    );
    wait_until(&mut resolver, &pids, |now| {
        has_first_stage_only(&now[0]) && has_first_stage_only(&now[1]) && is_identified(&now[2])
    });

    // After this wait, the blocked stage counts as hung. New processes of the same user then also
    // count as blocked, and callers do not wait for them.
    sleep(Duration::from_millis(600));
    proc.add(22, 71_000, true);
    let begun = Instant::now();
    let now = fill(&mut resolver, &[stuck, same_user, 22, other], MAX_WAIT);
    assert!(begun.elapsed() < MAX_WAIT / 2, "{:?}", begun.elapsed());
    assert!(has_first_stage_only(&now[2]), "{:?}", now[2]);

    proc.unblock(stuck);
    wait_until(&mut resolver, &[same_user, 22, other], |now| {
        now.iter().all(is_identified)
    });
}

#[test]
fn job_of_hung_process_comes_from_cgroup() {
    let proc = FakeProc::new("cgroup");
    proc.add(20, 71_000, false);
    fs::write(
        proc.0.join("20/cgroup"),
        "0::/system.slice/slurmstepd.scope/job_42/step_0/user/task_0\n",
    )
    .unwrap();
    let mut resolver = Finder::with_uid(&proc.0, CommandLines::All, 1).new_resolver();
    let job = |process: &Process| {
        process
            .owner
            .value()?
            .slurm
            .as_ref()
            .map(|job| job.job_id.clone())
    };
    let is_partial = |process: &Process| process.owner.value().is_some_and(|owner| owner.partial);
    wait_until(&mut resolver, &[20], |now| {
        job(&now[0]).as_deref() == Some("42") && is_partial(&now[0])
    });
    proc.unblock(20);
    wait_until(&mut resolver, &[20], |now| {
        job(&now[0]).as_deref() == Some("42") && !is_partial(&now[0])
    });
}

#[test]
fn number_of_threads_is_limited() {
    let proc = FakeProc::new("many");
    let pids: Vec<u32> = (100..140).collect();
    for pid in &pids {
        proc.add(*pid, 71_000 + pid, false);
    }
    let finder = Finder::with_uid(&proc.0, CommandLines::All, 1);
    let mut resolver = finder.new_resolver();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(4) {
        let asked = Instant::now();
        fill(&mut resolver, &pids, SHORT_WAIT);
        assert!(
            asked.elapsed() < Duration::from_millis(450),
            "{:?}",
            asked.elapsed()
        );
        sleep(Duration::from_millis(50));
    }
    let (_, threads) = finder.process_and_thread_counts();
    assert_eq!(
        threads,
        1 + 4 + 16,
        "one that looks, those that hang now and those that were abandoned"
    );
    let now = fill(&mut resolver, &pids, SHORT_WAIT);
    let reported = now
        .iter()
        .filter(|process| process.started_ms.value().is_some())
        .count();
    assert_eq!(reported, pids.len(), "the first stage of everybody");
    std::thread::scope(|scope| {
        for pid in &pids {
            scope.spawn(|| proc.unblock(*pid));
        }
        wait_until(&mut resolver, &pids, |now| {
            now.iter().all(|process| process.owner.value().is_some())
        });
    });
}

#[test]
fn process_is_forgotten_once_no_gpu_lists_it() {
    let proc = FakeProc::new("forgotten");
    (1..=3).for_each(|pid| proc.add(pid, 71_000, true));
    let finder = Finder::with_uid(&proc.0, CommandLines::All, 1);
    let (mut one, mut other) = (finder.new_resolver(), finder.new_resolver());
    assert!(fill(&mut one, &[1, 2], MAX_WAIT).iter().all(is_identified));
    fill(&mut other, &[2, 3], MAX_WAIT);
    assert_eq!(finder.process_and_thread_counts().0, 3);
    fill(&mut one, &[], MAX_WAIT);
    assert_eq!(
        finder.process_and_thread_counts().0,
        2,
        "another GPU still lists one"
    );
    drop(other);
    assert_eq!(finder.process_and_thread_counts().0, 0);
}
