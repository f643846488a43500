//! Tests of reading processes, including those whose files never answer.

use std::{
    fs::{self, OpenOptions},
    path::PathBuf,
    thread::sleep,
    time::{Duration, Instant},
};

use rustix::fs::{CWD, Mode, mkfifoat};

use super::*;
use crate::model::{Absence, Process, ProcessKind, Reading};

/// A time limit for everything that does not block.
const LONG: Duration = Duration::from_mins(1);

/// The patience of a running sampler.
const SHORT: Duration = Duration::from_millis(50);

fn process(pid: u32) -> Process {
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

/// A fake `/proc`, in which the command line of some processes is a pipe. Reading it blocks until
/// somebody writes.
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

    /// Unblocks the reader of the pipe, after waiting for it.
    fn answer(&self, pid: u32) {
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
    let mut processes: Vec<_> = pids.iter().map(|pid| process(*pid)).collect();
    resolver.fill(&mut processes, patience);
    processes
}

/// Repeats the reading until the result is right.
#[track_caller]
fn eventually(resolver: &mut Resolver, pids: &[u32], is_right: impl Fn(&[Process]) -> bool) {
    let begun = Instant::now();
    loop {
        let processes = fill(resolver, pids, SHORT);
        if is_right(&processes) {
            return;
        }
        assert!(begun.elapsed() < LONG, "{processes:#?}");
        sleep(Duration::from_millis(20));
    }
}

fn is_known(process: &Process) -> bool {
    process.name == Reading::Now("train.py".to_owned()) && process.owner.value().is_some()
}

/// Returns `true` if only the first stage is complete.
fn is_half_known(process: &Process) -> bool {
    let not_read = Some(&Absence::NotReadYet);
    (process.command.absence(), process.owner.absence()) == (not_read, not_read)
        && process.name == Reading::Now("python3".to_owned())
        && process.user.value().is_some()
        && process.started_ms.value().is_some()
}

#[test]
fn this_very_process_is_known_by_name_user_and_start() {
    let mut resolver = Resolver::new("/proc", CommandLines::Own);
    let [this] = &fill(&mut resolver, &[std::process::id()], LONG)[..] else {
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
fn a_process_that_has_ended_stays_listed_with_its_details_unknown() {
    let mut resolver = Resolver::new("/proc", CommandLines::All);
    let processes = fill(&mut resolver, &[u32::MAX - 1], LONG);
    assert_eq!(processes[0].name, Reading::Absent(Absence::Unknown));
    assert_eq!(
        processes[0].host_memory_bytes,
        Reading::Absent(Absence::NotInProc)
    );
    assert_eq!(processes[0].memory_bytes, Reading::Now(1));
}

#[test]
fn another_users_command_line_is_hidden_from_a_service_only() {
    let own = [std::process::id()];
    let hidden = fill(
        &mut Finder::of_user("/proc", CommandLines::Own, u32::MAX - 1).resolver(),
        &own,
        LONG,
    );
    assert_eq!(hidden[0].command, Reading::Absent(Absence::Hidden));
    assert!(hidden[0].name.value().is_some());
    let shown = fill(
        &mut Finder::of_user("/proc", CommandLines::All, u32::MAX - 1).resolver(),
        &own,
        LONG,
    );
    assert!(shown[0].command.value().is_some());
}

#[test]
fn a_process_that_does_not_answer_holds_up_its_own_user_and_nobody_else() {
    let proc = FakeProc::new("stuck");
    let (stuck, same_user, other) = (20, 21, 30);
    proc.add(stuck, 71_000, false);
    proc.add(same_user, 71_000, true);
    proc.add(other, 72_000, true);
    let mut resolver = Finder::of_user(&proc.0, CommandLines::All, 1).resolver();
    let pids = [stuck, same_user, other];
    let begun = Instant::now();
    fill(&mut resolver, &pids, SHORT);
    assert!(
        begun.elapsed() < Duration::from_millis(450),
        "{:?}",
        begun.elapsed()
    );
    eventually(&mut resolver, &pids, |now| {
        is_half_known(&now[0]) && is_half_known(&now[1]) && is_known(&now[2])
    });

    // The wait is longer than the time limit, so that new processes of that user count as blocked,
    // and nobody waits for them.
    sleep(Duration::from_millis(600));
    proc.add(22, 71_000, true);
    let begun = Instant::now();
    let now = fill(&mut resolver, &[stuck, same_user, 22, other], LONG);
    assert!(begun.elapsed() < LONG / 2, "{:?}", begun.elapsed());
    assert!(is_half_known(&now[2]), "{:?}", now[2]);

    proc.answer(stuck);
    eventually(&mut resolver, &[same_user, 22, other], |now| {
        now.iter().all(is_known)
    });
}

#[test]
fn a_process_that_does_not_answer_is_known_by_its_cgroup_all_the_same() {
    let proc = FakeProc::new("cgroup");
    proc.add(20, 71_000, false);
    fs::write(
        proc.0.join("20/cgroup"),
        "0::/system.slice/slurmstepd.scope/job_42/step_0/user/task_0\n",
    )
    .unwrap();
    let mut resolver = Finder::of_user(&proc.0, CommandLines::All, 1).resolver();
    let job = |process: &Process| {
        process
            .owner
            .value()?
            .slurm
            .as_ref()
            .map(|job| job.job_id.clone())
    };
    let is_partial = |process: &Process| process.owner.value().is_some_and(|owner| owner.partial);
    eventually(&mut resolver, &[20], |now| {
        job(&now[0]).as_deref() == Some("42") && is_partial(&now[0])
    });
    proc.answer(20);
    eventually(&mut resolver, &[20], |now| {
        job(&now[0]).as_deref() == Some("42") && !is_partial(&now[0])
    });
}

#[test]
fn however_many_users_processes_hang_the_threads_are_few_and_all_come_back() {
    let proc = FakeProc::new("many");
    let pids: Vec<u32> = (100..140).collect();
    for pid in &pids {
        proc.add(*pid, 71_000 + pid, false);
    }
    let finder = Finder::of_user(&proc.0, CommandLines::All, 1);
    let mut resolver = finder.resolver();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(4) {
        let asked = Instant::now();
        fill(&mut resolver, &pids, SHORT);
        assert!(
            asked.elapsed() < Duration::from_millis(450),
            "{:?}",
            asked.elapsed()
        );
        sleep(Duration::from_millis(50));
    }
    let (_, threads) = finder.size();
    assert_eq!(
        threads,
        1 + 4 + 16,
        "one that looks, those that hang now and those that were abandoned"
    );
    let now = fill(&mut resolver, &pids, SHORT);
    let told = now
        .iter()
        .filter(|process| process.started_ms.value().is_some())
        .count();
    assert_eq!(told, pids.len(), "the first stage of everybody");
    std::thread::scope(|scope| {
        for pid in &pids {
            scope.spawn(|| proc.answer(*pid));
        }
        eventually(&mut resolver, &pids, |now| {
            now.iter().all(|process| process.owner.value().is_some())
        });
    });
}

#[test]
fn what_no_gpu_lists_any_longer_is_forgotten() {
    let proc = FakeProc::new("forgotten");
    (1..=3).for_each(|pid| proc.add(pid, 71_000, true));
    let finder = Finder::of_user(&proc.0, CommandLines::All, 1);
    let (mut one, mut other) = (finder.resolver(), finder.resolver());
    assert!(fill(&mut one, &[1, 2], LONG).iter().all(is_known));
    fill(&mut other, &[2, 3], LONG);
    assert_eq!(finder.size().0, 3);
    fill(&mut one, &[], LONG);
    assert_eq!(finder.size().0, 2, "another GPU still lists one");
    drop(other);
    assert_eq!(finder.size().0, 0);
}
