//! Failures of all functions with all return codes: the readings of the function are absent with
//! the right reason, and all other readings stay the same.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Mutex,
};

use gpumon_probe::{model::now_ms, vendor::sim::FUNCTIONS};

use crate::support::{
    AbsentReadings, FakeNvml, Records, additional_readings_of_failure,
    assert_no_persistent_complaints, is_at_or_below_reading, readings_of_function, run_in_parallel,
    run_until_complete, stderr_text,
};

/// The maximum number of GPUs in a scenario. In each run, a different function fails for each GPU.
const MAX_GPUS: usize = 64;

/// The number of parallel collectors. Each has one thread per GPU, so more of them would not be
/// faster.
const PARALLEL_RUNS: usize = 3;

/// Values of `nvmlReturn_t`.
const NOT_SUPPORTED_CODE: u32 = 3;
const GPU_IS_LOST_CODE: u32 = 15;
/// `NVML_ERROR_DEPRECATED`, which a removed function returns.
const DEPRECATED_CODE: u32 = 26;
const UNKNOWN_CODE: u32 = 999;

/// Return codes that do not mean a failure. They report the length of a list, or that there is
/// nothing new.
const SUCCESSFUL_CODES: [(&str, u32); 3] = [
    ("nvmlDeviceGetAccountingPids", 7),
    ("nvmlDeviceGetRetiredPages_v2", 7),
    ("nvmlDeviceGetProcessesUtilizationInfo", 6),
];

/// `NVML_ERROR_FUNCTION_NOT_FOUND`: gpumon may call an older function instead.
const FUNCTION_NOT_FOUND_CODE: u32 = 13;

/// Returns the codes to test: all codes in `make test-full`, and otherwise one of each kind. Unit
/// tests check the conversion functions with all codes (`probe/src/vendor/nvml/to_model`,
/// `smi/src/tests`).
fn tested_codes() -> Vec<u32> {
    if std::env::var_os("GPUMON_TEST_FULL").is_some() {
        return (1..=30).chain([UNKNOWN_CODE]).collect();
    }
    vec![
        2,
        NOT_SUPPORTED_CODE,
        4,
        6,
        9,
        FUNCTION_NOT_FOUND_CODE,
        GPU_IS_LOST_CODE,
        18,
        DEPRECATED_CODE,
        UNKNOWN_CODE,
    ]
}

/// Returns a scenario whose GPUs have all features, and whose buffers are full.
fn full_scenario() -> String {
    let (pid, start_ms) = (std::process::id(), now_ms() - 60_000);
    let gpus = (0..MAX_GPUS).map(|gpu| {
        format!(
            r#"
            [[gpu]]
            index = {gpu}
            fans = 1
            nvlinks = 1
            accounting = true
            utilization_percent = 50
            remapped_rows = {{ correctable = 1 }}
            retired_pages = {{ single_bit = 1 }}
            [[process]]
            gpu = {gpu}
            pid = {pid}
            memory = "1 GiB"
            sm_percent = 50
            "#
        )
    });
    format!("start_ms = {start_ms}\n{}", gpus.collect::<String>())
}

fn collect_records(scenario: &str, samples: u32) -> Records {
    FakeNvml::new(scenario).collect(&["--count", &samples.to_string(), "--interval-ms", "300"])
}

/// Returns the reason why a reading is absent after this return code.
fn describe_absence(code: u32) -> String {
    match code {
        NOT_SUPPORTED_CODE | FUNCTION_NOT_FOUND_CODE | DEPRECATED_CODE => {
            "not_supported".to_owned()
        }
        4 => "no_permission".to_owned(),
        GPU_IS_LOST_CODE => "gpu_lost".to_owned(),
        21 => "unknown".to_owned(),
        code => format!("driver_error {code}"),
    }
}

/// Returns the reason why a reading is absent after `function` returned `code`. Some functions
/// return "invalid argument" (2) if a board lacks the feature.
fn describe_absence_of_call(function: &str, code: u32) -> String {
    const NONE_BY_ARGUMENT: [&str; 3] = [
        "nvmlDeviceGetFanSpeed_v2",
        "nvmlDeviceGetMemoryErrorCounter",
        "nvmlDeviceGetNvLinkState",
    ];
    let none = code == 2 && NONE_BY_ARGUMENT.contains(&function);
    match describe_absence(if none { NOT_SUPPORTED_CODE } else { code }) {
        // gpumon then looks up the NUMA node in the files of this machine, which does not have the
        // GPUs of this test.
        why if function == "nvmlDeviceGetNumaNodeId" && why == "not_supported" => {
            "unknown".to_owned()
        }
        why => why,
    }
}

