//! Child processes: the process tree (a process and its descendants), the programs that gpumon
//! starts, the orphans that it adopts, and the collector.

use std::{
    collections::{BTreeSet, HashMap},
    ffi::OsString,
    fs,
    io::{self, BufRead, BufReader, Read, Write},
    iter,
    os::unix::{fs::MetadataExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio, id},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use anyhow::Context;
use gpumon_probe::{
    bounded, child,
    model::{Process, Record, now_ms},
    owner::read_children,
    process_stat::{ProcessStat, read_boot_time_ms},
    usage::cost::CostMeter,
};
use rustix::process::{Pid, WaitOptions, set_child_subreaper, waitpid};
use signal_hook::{consts::SIGCHLD, iterator::Signals};

use crate::{background::spawn_detached_thread, options::SourceArgs};

/// The maximum number of ancestors of a process that are examined. No real process has this many.
const MAX_DEPTH: usize = 64;

/// Programs other than PID 1 that adopt orphans among their descendants.
const REAPERS: [&str; 2] = ["systemd", "gpumon"];

/// The maximum number of members that a process tree records. In a larger tree, further members are
/// recognized only while their ancestors are running.
const MAX_MEMBERS: usize = 4096;

/// The minimum pause after a search for members, as a multiple of the search's duration. The pause
/// limits the load, because a search of a large tree reads the files of many threads.
const SEARCH_PAUSE_FACTOR: u32 = 20;

/// The maximum number of processes with unclear membership that are reported individually.
const MAX_NAMED: usize = 8;

/// A process and its descendants. The tree determines which processes on a GPU belong to it. A
/// process remains a member after its parent has ended.
pub(crate) struct ProcessTree {
    root: u32,
    proc_root: PathBuf,
    booted_ms: Option<u64>,
    /// The time at which this process started to watch the tree, in milliseconds since 1970.
    since_ms: u64,
    started_ms: Option<u64>,
    uid: Option<u32>,
    /// The ancestors of the root. Orphans of the tree are adopted by one of the ancestors.
    ancestors: BTreeSet<u32>,
    /// The running members. Ended members are kept if they led a process group or session, because
    /// other processes may still belong to the group or session.
    members: HashMap<u32, ProcessStat>,
    /// Memberships that no longer change. The key contains the start time in addition to the PID,
    /// because PIDs are reused.
    known: HashMap<(u32, Option<u64>), Membership>,
    /// The end and the duration of the last search for members.
    searched: Option<(Instant, Duration)>,
    unclear: BTreeSet<u32>,
    remarks: Vec<String>,
}

/// Whether a process belongs to the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Membership {
    Inside,
    Outside,
    /// A process whose starter is unknown: it was started after the tree was first watched, and its
    /// parent has ended or is a service.
    Unclear,
}

impl ProcessTree {
    pub(crate) fn new(root: u32) -> Self {
        Self::with_proc_root(Path::new("/proc"), root, now_ms())
    }

    fn with_proc_root(proc_root: &Path, root: u32, since_ms: u64) -> Self {
        let booted_ms = read_boot_time_ms(proc_root);
        let mut tree = Self {
            root,
            proc_root: proc_root.to_owned(),
            booted_ms,
            since_ms,
            started_ms: None,
            uid: find_uid(proc_root, root),
            ancestors: BTreeSet::new(),
            members: HashMap::new(),
            known: HashMap::new(),
            searched: None,
            unclear: BTreeSet::new(),
            remarks: Vec::new(),
        };
        if let Some(stat) = tree.read_stat(root) {
            let parent = |pid: &u32| tree.read_stat(*pid).map(|stat| stat.parent);
            tree.ancestors = iter::successors(Some(stat.parent), parent)
                .take(MAX_DEPTH)
                .filter(|pid| *pid > 1)
                .collect();
            tree.started_ms = stat.birth.started_ms;
            tree.members.insert(root, stat);
        }
        tree.find_new_members();
        tree
    }

