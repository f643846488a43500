//! Reading of the files in `/proc/PID`.

use std::{
    fs::{self, DirEntry},
    io::{self, ErrorKind},
    os::{fd::OwnedFd, unix::fs::MetadataExt},
    path::{Path, PathBuf},
};

use rustix::fs::{Mode, OFlags, open};

use super::as_user::User;
use crate::{
    bounded,
    model::Absence,
    process_stat::{Birth, ProcessStat, is_first_pid_namespace, read_boot_time_ms},
};

/// The maximum length of `comm`, in bytes. The kernel truncates longer names.
const COMM_LENGTH: usize = 15;

/// The kernel's limit for PIDs (`PID_MAX_LIMIT`).
const MAX_PID: u32 = 1 << 22;

/// Access to `/proc`, or to a folder with the same structure.
pub(super) struct ProcFs {
    root: PathBuf,
    /// Whether all processes of the machine are visible. This is not the case in a container, or if
    /// `/proc` shows users only their own processes (`hidepid`).
    sees_all: bool,
    /// Whether this process is known to be outside the machine's initial PID namespace.
    pub(super) is_in_namespace: bool,
    booted_ms: Option<u64>,
}

/// The contents of `/proc/PID/status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Status {
    /// The effective user and group.
    pub(super) user: Option<User>,
    /// The resident memory (`VmRSS`), which zombies do not have.
    pub(super) resident_bytes: Option<u64>,
    /// Whether a tracer is attached to the process (`TracerPid`).
    pub(super) traced: Option<bool>,
    /// Whether the process is a zombie whose threads have all ended.
    pub(super) has_ended: bool,
}

impl ProcFs {
    pub(super) fn new(root: PathBuf) -> Self {
        let booted_ms = read_boot_time_ms(&root);
        let is_first = is_first_pid_namespace(&root);
        let sees_all = is_first == Some(true)
            && bounded::read_text(root.join("1/stat"), bounded::STAT_LIMIT).is_ok();
        Self {
            root,
            sees_all,
            is_in_namespace: is_first == Some(false),
            booted_ms,
        }
    }

    /// Returns the reason why a process that the driver lists is missing from `/proc`.
    pub(super) fn missing_reason(&self, pid: u32) -> Absence {
        if self.sees_all && pid < MAX_PID {
            Absence::Ended
        } else {
            Absence::NotInProc
        }
    }

    /// Returns the contents of the process's `stat` file, or `None` if there is no such process.
    pub(super) fn read_stat(&self, pid: u32) -> Option<ProcessStat> {
        ProcessStat::read_with_boot_time(&self.root, pid, self.booted_ms).ok()
    }

    pub(super) fn read_children(&self, pid: u32) -> Vec<u32> {
        read_children(&self.root, pid)
    }

    /// Returns the contents of the process's `cgroup` file, which has one line per hierarchy.
    pub(super) fn read_cgroup(&self, pid: u32) -> Option<String> {
        self.read_text(pid, "cgroup", bounded::CGROUP_LIMIT)
    }

    /// Returns the given variables of the process's environment, which only its user and root may
    /// read.
    pub(super) fn read_variables<const N: usize>(
        &self,
        pid: u32,
        names: [&str; N],
    ) -> [Option<String>; N] {
        let environment = self
            .read_text(pid, "environ", bounded::ENVIRONMENT_LIMIT)
            .unwrap_or_default();
        names.map(|name| {
            let mut values = environment
                .split('\0')
                .filter_map(|entry| entry.split_once('='));
            values
                .find(|(key, _)| *key == name)
                .map(|(_, value)| value.to_owned())
        })
    }

