//! `gpumon oom` over a driver whose memory several processes share: every statement is true, all
//! memory is freed, and other programs are not disturbed.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::PathBuf,
    process::Command,
    thread,
    time::Duration,
};

use fake_gpu_state::{Account, holders};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{
    FakeCuda, FakeMachine, Terminal, eventually, gpumon, json_lines, lines_of, refused, signal,
    started, stderr, stdout,
};

const MIB: u64 = 1 << 20;
/// The memory of the fake device by default, and the part of it that stays free.
const TOTAL: u64 = 2048 * MIB;
const RESERVE: u64 = 512 * MIB;
/// The memory in use when the device is as full as allowed. It is a multiple of the page size, and
/// some memory is left for the driver itself.
const FULL: u64 = 1520 * MIB;
const UUID: &str = "GPU-00000000-0000-0000-0000-000000000000";

const ALL: [&str; 8] = [
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
struct Shared {
    cuda: FakeCuda,
    folder: TempDir,
}

impl Shared {
    fn new(scenario: &str) -> Self {
        Self {
            cuda: FakeCuda::new(scenario),
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    fn with_state(&self, mut command: Command) -> Command {
        command.env(fake_gpu_state::VARIABLE, self.state());
        command
    }

    /// Returns `gpumon oom` on the device with JSON output.
    fn oom(&self, arguments: &[&str]) -> Command {
        let all = [&["oom", "--backend", "cuda", "--json"], arguments].concat();
        self.with_state(self.cuda.gpumon(&all))
    }

    /// Returns the memory of all processes together.
    fn held(&self) -> u64 {
        holders(&self.state(), UUID)
            .iter()
            .map(|holder| holder.bytes)
            .sum()
    }

    /// Returns an account for another program on the device.
    fn neighbor(&self) -> Account {
        Account::open(Some(self.state()))
    }
}

/// Returns the sentences with this topic.
fn said<'a>(lines: &'a [Value], topic: &str) -> Vec<&'a str> {
    let of = |line: &&Value| line["report"] == "said" && line["topic"] == topic;
    lines
        .iter()
        .filter(of)
        .map(|line| line["text"].as_str().unwrap())
        .collect()
}

#[track_caller]
fn is_whole(id: &str, lines: &[Value]) {
    assert_eq!(
        (&lines[0]["report"], &lines.last().unwrap()["report"]),
        (&"begun".into(), &"ended".into()),
        "{id}"
    );
    assert!(!said(lines, "step")[0].contains("This is a model"), "{id}");
    for topic in ["cause", "cure", "lesson"] {
        assert!(!said(lines, topic).is_empty(), "{id}: {topic}");
    }
    assert!(
        said(lines, "proof")[0].ends_with("equal to the byte."),
        "{id}: {:?}",
        said(lines, "proof")
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
fn each_is_shown_on_a_device_and_leaves_nothing_there() {
    for id in ALL {
        let shared = Shared::new("");
        let (code, lines, complaint) = lines_of(shared.oom(&[id, "--hold", "300ms"]));
        assert_eq!((code, complaint.as_str()), (Some(0), ""), "{id}: {lines:?}");
        is_whole(id, &lines);
        let counters = shared.cuda.counters_at_rest();
        assert!(
            counters["most_bytes"].as_u64().unwrap() <= TOTAL - RESERVE,
            "{id}: {counters}"
        );
    }
}

#[test]
fn the_real_error_is_the_drivers() {
    let shared = Shared::new("");
    for (id, words) in [
        ("huge", "CUDA_ERROR_OUT_OF_MEMORY, code 2"),
        ("fill", "Step 8: 528 MiB free of 2.0 GiB"),
        ("contend", "finds 902 MiB free. Refused: cannot allocate"),
        ("contend", "now the second finds 2.0 GiB free, and gets its"),
        (
            "cache",
            "the pool keeps 768 MiB, and still 1.2 GiB are free",
        ),
        ("async", "While the work runs, 1.6 GiB are free"),
        ("not-memory", "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, code 701"),
    ] {
        let (_, lines, _) = lines_of(shared.oom(&[id, "--hold", "100ms"]));
        let steps = said(&lines, "step").join("\n");
        assert!(steps.contains(words), "{id}: no {words} in {steps}");
    }
}

/// The demonstration fails, and its result reports this.
#[test]
fn what_does_not_happen_as_it_should_is_no_success() {
    // Without the shared folder, each process has a device of its own, so the second process gets
    // its memory.
    let cuda = FakeCuda::new("");
    let (code, lines, complaint) =
        lines_of(cuda.gpumon(&["oom", "contend", "--json", "--hold", "100ms"]));
    assert_eq!((code, complaint.as_str()), (Some(1), ""));
    let failed = lines
        .iter()
        .find(|line| line["report"] == "failed")
        .unwrap();
    assert!(
        failed["error"]
            .as_str()
            .unwrap()
            .contains("did not happen as it should"),
        "{failed}"
    );
    assert_eq!(cuda.counters()["held_bytes"], 0);
    let old = Shared::new("version = 11010");
    let (code, lines, _) = lines_of(old.oom(&["cache", "--hold", "100ms"]));
    let failed = lines
        .iter()
        .find(|line| line["report"] == "failed")
        .unwrap();
    assert!(
        code == Some(1)
            && failed["error"]
                .as_str()
                .unwrap()
                .contains("older than CUDA 11.2"),
        "{failed}"
    );
}

#[test]
fn who_interrupts_has_the_memory_back() {
    for name in ["-INT", "-TERM", "-HUP"] {
        let shared = Shared::new("");
        let child = started(shared.oom(&["fill", "--hold", "60s"]));
        eventually("some steps were taken", || shared.held() > 300 * MIB);
        signal(name, child.id());
        let output = child.wait_with_output().unwrap();
        assert_eq!(
            output.status.code(),
            Some(130),
            "{name}: {}",
            stderr(&output)
        );
        assert_eq!(json_lines(&stdout(&output)).last().unwrap()["code"], 130);
        // The memory was freed explicitly, and not only by the end of the process.
        shared.cuda.counters_at_rest();
        assert_eq!(shared.held(), 0);
    }
}

#[test]
fn who_kills_it_kills_the_second_process_too() {
    let shared = Shared::new("");
    let mut child = started(shared.oom(&["contend", "--hold", "60s"]));
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
    assert!(is_there() && shared.held() > 1000 * MIB, "{line}");
    signal("-KILL", child.id());
    child.wait().unwrap();
    eventually("the second process is gone", || !is_there());
    // The memory of a process may still be in use for a moment after it has ended.
    eventually("its memory is free", || shared.held() == 0);
}

/// The memory that stays free is always enough for another program.
#[test]
fn no_allocation_of_another_program_fails() {
    let shared = Shared::new("");
    let mut other = shared.neighbor();
    assert!(other.take(UUID, 100 * MIB, TOTAL));
    for id in ["fill", "leak", "fragment", "cache", "async"] {
        let mut child = started(shared.oom(&[id, "--hold", "300ms"]));
        let mut tries = 0;
        while child.try_wait().unwrap().is_none() {
            assert!(other.take(UUID, 400 * MIB, TOTAL), "{id}: after {tries}");
            tries += 1;
            thread::sleep(Duration::from_millis(5));
            other.give_back(UUID, 400 * MIB);
            thread::sleep(Duration::from_millis(50));
        }
        let output = child.wait_with_output().unwrap();
        // The demonstration may have stopped for the other program, or may have noticed the
        // disturbance.
        assert!(
            matches!(output.status.code(), Some(0 | 1 | 5)),
            "{id}: {}",
            stdout(&output)
        );
        assert!(tries > 3, "{id}: {tries}");
        assert_eq!(shared.held(), 100 * MIB, "{id}");
    }
}

#[test]
fn it_gives_way_when_others_take_what_stays_free() {
    let shared = Shared::new("");
    let child = started(shared.oom(&["fill", "--hold", "60s"]));
    eventually("it is as full as it gets", || shared.held() == FULL);
    let mut other = shared.neighbor();
    assert!(other.take(UUID, 300 * MIB, TOTAL));
    let output = child.wait_with_output().unwrap();
    let lines = json_lines(&stdout(&output));
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
        error.contains("another program has taken memory") && error.contains("given back"),
        "{error}"
    );
    assert_eq!(shared.held(), 300 * MIB);
    // If other programs use almost all memory, the demonstration is refused at its start.
    assert!(other.take(UUID, 1300 * MIB, TOTAL));
    let (code, lines, _) = lines_of(shared.oom(&["fill"]));
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

/// The full path: memory that one program allocates through CUDA is shown to another program by
/// NVML.
#[test]
fn a_collector_sees_memory_rise_and_fall() {
    let machine = FakeMachine::new("[[gpu]]\nindex = 0\nprofile = \"idle\"");
    let (pid, samples) = machine.sampled(|| {
        let child = started(
            machine.with_state(
                machine
                    .cuda
                    .gpumon(&["oom", "fill", "--hold", "3s", "--json"]),
            ),
        );
        let pid = child.id();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
        pid
    });
    let gpus: Vec<_> = samples.iter().map(|sample| &sample["gpus"][0]).collect();
    let used: Vec<u64> = gpus
        .iter()
        .filter_map(|gpu| gpu["memory"]["used_bytes"].as_u64())
        .collect();
    let (first, last, most) = (used[0], *used.last().unwrap(), *used.iter().max().unwrap());
    assert_eq!((last, most - first), (first, FULL), "{used:?}");
    let mut rise: Vec<u64> = used
        .iter()
        .take_while(|bytes| **bytes < most)
        .copied()
        .collect();
    assert!(rise.is_sorted(), "{used:?}");
    rise.dedup();
    assert!(rise.len() >= 4, "the memory rises in steps: {used:?}");
    let own = |gpu: &&&Value| {
        let processes = gpu["processes"].as_array().into_iter().flatten();
        // The worker is a child of the process that was started.
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
        "the process is named: {}",
        gpus[gpus.len() / 2]
    );
    assert!(!own(&gpus.last().unwrap()) && !own(&&gpus[0]));
}

#[test]
fn people_see_a_bar_that_moves_and_read_the_words() {
    let shared = Shared::new("");
    let command = shared.with_state(shared.cuda.gpumon(&["oom", "fill", "--hold", "300ms"]));
    let (text, code) = Terminal::with(command, 80, 24).finish();
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.contains("Stepwise filling up to the limit")
            && text.contains("GPU 0: Fake NVIDIA H200"),
        "{text}"
    );
    // The same line is overwritten repeatedly.
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
    // In a file, there is no bar, and lines are short.
    let command = shared
        .with_state(shared.cuda.gpumon(&["oom", "fill", "--hold", "100ms"]))
        .output()
        .unwrap();
    let text = stdout(&command);
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
fn words_that_name_nothing_are_answered_with_what_there_is() {
    for (arguments, words) in [
        (&["fil"][..], "unknown scenario 'fil': did you mean 'fill'?"),
        (&["frobnicate"], "gpumon oom list"),
        (&["fill", "--hold", "3"], "500ms"),
        (&["fill", "--hold", "11m"], "10m"),
        (&["fill", "--backend", "gpu"], "cpu"),
    ] {
        refused(
            FakeCuda::new("").gpumon(&[&["oom"], arguments].concat()),
            2,
            words,
        );
    }
    let without_driver = |arguments: &[&str]| {
        let mut command = gpumon(arguments);
        command
            .env("GPUMON_LIBCUDA", "/nowhere/libcuda.so.1")
            .output()
            .unwrap()
    };
    let output = without_driver(&["oom", "huge", "--backend", "cuda"]);
    assert!(
        output.status.code() == Some(3) && stderr(&output).contains("/nowhere"),
        "{}",
        stderr(&output)
    );
    let output = without_driver(&["oom", "huge", "--hold", "30ms"]);
    assert!(
        output.status.code() == Some(0) && stdout(&output).contains("on a model"),
        "{}",
        stdout(&output)
    );
}

#[test]
fn the_list_has_every_name_and_what_one_sees() {
    let text = stdout(&gpumon(&["oom"]).output().unwrap());
    let (code, lines, _) = lines_of(gpumon(&["oom", "list", "--json"]));
    let ids: Vec<_> = lines
        .iter()
        .map(|line| line["id"].as_str().unwrap())
        .collect();
    assert_eq!((code, &ids[..]), (Some(0), &ALL[..]));
    for line in lines {
        for key in ["id", "shows"] {
            assert!(text.contains(line[key].as_str().unwrap()), "{line}");
        }
    }
}