    /// Searches for new members, so that a member's later children are recognized even after the
    /// member has ended. Returns without a search if the last search was too recent, because
    /// searching a large tree takes long.
    pub(crate) fn find_new_members(&mut self) {
        if self
            .searched
            .is_some_and(|(end, took)| end.elapsed() < took * SEARCH_PAUSE_FACTOR)
        {
            return;
        }
        let begun = Instant::now();
        self.update_members();
        self.searched = Some((Instant::now(), begun.elapsed()));
    }

    fn update_members(&mut self) {
        let (proc_root, booted_ms) = (&self.proc_root, self.booted_ms);
        let stat = |pid| ProcessStat::read_with_boot_time(proc_root, pid, booted_ms).ok();
        let has_room = self.members.len() < MAX_MEMBERS;
        self.members.retain(|pid, member| {
            match stat(*pid).filter(|now| now.may_have_started_at(member.birth.started_ms)) {
                Some(now) => {
                    *member = now;
                    true
                }
                None => has_room && (member.group == *pid || member.session == *pid),
            }
        });
        let mut parents: Vec<u32> = self.members.keys().copied().collect();
        while let Some(parent) = parents.pop() {
            for child in read_children(proc_root, parent) {
                let found = stat(child).filter(|stat| stat.parent == parent);
                let Some(found) = found.filter(|_| self.members.len() < MAX_MEMBERS) else {
                    continue;
                };
                if self.members.insert(child, found).is_none() {
                    parents.push(child);
                }
            }
        }
    }

    fn contains(&mut self, process: &Process) -> bool {
        let key = (process.pid, process.started_ms.value().copied());
        let known = self.known.get(&key).copied();
        let membership = known.unwrap_or_else(|| {
            let (membership, is_final) = self.find_membership(process);
            if is_final {
                self.known.insert(key, membership);
            }
            if let Some(stat) = self
                .read_stat(process.pid)
                .filter(|_| membership == Membership::Inside)
            {
                self.members.insert(process.pid, stat);
            }
            membership
        });
        if membership == Membership::Unclear {
            self.report_unclear_process(process);
        }
        membership == Membership::Inside
    }

    /// Adds a record to a measurement, counting only the tree's processes. Reports processes with
    /// unclear membership.
    pub(crate) fn add_to_meter(&mut self, meter: &mut CostMeter, record: &Record) {
        meter.push(record, &mut |process| self.contains(process));
        self.remarks
            .drain(..)
            .for_each(|remark| meter.add_missing_data_note(&remark));
    }

    fn report_unclear_process(&mut self, process: &Process) {
        if self.unclear.len() < MAX_NAMED {
            self.unclear.insert(process.pid);
        }
        let what = if self.unclear.contains(&process.pid) {
            let name = process
                .name
                .value()
                .map_or_else(String::new, |name| format!(" ({name})"));
            format!("process {}{name}", process.pid)
        } else {
            "more processes".to_owned()
        };
        self.remarks.push(format!(
            "not counted: {what}, started during the measurement by a service or by a process \
             that has ended; whether process {} is an ancestor is unknown",
            self.root
        ));
    }

    /// Returns whether a process belongs to the tree, and whether this result is final.
    fn find_membership(&self, process: &Process) -> (Membership, bool) {
        let owner = process.owner.value().filter(|owner| !owner.partial);
        let by_ancestors = self.find_membership_by_ancestors(process.pid);
        // Some processes are not visible in this procfs. They are recognized by the ancestors that
        // the sample contains for each process.
        let is_below = || {
            process.pid == self.root
                || owner
                    .is_some_and(|owner| owner.parents.iter().any(|parent| parent.pid == self.root))
        };
        let is_of_kernel = || {
            owner
                .and_then(|owner| owner.notebook.as_ref())
                .is_some_and(|notebook| notebook.kernel_pid == self.root)
        };
        match by_ancestors {
            Some(Membership::Inside) => (Membership::Inside, true),
            None if is_below() => (Membership::Inside, true),
            _ if is_of_kernel() => (Membership::Inside, true),
            // The process belongs to another notebook, so it is not a member.
            Some(Membership::Unclear) if owner.is_some_and(|owner| owner.notebook.is_some()) => {
                (Membership::Outside, true)
            }
            // The membership may become clear once the owner of the process has been read.
            Some(Membership::Unclear) if owner.is_none() => (Membership::Outside, false),
            Some(membership) => (membership, owner.is_some()),
            // The membership is unknown: either the process is not visible, or one of its ancestors
            // ended during the search. The result is final only in the first case.
            None => (
                Membership::Outside,
                owner.is_some() && self.read_stat(process.pid).is_none(),
            ),
        }
    }

