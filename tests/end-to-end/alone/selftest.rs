//! `gpumon selftest` with drivers whose readings are right, and with some whose readings are wrong.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::support::{
    FakeCuda, FakeMachine, TEST_TIMEOUT, assert_refused, run_json_lines, send_signal,
    start_command, stderr_text, stdout_text, wait_for_condition,
};

/// Two linked GPUs with activity counters and without other processes.
const TWO_GPUS: &str = "[[gpu]]\nindex = 0\nprofile = \"idle\"\nnvlinks = 18\n\
                    [[gpu]]\nindex = 1\nprofile = \"idle\"\nnvlinks = 18\n";
const ONE_GPU: &str = "[[gpu]]\nindex = 0\nprofile = \"idle\"\n";

/// Readings that do not depend on the load of this machine.
const STEADY_READINGS: [&str; 3] = [
    "memory.used_bytes",
    "processes[].memory_bytes",
    "clocks.sm_mhz",
];
/// The bandwidth of the fake link in bytes per second. The test only checks this value, because the
/// number of bytes that are copied per second depends on this machine.
const LINK_BANDWIDTH: (&str, f64) = ("pcie.generation, pcie.width", 63_008_000_000.0);

fn reading_name(check: &Value) -> &str {
    check["reading"].as_str().unwrap()
}

fn is_limit(check: &Value) -> bool {
    reading_name(check).starts_with("limits.")
}

#[test]
fn every_reading_is_compared_with_generated_load() {
    let machine = FakeMachine::new(TWO_GPUS);
    let (code, checks, said) =
        run_json_lines(machine.gpumon_command(&["selftest", "--quick", "--json"]));
    assert!(
        matches!(code, Some(0 | 1)) && said.is_empty(),
        "{code:?} {said}"
    );
    let readings: BTreeSet<_> = checks.iter().map(reading_name).collect();
    let all = STEADY_READINGS.iter().copied().chain([
        LINK_BANDWIDTH.0,
        "activity.sm_percent",
        "activity.occupancy_percent",
        "utilization.gpu_percent",
        "processes[].sm_percent",
        "activity.graphics_percent",
        "activity.dram_bandwidth_percent",
        "activity.tensor_half_percent",
        "activity.tensor_integer_percent",
        "activity.tensor_double_percent",
        "activity.fp32_percent",
        "power.energy_joules_total",
        "pcie.rx_bytes_per_second",
        "pcie.tx_bytes_per_second",
        "nvlink.tx_bytes_per_second",
        "nvlink.rx_bytes_per_second",
        "limits.main",
        "limits.power_percent",
    ]);
    assert_eq!(readings, all.collect());
    for check in checks.iter().filter(|check| !is_limit(check)) {
        let [expected, reported] = ["expected", "reported"].map(|figure| check[figure].as_f64());
        match reading_name(check) {
            // A load may end before the driver has counted enough energy. The driver reports the
            // use of a process only once a second.
            "power.energy_joules_total" | "processes[].sm_percent" if reported.is_none() => {}
            steady if STEADY_READINGS.contains(&steady) => {
                assert_eq!(check["verdict"], "verified", "{check}");
            }
            link if link == LINK_BANDWIDTH.0 => {
                assert_eq!(reported, Some(LINK_BANDWIDTH.1), "{check}");
            }
            _ => {
                let ratio = reported.unwrap() / expected.unwrap();
                assert!((0.4..2.5).contains(&ratio), "{check}");
            }
        }
    }
    let of_next =
        |check: &&Value| check["gpu"] == 1 && reading_name(check) == "nvlink.rx_bytes_per_second";
    assert_eq!(checks.iter().filter(of_next).count(), 2);
    machine.cuda.assert_resources_released();
}

/// Returns how much CPU the load used in each window that `evidence` lists, in percent of one CPU.
fn find_cpu_percent(evidence: &str) -> impl Iterator<Item = f64> {
    let texts = evidence.split("cpu_percent ").skip(1);
    texts.map(|text| text.split_once(',').unwrap().0.parse().unwrap())
}

