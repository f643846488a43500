//! The owners of a process, determined from its cgroup, its environment and its ancestors.

use std::io::{self, ErrorKind};

use super::{
    as_user::{self, User},
    cgroup::{self, is_sluid},
    jupyter,
    proc_fs::ProcFs,
};
use crate::{
    model::{Absence, Ancestor, BatchJob, Container, Owner, Pod, Reading},
    process_stat::{Birth, ProcessStat},
};

/// The maximum number of ancestors. More ancestors are not useful, and a changing `/proc` could
/// contain a loop.
const MAX_ANCESTORS: usize = 16;

/// The name of Slurm's daemon that starts the processes of a job step.
const STEP_DAEMON: &str = "slurmstepd";

const ROOT: User = User { uid: 0, gid: 0 };

pub(super) struct OwnerQuery<'a> {
    pub(super) pid: u32,
    pub(super) origin: ProcessStat,
    pub(super) user: Option<User>,
    pub(super) by_cgroup: &'a Reading<Owner>,
    pub(super) arguments: Option<&'a [String]>,
    /// The PID of the Jupyter kernel that an earlier lookup found for the process.
    pub(super) kernel: Option<u32>,
    /// Whether the command line and the notebook's path must be hidden from other users.
    pub(super) hidden: bool,
    /// Whether gpumon runs as root, so that files with untrusted paths must be read with the rights
    /// of the process's user.
    pub(super) is_root: bool,
}

/// Returns the owners found in a process's cgroup, which cannot block. The result is "not read yet"
/// if the cgroup names no owner.
pub(super) fn read_cgroup_owner(proc_fs: &ProcFs, pid: u32) -> Reading<Owner> {
    let mut owner = Owner::default();
    cgroup::fill_owner_from_cgroup(&proc_fs.read_cgroup(pid).unwrap_or_default(), &mut owner);
    clean_names(&mut owner);
    if owner == Owner::default() {
        return Reading::Absent(Absence::NotReadYet);
    }
    Reading::Now(Owner {
        partial: true,
        ..owner
    })
}