/// Returns the readings of a GPU that are lost because of a failure: they are present in `whole`
/// and absent in `run`. Each has the reason if there is one.
fn find_lost_readings(whole: &Records, run: &Records, gpu: usize) -> AbsentReadings {
    let ((before, _), (after, reasons)) =
        (whole.classify_readings(gpu), run.classify_readings(gpu));
    let lost = before.keys().filter(|path| !after.contains_key(*path));
    let reason = |path: &str| {
        let parent = reasons
            .iter()
            .find(|(absent, _)| is_at_or_below_reading(path, absent));
        parent.map(|(_, why)| why.clone()).unwrap_or_default()
    };
    lost.map(|path| (path.clone(), reason(path))).collect()
}

/// The absent readings, by function and return code.
type LostReadings = BTreeMap<(&'static str, u32), BTreeSet<String>>;

/// Makes each of these functions fail for a different GPU. Returns complaints about wrong readings.
fn complaints_about_failing_functions(
    functions: &[&'static str],
    code: u32,
    whole: &Records,
    losses: &mut LostReadings,
    samples: u32,
) -> Vec<String> {
    let faults = functions.iter().enumerate().map(|(gpu, function)| {
        format!(
            "[[fault]]\nkind = \"returns\"\ngpu = {gpu}\ncall = \"{function}\"\ncode = {code}\n"
        )
    });
    let run = collect_records(&(full_scenario() + &faults.collect::<String>()), samples);
    let (expected, reported) = (whole.gpu_identities(), run.gpu_identities());
    let mut complaints = Vec::new();
    if reported.len() != MAX_GPUS {
        complaints.push(format!("{code}: {} GPUs", reported.len()));
    }
    for (gpu, function) in functions.iter().enumerate() {
        let mut complain =
            |what: String| complaints.push(format!("{function} returns {code}: {what}"));
        let nameless = ["nvmlDeviceGetUUID", "nvmlDeviceGetHandleByIndex_v2"].contains(function);
        if reported[gpu]
            != (
                expected[gpu].0,
                expected[gpu].1.clone().filter(|_| !nameless),
            )
        {
            complain(format!(
                "it is {:?} instead of {:?}",
                reported[gpu], expected[gpu]
            ));
        }
        let state = match (*function, code) {
            ("nvmlDeviceGetHandleByIndex_v2", GPU_IS_LOST_CODE) => "lost",
            ("nvmlDeviceGetHandleByIndex_v2", _) => "failed",
            _ => "ok",
        };
        let health = &run.last_record_of_type("sample")["gpus"][gpu]["health"]["state"];
        if health != state {
            complain(format!("its health is {health}"));
        }
        let lost = find_lost_readings(whole, &run, gpu);
        for (path, why) in &lost {
            if !readings_of_function(function)
                .iter()
                .chain(additional_readings_of_failure(function))
                .any(|given| is_at_or_below_reading(path, given))
            {
                // The complaint leaves out the reason, which differs between attempts on a busy
                // machine.
                complain(format!("{path} is lost"));
            }
            if !why.is_empty() && *why != describe_absence_of_call(function, code) {
                complain(format!("{path} is absent for {why:?}"));
            }
        }
        // These readings were absent at every attempt.
        let lost: BTreeSet<String> = lost.into_keys().collect();
        losses
            .entry((*function, code))
            .and_modify(|known| known.retain(|path| lost.contains(path)))
            .or_insert(lost);
    }
    complaints
}

#[test]
fn failing_call_makes_its_readings_absent_with_reason() {
    let functions: Vec<&'static str> = FUNCTIONS
        .iter()
        .copied()
        .filter(|name| takes_gpu_argument(name))
        .collect();
    let whole = run_until_complete(|samples| collect_records(&full_scenario(), samples));
    let runs: Vec<_> = tested_codes()
        .into_iter()
        .flat_map(|code| functions.chunks(MAX_GPUS).map(move |some| (some, code)))
        .collect();
    let losses = Mutex::new(LostReadings::new());
    run_in_parallel(PARALLEL_RUNS, &runs, |(functions, code)| {
        let mut own = LostReadings::new();
        let own_losses = Mutex::new(&mut own);
        assert_no_persistent_complaints(|samples| {
            complaints_about_failing_functions(
                functions,
                *code,
                &whole,
                &mut own_losses.lock().unwrap(),
                samples,
            )
        });
        losses.lock().unwrap().append(&mut own);
    });
    let losses = losses.into_inner().unwrap();
    let mut complaints = Vec::new();
    let (there, _) = whole.classify_readings(0);
    for function in functions
        .iter()
        .filter(|function| **function != "nvmlDeviceGetPcieThroughput")
    {
        let lost = &losses[&(*function, UNKNOWN_CODE)];
        let given = readings_of_function(function)
            .iter()
            .filter(|given| there.keys().any(|path| is_at_or_below_reading(path, given)));
        let still =
            given.filter(|given| !lost.iter().any(|path| is_at_or_below_reading(path, given)));
        complaints
            .extend(still.map(|given| format!("{function} fails, and {given} is still there")));
    }
    // For each function, all codes that mean "not supported" make the same readings absent, and so
    // do all other codes. If the function does not exist at all, another function may provide some
    // of these readings instead.
    for ((function, code), lost) in losses
        .iter()
        .filter(|(call, _)| !SUCCESSFUL_CODES.contains(call))
    {
        let like = if describe_absence_of_call(function, *code)
            == describe_absence_of_call(function, NOT_SUPPORTED_CODE)
        {
            NOT_SUPPORTED_CODE
        } else {
            UNKNOWN_CODE
        };
        let expected = &losses[&(*function, like)];
        if lost != expected && !(*code == FUNCTION_NOT_FOUND_CODE && lost.is_subset(expected)) {
            complaints.push(format!("{function} returns {code}: {lost:?} are gone"));
        }
    }
    assert!(complaints.is_empty(), "{complaints:#?}");
}

/// Functions that cannot fail for a single GPU: they are not about a GPU, or the fake library does
/// not know the GPU.
const SYSTEM_FUNCTIONS: [&str; 9] = [
    "nvmlSystemGetDriverVersion",
    "nvmlSystemGetNVMLVersion",
    "nvmlSystemGetCudaDriverVersion_v2",
    "nvmlSystemGetConfComputeState",
    "nvmlGpmMetricsGet",
    "nvmlGpmSampleAlloc",
    "nvmlEventSetCreate",
    "nvmlEventSetWait_v2",
    "nvmlShutdown",
];

#[test]
fn failing_system_call_does_not_lose_gpu() {
    let whole = run_until_complete(|samples| collect_records("gpus = 2", samples));
    run_in_parallel(PARALLEL_RUNS, &tested_codes(), |code| {
        let returns = SYSTEM_FUNCTIONS
            .map(|function| format!("{function} = {code}\n"))
            .concat();
        let scenario = format!("gpus = 2\n[returns]\n{returns}");
        assert_no_persistent_complaints(|samples| {
            let run = collect_records(&scenario, samples);
            assert_eq!(run.gpu_identities(), whole.gpu_identities());
            let mut complaints = Vec::new();
            for version in ["driver_version", "nvml_version", "cuda_version"] {
                let reading = &run.last_record_of_type("inventory")["platform"][version];
                if !describe_absence(*code)
                    .starts_with(reading["absent"].as_str().unwrap_or("nothing"))
                {
                    complaints.push(format!("{version} after {code}: {reading}"));
                }
            }
            for gpu in 0..2 {
                let given = [
                    "sample.activity",
                    "sample.nvlink",
                    "sample.pcie",
                    "details.modes.confidential_compute",
                ];
                let lost = find_lost_readings(&whole, &run, gpu).into_iter();
                let wrong = lost.filter(|(path, why)| {
                    !given
                        .iter()
                        .any(|given| is_at_or_below_reading(path, given))
                        || !why.is_empty() && *why != describe_absence(*code)
                });
                complaints.extend(
                    wrong.map(|(path, why)| format!("{path} of {gpu} after {code}: {why}")),
                );
            }
            complaints
        });
    });
}

#[test]
fn failing_driver_start_has_reason() {
    let calls = ["nvmlInit_v2", "nvmlDeviceGetCount_v2"];
    let cases: Vec<_> = tested_codes()
        .into_iter()
        .flat_map(|code| calls.map(|call| (call, code)))
        .collect();
    run_in_parallel(PARALLEL_RUNS, &cases, |(call, code)| {
        let fake = FakeNvml::new(&format!("gpus = 2\n[returns]\n{call} = {code}\n"));
        let output = fake.gpumon_command(&["--json"]).output().unwrap();
        let message = stderr_text(&output);
        let (exit, words) = match code {
            4 => (4, "denies access to this user".to_owned()),
            6 => (6, "finds no GPU".to_owned()),
            9 => (9, "kernel driver is not running".to_owned()),
            18 => (18, "different versions".to_owned()),
            code => (1, format!("NVML error {code} (")),
        };
        assert_eq!(
            output.status.code(),
            Some(exit),
            "{call} returns {code}: {message}"
        );
        assert!(
            message.contains(&words) && message.lines().count() == 1,
            "{call} returns {code}: {message}"
        );
        assert_eq!(output.stdout, b"");
    });
}

fn takes_gpu_argument(function: &str) -> bool {
    function.starts_with("nvmlDevice") && function != "nvmlDeviceGetCount_v2"
        || ["nvmlGpmQueryDeviceSupport", "nvmlGpmSampleGet"].contains(&function)
}
