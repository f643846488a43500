//! `gpumon oom` with a driver whose memory is shared by several processes: every statement is true,
//! all memory is freed, and other programs are not disturbed.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::PathBuf,
    process::Command,
    thread,
    time::Duration,
};

use fake_gpu_state::{Account, list_holders};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{
    FakeCuda, FakeMachine, Terminal, assert_refused, gpumon_command, parse_json_lines,
    run_json_lines, send_signal, start_command, stderr_text, stdout_text, wait_for_condition,
};

const MIB: u64 = 1 << 20;
/// The memory of the fake device by default. `RESERVED_BYTES` is the part of it that must stay
/// free.
const TOTAL_BYTES: u64 = 2048 * MIB;
const RESERVED_BYTES: u64 = 512 * MIB;
/// The memory that is in use when a demonstration has filled the device as far as it is allowed to.
/// It is a multiple of the page size, and some memory is left for the driver.
const FULL_BYTES: u64 = 1520 * MIB;
const UUID: &str = "GPU-00000000-0000-0000-0000-000000000000";

const ALL_DEMONSTRATIONS: [&str; 8] = [
    "huge",
    "fill",
    "leak",
    "fragment",
    "cache",
    "async",
    "contend",
    "not-memory",
];

/// A driver, and the folder with the shared state of its device.
struct SharedDevice {
    cuda: FakeCuda,
    folder: TempDir,
}