pub(super) fn read_owner(proc_fs: &ProcFs, query: &OwnerQuery<'_>) -> Owner {
    let OwnerQuery {
        pid, origin, user, ..
    } = *query;
    let mut owner = Owner {
        partial: false,
        ..query.by_cgroup.value().cloned().unwrap_or_default()
    };
    if owner.batch_job().is_none() {
        read_batch_variables(proc_fs, pid, &mut owner);
    }
    owner.rank = read_rank(proc_fs, pid);
    let mut sluid = owner.slurm.as_mut().filter(|job| is_sluid(&job.job_id));
    let notebook = |pid, birth, user, arguments: &[String]| {
        jupyter::read_notebook(pid, arguments, |path| {
            read_file_at_path_given_by_process(proc_fs, pid, birth, user, query.is_root, path)
        })
    };
    let is_fork =
        |arguments: Option<&[String]>| arguments.is_some() && arguments == query.arguments;
    owner.notebook = query
        .arguments
        .and_then(|arguments| notebook(pid, origin.birth, user, arguments));
    let mut parent = origin.parent;
    while parent > 1 && owner.parents.len() < MAX_ANCESTORS {
        let Some(above) = proc_fs.read_stat(parent) else {
            break;
        };
        // If the parent belongs to another user, its command line is not read. Reading it could
        // block, which would count as a hang of this process's user.
        let its_user = proc_fs.read_user(parent);
        let is_alike = its_user.map(|user| user.uid) == user.map(|user| user.uid);
        let arguments = if is_alike {
            proc_fs.read_arguments(parent)
        } else {
            None
        };
        let name = proc_fs
            .read_name(parent, arguments.as_deref())
            .unwrap_or_default();
        if name == STEP_DAEMON
            && let Some(job) = sluid.take_if(|_| proc_fs.runs_only_as_user(parent, ROOT))
        {
            match read_step_daemon_job(proc_fs, parent) {
                Some(id) => job.job_id = id,
                None => sluid = Some(job),
            }
        }
        owner.parents.push(Ancestor {
            pid: parent,
            name: super::clean_name(&name),
        });
        // A worker belongs to the notebook of the kernel that started it. A fork of a kernel has a
        // copy of the kernel's command line, so it looks like a kernel. If a notebook was found
        // through such a copy, it is replaced by the notebook of the kernel that was forked.
        if owner.notebook.is_none() || is_fork(arguments.as_deref()) {
            let of_parent =
                arguments.and_then(|arguments| notebook(parent, above.birth, its_user, &arguments));
            owner.notebook = of_parent.or(owner.notebook);
        }
        parent = above.parent;
    }
    // If the session leader is among the ancestors, no ancestor between the process and the leader
    // has ended.
    let is_below_leader = owner
        .parents
        .iter()
        .any(|parent| parent.pid == origin.session);
    if !is_below_leader
        && owner
            .notebook
            .as_ref()
            .is_none_or(|notebook| notebook.kernel_pid == pid)
        && let Some(kernel) = find_kernel_of_orphan(proc_fs, query)
    {
        let arguments = proc_fs.read_arguments(kernel);
        if owner.notebook.is_none() || is_fork(arguments.as_deref()) {
            let birth = proc_fs.read_stat(kernel).map(|origin| origin.birth);
            let of_kernel = birth
                .zip(arguments)
                .and_then(|(birth, arguments)| notebook(kernel, birth, user, &arguments));
            owner.notebook = of_kernel.or(owner.notebook);
        }
    }
    if let Some(job) = sluid
        && let [Some(job_id), its_sluid] =
            proc_fs.read_variables(pid, ["SLURM_JOB_ID", "SLURM_JOB_SLUID"])
        && its_sluid.is_none_or(|its| its == job.job_id)
    {
        (job.job_id, job.private) = (job_id, true);
    }
    if let Some(notebook) = owner.notebook.as_mut().filter(|_| query.hidden) {
        // The path and the kernel name come from the connection file, which only the kernel's user
        // can read.
        (notebook.path, notebook.kernel_name) = (Reading::Absent(Absence::Hidden), None);
    }
    clean_names(&mut owner);
    owner
}

/// Returns the rank of a process in its distributed job. torchrun can run in a Slurm job, so its
/// variable is used first.
fn read_rank(proc_fs: &ProcFs, pid: u32) -> Option<u32> {
    const VARIABLES: [&str; 4] = ["RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"];
    let ranks = proc_fs.read_variables(pid, VARIABLES).into_iter();
    ranks.flatten().find_map(|rank| rank.parse().ok())
}

/// Returns the PID of the Jupyter kernel that a process belongs to, if an ancestor between the
/// process and the kernel has ended. Three candidates are tried in this order: the session leader,
/// because Jupyter starts each kernel in its own session; the kernel found by an earlier lookup;
/// the only kernel that has the same Jupyter server and notebook in its environment.
fn find_kernel_of_orphan(proc_fs: &ProcFs, query: &OwnerQuery<'_>) -> Option<u32> {
    const VARIABLES: [&str; 2] = ["JPY_PARENT_PID", "JPY_SESSION_NAME"];
    let OwnerQuery {
        pid, origin, user, ..
    } = *query;
    let is_kernel = |kernel: &u32| {
        let is_older = || {
            proc_fs
                .read_stat(*kernel)
                .is_some_and(|its| its.birth.ticks <= origin.birth.ticks)
        };
        let is_alike =
            || proc_fs.read_user(*kernel).map(|its| its.uid) == user.map(|user| user.uid);
        let has_connection_file = || {
            proc_fs
                .read_arguments(*kernel)
                .is_some_and(|all| jupyter::is_kernel(&all))
        };
        // Both processes must have the same user, because the variables of another user's process
        // must not be read.
        is_older() && is_alike() && has_connection_file()
    };
    let known = [Some(origin.session), query.kernel]
        .into_iter()
        .flatten()
        .filter(|kernel| *kernel != pid && *kernel > 1);
    if let Some(kernel) = known.into_iter().find(is_kernel) {
        return Some(kernel);
    }
    let variables = proc_fs.read_variables(pid, VARIABLES);
    let server = variables[0].as_ref()?.parse().ok()?;
    let is_alike =
        |kernel: &u32| is_kernel(kernel) && proc_fs.read_variables(*kernel, VARIABLES) == variables;
    let mut kernels = proc_fs.read_children(server).into_iter().filter(is_alike);
    kernels.next().filter(|_| kernels.next().is_none())
}