    /// Determines the membership of a process from its running ancestors. Returns `None` if the
    /// process or an ancestor is not visible.
    fn find_membership_by_ancestors(&self, pid: u32) -> Option<Membership> {
        let began_ms = self.read_stat(pid)?.birth.started_ms;
        let mut belongs_to_leader = false;
        let mut ancestor = pid;
        for _ in 0..MAX_DEPTH {
            let stat = self.read_stat(ancestor)?;
            if self.is_member(ancestor, &stat) {
                return Some(Membership::Inside);
            }
            let is_ancestor_of_root = self.ancestors.contains(&ancestor);
            if is_ancestor_of_root && self.is_reaper(ancestor) {
                break;
            }
            if is_ancestor_of_root || stat.birth.started_ms < self.started_ms {
                return Some(Membership::Outside);
            }
            belongs_to_leader |= self.is_group_led_by_member(stat.session)
                || self.is_group_led_by_member(stat.group);
            ancestor = stat.parent;
            if ancestor <= 1 {
                break;
            }
        }
        // No running ancestor is a member, but an ancestor that has ended may have been one. The
        // process therefore counts as a member if a member leads or led its process group or
        // session, or that of a running ancestor.
        if belongs_to_leader {
            return Some(Membership::Inside);
        }
        let uid = find_uid(&self.proc_root, pid);
        let is_of_user = uid == self.uid || uid == Some(0);
        let is_new = began_ms.is_some_and(|began_ms| began_ms >= self.since_ms);
        Some(if is_of_user && is_new {
            Membership::Unclear
        } else {
            Membership::Outside
        })
    }

    fn is_member(&self, pid: u32, stat: &ProcessStat) -> bool {
        self.members
            .get(&pid)
            .is_some_and(|member| stat.may_have_started_at(member.birth.started_ms))
    }

    /// Returns `true` if the leader of the process group or session `id` is or was a member of the
    /// tree. The leader's PID equals `id`, and no other process can get this PID while the group or
    /// session exists.
    fn is_group_led_by_member(&self, id: u32) -> bool {
        let is_other = |member: &ProcessStat| {
            self.read_stat(id)
                .is_some_and(|now| !now.may_have_started_at(member.birth.started_ms))
        };
        self.members
            .get(&id)
            .is_some_and(|member| !is_other(member))
    }

    fn is_reaper(&self, pid: u32) -> bool {
        let name = bounded::read_text(
            self.proc_root.join(pid.to_string()).join("comm"),
            bounded::VALUE_LIMIT,
        )
        .unwrap_or_default();
        REAPERS.contains(&name.trim_end())
    }

    fn read_stat(&self, pid: u32) -> Option<ProcessStat> {
        ProcessStat::read_with_boot_time(&self.proc_root, pid, self.booted_ms).ok()
    }
}

fn find_uid(proc_root: &Path, pid: u32) -> Option<u32> {
    fs::metadata(proc_root.join(pid.to_string()))
        .ok()
        .map(|folder| folder.uid())
}

// Programs that this process starts, and orphans that it adopts.

/// The PIDs of the programs that [`start_program`] has started. The reaper thread skips them,
/// because the owner of each [`Child`] waits for its program.
static STARTED_PIDS: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// Starts a program that the reaper thread of [`adopt_orphans`] ignores.
pub(crate) fn start_program(command: &mut Command) -> io::Result<Child> {
    // The lock is held while the child starts, so that the reaper thread does not see the child
    // before its PID is recorded.
    let mut started = STARTED_PIDS.lock().unwrap_or_else(PoisonError::into_inner);
    let child = command.spawn()?;
    started.insert(child.id());
    Ok(child)
}

