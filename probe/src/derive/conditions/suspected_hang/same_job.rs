//! Detection of processes that belong to the same job.
//!
//! Processes of one notebook kernel or of one batch job belong together. A pod, a container or a
//! shell can run unrelated programs: there, processes belong together if they have a common
//! launcher, such as `torchrun`, or run the same program.

use crate::model::{Ancestor, Job, JobKind, Owner, Process};

/// Shells, managers of services and sessions, and programs that run many commands. Their children
/// are unrelated.
const START_ANYTHING: [&str; 4] = [
    "ash bash busybox csh dash fish ksh nu pwsh sh tcsh zsh",
    "atd catatonit conmon containerd containerd-shim cron crond docker-init dockerd dumb-init init runsv runsvdir \
     s6-supervise s6-svscan supervisord systemd tini",
    "SCREEN code code-server login node sshd sshd-session su sudo",
    "make parallel raylet xargs",
];

/// Prefixes of further programs whose children are unrelated.
const START_ANYTHING_AS: [&str; 4] = ["gnome-", "jupyter", "konsole", "tmux"];

/// Interpreters. Two processes of an interpreter can run different programs.
const INTERPRETERS: [&str; 6] = ["python", "julia", "node", "perl", "ruby", "java"];

pub(super) fn is_same_job(one: &Process, other: &Process) -> bool {
    if one.pid == other.pid {
        return true;
    }
    let (Some(owner), Some(theirs)) = (one.owner.value(), other.owner.value()) else {
        return false;
    };
    let (job, their_job) = (job(owner), job(theirs));
    let kind = job.as_ref().map(|job| job.kind);
    if job != their_job {
        return false;
    }
    let is_whole = |kind: JobKind| kind == JobKind::Notebook || kind.batch_system().is_some();
    if kind.is_some_and(is_whole) || is_launched_by_the_same(one, owner, other, theirs) {
        return true;
    }
    let Some(program) = one
        .name
        .value()
        .filter(|program| other.name.value() == Some(program))
    else {
        return false;
    };
    // The ancestors are compared, because launchers wrap each process in its own shell.
    let shares_launcher =
        launchers(&owner.parents).any(|pid| launchers(&theirs.parents).any(|their| pid == their));
    let shares_parent = owner
        .parents
        .first()
        .is_some_and(|parent| Some(parent) == theirs.parents.first());
    shares_launcher
        || (!is_interpreter(program)
            && owner.unit == theirs.unit
            && (kind.is_some() || shares_parent))
}

/// Returns the job of a process, except for services: those of a login or a container engine
/// contain several jobs.
fn job(owner: &Owner) -> Option<Job> {
    owner
        .job()
        .filter(|job| job.kind != JobKind::Service)
        .map(|job| Job {
            path: None,
            name: None,
            ..job
        })
}

/// Returns `true` if one process started the other, or if a program that is not a shell started
/// both.
fn is_launched_by_the_same(one: &Process, owner: &Owner, other: &Process, theirs: &Owner) -> bool {
    let line = |process: &Process, owner: &Owner| {
        let near = owner
            .parents
            .iter()
            .take_while(|parent| !starts_anything(parent))
            .map(|parent| parent.pid);
        std::iter::once(process.pid).chain(near).collect::<Vec<_>>()
    };
    let their_line = line(other, theirs);
    line(one, owner).iter().any(|pid| their_line.contains(pid))
}

/// Returns `true` for the name of an interpreter, with or without a version.
fn is_interpreter(program: &str) -> bool {
    let is_version = |rest: &str| {
        rest.chars()
            .all(|letter| letter == '.' || letter.is_ascii_digit())
    };
    INTERPRETERS
        .iter()
        .any(|interpreter| program.strip_prefix(interpreter).is_some_and(is_version))
}

fn launchers(parents: &[Ancestor]) -> impl Iterator<Item = u32> {
    parents
        .iter()
        .filter(|parent| !starts_anything(parent))
        .map(|parent| parent.pid)
}

fn starts_anything(parent: &Ancestor) -> bool {
    START_ANYTHING
        .iter()
        .flat_map(|names| names.split(' '))
        .any(|name| parent.name == name)
        || START_ANYTHING_AS
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

    fn program(pid: u32, name: &str, parents: &[(u32, &str)], container: Option<&str>) -> Process {
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
            ..examples::process(pid, 1)
        }
    }

    #[track_caller]
    fn check(is_same: bool, one: &Process, other: &Process) {
        assert_eq!(
            (is_same_job(one, other), is_same_job(other, one)),
            (is_same, is_same),
            "{one:#?} {other:#?}"
        );
    }

    #[test]
    fn a_launcher_makes_one_job_of_programs_and_a_shell_or_a_manager_of_services_does_not() {
        let ranks = |launcher| {
            let parents = [(50, launcher), (10, "bash"), (9, "tmux: server")];
            (
                program(7, "train.py", &parents, None),
                program(8, "eval.py", &parents, None),
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
            check(is_same, &one, &other);
        }
        let main = program(50, "train.py", &[(10, "bash")], None);
        check(
            true,
            &main,
            &program(7, "python3", &[(50, "python3"), (10, "bash")], None),
        );
        let kernel = |pid| program(pid, "python3", &[(60, "jupyter-lab"), (10, "bash")], None);
        check(false, &kernel(7), &kernel(8));
    }

    #[test]
    fn the_same_program_is_one_job_from_one_shell_or_from_a_launcher_that_wraps_it_in_shells() {
        let started = |pid, name| program(pid, name, &[(10, "bash"), (9, "sshd")], None);
        check(true, &started(7, "train.py"), &started(8, "train.py"));
        check(false, &started(7, "train.py"), &started(8, "other.py"));
        check(false, &started(7, "python3.12"), &started(8, "python3.12"));
        check(
            true,
            &started(7, "python_train.py"),
            &started(8, "python_train.py"),
        );
        check(
            false,
            &started(7, "train.py"),
            &program(8, "train.py", &[(11, "bash"), (9, "sshd")], None),
        );
        let wrapped = |pid, name| {
            program(
                pid,
                name,
                &[(pid + 100, "bash"), (50, "mpirun"), (10, "bash")],
                None,
            )
        };
        check(true, &wrapped(7, "python3"), &wrapped(8, "python3"));
        check(false, &wrapped(7, "a.out"), &wrapped(8, "b.out"));
    }

    #[test]
    fn a_container_is_one_job_where_its_processes_run_the_same_or_are_launched_together() {
        let inside =
            |pid, name, id| program(pid, name, &[(5, "bash"), (4, "containerd-shim")], Some(id));
        check(
            false,
            &inside(7, "train.py", "a"),
            &inside(8, "serve.py", "a"),
        );
        check(
            true,
            &inside(7, "train.py", "a"),
            &program(8, "train.py", &[(6, "bash")], Some("a")),
        );
        check(
            false,
            &inside(7, "train.py", "a"),
            &inside(8, "train.py", "b"),
        );
        let launched = |pid, name| program(pid, name, &[(50, "torchrun"), (5, "bash")], Some("a"));
        check(true, &launched(7, "train.py"), &launched(8, "eval.py"));
    }

    #[test]
    fn of_processes_of_which_nothing_is_known_only_one_and_the_same_is_one_job() {
        let unknown = |pid| Process {
            owner: Reading::Absent(Absence::NotReadYet),
            ..program(pid, "train.py", &[], None)
        };
        check(true, &unknown(7), &unknown(7));
        check(false, &unknown(7), &unknown(8));
        check(
            false,
            &program(7, "train.py", &[], None),
            &program(8, "train.py", &[], None),
        );
    }
}