impl SharedDevice {
    fn new(scenario: &str) -> Self {
        Self {
            cuda: FakeCuda::new(scenario),
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn state_path(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    fn set_state_folder(&self, mut command: Command) -> Command {
        command.env(fake_gpu_state::STATE_VARIABLE, self.state_path());
        command
    }

    /// Returns `gpumon oom` on the device with JSON output.
    fn oom_command(&self, arguments: &[&str]) -> Command {
        let all = [&["oom", "--backend", "cuda", "--json"], arguments].concat();
        self.set_state_folder(self.cuda.gpumon_command(&all))
    }

    /// Returns the memory of all processes together.
    fn allocated_bytes(&self) -> u64 {
        list_holders(&self.state_path(), UUID)
            .iter()
            .map(|holder| holder.bytes)
            .sum()
    }

    /// Returns an account through which the test itself takes memory of the device, as another
    /// program would.
    fn open_account(&self) -> Account {
        Account::open(Some(self.state_path()))
    }
}

/// Returns the sentences with this topic.
fn find_sentences<'a>(lines: &'a [Value], topic: &str) -> Vec<&'a str> {
    let of = |line: &&Value| line["report"] == "said" && line["topic"] == topic;
    lines
        .iter()
        .filter(of)
        .map(|line| line["text"].as_str().unwrap())
        .collect()
}

#[track_caller]
fn assert_is_complete(id: &str, lines: &[Value]) {
    assert_eq!(
        (&lines[0]["report"], &lines.last().unwrap()["report"]),
        (&"begun".into(), &"ended".into()),
        "{id}"
    );
    assert!(
        !find_sentences(lines, "step")[0].contains("This scenario runs on a model"),
        "{id}"
    );
    for topic in ["cause", "cure", "lesson"] {
        assert!(!find_sentences(lines, topic).is_empty(), "{id}: {topic}");
    }
    assert!(
        find_sentences(lines, "proof")[0].ends_with("identical to the byte."),
        "{id}: {:?}",
        find_sentences(lines, "proof")
    );
    assert!(
        lines
            .iter()
            .any(|line| line["report"] == "progress" && line["share"].is_number()),
        "{id}"
    );
    let phases: Vec<_> = lines
        .iter()
        .filter(|line| line["report"] == "phase")
        .map(|line| &line["phase"])
        .collect();
    assert_eq!(
        (phases[0], *phases.last().unwrap()),
        (&"preparing".into(), &"giving_back".into()),
        "{id}"
    );
}

#[test]
fn all_demonstrations_work_and_free_memory() {
    for id in ALL_DEMONSTRATIONS {
        let shared = SharedDevice::new("");
        let (code, lines, complaint) = run_json_lines(shared.oom_command(&[id, "--hold", "300ms"]));
        assert_eq!((code, complaint.as_str()), (Some(0), ""), "{id}: {lines:?}");
        assert_is_complete(id, &lines);
        let counters = shared.cuda.assert_resources_released();
        assert!(
            counters["most_bytes"].as_u64().unwrap() <= TOTAL_BYTES - RESERVED_BYTES,
            "{id}: {counters}"
        );
    }
}

#[test]
fn out_of_memory_error_comes_from_driver() {
    let shared = SharedDevice::new("");
    for (id, words) in [
        ("huge", "CUDA_ERROR_OUT_OF_MEMORY, code 2"),
        ("fill", "Step 8: 528 MiB free of 2.0 GiB"),
        (
            "contend",
            "needs 1.2 GiB, but 902 MiB are free. Refused: cannot allocate",
        ),
        ("contend", "now the second finds 2.0 GiB free, and gets its"),
        (
            "cache",
            "the pool keeps 768 MiB, and still only 1.2 GiB are free",
        ),
        ("async", "While the work runs, 1.6 GiB are free"),
        ("not-memory", "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, code 701"),
    ] {
        let (_, lines, _) = run_json_lines(shared.oom_command(&[id, "--hold", "100ms"]));
        let steps = find_sentences(&lines, "step").join("\n");
        assert!(
            steps.contains(words),
            "{id}: {words:?} is missing in {steps}"
        );
    }
}

#[test]
fn failed_demonstration_exits_with_error() {
    // Without the shared folder, each process has its own device. So the second process gets its
    // memory, although it should fail.
    let cuda = FakeCuda::new("");
    let (code, lines, complaint) =
        run_json_lines(cuda.gpumon_command(&["oom", "contend", "--json", "--hold", "100ms"]));
    assert_eq!((code, complaint.as_str()), (Some(1), ""));
    let failed = lines
        .iter()
        .find(|line| line["report"] == "failed")
        .unwrap();
    assert!(
        failed["error"]
            .as_str()
            .unwrap()
            .contains("did not go as expected"),
        "{failed}"
    );
    assert_eq!(cuda.read_counters()["held_bytes"], 0);
    let old = SharedDevice::new("version = 11010");
    let (code, lines, _) = run_json_lines(old.oom_command(&["cache", "--hold", "100ms"]));
    let failed = lines
        .iter()
        .find(|line| line["report"] == "failed")
        .unwrap();
    assert!(
        code == Some(1)
            && failed["error"]
                .as_str()
                .unwrap()
                .contains("needs a driver for CUDA 11.2 or newer"),
        "{failed}"
    );
}

#[test]
fn interrupted_demonstration_frees_memory() {
    for name in ["-INT", "-TERM", "-HUP"] {
        let shared = SharedDevice::new("");
        let child = start_command(shared.oom_command(&["fill", "--hold", "60s"]));
        wait_for_condition("some memory was allocated", || {
            shared.allocated_bytes() > 300 * MIB
        });
        send_signal(name, child.id());
        let output = child.wait_with_output().unwrap();
        assert_eq!(
            output.status.code(),
            Some(130),
            "{name}: {}",
            stderr_text(&output)
        );
        assert_eq!(
            parse_json_lines(&stdout_text(&output)).last().unwrap()["code"],
            130
        );
        // The memory was freed explicitly, and not only by the end of the process.
        shared.cuda.assert_resources_released();
        assert_eq!(shared.allocated_bytes(), 0);
    }
}

#[test]
fn killed_demonstration_ends_its_second_process() {
    let shared = SharedDevice::new("");
    let mut child = start_command(shared.oom_command(&["contend", "--hold", "60s"]));
    let mut out = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok);
    let line = out
        .find(|line| line.contains("The second process, "))
        .unwrap();
    let second = line
        .split("The second process, ")
        .nth(1)
        .unwrap()
        .split(',')
        .next()
        .unwrap()
        .to_owned();
    let is_there = || {
        fs::read_to_string(format!("/proc/{second}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
    };
    assert!(
        is_there() && shared.allocated_bytes() > 1000 * MIB,
        "{line}"
    );
    send_signal("-KILL", child.id());
    child.wait().unwrap();
    wait_for_condition("the second process has ended", || !is_there());
    // The memory of a process may still be in use for a moment after it has ended.
    wait_for_condition("the memory of the second process is free", || {
        shared.allocated_bytes() == 0
    });
}

/// Each demonstration always leaves enough memory free for another program.
#[test]
fn demonstration_leaves_memory_for_other_programs() {
    let shared = SharedDevice::new("");
    let mut other = shared.open_account();
    assert!(other.take_memory(UUID, 100 * MIB, TOTAL_BYTES));
    for id in ["fill", "leak", "fragment", "cache", "async"] {
        let mut child = start_command(shared.oom_command(&[id, "--hold", "300ms"]));
        let mut tries = 0;
        while child.try_wait().unwrap().is_none() {
            assert!(
                other.take_memory(UUID, 400 * MIB, TOTAL_BYTES),
                "{id}: after {tries}"
            );
            tries += 1;
            thread::sleep(Duration::from_millis(5));
            other.give_back_memory(UUID, 400 * MIB);
            thread::sleep(Duration::from_millis(50));
        }
        let output = child.wait_with_output().unwrap();
        // The demonstration may have stopped to leave memory to the other program, or may have
        // reported that its result was disturbed.
        assert!(
            matches!(output.status.code(), Some(0 | 1 | 5)),
            "{id}: {}",
            stdout_text(&output)
        );
        assert!(tries > 3, "{id}: {tries}");
        assert_eq!(shared.allocated_bytes(), 100 * MIB, "{id}");
    }
}

#[test]
fn demonstration_ends_if_other_program_needs_memory() {
    let shared = SharedDevice::new("");
    let child = start_command(shared.oom_command(&["fill", "--hold", "60s"]));
    wait_for_condition("all available memory is allocated", || {
        shared.allocated_bytes() == FULL_BYTES
    });
    let mut other = shared.open_account();
    assert!(other.take_memory(UUID, 300 * MIB, TOTAL_BYTES));
    let output = child.wait_with_output().unwrap();
    let lines = parse_json_lines(&stdout_text(&output));
    let failed = lines
        .iter()
        .find(|line| line["report"] == "failed")
        .unwrap();
    assert_eq!(
        (output.status.code(), &failed["code"]),
        (Some(5), &5.into())
    );
    let error = failed["error"].as_str().unwrap();
    assert!(
        error.contains("another program allocated memory")
            && error.contains("the demo freed all its memory"),
        "{error}"
    );
    assert_eq!(shared.allocated_bytes(), 300 * MIB);
    // If other programs use almost all memory, the demonstration is refused at its start.
    assert!(other.take_memory(UUID, 1300 * MIB, TOTAL_BYTES));
    let (code, lines, _) = run_json_lines(shared.oom_command(&["fill"]));
    let failed = lines
        .iter()
        .find(|line| line["report"] == "failed")
        .unwrap();
    assert!(
        code == Some(5)
            && failed["error"]
                .as_str()
                .unwrap()
                .contains("512 MiB stay free"),
        "{failed}"
    );
}

/// Memory that one program allocates through CUDA is shown to another program by NVML.
#[test]
fn collector_reports_allocated_and_freed_memory() {
    let machine = FakeMachine::new("[[gpu]]\nindex = 0\nprofile = \"idle\"");
    let (pid, samples) = machine.sample_during(|| {
        let child = start_command(
            machine.set_state_folder(
                machine
                    .cuda
                    .gpumon_command(&["oom", "fill", "--hold", "3s", "--json"]),
            ),
        );
        let pid = child.id();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stdout_text(&output));
        pid
    });
    let gpus: Vec<_> = samples.iter().map(|sample| &sample["gpus"][0]).collect();
    let used: Vec<u64> = gpus
        .iter()
        .filter_map(|gpu| gpu["memory"]["used_bytes"].as_u64())
        .collect();
    let (first, last, most) = (used[0], *used.last().unwrap(), *used.iter().max().unwrap());
    assert_eq!((last, most - first), (first, FULL_BYTES), "{used:?}");
    let mut rise: Vec<u64> = used
        .iter()
        .take_while(|bytes| **bytes < most)
        .copied()
        .collect();
    assert!(rise.is_sorted(), "{used:?}");
    rise.dedup();
    assert!(rise.len() >= 4, "the memory must grow in steps: {used:?}");
    let own = |gpu: &&&Value| {
        let processes = gpu["processes"].as_array().into_iter().flatten();
        // The memory is used by the worker process, whose parent is the process that the test has
        // started.
        let started = |parent: &Value| parent["pid"] == pid;
        processes.clone().any(|process| {
            process["owner"]["parents"]
                .as_array()
                .into_iter()
                .flatten()
                .any(started)
        })
    };
    assert!(
        gpus.iter().filter(own).count() > 3,
        "the process is listed: {}",
        gpus[gpus.len() / 2]
    );
    assert!(!own(&gpus.last().unwrap()) && !own(&&gpus[0]));
}

#[test]
fn terminal_shows_moving_bar_and_text() {
    let shared = SharedDevice::new("");
    let command = shared.set_state_folder(
        shared
            .cuda
            .gpumon_command(&["oom", "fill", "--hold", "300ms"]),
    );
    let (text, code) = Terminal::start(command, 80, 24).wait_for_end();
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.contains("Stepwise filling up to the limit")
            && text.contains("GPU 0: Fake NVIDIA H200"),
        "{text}"
    );
    // The line with the progress bar is overwritten again and again. So the test searches every
    // text that this line has had.
    for words in [
        "0.19 of 2.00 GiB used",
        "1.48 of 2.00 GiB used, 0.50 GiB stay free for others",
    ] {
        let part = text
            .split("\r\u{1b}[K")
            .any(|line| line.contains(words) && line.contains('━'));
        assert!(part, "{words}: {text}");
    }
    for words in [
        "Step 8",
        "Cause",
        "Fix",
        "Takeaway",
        "Verification",
        "set_memory_growth",
        "byte.",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    // If the output goes to a file, there is no progress bar, and lines are short.
    let command = shared
        .set_state_folder(
            shared
                .cuda
                .gpumon_command(&["oom", "fill", "--hold", "100ms"]),
        )
        .output()
        .unwrap();
    let text = stdout_text(&command);
    assert!(
        !text.contains('\r') && !text.contains('━') && text.contains("Step 8"),
        "{text}"
    );
    assert!(
        text.lines().all(|line| line.chars().count() <= 100),
        "{text}"
    );
}

#[test]
fn unknown_names_are_refused_with_available_names() {
    for (arguments, words) in [
        (&["fil"][..], "unknown scenario 'fil': did you mean 'fill'?"),
        (&["frobnicate"], "gpumon oom list"),
        (&["fill", "--hold", "3"], "500ms"),
        (&["fill", "--hold", "11m"], "10m"),
        (&["fill", "--backend", "gpu"], "cpu"),
    ] {
        assert_refused(
            FakeCuda::new("").gpumon_command(&[&["oom"], arguments].concat()),
            2,
            words,
        );
    }
    let without_driver = |arguments: &[&str]| {
        let mut command = gpumon_command(arguments);
        command
            .env("GPUMON_LIBCUDA", "/nowhere/libcuda.so.1")
            .output()
            .unwrap()
    };
    let output = without_driver(&["oom", "huge", "--backend", "cuda"]);
    assert!(
        output.status.code() == Some(3) && stderr_text(&output).contains("/nowhere"),
        "{}",
        stderr_text(&output)
    );
    let output = without_driver(&["oom", "huge", "--hold", "30ms"]);
    assert!(
        output.status.code() == Some(0)
            && stdout_text(&output).contains("with a model of a GPU's memory"),
        "{}",
        stdout_text(&output)
    );
}

#[test]
fn list_has_every_demonstration_with_description() {
    let text = stdout_text(&gpumon_command(&["oom"]).output().unwrap());
    let (code, lines, _) = run_json_lines(gpumon_command(&["oom", "list", "--json"]));
    let ids: Vec<_> = lines
        .iter()
        .map(|line| line["id"].as_str().unwrap())
        .collect();
    assert_eq!((code, &ids[..]), (Some(0), &ALL_DEMONSTRATIONS[..]));
    for line in lines {
        for key in ["id", "shows"] {
            assert!(text.contains(line[key].as_str().unwrap()), "{line}");
        }
    }
}