/// Makes this process the parent of all descendants that become orphans from now on. Otherwise, PID
/// 1 of the PID namespace would adopt them. A background thread reaps the orphans that exit while
/// gpumon is running.
pub(crate) fn adopt_orphans() -> io::Result<()> {
    // A handler is installed, because this process may have been started with `SIGCHLD` ignored.
    // While the signal is ignored, the kernel sends no notification when a child ends.
    let mut ended = Signals::new([SIGCHLD])?;
    // Any nonzero PID enables the setting. If a sandbox refuses the call, PID 1 adopts the orphans.
    let _ = set_child_subreaper(Pid::from_raw(id().cast_signed()));
    spawn_detached_thread("orphans", move || {
        ended.forever().for_each(|_| reap_orphans());
    })
}

fn reap_orphans() {
    let started = STARTED_PIDS.lock().unwrap_or_else(PoisonError::into_inner);
    let adopted = read_children(Path::new("/proc"), id())
        .into_iter()
        .filter(|pid| !started.contains(pid));
    for pid in adopted.filter_map(|pid| Pid::from_raw(pid.cast_signed())) {
        // `NOHANG` skips a process that is still running.
        let _ = waitpid(Some(pid), WaitOptions::NOHANG);
    }
}

// The collector: `gpumon collect` as a child process, for use without a server on this machine.
//
// The driver is read in a separate process for two reasons. A hung driver cannot keep this process
// from exiting, and this process can exit without waiting several milliseconds for the driver to
// close.

/// Returns the command that starts a collector. The collector ends when its standard input is
/// closed, and Ctrl-C in the terminal does not reach it.
pub(crate) fn build_collector_command(
    source: &SourceArgs,
    interval: Duration,
) -> anyhow::Result<Command> {
    let program = std::env::current_exe().context("cannot find the gpumon executable")?;
    let mut command = child::new_command(program);
    let arguments = ["collect", "--supervised", "--interval-ms"].map(OsString::from);
    command
        .args(source.to_arguments())
        .args(arguments)
        .arg(interval.as_millis().to_string());
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .process_group(0);
    Ok(command)
}

/// Asks the collector to change its sampling interval.
///
/// # Errors
/// Returns an error if the collector has ended.
pub(crate) fn set_collector_interval(
    requests: &mut ChildStdin,
    interval: Duration,
) -> io::Result<()> {
    writeln!(requests, "{{\"interval_ms\":{}}}", interval.as_millis())
}

