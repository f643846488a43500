//! Detection of processes that belong to the same job.
//!
//! Processes of the same notebook kernel or batch job belong together. A pod, a container or a
//! shell can run unrelated programs, so its processes belong together only if they have a common
//! launcher, such as `torchrun`, or run the same program.

use crate::model::{Ancestor, Job, JobKind, Owner, Process};

/// Programs that run many unrelated children: shells, service and session managers, and programs
/// that run many commands.
const UNRELATED_PARENTS: [&str; 4] = [
    "ash bash busybox csh dash fish ksh nu pwsh sh tcsh zsh",
    "atd catatonit conmon containerd containerd-shim cron crond docker-init dockerd dumb-init \
     init runsv runsvdir s6-supervise s6-svscan supervisord systemd tini",
    "SCREEN code code-server login node sshd sshd-session su sudo",
    "make parallel raylet xargs",
];

/// Name prefixes of more programs whose children are unrelated.
const UNRELATED_PARENT_PREFIXES: [&str; 4] = ["gnome-", "jupyter", "konsole", "tmux"];

/// Programs that are interpreters. Two processes of the same interpreter can run different
/// programs.
const INTERPRETERS: [&str; 6] = ["python", "julia", "node", "perl", "ruby", "java"];

pub(super) fn is_same_job(one: &Process, other: &Process) -> bool {
    if one.pid == other.pid {
        return true;
    }
    let (Some(owner), Some(theirs)) = (one.owner.value(), other.owner.value()) else {
        return false;
    };
    let (job, their_job) = (non_service_job(owner), non_service_job(theirs));
    let kind = job.as_ref().map(|job| job.kind);
    if job != their_job {
        return false;
    }
    let is_whole = |kind: JobKind| kind == JobKind::Notebook || kind.batch_system().is_some();
    if kind.is_some_and(is_whole) || have_common_launcher(one, owner, other, theirs) {
        return true;
    }
    let Some(program) = one
        .name
        .value()
        .filter(|program| other.name.value() == Some(program))
    else {
        return false;
    };
    // All ancestors are compared, because launchers may start each process in its own shell.
    let shares_launcher = launcher_pids(&owner.parents)
        .any(|pid| launcher_pids(&theirs.parents).any(|their| pid == their));
    let shares_parent = owner
        .parents
        .first()
        .is_some_and(|parent| Some(parent) == theirs.parents.first());
    shares_launcher
        || (!is_interpreter(program)
            && owner.unit == theirs.unit
            && (kind.is_some() || shares_parent))
}

/// Returns the job of a process unless the job is a service. Login services and container engines
/// can run several unrelated jobs.
fn non_service_job(owner: &Owner) -> Option<Job> {
    owner
        .job()
        .filter(|job| job.kind != JobKind::Service)
        .map(|job| Job {
            path: None,
            name: None,
            ..job
        })
}

/// Returns `true` if one process started the other, or if the same program started both and is not
/// a shell.
fn have_common_launcher(one: &Process, owner: &Owner, other: &Process, theirs: &Owner) -> bool {
    let line = |process: &Process, owner: &Owner| {
        let near = owner
            .parents
            .iter()
            .take_while(|parent| !is_unrelated_parent(parent))
            .map(|parent| parent.pid);
        std::iter::once(process.pid).chain(near).collect::<Vec<_>>()
    };
    let their_line = line(other, theirs);
    line(one, owner).iter().any(|pid| their_line.contains(pid))
}

/// Returns `true` if `program` is the name of an interpreter, with or without a version.
fn is_interpreter(program: &str) -> bool {
    let is_version = |rest: &str| {
        rest.chars()
            .all(|letter| letter == '.' || letter.is_ascii_digit())
    };
    INTERPRETERS
        .iter()
        .any(|interpreter| program.strip_prefix(interpreter).is_some_and(is_version))
}

fn launcher_pids(parents: &[Ancestor]) -> impl Iterator<Item = u32> {
    parents
        .iter()
        .filter(|parent| !is_unrelated_parent(parent))
        .map(|parent| parent.pid)
}