/// Each kernel saturates the units or the memory that it uses, as large kernels do on a real GPU.
#[test]
fn cause_of_every_load_is_recognized() {
    let machine =
        FakeMachine::with_device(ONE_GPU, "saturates = true\nslowdown = 4\nqueued_us = 1000");
    let (_, checks, said) =
        run_json_lines(machine.gpumon_command(&["selftest", "--quick", "--json"]));
    let limits: Vec<_> = checks.iter().filter(|check| is_limit(check)).collect();
    let loads: Vec<_> = limits
        .iter()
        .map(|check| check["load"].as_str().unwrap())
        .collect();
    let all = [
        "memory",
        "read",
        "bf16",
        "fp32",
        "to-device",
        "to-host",
        "launches",
        "synchronized",
        "host",
        "burn",
    ];
    assert_eq!(loads, all, "{said}");
    for check in limits {
        let evidence = check["how"].as_str().unwrap();
        match check["load"].as_str() {
            Some("burn") => {
                assert_eq!(check["verdict"], "not_reported", "{check}");
                let reason = "not checkable: the driver did not report a power cap";
                assert_eq!(evidence, reason);
            }
            // If other programs use the CPUs, the load gets too little CPU time for a verdict. A
            // reading close to 0 would still be wrong.
            Some("host") if find_cpu_percent(evidence).any(|cpu| (20.0..80.0).contains(&cpu)) => {}
            _ => assert_eq!(check["verdict"], "verified", "{check}"),
        }
    }
}

/// NVML and CUDA do not share their state here, so NVML does not see the activity of CUDA programs.
#[test]
fn wrong_readings_of_driver_are_detected() {
    let machine = FakeMachine::new(ONE_GPU);
    let output = machine
        .cuda
        .gpumon_command_with(&machine.nvml, &["selftest", "--quick"])
        .output()
        .unwrap();
    let (text, said) = (stdout_text(&output), stderr_text(&output));
    assert_eq!(output.status.code(), Some(1), "{text}{said}");
    for reading in [
        "memory.used_bytes",
        "utilization.gpu_percent",
        "activity.sm_percent",
        "pcie.rx_bytes_per_second",
    ] {
        let line = text.lines().find(|line| line.contains(reading)).unwrap();
        assert!(line.ends_with("mismatch"), "{line}");
    }
    assert!(
        text.contains("    expected ") && text.matches("reported unit").count() == 1,
        "{text}"
    );
    let evidence = "windows: the main cause of each window must be tensor; ";
    assert!(text.contains(evidence), "{text}");
    assert!(
        said.contains("needs a second GPU: memory is copied to the next GPU\n"),
        "{said}"
    );
}

#[test]
fn interrupted_selftest_prints_results_and_frees_memory() {
    let machine = FakeMachine::new(ONE_GPU);
    let child = start_command(machine.gpumon_command(&["selftest", "--json"]));
    wait_for_condition("kernels are running", || {
        machine.cuda.read_counters()["kernels"].as_u64() > Some(3)
    });
    send_signal("-INT", child.id());
    let begun = std::time::Instant::now();
    let output = child.wait_with_output().unwrap();
    let text = stdout_text(&output);
    assert_eq!(output.status.code(), Some(130), "{text}");
    assert!(
        text.contains("memory.used_bytes") && !text.contains("pcie"),
        "the finished checks are reported: {text}"
    );
    assert!(begun.elapsed() < TEST_TIMEOUT, "{:?}", begun.elapsed());
    assert_eq!(machine.cuda.read_counters()["held_bytes"], 0);
}

#[test]
fn untestable_gpu_is_refused_with_reason() {
    let machine = FakeMachine::new(ONE_GPU);
    for (place, words) in [
        (
            r#""share":true"#,
            "a self-test cannot share the GPU: leave out --share",
        ),
        (r#""backend":"cpu""#, "leave out --backend"),
    ] {
        let job = format!(r#"{{"kind":"selftest","where":{{{place}}}}}"#);
        let (code, lines, said) = run_json_lines(machine.gpumon_command(&["work", &job]));
        assert!(
            code == Some(2) && lines[0]["error"].as_str().unwrap().contains(words),
            "{lines:?} {said}"
        );
    }
    assert_refused(
        FakeCuda::new("devices = 0").gpumon_command_with(&machine.nvml, &["selftest"]),
        3,
        "",
    );
    let without_nvml = ["--nvml-lib", "/nowhere/libnvidia-ml.so.1", "selftest"];
    assert_refused(
        machine.cuda.gpumon_command(&without_nvml),
        1,
        "`gpumon doctor`",
    );
}