    /// Opens the root directory of a process. For a process in a container, this is the container's
    /// root directory.
    ///
    /// While the directory is being opened, the process can end, and its PID can be reused by a
    /// process with files that the original process may not read. The start time and the user are
    /// therefore compared after opening.
    pub(super) fn open_root(
        &self,
        pid: u32,
        birth: Birth,
        user: Option<User>,
    ) -> io::Result<OwnedFd> {
        let root = self.root.join(pid.to_string()).join("root");
        let root = open(
            root,
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        let is_the_same = self.read_stat(pid).is_some_and(|now| now.birth == birth)
            && self.read_user(pid) == user;
        if is_the_same {
            Ok(root)
        } else {
            Err(ErrorKind::NotFound.into())
        }
    }

    /// Returns `true` if the real, effective and saved IDs of a process are all those of `user`,
    /// and `false` if they differ or are unknown. They differ in a setuid or setgid program. Such a
    /// program has the rights of the program file's owner, but its arguments come from the user who
    /// started it.
    pub(super) fn runs_only_as_user(&self, pid: u32, user: User) -> bool {
        let status = self
            .read_text(pid, "status", bounded::STAT_LIMIT)
            .unwrap_or_default();
        [("Uid:", user.uid), ("Gid:", user.gid)]
            .iter()
            .all(|(key, own)| {
                let mut ids = status_values(&status, key).peekable();
                ids.peek().is_some() && ids.all(|id| id.parse() == Ok(*own))
            })
    }

    /// Returns the command line, or `None` if it cannot be read.
    pub(super) fn read_arguments(&self, pid: u32) -> Option<Vec<String>> {
        let text = self.read_text(pid, "cmdline", bounded::COMMAND_LINE_LIMIT)?;
        Some(
            text.trim_end_matches('\0')
                .split('\0')
                .map(str::to_owned)
                .collect(),
        )
    }

    pub(super) fn read_status(&self, pid: u32) -> Status {
        let status = self
            .read_text(pid, "status", bounded::STAT_LIMIT)
            .unwrap_or_default();
        let field = |key, number| status_values(&status, key).nth(number)?.parse::<u64>().ok();
        let effective = |key| field(key, 1)?.try_into().ok();
        let user = match (effective("Uid:"), effective("Gid:")) {
            (Some(uid), Some(gid)) => Some(User { uid, gid }),
            // If the IDs cannot be read, the owner of `/proc/PID` is used instead. For a process
            // that is not dumpable, this owner is root.
            _ => fs::metadata(self.root.join(pid.to_string()))
                .ok()
                .map(|folder| User {
                    uid: folder.uid(),
                    gid: folder.gid(),
                }),
        };
        Status {
            user,
            resident_bytes: field("VmRSS:", 0).map(|kib| kib.saturating_mul(1024)),
            traced: field("TracerPid:", 0).map(|tracer| tracer != 0),
            has_ended: status.contains("\nState:\tZ")
                && field("Threads:", 0).is_none_or(|threads| threads <= 1),
        }
    }

    pub(super) fn read_user(&self, pid: u32) -> Option<User> {
        self.read_status(pid).user
    }

    /// Returns `comm`, or the file name in the first argument if `comm` is a truncated form of this
    /// file name.
    pub(super) fn read_name(&self, pid: u32, arguments: Option<&[String]>) -> Option<String> {
        let comm = self.read_text(pid, "comm", bounded::VALUE_LIMIT)?;
        let comm = comm.trim_end_matches('\n');
        let program = arguments.and_then(|arguments| file_name(arguments.first()?));
        match program {
            Some(program) if comm.len() >= COMM_LENGTH && program.starts_with(comm) => {
                Some(program.to_owned())
            }
            _ => Some(comm.to_owned()),
        }
    }

    fn read_text(&self, pid: u32, name: &str, limit: usize) -> Option<String> {
        bounded::read_text(self.root.join(pid.to_string()).join(name), limit).ok()
    }
}

/// Returns the values after `key` in the text of `/proc/PID/status`.
fn status_values<'a>(status: &'a str, key: &str) -> impl Iterator<Item = &'a str> {
    let values = status.lines().find_map(|line| line.strip_prefix(key));
    values.unwrap_or_default().split_ascii_whitespace()
}

