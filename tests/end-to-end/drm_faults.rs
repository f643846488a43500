//! Errors in files of AMD and Intel cards. Each error leads to a clear state of its card, and the
//! other GPUs are still read on time.

use std::{
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use fake_drm::{CardFiles, MetricsTable, Tree, products};
use serde_json::Value;

use crate::support::{
    FakeNvml, Server, Stream, TEST_TIMEOUT, drop_capabilities, health_states, stderr_text,
};

const INTERVAL_MS: u64 = 250;

/// The index of the AMD GPU with the faults. The other GPUs are by NVIDIA, AMD and Intel.
const FAULTY_GPU: usize = 1;
const FAULTY_ADDRESS: &str = "0000:03:00.0";

/// Files that query the firmware. The driver refuses to read them during a reset.
const FIRMWARE_FILES: [&str; 9] = [
    "gpu_metrics",
    "gpu_busy_percent",
    "mem_busy_percent",
    "hwmon/hwmon4/temp1_input",
    "hwmon/hwmon4/temp2_input",
    "hwmon/hwmon4/temp3_input",
    "hwmon/hwmon4/power1_average",
    "hwmon/hwmon4/freq1_input",
    "hwmon/hwmon4/freq2_input",
];

struct Machine {
    fake: FakeNvml,
    tree: Tree,
    faulty: CardFiles,
}

impl Machine {
    fn new() -> Self {
        let radeon =
            |address| products::make_radeon(address).with_files(&[("power/control", "on")]);
        let tree = Tree::new();
        let faulty = tree.add_card(0, &radeon(FAULTY_ADDRESS));
        tree.add_card(1, &radeon("0000:43:00.0"));
        tree.add_card(2, &products::make_arc_b580("0000:84:00.0"));
        Self {
            fake: FakeNvml::new("gpus = 1\n"),
            tree,
            faulty,
        }
    }

    fn make_command(&self, arguments: &[&str]) -> Command {
        let mut command = self.fake.gpumon_command(arguments);
        command.env("GPUMON_SYSFS", self.tree.sys());
        command
    }

    fn serve(&self) -> Server {
        let interval = INTERVAL_MS.to_string();
        let arguments = [
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--interval-ms",
            &interval,
        ];
        Server::start(drop_capabilities(self.make_command(&arguments)))
    }
}

/// Returns the next sample in which the faulty GPU has this state and all others are `ok`.
async fn wait_for_state(stream: &mut Stream, state: &str) -> Value {
    stream
        .read_until(|frame| {
            frame["type"] == "sample" && health_states(frame) == ["ok", state, "ok", "ok"]
        })
        .await
}

/// Waits for five consecutive samples in which the faulty GPU has this state. These samples must be
/// on time and have new readings of the other GPUs. A single delay on a busy machine is tolerated.
async fn check_other_gpus_are_on_time(stream: &mut Stream, state: &str) {
    let begun = Instant::now();
    let mut before = wait_for_state(stream, state).await;
    let mut in_a_row = 0;
    while in_a_row < 5 {
        assert!(begun.elapsed() < TEST_TIMEOUT, "the other GPUs are late");
        let sample = stream.next_frame_of_type("sample").await;
        let time = |sample: &Value, gpu: usize| sample["gpus"][gpu]["at_ms"].as_u64().unwrap();
        let apart = sample["at_ms"].as_u64().unwrap() - before["at_ms"].as_u64().unwrap();
        let are_new = [0, 2, 3]
            .iter()
            .all(|gpu| time(&sample, *gpu) > time(&before, *gpu));
        let is_on_time = apart < 2 * INTERVAL_MS && are_new;
        let is_in_state = health_states(&sample) == ["ok", state, "ok", "ok"];
        in_a_row = if is_on_time && is_in_state {
            in_a_row + 1
        } else {
            0
        };
        before = sample;
    }
}

#[tokio::test]
async fn hanging_sysfs_read_is_reported_as_hung_card() {
    let machine = Machine::new();
    let server = machine.serve();
    let mut stream = server.open_stream().await;
    let well = wait_for_state(&mut stream, "ok").await;
    machine
        .tree
        .block_reads(&machine.faulty.path("gpu_metrics"));
    let hung = wait_for_state(&mut stream, "hung").await;
    assert_eq!(
        hung["gpus"][FAULTY_GPU]["uuid"],
        well["gpus"][FAULTY_GPU]["uuid"]
    );
    assert_eq!(
        hung["gpus"][FAULTY_GPU]["power"]["draw_watts"], 35.0,
        "the last known reading is kept"
    );
    check_other_gpus_are_on_time(&mut stream, "hung").await;
    let table = MetricsTable::new(1, 3).with_field("current_socclk", &[1234]);
    machine
        .tree
        .release_reads(&machine.faulty.path("gpu_metrics"), table.bytes());
    let back = wait_for_state(&mut stream, "ok").await;
    assert_eq!(back["gpus"][FAULTY_GPU]["clocks"]["soc_mhz"], 1234);
}

#[test]
fn initially_hanging_card_does_not_delay_other_cards() {
    let machine = Machine::new();
    machine
        .tree
        .block_reads(&machine.faulty.path("gpu_busy_percent"));
    let begun = Instant::now();
    let output = machine.make_command(&["--json"]).output().unwrap();
    assert!(
        begun.elapsed() < Duration::from_secs(10),
        "{:?}",
        begun.elapsed()
    );
    assert!(output.status.success(), "{}", stderr_text(&output));
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(health_states(&answer["sample"]), ["ok", "hung", "ok", "ok"]);
    let second = &answer["sample"]["gpus"][2];
    assert_eq!(second["utilization"]["gpu_percent"], 37.0);
}

#[tokio::test]
async fn unplugged_card_is_lost_and_comes_back() {
    let machine = Machine::new();
    let server = machine.serve();
    let mut stream = server.open_stream().await;
    wait_for_state(&mut stream, "ok").await;
    machine.faulty.unplug_card();
    let event = stream
        .read_until(|frame| frame["type"] == "event" && frame["what"] == "gpu_lost")
        .await;
    assert_eq!(event["gpu"]["index"], FAULTY_GPU);
    let lost = wait_for_state(&mut stream, "lost").await;
    let power = &lost["gpus"][FAULTY_GPU]["power"]["draw_watts"];
    assert_eq!(power["absent"], "gpu_lost");
    check_other_gpus_are_on_time(&mut stream, "lost").await;
    let card = products::make_radeon(FAULTY_ADDRESS).with_files(&[("power/control", "on")]);
    machine.tree.add_card(0, &card);
    let back = wait_for_state(&mut stream, "ok").await;
    assert_eq!(back["gpus"][FAULTY_GPU]["power"]["draw_watts"], 35.0);
}

/// Checks the state of a card during a reset. `refuse` makes reading a file of the card fail; each
/// caller simulates a different kind of failure.
async fn check_reset(refuse: impl Fn(&Tree, &Path)) {
    let machine = Machine::new();
    let server = machine.serve();
    let mut stream = server.open_stream().await;
    wait_for_state(&mut stream, "ok").await;
    let contents = FIRMWARE_FILES.map(|name| std::fs::read(machine.faulty.path(name)).unwrap());
    for name in FIRMWARE_FILES {
        refuse(&machine.tree, &machine.faulty.path(name));
    }
    let reset = wait_for_state(&mut stream, "failed").await;
    let gpu = &reset["gpus"][FAULTY_GPU];
    let meaning = gpu["health"]["meaning"].as_str().unwrap();
    assert!(meaning.contains("reset"), "{meaning}");
    assert_eq!(gpu["power"]["draw_watts"]["absent"], "no_answer");
    check_other_gpus_are_on_time(&mut stream, "failed").await;
    for (name, content) in FIRMWARE_FILES.iter().zip(contents) {
        machine.faulty.write_bytes(name, content);
    }
    let back = wait_for_state(&mut stream, "ok").await;
    assert_eq!(back["gpus"][FAULTY_GPU]["power"]["draw_watts"], 35.0);
    let events = server.get("/api/v1/snapshot").json()["events"].clone();
    let events = events.as_array().unwrap().iter();
    let failed = events.filter(|event| event["what"] == "gpu_failed").count();
    assert_eq!(failed, 1, "the reset is reported as one event");
}

#[tokio::test]
async fn forbidden_sysfs_reads_are_reported_as_card_reset() {
    check_reset(Tree::forbid_reads).await;
}

#[tokio::test]
async fn busy_sysfs_reads_are_reported_as_card_reset() {
    check_reset(Tree::make_file_busy).await;
}

#[tokio::test]
async fn refused_file_leaves_only_its_reading_absent() {
    let machine = Machine::new();
    let (used, edge) = ("mem_info_vram_used", "hwmon/hwmon4/temp1_input");
    machine.tree.make_file_busy(&machine.faulty.path(used));
    machine.tree.forbid_reads(&machine.faulty.path(edge));
    let server = machine.serve();
    let mut stream = server.open_stream().await;
    let sample = wait_for_state(&mut stream, "ok").await;
    let gpu = &sample["gpus"][FAULTY_GPU];
    assert_eq!(gpu["memory"]["used_bytes"]["absent"], "no_answer");
    assert_eq!(
        gpu["temperature"]["gpu_celsius"], 45.0,
        "the temperature is also in the metrics table"
    );
}

/// The files of the card disappear during a read.
#[tokio::test]
async fn files_that_vanish_during_read_are_absent() {
    let machine = Machine::new();
    let server = machine.serve();
    let mut stream = server.open_stream().await;
    wait_for_state(&mut stream, "ok").await;
    machine
        .tree
        .block_reads(&machine.faulty.path("gpu_metrics"));
    wait_for_state(&mut stream, "hung").await;
    let whole = MetricsTable::new(1, 3).bytes();
    for name in [
        "gpu_busy_percent",
        "mem_info_vram_used",
        "hwmon/hwmon4/power1_average",
    ] {
        machine.faulty.remove(name);
    }
    machine
        .tree
        .release_reads(&machine.faulty.path("gpu_metrics"), &whole[..60]);
    let sample = wait_for_state(&mut stream, "ok").await;
    let gpu = &sample["gpus"][FAULTY_GPU];
    for path in [
        "/utilization/gpu_percent",
        "/memory/used_bytes",
        "/power/draw_watts",
    ] {
        assert!(
            gpu.pointer(path).unwrap()["absent"].is_string(),
            "{path}: {gpu}"
        );
    }
    assert_eq!(gpu["temperature"]["gpu_celsius"], 45.0);
    check_other_gpus_are_on_time(&mut stream, "ok").await;
}

/// An invalid table only affects its own readings.
#[tokio::test]
async fn broken_tables_do_not_affect_other_readings() {
    let machine = Machine::new();
    let server = machine.serve();
    let mut stream = server.open_stream().await;
    let soc_clock = |frame: &Value| frame["gpus"][FAULTY_GPU]["clocks"]["soc_mhz"].clone();
    let has_condition = |frame: &Value| {
        let conditions = frame["gpus"][FAULTY_GPU]["conditions"].as_array();
        frame["type"] == "sample" && conditions.is_some_and(|all| all.len() == 1)
    };
    let whole = std::fs::read(machine.faulty.path("gpu_metrics")).unwrap();
    let unknown = [&[120, 0, 9, 9][..], &whole[4..]].concat();
    let other_size = [&[116, 0, 1, 3][..], &whole[4..]].concat();
    let broken = [
        ("garbage", b"N/A\n".to_vec()),
        ("truncated", whole[..119].to_vec()),
        ("of an unknown version", unknown),
        ("of another size", other_size),
        ("empty", Vec::new()),
        ("all ones", vec![0xff; 4096]),
    ];
    for (kind, table) in broken {
        machine.faulty.write_bytes("gpu_metrics", table);
        let sample = stream
            .read_until(|frame| frame["type"] == "sample" && !soc_clock(frame).is_number())
            .await;
        assert_eq!(health_states(&sample), ["ok"; 4], "{kind}");
        let gpu = &sample["gpus"][FAULTY_GPU];
        assert_eq!(gpu["temperature"]["gpu_celsius"], 45.0, "{kind}");
        assert_eq!(gpu["utilization"]["gpu_percent"], 37.0, "{kind}");
        if kind != "empty" {
            let frame = stream.read_until(has_condition).await;
            let text = frame["gpus"][FAULTY_GPU]["conditions"].to_string();
            assert!(text.contains("Update gpumon"), "{kind}: {text}");
        }
        // A table that is followed by padding is valid.
        let padded = [&whole[..], &vec![0; 1 << 20]].concat();
        machine.faulty.write_bytes("gpu_metrics", padded);
        stream
            .read_until(|frame| frame["type"] == "sample" && soc_clock(frame) == 1100)
            .await;
    }
    let events = server.get("/api/v1/snapshot").json()["events"].to_string();
    assert!(events.contains("v9.9 with 120 bytes"), "{events}");
    check_other_gpus_are_on_time(&mut stream, "ok").await;
}