/// Fills in the job found in the process's environment. Only one job is filled in, because a batch
/// system may also set the variables of another system, for scripts that expect them.
fn read_batch_variables(proc_fs: &ProcFs, pid: u32, owner: &mut Owner) {
    let names = [
        "SLURM_JOB_ID",
        "SLURM_STEP_ID",
        "PBS_JOBID",
        "LSB_JOBID",
        "LSB_JOBINDEX",
    ];
    let [slurm, step, pbs, lsf, index] = proc_fs.read_variables(pid, names);
    let job = |job_id| BatchJob {
        private: true,
        ..BatchJob::new(job_id)
    };
    if let Some(job_id) = slurm {
        owner.slurm = Some(BatchJob {
            step,
            ..job(job_id)
        });
    } else if let Some(job_id) = pbs {
        owner.pbs = Some(job(job_id));
    } else if let Some(job_id) = lsf {
        // LSF sets the index to 0 for jobs that are not part of an array.
        let index = index
            .filter(|index| index != "0")
            .map_or_else(String::new, |index| format!("[{index}]"));
        owner.lsf = Some(job(job_id + &index));
    }
}

/// Returns the job ID from the command line of a step daemon: `slurmstepd: [88123.batch]`.
fn read_step_daemon_job(proc_fs: &ProcFs, pid: u32) -> Option<String> {
    let arguments = proc_fs.read_arguments(pid)?;
    let (job_id, _) = arguments
        .first()?
        .strip_prefix(STEP_DAEMON)?
        .strip_prefix(": [")?
        .split_once('.')?;
    cgroup::is_number(job_id).then(|| job_id.to_owned())
}

/// Reads a file whose path comes from a process, with no more rights than the process has.
fn read_file_at_path_given_by_process(
    proc_fs: &ProcFs,
    pid: u32,
    birth: Birth,
    user: Option<User>,
    is_root: bool,
    path: &str,
) -> io::Result<Vec<u8>> {
    let root = proc_fs.open_root(pid, birth, user)?;
    if is_root && !user.is_some_and(|user| proc_fs.runs_only_as_user(pid, user)) {
        return Err(ErrorKind::PermissionDenied.into());
    }
    as_user::read_untrusted_file(&root, path, user.filter(|user| is_root && user.uid != 0))
}