/// Returns the PIDs of the children of all threads of a process, or none if the kernel does not
/// provide the list (`CONFIG_PROC_CHILDREN`). `root` is `/proc` except in tests.
pub fn read_children(root: &Path, pid: u32) -> Vec<u32> {
    let Ok(threads) = fs::read_dir(root.join(pid.to_string()).join("task")) else {
        return Vec::new();
    };
    let list = |thread: DirEntry| {
        bounded::read_text(thread.path().join("children"), bounded::TABLE_LIMIT).unwrap_or_default()
    };
    let pids = |list: String| {
        list.split_ascii_whitespace()
            .filter_map(|pid| pid.parse().ok())
            .collect::<Vec<_>>()
    };
    threads.flatten().map(list).flat_map(pids).collect()
}

/// Returns the command line to display. In a process of the workload runner, only the first
/// argument is displayed, which is the command that the user typed.
pub(super) fn command_line(arguments: &[String]) -> String {
    match arguments {
        [typed, own @ ..]
            if typed.starts_with("gpumon ") && own.iter().any(|word| word == "work") =>
        {
            typed.clone()
        }
        _ => arguments.join(" "),
    }
}

/// Returns the script that an interpreter runs: the file name, or the module after `-m`. Returns
/// `None` if the program is not an interpreter, or runs neither a file nor a module.
pub(super) fn script_name(program: &str, arguments: &[String]) -> Option<String> {
    let interpreters = ["python", "julia", "node", "perl", "ruby", "Rscript"];
    if !interpreters
        .iter()
        .any(|interpreter| program.starts_with(interpreter))
    {
        return None;
    }
    let mut rest = arguments.iter().skip(1);
    loop {
        match rest.next()?.as_str() {
            "-m" => return rest.next().cloned(),
            // These are Python's only options with a separate value.
            "-W" | "-X" => drop(rest.next()),
            option if is_option_without_value(program, option) => {}
            // The next argument may be the option's value, such as program code or a secret.
            option if option.starts_with('-') => return None,
            script => return file_name(script).map(str::to_owned),
        }
    }
}

/// Returns `true` for an option without a separate value: a long option with `=`, or single-letter
/// switches of Python.
fn is_option_without_value(program: &str, option: &str) -> bool {
    const SWITCHES: &str = "bBdEhiIOPqRsSuvVx";
    match option.strip_prefix("--") {
        Some(long) => long.contains('='),
        None if program.starts_with("python") => option.strip_prefix('-').is_some_and(|letters| {
            !letters.is_empty() && letters.chars().all(|letter| SWITCHES.contains(letter))
        }),
        None => false,
    }
}