fn is_unrelated_parent(parent: &Ancestor) -> bool {
    UNRELATED_PARENTS
        .iter()
        .flat_map(|names| names.split(' '))
        .any(|name| parent.name == name)
        || UNRELATED_PARENT_PREFIXES
            .iter()
            .any(|start| parent.name.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        derive::examples,
        model::{Absence, Container, ContainerRuntime, Reading},
    };

    fn make_process(
        pid: u32,
        name: &str,
        parents: &[(u32, &str)],
        container: Option<&str>,
    ) -> Process {
        let parents = parents
            .iter()
            .map(|(pid, name)| Ancestor {
                pid: *pid,
                name: (*name).to_owned(),
            })
            .collect();
        let container = container.map(|id| Container {
            runtime: ContainerRuntime::Docker,
            id: id.to_owned(),
            name: None,
        });
        let owner = Owner {
            container,
            parents,
            ..Owner::default()
        };
        Process {
            name: Reading::Now(name.to_owned()),
            owner: Reading::Now(owner),
            ..examples::make_process(pid, 1)
        }
    }

    #[track_caller]
    fn assert_same_job(is_same: bool, one: &Process, other: &Process) {
        assert_eq!(
            (is_same_job(one, other), is_same_job(other, one)),
            (is_same, is_same),
            "{one:#?} {other:#?}"
        );
    }

    #[test]
    fn programs_of_launcher_are_same_job() {
        let ranks = |launcher| {
            let parents = [(50, launcher), (10, "bash"), (9, "tmux: server")];
            (
                make_process(7, "train.py", &parents, None),
                make_process(8, "eval.py", &parents, None),
            )
        };
        for (launcher, is_same) in [
            ("torchrun", true),
            ("mpirun", true),
            ("python3", true),
            ("bash", false),
            ("systemd", false),
        ] {
            let (one, other) = ranks(launcher);
            assert_same_job(is_same, &one, &other);
        }
        let main = make_process(50, "train.py", &[(10, "bash")], None);
        assert_same_job(
            true,
            &main,
            &make_process(7, "python3", &[(50, "python3"), (10, "bash")], None),
        );
        let kernel = |pid| make_process(pid, "python3", &[(60, "jupyter-lab"), (10, "bash")], None);
        assert_same_job(false, &kernel(7), &kernel(8));
    }

    #[test]
    fn processes_of_same_program_are_same_job() {
        let started = |pid, name| make_process(pid, name, &[(10, "bash"), (9, "sshd")], None);
        assert_same_job(true, &started(7, "train.py"), &started(8, "train.py"));
        assert_same_job(false, &started(7, "train.py"), &started(8, "other.py"));
        assert_same_job(false, &started(7, "python3.12"), &started(8, "python3.12"));
        assert_same_job(
            true,
            &started(7, "python_train.py"),
            &started(8, "python_train.py"),
        );
        assert_same_job(
            false,
            &started(7, "train.py"),
            &make_process(8, "train.py", &[(11, "bash"), (9, "sshd")], None),
        );
        let wrapped = |pid, name| {
            make_process(
                pid,
                name,
                &[(pid + 100, "bash"), (50, "mpirun"), (10, "bash")],
                None,
            )
        };
        assert_same_job(true, &wrapped(7, "python3"), &wrapped(8, "python3"));
        assert_same_job(false, &wrapped(7, "a.out"), &wrapped(8, "b.out"));
    }

    #[test]
    fn same_programs_in_container_are_same_job() {
        let inside = |pid, name, id| {
            make_process(pid, name, &[(5, "bash"), (4, "containerd-shim")], Some(id))
        };
        assert_same_job(
            false,
            &inside(7, "train.py", "a"),
            &inside(8, "serve.py", "a"),
        );
        assert_same_job(
            true,
            &inside(7, "train.py", "a"),
            &make_process(8, "train.py", &[(6, "bash")], Some("a")),
        );
        assert_same_job(
            false,
            &inside(7, "train.py", "a"),
            &inside(8, "train.py", "b"),
        );
        let launched =
            |pid, name| make_process(pid, name, &[(50, "torchrun"), (5, "bash")], Some("a"));
        assert_same_job(true, &launched(7, "train.py"), &launched(8, "eval.py"));
    }

    #[test]
    fn process_with_unknown_owner_is_separate_job() {
        let unknown = |pid| Process {
            owner: Reading::Absent(Absence::NotReadYet),
            ..make_process(pid, "train.py", &[], None)
        };
        assert_same_job(true, &unknown(7), &unknown(7));
        assert_same_job(false, &unknown(7), &unknown(8));
        assert_same_job(
            false,
            &make_process(7, "train.py", &[], None),
            &make_process(8, "train.py", &[], None),
        );
    }
}
