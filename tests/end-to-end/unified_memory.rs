//! A GPU with unified memory, such as a GB10: it uses the machine's memory.

use std::{fs, process::Command};

use serde_json::Value;

use crate::support::{
    FakeNvml, Server, gpumon_command, stderr_text, stdout_text, wait_for_condition,
};

const GIB: u64 = 1 << 30;

/// A GB10 with a process that uses 40 GiB.
const GB10_SCENARIO: &str = "[[gpu]]\nindex = 0\nname = \"NVIDIA GB10\"\narchitecture = \
                             \"blackwell\"\nunified_memory = true\npower_watts = \
                             3\ntemperature_celsius = 36\nutilization_percent = \
                             0\n[[process]]\ngpu = 0\npid = PID\nmemory = \"40 GiB\"\n";

fn make_fake() -> FakeNvml {
    let fake = FakeNvml::new(&GB10_SCENARIO.replace("PID", &std::process::id().to_string()));
    fs::create_dir(fake.path("proc")).unwrap();
    fake
}

/// Returns a command for a machine with 121 GiB in total and this much available memory.
fn make_unified_memory_command(fake: &FakeNvml, available_gib: u64, arguments: &[&str]) -> Command {
    let kib = |gib: u64| gib << 20;
    let (total, available) = (kib(121), kib(available_gib));
    let text = format!("MemTotal: {total} kB\nMemFree: 1 kB\nMemAvailable: {available} kB\n");
    fs::write(fake.path("proc/meminfo"), text).unwrap();
    let mut command = fake.gpumon_command(arguments);
    command.env("GPUMON_PROCFS", fake.path("proc"));
    command.env("GPUMON_LOCKS", fake.path(""));
    command
}

#[test]
fn gpu_memory_equals_memory_of_machine() {
    let fake = make_fake();
    let output = make_unified_memory_command(&fake, 70, &["--json"])
        .output()
        .unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let gpu = &answer["sample"]["gpus"][0];
    assert_eq!(gpu["memory_kind"], "unified");
    assert_eq!(gpu["memory"]["total_bytes"], 121 * GIB);
    assert_eq!(gpu["memory"]["free_bytes"], 70 * GIB);
    assert_eq!(gpu["memory"]["used_bytes"], 40 * GIB);
    assert_eq!(gpu["pcie"]["generation"]["absent"], "not_supported");
    assert_eq!(gpu["power"]["limit_watts"]["absent"], "not_supported");
}

#[test]
fn table_shows_unified_memory_and_its_exhaustion() {
    let fake = make_fake();
    let table = |available| {
        let output = make_unified_memory_command(&fake, available, &[])
            .output()
            .unwrap();
        stdout_text(&output)
    };
    let text = table(70);
    assert!(text.contains("40.0/121 GiB"), "{text}");
    assert!(
        text.contains("unified memory, shared with the CPU: 70.0 GiB available"),
        "{text}"
    );
    let text = table(1);
    assert!(text.contains("memory nearly full"), "{text}");
}

#[test]
fn wait_selects_gpu_by_available_memory() {
    let wait = ["wait", "--free", "10GiB", "--interval", "100ms"];
    let waited = |available, arguments: &[&str]| {
        // A GPU that `gpumon wait` has taken stays reserved for a while. So each command has its
        // own fake NVML library.
        let fake = make_fake();
        let output = make_unified_memory_command(&fake, available, arguments)
            .output()
            .unwrap();
        (
            output.status.code(),
            stdout_text(&output),
            stderr_text(&output),
        )
    };
    let (code, out, said) = waited(70, &wait);
    assert_eq!((code, out.as_str()), (Some(0), "0\n"), "{said}");
    let (code, _, said) = waited(4, &[&wait[..], &["--timeout", "1s"]].concat());
    assert_ne!(code, Some(0));
    assert!(said.contains("4.0 GiB free"), "{said}");
}

#[test]
fn memory_growth_is_predicted() {
    let scenario = GB10_SCENARIO.replace("PID", "4100001").replace(
        "utilization_percent",
        "memory_used = [[0, \"30 GiB\"], [600, \"90 GiB\"]]\nmemory = \"121 GiB\"\n\
         utilization_percent",
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gb10.toml");
    fs::write(&file, scenario).unwrap();
    let source = format!("sim:{}", file.display());
    let server = Server::start(gpumon_command(&[
        "serve",
        "--source",
        &source,
        "--interval-ms",
        "500",
    ]));
    wait_for_condition("a condition predicts that the memory will be full", || {
        let body = server.get("/api/v1/snapshot").body;
        let answer: Value = serde_json::from_str(&body).unwrap_or_default();
        let conditions = answer["sample"]["gpus"][0]["conditions"].as_array();
        let mut kinds = conditions
            .into_iter()
            .flatten()
            .map(|own| &own["condition"]);
        kinds.any(|kind| kind == "memory_filling")
    });
}

#[test]
fn smi_output_matches_nvidia_smi() {
    let fake = make_fake();
    let text = stdout_text(&fake.gpumon_command(&["smi"]).output().unwrap());
    // The expected lines without the borders at both sides.
    for line in [
        "  0  NVIDIA GB10                    On  |   0000000F:01:00.0 Off |                  N/A",
        "N/A   36C    P0              3W /  N/A  | Not Supported          |      0%      Default",
        "                                        |                        |                  N/A",
    ] {
        let line = format!("| {line} |");
        assert!(text.lines().any(|own| own == line), "{line}\n{text}");
    }
    let query = "--query-gpu=memory.total,memory.used,memory.free,utilization.gpu,power.draw";
    let text = stdout_text(
        &fake
            .gpumon_command(&["smi", query, "--format=csv"])
            .output()
            .unwrap(),
    );
    let row = "[N/A], [N/A], [N/A], 0 %, 3.00 W";
    assert!(text.lines().any(|own| own == row), "{text}");
}