/// Returns the lines of `output` until it ends or cannot be read.
pub(crate) fn read_lines(output: Option<impl Read>) -> impl Iterator<Item = String> {
    let lines = output
        .into_iter()
        .flat_map(|output| BufReader::new(output).lines());
    lines.map_while(io::Result::ok)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use gpumon_probe::model::{Absence, Ancestor, Notebook, Owner, Reading};

    use super::*;
    use crate::table::examples;

    fn make_process(pid: u32) -> Process {
        Process {
            started_ms: Reading::Now(1_000_000),
            ..examples::example_process(pid, "ana", 1.0, "python")
        }
    }

    #[test]
    fn descendants_and_orphans_belong_to_process_tree() {
        let folder = tempfile::tempdir().unwrap();
        let begin = |pid: u32, parent: u32, ticks: u32| {
            let place = folder.path().join(pid.to_string());
            fs::create_dir_all(&place).unwrap();
            let stat = format!(
                "{pid} (a) b) S {parent} {}{ticks} {}",
                "0 ".repeat(17),
                "0 ".repeat(22)
            );
            fs::write(place.join("stat"), stat).unwrap();
        };
        let add = |pid, parent| begin(pid, parent, 0);
        fs::write(folder.path().join("stat"), "btime 1000\n").unwrap();
        for (pid, parent) in [(10, 1), (20, 10), (30, 20), (40, 1)] {
            add(pid, parent);
        }
        let mut tree = ProcessTree::with_proc_root(folder.path(), 10, u64::MAX);
        assert_eq!(
            [10, 20, 30, 40].map(|pid| tree.contains(&make_process(pid))),
            [true, true, true, false]
        );
        add(30, 1);
        add(31, 30);
        assert_eq!(
            [30, 31].map(|pid| tree.contains(&make_process(pid))),
            [true, true]
        );
        begin(30, 40, 1_000_000);
        begin(32, 30, 1_000_000);
        let started_ms = 1_000_000 + 1_000_000_000 / rustix::param::clock_ticks_per_second();
        let later = |pid| Process {
            started_ms: Reading::Now(started_ms),
            ..make_process(pid)
        };
        assert_eq!(
            [30, 32].map(|pid| tree.contains(&later(pid))),
            [false, false],
            "a PID that was used again"
        );
    }

    /// A fake `/proc`. Each process is a tuple of PID, parent, group, session, and start time in
    /// seconds since boot.
    struct FakeProc(tempfile::TempDir);

    impl FakeProc {
        fn new(processes: &[(u32, u32, u32, u32, u64)]) -> Self {
            let proc = Self(tempfile::tempdir().unwrap());
            fs::write(proc.0.path().join("stat"), "btime 1000\n").unwrap();
            for process in processes {
                proc.start_process(*process);
            }
            proc
        }

        fn start_process(&self, (pid, parent, group, session, second): (u32, u32, u32, u32, u64)) {
            let place = self.0.path().join(pid.to_string());
            fs::create_dir_all(place.join("task").join(pid.to_string())).unwrap();
            let ticks = second * rustix::param::clock_ticks_per_second();
            let stat = format!(
                "{pid} (a) S {parent} {group} {session} {}{ticks} {}",
                "0 ".repeat(15),
                "0 ".repeat(22)
            );
            fs::write(place.join("stat"), stat).unwrap();
            fs::write(place.join("comm"), "a\n").unwrap();
        }

        fn set_children(&self, pid: u32, children: &str) {
            fs::write(
                self.0.path().join(format!("{pid}/task/{pid}/children")),
                children,
            )
            .unwrap();
        }

        fn end_process(&self, pid: u32) {
            fs::remove_dir_all(self.0.path().join(pid.to_string())).unwrap();
        }
    }

    fn make_process_started_at(pid: u32, second: u64) -> Process {
        Process {
            started_ms: Reading::Now(1_000_000 + second * 1000),
            owner: Reading::Now(Owner::default()),
            ..make_process(pid)
        }
    }

    #[test]
    fn orphan_of_remembered_launcher_belongs_to_process_tree() {
        let proc = FakeProc::new(&[
            (10, 5, 5, 5, 100),
            (20, 10, 10, 10, 110),
            (30, 20, 10, 10, 120),
        ]);
        proc.set_children(10, "20");
        proc.set_children(20, "30");
        let mut tree = ProcessTree::with_proc_root(proc.0.path(), 10, u64::MAX);
        proc.end_process(20);
        proc.start_process((30, 1, 10, 10, 120));
        tree.update_members();
        proc.start_process((40, 30, 40, 40, 130));
        assert!(
            tree.contains(&make_process_started_at(40, 130)),
            "its parent was seen below the root"
        );
        assert!(
            !tree.contains(&make_process_started_at(20, 110)),
            "the process has ended"
        );
    }

    #[test]
    fn orphan_in_same_session_belongs_to_process_tree() {
        // A shell runs two programs in a pipeline. The first program is the root of the process
        // tree.
        let proc = FakeProc::new(&[(5, 1, 5, 5, 50), (10, 5, 10, 5, 100), (11, 5, 10, 5, 101)]);
        let mut tree = ProcessTree::with_proc_root(proc.0.path(), 10, u64::MAX);
        assert!(
            !tree.contains(&make_process_started_at(11, 101)),
            "the shell has started it"
        );
        proc.start_process((30, 1, 10, 5, 120));
        assert!(
            tree.contains(&make_process_started_at(30, 120)),
            "a member led its group"
        );
        proc.start_process((20, 10, 20, 20, 130));
        proc.set_children(10, "20");
        tree.update_members();
        proc.end_process(20);
        tree.update_members();
        proc.start_process((31, 1, 31, 20, 140));
        assert!(
            tree.contains(&make_process_started_at(31, 140)),
            "the leader of its session was a member"
        );
        proc.start_process((20, 5, 20, 20, 150));
        proc.start_process((32, 1, 32, 20, 160));
        assert!(
            !tree.contains(&make_process_started_at(32, 160)),
            "the PID of its leader was reused"
        );
    }

    #[test]
    fn orphan_of_unknown_origin_is_reported() {
        let proc = FakeProc::new(&[(3, 1, 3, 3, 20), (5, 3, 5, 5, 50), (10, 5, 10, 5, 100)]);
        fs::write(proc.0.path().join("3/comm"), "systemd\n").unwrap();
        let mut tree = ProcessTree::with_proc_root(proc.0.path(), 10, 1_000_000 + 110 * 1000);
        for (pid, parent, second, is_unclear) in [
            (30, 1, 120, true),
            // The parent of this process is the user's service manager, which both starts services
            // and adopts orphans.
            (31, 3, 120, true),
            (32, 1, 105, false),
            (33, 5, 120, false),
            (34, 7, 120, false),
        ] {
            proc.start_process((pid, parent, pid, pid, second));
            let unread = Process {
                owner: Reading::Absent(Absence::NotReadYet),
                ..make_process_started_at(pid, second)
            };
            assert!(
                !tree.contains(&unread) && tree.remarks.is_empty(),
                "{pid}: its owner is not read yet"
            );
            assert!(
                !tree.contains(&make_process_started_at(pid, second)),
                "{pid}"
            );
            let remarks = std::mem::take(&mut tree.remarks);
            assert_eq!(remarks.len(), usize::from(is_unclear), "{pid}: {remarks:?}");
            assert!(
                remarks
                    .iter()
                    .all(|remark| remark.contains(&format!("process {pid} (python3)"))),
                "{remarks:?}"
            );
        }
        let of_kernel = |kernel_pid, pid| {
            let (kernel_id, path) = ("k".to_owned(), Reading::Absent(Absence::Unknown));
            let notebook = Some(Notebook {
                kernel_id,
                kernel_name: None,
                path,
                kernel_pid,
            });
            Process {
                owner: Reading::Now(Owner {
                    notebook,
                    ..Owner::default()
                }),
                ..make_process_started_at(pid, 130)
            }
        };
        proc.start_process((40, 1, 40, 40, 130));
        proc.start_process((41, 1, 41, 41, 130));
        assert!(
            tree.contains(&of_kernel(10, 40)),
            "the collector found its kernel"
        );
        assert!(
            !tree.contains(&of_kernel(11, 41)) && tree.remarks.is_empty(),
            "it belongs to another notebook"
        );
        for pid in 50..70 {
            proc.start_process((pid, 1, pid, pid, 140));
            tree.contains(&make_process_started_at(pid, 140));
        }
        let texts: BTreeSet<_> = tree.remarks.iter().collect();
        assert!(
            texts.len() <= MAX_NAMED + 1
                && texts.iter().any(|text| text.contains("more processes")),
            "{texts:?}"
        );
    }

    #[test]
    fn ancestors_missing_in_proc_are_taken_from_sample() {
        let mut tree = ProcessTree::with_proc_root(Path::new("/nowhere"), 10, 0);
        let mut child = make_process(20);
        child.owner = Reading::Absent(Absence::NotReadYet);
        assert!(!tree.contains(&child), "not known yet");
        let parents = vec![Ancestor {
            pid: 10,
            name: "bash".to_owned(),
        }];
        child.owner = Reading::Now(Owner {
            parents,
            ..Owner::default()
        });
        assert!(tree.contains(&child));
    }
}
