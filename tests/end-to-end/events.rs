//! Events and conditions of GPUs, from their source to the output for clients.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{self, Stdio},
    thread,
    time::Duration,
};

use gpumon_probe::model::now_ms;
use serde_json::Value;

use crate::support::FakeNvml;

/// Sleeps until this many milliseconds of the scenario have passed.
fn sleep_until_scenario_time(start_ms: u64, ms: u64) {
    thread::sleep(Duration::from_millis(
        (start_ms + ms).saturating_sub(now_ms()),
    ));
}

fn find_events<'a>(records: &'a [Value], what: &str, gpu: u32) -> Vec<&'a Value> {
    let is_it = |record: &&Value| record["what"] == what && record["gpu"]["index"] == gpu;
    records.iter().filter(is_it).collect()
}

/// Returns two lists of events: those that report the beginning of a condition, and those that
/// report its end.
fn find_condition_events<'a>(records: &'a [Value], name: &str, gpu: u32) -> [Vec<&'a Value>; 2] {
    ["condition_began", "condition_ended"].map(|what| {
        find_events(records, what, gpu)
            .into_iter()
            .filter(|event| event["condition"] == name)
            .collect()
    })
}

fn has_condition(sample: &Value, gpu: usize, name: &str) -> bool {
    sample["gpus"][gpu]["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .any(|condition| condition["condition"] == name)
}

#[test]
fn events_and_conditions_are_reported_once() {
    let mut sleeper = process::Command::new("sleep").arg("600").spawn().unwrap();
    let (pid, start_ms) = (sleeper.id(), now_ms());
    let scenario = format!(
        r#"
        gpus = 6
        start_ms = {start_ms}
        # Only the kernel's log tells of this GPU's Xid; then it is reset.
        [[fault]]
        gpu = 0
        kind = "lost"
        from_s = 4
        to_s = 5
        # Both tell of this one's.
        [[event]]
        gpu = 1
        at_s = 3
        kind = "xid"
        code = 31
        # Only NVML tells of this one's.
        [[event]]
        gpu = 5
        at_s = 3
        kind = "xid"
        code = 94
        [[gpu]]
        index = 2
        ecc_uncorrected = [[0, 0], [3, 0], [3, 1]]
        [[event]]
        gpu = 2
        at_s = 3
        kind = "ecc_uncorrected"
        [[process]]
        gpu = 3
        pid = {pid}
        memory = "1 GiB"
        from_s = 2
        to_s = 5
        [[gpu]]
        index = 4
        utilization_percent = 0
        sm_percent = 0
        [[process]]
        gpu = 4
        pid = {pid}
        memory = "10 GiB"
        "#
    );
    let fake = FakeNvml::new(&scenario);
    let log = fake.path("kmsg");
    fs::write(
        &log,
        "6,1,1,-;NVRM: Xid (PCI:0000:00:00): 79, of long ago\n",
    )
    .unwrap();
    let arguments = [
        "collect",
        "--interval-ms",
        "250",
        "--held-idle-after",
        "2s",
        "--kernel-log",
        log.to_str().unwrap(),
    ];
    let mut child = fake
        .gpumon_command(&arguments)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let reader = thread::spawn(move || {
        let records = lines
            .map_while(Result::ok)
            .map(|line| serde_json::from_str(&line).unwrap());
        records.collect::<Vec<Value>>()
    });
    let inventory = fake.read_json()["inventory"].clone();
    // In its messages, the kernel writes bus IDs as `PCI:` with domain, bus and device.
    let bus_id = |gpu: usize| {
        let bus_id = inventory["gpus"][gpu]["pci_bus_id"]
            .as_str()
            .unwrap()
            .to_lowercase();
        bus_id[4..].trim_end_matches(".0").to_owned()
    };
    let mut kernel = File::options().append(true).open(&log).unwrap();
    sleep_until_scenario_time(start_ms, 2000);
    writeln!(
        kernel,
        "4,2,2,-;NVRM: Xid (PCI:{}): 79, pid='<unknown>', GPU has fallen off the bus.",
        bus_id(0)
    )
    .unwrap();
    sleep_until_scenario_time(start_ms, 3050);
    writeln!(
        kernel,
        "4,3,3,-;NVRM: Xid (PCI:{}): 31, pid=4312, name=python3, MMU Fault",
        bus_id(1)
    )
    .unwrap();
    sleep_until_scenario_time(start_ms, 8000);
    child.kill().unwrap();
    child.wait().unwrap();
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    let records = reader.join().unwrap();
    let samples: Vec<_> = records
        .iter()
        .filter(|record| record["type"] == "sample")
        .collect();
    let last = samples[samples.len() - 1];

    let [xid] = find_events(&records, "xid", 0)[..] else {
        panic!("{:?}", find_events(&records, "xid", 0))
    };
    assert!(
        xid["code"] == 79
            && xid["message"]
                .as_str()
                .unwrap()
                .contains("fallen off the bus"),
        "{xid}"
    );
    assert!(
        xid["meaning"].as_str().unwrap().ends_with('.')
            && xid["advice"].as_str().unwrap().ends_with('.')
    );
    let [began, ended] = find_condition_events(&records, "xid", 0);
    assert_eq!(
        (began.len(), ended.len()),
        (1, 1),
        "the condition starts once, and ends with the reset"
    );
    assert_eq!(began[0]["code"], 79);
    assert!(
        samples.iter().any(|sample| has_condition(sample, 0, "xid"))
            && !has_condition(last, 0, "xid")
    );
    assert_eq!(
        (
            find_events(&records, "gpu_lost", 0).len(),
            find_events(&records, "gpu_back", 0).len()
        ),
        (1, 1)
    );

    let [xid] = find_events(&records, "xid", 1)[..] else {
        panic!("{:?}", find_events(&records, "xid", 1))
    };
    assert_eq!((&xid["code"], &xid["pid"]), (&31.into(), &4312.into()));
    assert!(
        xid["message"].as_str().unwrap().contains("MMU Fault"),
        "{xid}"
    );
    let [xid] = find_events(&records, "xid", 5)[..] else {
        panic!("{:?}", find_events(&records, "xid", 5))
    };
    assert!(xid["code"] == 94 && xid["message"].is_null(), "{xid}");
    assert!(has_condition(last, 1, "xid") && has_condition(last, 5, "xid"));

    let [errors] = find_events(&records, "ecc_errors", 2)[..] else {
        panic!("{:?}", find_events(&records, "ecc_errors", 2))
    };
    assert_eq!(
        (&errors["corrected"], &errors["uncorrected"]),
        (&0.into(), &1.into())
    );
    assert!(has_condition(last, 2, "ecc_uncorrected"));

    for what in ["process_started", "process_ended"] {
        let [event] = find_events(&records, what, 3)[..] else {
            panic!("{:?}", find_events(&records, what, 3))
        };
        assert_eq!(
            (&event["pid"], &event["name"]),
            (&pid.into(), &"sleep".into())
        );
    }

    let [began, ended] = find_condition_events(&records, "held_idle", 4);
    assert_eq!((began.len(), ended.len()), (1, 0));
    assert_eq!(
        (&began[0]["bytes"], &began[0]["pids"]),
        (&(10_u64 << 30).into(), &serde_json::json!([pid]))
    );
    assert!(has_condition(last, 4, "held_idle"));
    for (gpu, whole) in inventory["gpus"].as_array().unwrap().iter().enumerate() {
        assert!(
            samples
                .iter()
                .all(|sample| sample["gpus"][gpu]["uuid"] == whole["uuid"]),
            "UUIDs must not change"
        );
    }
}

/// The condition begins after a minute of samples.
pub(crate) fn underused_gpu_is_reported_with_both_percentages() {
    let fake = FakeNvml::new(
        "[[gpu]]\nindex = 0\nutilization_percent = 100\nsm_percent = 10\n[[gpu]]\nindex = 1\n",
    );
    let records = fake.collect(&["--count", "64", "--interval-ms", "1000"]);
    let sample = records.last_record_of_type("sample");
    assert!(has_condition(sample, 0, "hardly_used") && !has_condition(sample, 1, "hardly_used"));
    let reported: Vec<_> = records
        .records_of_type("event")
        .filter(|event| event["condition"] == "hardly_used")
        .collect();
    let [reported] = reported[..] else {
        panic!("{reported:?}")
    };
    let text = reported["text"].as_str().unwrap();
    assert!(text.contains("100 %") && text.contains("10 %"), "{text}");
}

/// The condition begins after two minutes.
pub(crate) fn suspected_hang_is_reported_without_false_alarms() {
    let scenario = fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/fake-nvml/scenarios/hang.toml"
    ))
    .unwrap();
    let (debugger, traced) = start_debugged_process();
    let mut sleeper = process::Command::new("sleep").arg("600").spawn().unwrap();
    // The process has ended. It stays a zombie, because nobody has waited for it yet.
    let ended = process::Command::new("true").spawn().unwrap();
    let process = |gpu: u32, pid: u32, more: &str| {
        format!("[[process]]\ngpu = {gpu}\npid = {pid}\nmemory = \"3 GiB\"\n{more}")
    };
    let scenario = scenario
        .replace("gpus = 6", "gpus = 8")
        .replace("pid = 5000000", &format!("pid = {traced}"))
        + &process(6, sleeper.id(), "sm_percent = 100\nwaits = true\n")
        + &process(7, ended.id(), "");
    let records = FakeNvml::new(&scenario).collect(&["--count", "126", "--interval-ms", "1000"]);
    let sample = records.last_record_of_type("sample");
    let is_reported = |name: &str| {
        (0..8)
            .filter(|gpu| has_condition(sample, *gpu, name))
            .collect::<Vec<_>>()
    };
    // The program on GPU 3 is paused in a debugger. The one on GPU 6 is not.
    assert_eq!(sample["gpus"][3]["processes"][0]["traced"], true);
    assert_eq!(is_reported("suspected_hang"), [0, 1, 6]);
    // In a container, gpumon cannot see whether a process has ended.
    let sees_all = fs::read_link("/proc/self/ns/pid").unwrap() == Path::new("pid:[4026531836]");
    let nobodys: &[usize] = if sees_all { &[5, 7] } else { &[5] };
    assert_eq!(is_reported("held_by_nobody"), nobodys);
    drop(debugger);
    sleeper.kill().unwrap();
    for mut child in [sleeper, ended] {
        child.wait().unwrap();
    }
    let began: Vec<_> = records
        .records_of_type("event")
        .filter(|event| event["what"] == "condition_began")
        .collect();
    let hangs = began
        .iter()
        .find(|event| event["condition"] == "suspected_hang")
        .unwrap();
    assert!(
        hangs["text"]
            .as_str()
            .unwrap()
            .starts_with("Suspected hang: the kernels of "),
        "{hangs}"
    );
    let ended: Vec<_> = records
        .records_of_type("event")
        .filter(|event| event["what"] == "condition_ended")
        .collect();
    assert!(
        ended
            .iter()
            .all(|event| event["condition"] == "hardly_used"),
        "another condition than low SM use has ended: {ended:?}"
    );
}