fn file_name(path: &str) -> Option<&str> {
    path.rsplit('/').next().filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process_stat::FIRST_PID_NAMESPACE;

    /// Returns a fake `/proc` that contains one process.
    fn make_proc(name: &str, stat: &str, comm: &str, cmdline: &str) -> (PathBuf, ProcFs) {
        let root = std::env::temp_dir().join(format!("gpumon-proc-{}-{name}", std::process::id()));
        fs::create_dir_all(root.join("42")).unwrap();
        fs::write(root.join("stat"), "cpu 1 2 3\nbtime 1000\nprocesses 7\n").unwrap();
        fs::write(root.join("42/stat"), stat).unwrap();
        fs::write(root.join("42/comm"), comm).unwrap();
        fs::write(root.join("42/cmdline"), cmdline).unwrap();
        let proc_fs = ProcFs::new(root.clone());
        (root, proc_fs)
    }

    #[test]
    fn parentheses_in_name_do_not_shift_fields() {
        let fields: Vec<String> = (3..=52)
            .map(|field| {
                if field == 22 {
                    "500".into()
                } else {
                    field.to_string()
                }
            })
            .collect();
        let (root, proc_fs) = make_proc(
            "parens",
            &format!("42 (a) b) {}", fields.join(" ")),
            "a) b\n",
            "",
        );
        let ProcessStat {
            parent,
            session,
            birth,
            ..
        } = proc_fs.read_stat(42).unwrap();
        assert_eq!((parent, session, birth.ticks), (4, 6, 500));
        assert_eq!(
            birth.started_ms,
            Some(1_000_000 + 500 * 1000 / rustix::param::clock_ticks_per_second())
        );
        assert_eq!(proc_fs.read_stat(43), None);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn typed_command_line_is_shown_without_internal_arguments() {
        for (arguments, command) in [
            (
                &[
                    "gpumon bench copy",
                    "--no-daemon",
                    "work",
                    "--parent",
                    "7",
                    "{}",
                ][..],
                "gpumon bench copy",
            ),
            (&["gpumon", "work", "-"], "gpumon work -"),
            (&["gpumon top"], "gpumon top"),
            (&["python3", "work"], "python3 work"),
        ] {
            assert_eq!(
                command_line(
                    &arguments
                        .iter()
                        .map(|word| (*word).to_owned())
                        .collect::<Vec<_>>()
                ),
                command
            );
        }
    }

    #[test]
    fn huge_start_time_does_not_overflow() {
        let largest = vec![u64::MAX.to_string(); 48].join(" ");
        let (root, _) = make_proc("late", &format!("42 (a) S 1 {largest}"), "a\n", "");
        fs::write(root.join("stat"), format!("btime {}\n", u64::MAX)).unwrap();
        let birth = ProcFs::new(root.clone()).read_stat(42).unwrap().birth;
        assert_eq!((birth.ticks, birth.started_ms), (u64::MAX, Some(u64::MAX)));
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn root_of_reused_pid_is_not_opened() {
        let stat = |ticks: u64| format!("42 (a) S 1 {}{ticks} 0", "0 ".repeat(17));
        let (root, proc_fs) = make_proc("again", &stat(500), "a\n", "");
        fs::create_dir_all(root.join("42/root")).unwrap();
        let user = proc_fs.read_user(42);
        let birth = proc_fs.read_stat(42).unwrap().birth;
        assert!(proc_fs.open_root(42, birth, user).is_ok());
        let another = user.map(|user| User {
            uid: user.uid + 1,
            ..user
        });
        assert!(proc_fs.open_root(42, birth, another).is_err());
        fs::write(root.join("42/stat"), stat(501)).unwrap();
        assert!(
            proc_fs.open_root(42, birth, user).is_err(),
            "the PID was used again"
        );
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn setuid_program_has_several_users() {
        let (root, proc_fs) = make_proc("setuid", "", "su\n", "");
        assert!(
            !proc_fs.runs_only_as_user(42, User { uid: 7, gid: 8 }),
            "nothing is known"
        );
        for (uids, gids, is_only) in [
            ("7\t7\t7\t7", "8\t8\t8\t8", true),
            ("7\t0\t0\t0", "8\t8\t8\t8", false),
            ("0\t0\t7\t0", "8\t8\t8\t8", false),
            ("7\t7\t7\t7", "8\t9\t9\t9", false),
            ("0\t0\t0\t0", "0\t0\t0\t0", false),
        ] {
            fs::write(
                root.join("42/status"),
                format!("Name:\tsu\nUid:\t{uids}\nGid:\t{gids}\n"),
            )
            .unwrap();
            assert_eq!(
                proc_fs.runs_only_as_user(42, User { uid: 7, gid: 8 }),
                is_only,
                "{uids} {gids}"
            );
        }
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn memory_and_tracer_are_read_from_status() {
        let (root, proc_fs) = make_proc("memory", "", "a\n", "");
        for (memory, bytes, traced, has_ended) in [
            (
                "State:\tS (sleeping)\nTracerPid:\t0\nVmHWM:\t 9 kB\nVmRSS:\t   5648 \
                 kB\nThreads:\t1\n",
                Some(5648 * 1024),
                Some(false),
                false,
            ),
            (
                "State:\tZ (zombie)\nTracerPid:\t4711\nThreads:\t1\n",
                None,
                Some(true),
                true,
            ),
            (
                "State:\tZ (zombie)\nTracerPid:\t0\nThreads:\t2\n",
                None,
                Some(false),
                false,
            ),
            ("VmRSS:\tmuch kB\n", None, None, false),
        ] {
            fs::write(
                root.join("42/status"),
                format!("Uid:\t1\t7\t1\t1\nGid:\t1\t8\t1\t1\n{memory}"),
            )
            .unwrap();
            let user = Some(User { uid: 7, gid: 8 });
            assert_eq!(
                proc_fs.read_status(42),
                Status {
                    user,
                    resident_bytes: bytes,
                    traced,
                    has_ended
                },
                "{memory}"
            );
        }
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn process_missing_in_proc_ended_unless_processes_hidden() {
        let (root, proc_fs) = make_proc("sees-all", "", "a\n", "");
        assert_eq!(
            proc_fs.missing_reason(43),
            Absence::NotInProc,
            "nothing is known"
        );
        assert!(!proc_fs.is_in_namespace, "nothing is known");
        fs::create_dir_all(root.join("self/ns")).unwrap();
        let namespace = |link: &str| {
            let _ = fs::remove_file(root.join("self/ns/pid"));
            std::os::unix::fs::symlink(link, root.join("self/ns/pid")).unwrap();
            ProcFs::new(root.clone())
        };
        assert_eq!(
            namespace(FIRST_PID_NAMESPACE).missing_reason(43),
            Absence::NotInProc,
            "others are hidden"
        );
        fs::create_dir_all(root.join("1")).unwrap();
        fs::write(root.join("1/stat"), "1 (systemd) S 0").unwrap();
        assert_eq!(
            namespace("pid:[4026533001]").missing_reason(43),
            Absence::NotInProc,
            "a container"
        );
        assert!(namespace("pid:[4026533001]").is_in_namespace);
        let proc_fs = namespace(FIRST_PID_NAMESPACE);
        assert!(!proc_fs.is_in_namespace);
        assert_eq!(
            [43, MAX_PID].map(|pid| proc_fs.missing_reason(pid)),
            [Absence::Ended, Absence::NotInProc]
        );
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn truncated_name_is_completed_from_command_line() {
        let (root, proc_fs) = make_proc(
            "cut",
            "",
            "tritonserver-wo\n",
            "/opt/bin/tritonserver-worker\0--port\x001\0",
        );
        let arguments = proc_fs.read_arguments(42).unwrap();
        assert_eq!(arguments, ["/opt/bin/tritonserver-worker", "--port", "1"]);
        assert_eq!(
            proc_fs.read_name(42, Some(&arguments)).unwrap(),
            "tritonserver-worker"
        );
        assert_eq!(proc_fs.read_name(42, None).unwrap(), "tritonserver-wo");
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn interpreter_is_named_by_script() {
        for (line, name) in [
            ("python3 /home/ana/train.py --bf16", Some("train.py")),
            ("python -u -W ignore train.py", Some("train.py")),
            (
                "python3 -m torch.distributed.run train.py",
                Some("torch.distributed.run"),
            ),
            ("julia --project=. fit.jl", Some("fit.jl")),
            ("python3 -c print(1)", None),
            ("python3 -Ic secret", None),
            ("python3 -Iu train.py", Some("train.py")),
            ("node --eval secret", None),
            ("node --token secret app.js", None),
            ("perl -ne secret", None),
            ("perl -E secret", None),
            ("python3", None),
            ("tritonserver model.py", None),
        ] {
            let arguments: Vec<_> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(
                script_name(&arguments[0], &arguments).as_deref(),
                name,
                "{line}"
            );
        }
    }
}
