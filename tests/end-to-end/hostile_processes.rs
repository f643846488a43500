//! Processes of ordinary users that try to disturb the collector which reads their data.

use std::{
    fs::{self, Permissions},
    io::{BufRead, BufReader},
    os::unix::{
        fs::{PermissionsExt, symlink},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use rustix::{
    fs::{CWD, FileType, Mode, makedev, mkfifoat, mknodat},
    process::geteuid,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::FakeNvml;

const INTERVAL_MS: u64 = 250;

/// The user ID of `nobody`.
const NOBODY_UID: u32 = 65_534;

struct GpuProcess(Child);

impl GpuProcess {
    /// Starts a process as this user. The arguments are appended to its command line.
    fn new(arguments: &[&str], uid: u32) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", "read x", "kernel"]).args(arguments);
        Self::spawn(&mut command, uid)
    }

    fn spawn(command: &mut Command, uid: u32) -> Self {
        if geteuid().is_root() {
            command.uid(uid).gid(uid);
        }
        Self(
            command
                .current_dir("/")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap(),
        )
    }

    /// Starts a helper and waits until it is ready. Returns `None`, and prints the reason, if this
    /// machine cannot run it.
    fn start_python(code: &str, arguments: &[&str]) -> Option<Self> {
        let mut command = Command::new("python3");
        command
            .args(["-c", code])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut holder = Self(command.spawn().ok()?);
        let mut line = String::new();
        BufReader::new(holder.0.stdout.take()?)
            .read_line(&mut line)
            .ok()?;
        if line.trim() == "ready" {
            return Some(holder);
        }
        eprintln!("skipped: this machine does not support the test");
        None
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for GpuProcess {
    fn drop(&mut self) {
        // A helper that has mounted a file system unmounts it when the helper's standard input is
        // closed. Then the helper exits.
        drop(self.0.stdin.take());
        for _ in 0..100 {
            if matches!(self.0.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The records and the memory of a collector.
struct CollectorRun {
    samples: Vec<Value>,
    longest_line: usize,
    peak_bytes: u64,
}

impl CollectorRun {
    /// Runs the collector up to five times, and returns the first run in which nothing was late. A
    /// busy machine may delay some of the runs.
    #[track_caller]
    fn run_until_on_time(pids: &[u32], uid: u32, samples: usize) -> Option<Self> {
        let mut reason = String::new();
        for _ in 0..5 {
            let seen = Self::run_collector(pids, uid, samples)?;
            match seen.find_delay() {
                None => return Some(seen),
                Some(delay) => reason = delay,
            }
        }
        panic!("{reason} in each of five attempts");
    }

    /// Runs a collector as this user, with two fake GPUs that all of these processes use.
    fn run_collector(pids: &[u32], uid: u32, samples: usize) -> Option<Self> {
        let process = |pid: &u32| {
            [0, 1]
                .map(|gpu| format!("[[process]]\ngpu = {gpu}\npid = {pid}\nmemory = \"64 MiB\"\n"))
                .concat()
        };
        let fake = FakeNvml::new(&format!(
            "gpus = 3\n{}",
            pids.iter().map(process).collect::<String>()
        ));
        fs::set_permissions(fake.path(""), Permissions::from_mode(0o755)).unwrap();
        let mut command =
            fake.gpumon_command(&["collect", "--interval-ms", &INTERVAL_MS.to_string()]);
        command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .stdin(Stdio::null());
        if geteuid().is_root() {
            command.uid(uid).gid(uid);
        }
        let Ok(mut child) = command.spawn() else {
            eprintln!("skipped: user {uid} may not run the program");
            return None;
        };
        let mut seen = Self {
            samples: Vec::new(),
            longest_line: 0,
            peak_bytes: 0,
        };
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            let line = line.unwrap();
            seen.longest_line = seen.longest_line.max(line.len());
            let record: Value = serde_json::from_str(&line).unwrap();
            if record["type"] == "sample" {
                seen.samples.push(record);
            }
            if seen.samples.len() == samples {
                break;
            }
        }
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let field = |name: &str| {
            let value = status
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .unwrap();
            value.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
        };
        // Memory that contains the program's file is not counted, because a debug build has tens of
        // MiB of it.
        seen.peak_bytes = field("VmHWM:") - field("RssFile:");
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(seen.samples.len(), samples);
        Some(seen)
    }

    /// Returns the first delay: a GPU that hangs, an old reading, or a late sample.
    fn find_delay(&self) -> Option<String> {
        let at_ms = |value: &Value| value["at_ms"].as_u64().unwrap();
        for sample in &self.samples {
            for gpu in sample["gpus"].as_array().unwrap() {
                if gpu["health"]["state"] != "ok" {
                    return Some(format!("a GPU is {}", gpu["health"]));
                }
                let age_ms = at_ms(sample).saturating_sub(at_ms(gpu));
                if age_ms >= 4 * INTERVAL_MS {
                    return Some(format!("a reading is {age_ms} ms old"));
                }
            }
        }
        let apart = self
            .samples
            .windows(2)
            .map(|pair| at_ms(&pair[1]) - at_ms(&pair[0]));
        apart
            .max()
            .filter(|apart_ms| *apart_ms >= 4 * INTERVAL_MS)
            .map(|ms| format!("samples are {ms} ms apart"))
    }

    /// Returns a process in the last sample, which must be the same on both GPUs.
    #[track_caller]
    fn find_process(&self, pid: u32) -> &Value {
        let [one, other] = [0, 1].map(|gpu| {
            let processes = self.samples.last().unwrap()["gpus"][gpu]["processes"]
                .as_array()
                .unwrap();
            processes
                .iter()
                .find(|process| process["pid"] == pid)
                .expect("the process must be listed")
        });
        assert_eq!(
            (&one["name"], &one["owner"]),
            (&other["name"], &other["owner"])
        );
        one
    }
}

/// Returns pairs of user IDs: of the collector, and of the processes that it reads.
fn collector_and_process_uids() -> Vec<(u32, u32)> {
    if geteuid().is_root() {
        return vec![(0, NOBODY_UID), (NOBODY_UID, NOBODY_UID), (0, 0)];
    }
    eprintln!("only tested as the current user, because other users need root");
    vec![(geteuid().as_raw(), geteuid().as_raw())]
}

/// Returns a folder that every user can read.
fn create_world_readable_folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    folder
}

/// Creates one Jupyter connection file of each invalid kind, and a valid one at the end.
fn create_connection_files(folder: &Path) -> Vec<PathBuf> {
    let all = Mode::from_raw_mode(0o666);
    let path = |name: &str| folder.join(format!("kernel-{name}.json"));
    mkfifoat(CWD, path("fifo"), all).unwrap();
    symlink("/dev/zero", path("link-to-device")).unwrap();
    fs::create_dir(path("folder")).unwrap();
    fs::write(
        path("real"),
        r#"{"kernel_name":"python3","jupyter_session":"train.ipynb"}"#,
    )
    .unwrap();
    symlink("kernel-real.json", path("link")).unwrap();
    let mut names = vec!["fifo", "link-to-device", "folder", "link"];
    if mknodat(
        CWD,
        path("device"),
        FileType::CharacterDevice,
        all,
        makedev(1, 5),
    )
    .is_ok()
    {
        names.push("device");
    }
    names.push("real");
    names.into_iter().map(path).collect()
}

/// Returns the absent value for a file that cannot be read. It does not contain the path.
fn make_refused_owner() -> Value {
    json!({"absent": "no_permission"})
}

#[test]
fn invalid_connection_file_does_not_delay_samples() {
    let folder = create_world_readable_folder();
    let files = create_connection_files(folder.path());
    for (collector, user) in collector_and_process_uids() {
        let holders: Vec<_> = files
            .iter()
            .map(|file| GpuProcess::new(&["-f", file.to_str().unwrap()], user))
            .collect();
        let pids: Vec<u32> = holders.iter().map(GpuProcess::pid).collect();
        let Some(seen) = CollectorRun::run_until_on_time(&pids, collector, 10) else {
            continue;
        };
        assert!(seen.peak_bytes < 16 << 20, "{} MiB", seen.peak_bytes >> 20);
        for (file, pid) in files.iter().zip(pids) {
            let process = seen.find_process(pid);
            let notebook = &process["owner"]["notebook"];
            assert!(
                file.to_str()
                    .unwrap()
                    .contains(notebook["kernel_id"].as_str().unwrap()),
                "{process}"
            );
            let path = if file.ends_with("kernel-real.json") {
                json!("train.ipynb")
            } else {
                make_refused_owner()
            };
            assert_eq!(notebook["path"], path, "{process}");
        }
    }
}

#[test]
fn root_reads_only_files_readable_by_process_owner() {
    if !geteuid().is_root() {
        eprintln!("skipped: the test needs root");
        return;
    }
    let folder = create_world_readable_folder();
    let file = folder.path().join("kernel-secret.json");
    fs::write(&file, r#"{"jupyter_session":"root's"}"#).unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    let (own, stranger) = (
        GpuProcess::new(&[file.to_str().unwrap()], 0),
        GpuProcess::new(&[file.to_str().unwrap()], NOBODY_UID),
    );
    let seen = CollectorRun::run_collector(&[own.pid(), stranger.pid()], 0, 6).unwrap();
    assert_eq!(
        seen.find_process(own.pid())["owner"]["notebook"]["path"],
        "root's"
    );
    assert_eq!(
        seen.find_process(stranger.pid())["owner"]["notebook"]["path"],
        make_refused_owner()
    );
}

/// A script that mounts a file system that never answers, and unmounts it when its input is closed.
const DEAD_MOUNT: &str = r"
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
fd = os.open('/dev/fuse', os.O_RDWR)
options = b'fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other' % fd
if libc.mount(b'fuse', sys.argv[1].encode(), b'fuse', 0, options) != 0:
    sys.exit('mount: ' + os.strerror(ctypes.get_errno()))
print('ready', flush=True)
sys.stdin.read()
libc.umount2(sys.argv[1].encode(), 2)
";

#[test]
fn connection_file_on_dead_mount_hides_only_owner() {
    for (collector, user) in collector_and_process_uids() {
        let folder = create_world_readable_folder();
        let Some(_mount) = GpuProcess::start_python(DEAD_MOUNT, &[folder.path().to_str().unwrap()])
        else {
            return;
        };
        let file = folder.path().join("kernel-dead.json");
        let (stuck, beside) = (
            GpuProcess::new(&[file.to_str().unwrap()], user),
            GpuProcess::new(&["x"], user),
        );
        let other = GpuProcess::new(&["y"], 1);
        let Some(seen) = CollectorRun::run_until_on_time(
            &[stuck.pid(), beside.pid(), other.pid()],
            collector,
            12,
        ) else {
            continue;
        };
        let process = seen.find_process(stuck.pid());
        // The owner is still known, because it follows from the process's cgroup.
        let owner = &process["owner"];
        assert!(
            owner["absent"] == "not_read_yet" || owner["partial"] == true,
            "{process}"
        );
        assert!(
            process["name"] == "sh"
                && process["user"].is_string()
                && process["started_ms"].is_u64(),
            "{process}"
        );
        assert!(
            seen.find_process(other.pid())["owner"]["parents"].is_array(),
            "the process of another user is listed"
        );
    }
}

/// A script that replaces its own command line with a memory mapping of a given size, as any user
/// can do.
const MAPPED_ARGUMENTS: &str = r"
import ctypes, mmap, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
size = int(sys.argv[1])
area = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)
start = ctypes.addressof(ctypes.c_char.from_buffer(area))
area[0:65536] = b'x' * 65536
fields = open('/proc/self/stat').read().rsplit(')', 1)[1].split()
of = lambda number: int(fields[number - 3])
libc.sbrk.restype = ctypes.c_void_p
places = [of(26), of(27), of(45), of(46), of(47), libc.sbrk(0), of(28), start, start + size, start, start + size]
layout = struct.pack('11QQIi', *places, 0, 0, -1)
if libc.prctl(35, 14, ctypes.c_char_p(layout), len(layout), 0) != 0:
    sys.exit('prctl: ' + os.strerror(ctypes.get_errno()))
print('ready', flush=True)
sys.stdin.read()
";

#[test]
fn huge_command_line_is_truncated() {
    let Some(holder) = GpuProcess::start_python(MAPPED_ARGUMENTS, &["2000000000"]) else {
        return;
    };
    let own = geteuid().as_raw();
    let seen = CollectorRun::run_until_on_time(&[holder.pid()], own, 10).unwrap();
    assert!(seen.peak_bytes < 16 << 20, "{} MiB", seen.peak_bytes >> 20);
    let command = seen.find_process(holder.pid())["command"].as_str().unwrap();
    assert!(command.len() < 1100 && command.ends_with('…'), "{command}");
}

#[test]
fn frames_stay_small_despite_long_names_and_commands() {
    let long = "\u{1b}[31mx\u{202e}\"\\".repeat(131_000 / 12);
    let own = geteuid().as_raw();
    let mut command = Command::new("sh");
    command
        .arg0("n".repeat(131_000))
        .args(["-c", "read x", "\u{1b}]0;title\u{7}"]);
    let mut holders = vec![GpuProcess::spawn(&mut command, own)];
    holders.extend((0..300).map(|_| GpuProcess::new(&[long.as_str(); 8], own)));
    let pids: Vec<u32> = holders.iter().map(GpuProcess::pid).collect();
    let seen = CollectorRun::run_until_on_time(&pids, own, 10).unwrap();
    assert!(seen.peak_bytes < 16 << 20, "{} MiB", seen.peak_bytes >> 20);
    assert!(
        seen.longest_line < (1 << 20) + 100_000,
        "{} bytes",
        seen.longest_line
    );
    let gpu = &seen.samples.last().unwrap()["gpus"][0];
    let listed = gpu["processes"].as_array().unwrap();
    let omitted = gpu["processes_omitted"].as_u64().unwrap_or(0) as usize;
    assert_eq!(listed.len() + omitted, pids.len());
    assert!(
        listed.len() > 50 && omitted > 0,
        "{} and {omitted}",
        listed.len()
    );
    for process in listed {
        let texts = ["name", "command"].map(|text| process[text].as_str().unwrap_or_default());
        assert!(texts[0].len() <= 131 && texts[1].len() <= 1027, "{process}");
        let is_odd = |character: char| character.is_control() || character == '\u{202e}';
        assert!(!texts.concat().contains(is_odd), "{process}");
    }
}