/// Starts a debugger and a process to which it is attached. Both end when the pipe is closed.
fn start_debugged_process() -> (process::ChildStdin, u32) {
    let script = "import ctypes, subprocess, sys\n\
                  child = subprocess.Popen(['sleep', '600'], stdout=subprocess.DEVNULL)\n\
                  seize = 0x4206\n\
                  ptrace = ctypes.CDLL(None, use_errno=True).ptrace\n\
                  if ptrace(ctypes.c_long(seize), ctypes.c_long(child.pid), None, None) != 0:\n\
                  \x20   sys.exit(f'ptrace: {ctypes.get_errno()}')\n\
                  print(child.pid, flush=True)\n\
                  sys.stdin.read()\n\
                  child.kill()\n";
    let mut debugger = process::Command::new("python3")
        .args(["-c", script])
        .stdin(process::Stdio::piped())
        .stdout(process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut pid = String::new();
    BufReader::new(debugger.stdout.take().unwrap())
        .read_line(&mut pid)
        .unwrap();
    let pid = pid
        .trim()
        .parse()
        .unwrap_or_else(|_| panic!("{:?}", debugger.wait()));
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    assert!(
        status.contains(&format!("TracerPid:\t{}\n", debugger.id())),
        "{status}"
    );
    (debugger.stdin.take().unwrap(), pid)
}

#[test]
fn sleeping_gpu_is_read_only_after_waking() {
    let fake = FakeNvml::new("gpus = 2");
    let status = |gpu: u32| {
        fake.path("sys").join(format!(
            "bus/pci/devices/0000:0{gpu}:00.0/power/runtime_status"
        ))
    };
    for (gpu, state) in [(0, "suspended"), (1, "active")] {
        let device = status(gpu).parent().unwrap().parent().unwrap().to_owned();
        fs::create_dir_all(device.join("power")).unwrap();
        fs::write(device.join("vendor"), "0x10de\n").unwrap();
        fs::write(device.join("class"), "0x030200\n").unwrap();
        fs::write(status(gpu), format!("{state}\n")).unwrap();
    }
    let (counts, sys) = (fake.path("counts.json"), fake.path("sys"));
    let mut child = fake
        .gpumon_command(&[
            "collect",
            "--interval-ms",
            "250",
            "--sysfs",
            sys.to_str().unwrap(),
        ])
        .env("GPUMON_FAKE_NVML_COUNTS", &counts)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut records = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let mut samples = records.by_ref().filter(|record| record["type"] == "sample");
    // By the time of this sample, the library has written its call counts, and gpumon has queried
    // links and events.
    let asleep = samples.nth(16).unwrap();
    assert_eq!(asleep["gpus"][0]["health"]["state"], "asleep");
    assert_eq!(asleep["gpus"][0]["power"]["draw_watts"]["absent"], "asleep");
    assert!(asleep["gpus"][1]["power"]["draw_watts"].is_number());
    let text = fs::read_to_string(&counts).unwrap();
    let calls: serde_json::Map<String, Value> = serde_json::from_str(&text).unwrap();
    let woken: Vec<_> = calls
        .iter()
        .filter(|(_, gpus)| !gpus["0"].is_null())
        .collect();
    assert!(
        woken.is_empty() && calls["nvmlDeviceGetHandleByIndex_v2"]["1"].is_u64(),
        "{woken:?}"
    );

    fs::write(status(0), "active\n").unwrap();
    let awake = samples
        .find(|sample| sample["gpus"][0]["health"]["state"] == "ok")
        .unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(
        awake["gpus"][0]["power"]["draw_watts"].is_number() && awake["gpus"][0]["uuid"].is_string()
    );
    assert_eq!(awake["gpus"][1]["uuid"], asleep["gpus"][1]["uuid"]);
}