/// Cleans all names, because names in cgroups and variables can be arbitrary.
fn clean_names(owner: &mut Owner) {
    let id = |text: &mut String| *text = super::clean_id(text);
    for BatchJob {
        job_id,
        step,
        private: _,
    } in owner.batch_jobs_mut().into_iter().flatten()
    {
        id(job_id);
        step.as_mut().map(id);
    }
    if let Some(Pod { uid, .. }) = &mut owner.pod {
        id(uid);
    }
    if let Some(Container { id: container, .. }) = &mut owner.container {
        id(container);
    }
    if let Some(unit) = &mut owner.unit {
        *unit = super::clean_name(unit);
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::PathBuf};

    use super::*;
    use crate::model::JobKind;

    /// A fake `/proc` whose processes are defined by PID, parent, command line, cgroup and
    /// environment.
    struct FakeProc(PathBuf);

    impl FakeProc {
        fn new(name: &str, processes: &[(u32, u32, &str, &str, &str)]) -> Self {
            let root =
                std::env::temp_dir().join(format!("gpumon-lookup-{}-{name}", std::process::id()));
            for (pid, parent, line, cgroup, environment) in processes {
                let folder = root.join(pid.to_string());
                fs::create_dir_all(&folder).unwrap();
                let fields: Vec<_> = (5..=52).map(|field| field.to_string()).collect();
                fs::write(
                    folder.join("stat"),
                    format!("{pid} (x) S {parent} {}", fields.join(" ")),
                )
                .unwrap();
                fs::write(folder.join("comm"), line.split(' ').next().unwrap()).unwrap();
                fs::write(folder.join("cmdline"), line.replace(' ', "\0")).unwrap();
                fs::write(folder.join("cgroup"), cgroup).unwrap();
                fs::write(folder.join("environ"), environment.replace(' ', "\0")).unwrap();
            }
            Self(root)
        }

        fn find_owner(&self, pid: u32, hidden: bool) -> Owner {
            let proc_fs = ProcFs::new(self.0.clone());
            let arguments = proc_fs.read_arguments(pid);
            let origin = proc_fs.read_stat(pid).unwrap();
            let arguments = arguments.as_deref();
            let (user, by_cgroup) = (proc_fs.read_user(pid), &read_cgroup_owner(&proc_fs, pid));
            let query = OwnerQuery {
                pid,
                origin,
                user,
                by_cgroup,
                arguments,
                kernel: None,
                hidden,
                is_root: false,
            };
            read_owner(&proc_fs, &query)
        }
    }

    impl Drop for FakeProc {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn child_process_belongs_to_notebook_of_parent() {
        let fake = FakeProc::new(
            "worker",
            &[
                (10, 1, "jupyter-lab", "", ""),
                (
                    20,
                    10,
                    "python3 -m ipykernel_launcher -f /run/kernel-ab12.json",
                    "",
                    "",
                ),
                (30, 20, "python3 worker.py", "", ""),
            ],
        );
        fs::create_dir_all(fake.0.join("20/root/run")).unwrap();
        let connection = r#"{"kernel_name":"python3","jupyter_session":"train.ipynb"}"#;
        fs::write(fake.0.join("20/root/run/kernel-ab12.json"), connection).unwrap();
        for pid in [20, 30] {
            let notebook = fake.find_owner(pid, false).notebook.unwrap();
            assert_eq!(
                (notebook.kernel_id.as_str(), notebook.kernel_pid),
                ("ab12", 20)
            );
            assert_eq!(notebook.path, Reading::Now("train.ipynb".to_owned()));
        }
        let parents: Vec<_> = fake
            .find_owner(30, false)
            .parents
            .iter()
            .map(|parent| parent.pid)
            .collect();
        assert_eq!(parents, [20, 10]);
        let hidden = fake.find_owner(30, true).notebook.unwrap();
        assert_eq!(
            hidden.path,
            Reading::Absent(Absence::Hidden),
            "another user's path stays hidden"
        );
        assert_eq!(hidden.kernel_name, None, "it is of the same file");
        assert_eq!(fake.find_owner(10, false).notebook, None);
    }

    #[test]
    fn orphan_belongs_to_kernel_of_session_or_environment() {
        let kernel = |id: &str| format!("python3 -m ipykernel_launcher -f /run/kernel-{id}.json");
        let (one, other) = (kernel("ab12"), kernel("cd34"));
        let [train, test] = ["train", "test"]
            .map(|name| format!("JPY_PARENT_PID=10 JPY_SESSION_NAME={name}.ipynb"));
        let fake = FakeProc::new(
            "orphan",
            &[
                (10, 1, "jupyter-lab", "", ""),
                (20, 10, &one, "", &train),
                (21, 10, &other, "", &test),
                (30, 1, "python3 worker.py", "", &train),
                (31, 1, "python3 worker.py", "", "JPY_PARENT_PID=10"),
                (32, 1, "python3 worker.py", "", ""),
                // These processes are forks of a Jupyter kernel. They have not executed another
                // program.
                (33, 1, &one, "", &train),
                (34, 20, &one, "", &train),
                (40, 10, "conda run -f /run/kernel-ef56.json", "", ""),
                (41, 40, "python3 -f /run/kernel-ef56.json", "", ""),
            ],
        );
        let kernel_of = |pid: u32| {
            fake.find_owner(pid, false)
                .notebook
                .map(|notebook| (notebook.kernel_id, notebook.kernel_pid))
        };
        assert_eq!(
            kernel_of(30),
            None,
            "the list of the server's children is missing"
        );
        fs::create_dir_all(fake.0.join("10/task/11")).unwrap();
        fs::write(fake.0.join("10/task/11/children"), "20 21 ").unwrap();
        let of_one = Some(("ab12".to_owned(), 20));
        assert_eq!(
            [30, 33, 34, 20].map(kernel_of),
            [(); 4].map(|()| of_one.clone())
        );
        assert_eq!(
            kernel_of(41),
            Some(("ef56".to_owned(), 41)),
            "its parent is no kernel"
        );
        assert_eq!(
            [31, 32].map(kernel_of),
            [None, None],
            "it can belong to either kernel or to none"
        );
        let stat = fs::read_to_string(fake.0.join("32/stat")).unwrap();
        fs::write(fake.0.join("32/stat"), stat.replacen(" 5 6 ", " 5 21 ", 1)).unwrap();
        assert_eq!(
            kernel_of(32),
            Some(("cd34".to_owned(), 21)),
            "the leader of its session"
        );
        let proc_fs = ProcFs::new(fake.0.clone());
        let (origin, user) = (proc_fs.read_stat(31).unwrap(), proc_fs.read_user(31));
        let (by_cgroup, kernel) = (&Reading::Absent(Absence::NotReadYet), Some(20));
        let query = OwnerQuery {
            pid: 31,
            origin,
            user,
            by_cgroup,
            arguments: None,
            kernel,
            hidden: false,
            is_root: false,
        };
        let remembered = read_owner(&proc_fs, &query)
            .notebook
            .map(|notebook| (notebook.kernel_id, notebook.kernel_pid));
        assert_eq!(remembered, of_one, "it was an ancestor before");
        // Process 21 becomes a second kernel of the same notebook, so the kernel of process 30 is
        // ambiguous.
        fs::write(fake.0.join("21/environ"), train.replace(' ', "\0")).unwrap();
        assert_eq!(kernel_of(30), None);
        assert_eq!(kernel_of(20), of_one);
    }

    #[test]
    fn slurm_job_with_sluid_cgroup_is_found() {
        const CGROUP: &str = "0::/system.slice/slurmstepd.scope/sEKNKTV3WPV500/step_0/user/task_0";
        let variables = "SLURM_JOB_ID=88124 SLURM_JOB_SLUID=sEKNKTV3WPV500";
        let fake = FakeProc::new(
            "sluid",
            &[
                (20, 1, "slurmstepd:", CGROUP, ""),
                (30, 20, "train.py", CGROUP, variables),
                (
                    40,
                    1,
                    "train.py",
                    CGROUP,
                    "SLURM_JOB_ID=9 SLURM_JOB_SLUID=s00000000000000",
                ),
            ],
        );
        fs::write(fake.0.join("20/comm"), "slurmstepd").unwrap();
        fs::write(fake.0.join("20/cmdline"), "slurmstepd: [88123.0]\0\0").unwrap();
        let job = |ids: &str| {
            fs::write(
                fake.0.join("20/status"),
                format!("Uid:\t{ids}\nGid:\t0\t0\t0\t0\n"),
            )
            .unwrap();
            let BatchJob {
                job_id, private, ..
            } = fake.find_owner(30, false).slurm.unwrap();
            (job_id, private)
        };
        assert_eq!(job("0\t0\t0\t0"), ("88123".to_owned(), false));
        let by_environment = ("88124".to_owned(), true);
        assert_eq!(
            job("1000\t0\t0\t0"),
            by_environment,
            "what a user has started tells what the user likes"
        );
        assert_eq!(
            fake.find_owner(40, false).slurm.unwrap().job_id,
            "sEKNKTV3WPV500",
            "the environment of another job"
        );
    }

    #[test]
    fn root_does_not_read_files_of_setuid_processes() {
        let fake = FakeProc::new("setuid", &[(20, 1, "su -c /run/kernel-ab12.json", "", "")]);
        fs::create_dir_all(fake.0.join("20/root/run")).unwrap();
        fs::write(
            fake.0.join("20/root/run/kernel-ab12.json"),
            r#"{"jupyter_session":"secret"}"#,
        )
        .unwrap();
        let proc_fs = ProcFs::new(fake.0.clone());
        let path = |ids: &str| {
            fs::write(
                fake.0.join("20/status"),
                format!("Uid:\t{ids}\nGid:\t0\t0\t0\t0\n"),
            )
            .unwrap();
            let (origin, user, arguments) = (
                proc_fs.read_stat(20).unwrap(),
                proc_fs.read_user(20),
                proc_fs.read_arguments(20),
            );
            let arguments = arguments.as_deref();
            let by_cgroup = &Reading::Absent(Absence::NotReadYet);
            let (kernel, hidden, is_root) = (None, false, true);
            let query = OwnerQuery {
                pid: 20,
                origin,
                user,
                by_cgroup,
                arguments,
                kernel,
                hidden,
                is_root,
            };
            read_owner(&proc_fs, &query).notebook.unwrap().path
        };
        assert_eq!(path("0\t0\t0\t0"), Reading::Now("secret".to_owned()));
        for ids in ["1000\t0\t0\t0", "0\t0\t1000\t0", ""] {
            assert_eq!(path(ids), Reading::Absent(Absence::NoPermission), "{ids}");
        }
    }

    #[test]
    fn slurm_job_is_read_from_environment() {
        let fake = FakeProc::new(
            "slurm",
            &[(
                20,
                1,
                "python3",
                "0::/",
                "HOME=/ SLURM_JOB_ID=88123 SLURM_STEP_ID=0",
            )],
        );
        let job = fake.find_owner(20, false).slurm.unwrap();
        assert_eq!(
            (job.job_id.as_str(), job.step.as_deref(), job.private),
            ("88123", Some("0"), true)
        );
    }

    #[test]
    fn pbs_and_lsf_jobs_are_read_from_environment() {
        for (variables, kind, id) in [
            ("PBS_JOBID=88123.server", JobKind::Pbs, "88123.server"),
            ("LSB_JOBID=88123 LSB_JOBINDEX=0", JobKind::Lsf, "88123"),
            ("LSB_JOBID=88123 LSB_JOBINDEX=7", JobKind::Lsf, "88123[7]"),
            (
                "PBS_JOBID=88123 SLURM_JOB_ID=88123",
                JobKind::Slurm,
                "88123",
            ),
        ] {
            let fake = FakeProc::new("batch", &[(20, 1, "python3", "0::/", variables)]);
            let owner = fake.find_owner(20, false);
            let (its_kind, job) = owner.batch_job().unwrap();
            assert_eq!(
                (its_kind, job.job_id.as_str(), job.private),
                (kind, id, true),
                "{variables}"
            );
        }
        let fake = FakeProc::new(
            "other",
            &[(20, 1, "python3", "0::/pbs/88123.server", "LSB_JOBID=7")],
        );
        let owner = fake.find_owner(20, false);
        assert_eq!(
            (owner.pbs.map(|job| job.private), owner.lsf),
            (Some(false), None),
            "the cgroup is the system's own"
        );
    }

    #[test]
    fn ids_and_names_are_short_and_printable() {
        let job = format!("SLURM_JOB_ID=\u{1b}[2J{}", "7".repeat(4000));
        let cgroup = format!("0::/a.slice/{}.service", "u".repeat(4000));
        let fake = FakeProc::new("long", &[(20, 1, "python3", &cgroup, &job)]);
        let owner = fake.find_owner(20, false);
        for text in [&owner.slurm.unwrap().job_id, &owner.unit.unwrap()] {
            assert!(
                text.len() <= 131 && text.ends_with('…') && !text.contains('\u{1b}'),
                "{text}"
            );
        }
    }

    #[test]
    fn loop_of_parent_processes_ends() {
        let fake = FakeProc::new("loop", &[(20, 30, "a", "", ""), (30, 20, "b", "", "")]);
        assert_eq!(fake.find_owner(20, false).parents.len(), MAX_ANCESTORS);
    }
}
