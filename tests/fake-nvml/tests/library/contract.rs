//! Calls that violate NVML's contract return the documented errors.

#![allow(unsafe_code, reason = "what is tested is a C interface")]

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::{CStr, CString},
    fs,
    mem::size_of,
    ptr,
    time::{Duration, Instant},
};

use crate::common::{initialize_nvml, load_world, open_library, run_with_library};
use gpumon_probe::vendor::sim::{FUNCTIONS, Scenario, Timeline};
use nvml_wrapper_sys::bindings::{
    nvmlDevice_t, nvmlMemory_v2_t, nvmlProcessInfo_t, nvmlTemperature_t,
};

const UNINITIALIZED: u32 = 1;
const INVALID_ARGUMENT: u32 = 2;
const NOT_FOUND: u32 = 6;
const INSUFFICIENT_SIZE: u32 = 7;
const VERSION_MISMATCH: u32 = 25;

#[test]
fn exported_functions_match_those_of_scenarios() {
    let directory = tempfile::tempdir().unwrap();
    let library = fake_nvml::install(directory.path(), &[]);
    let lib = open_library(&library);
    for function in FUNCTIONS {
        // SAFETY: the symbol is only looked up, never called.
        let symbol = unsafe {
            lib.__library
                .get::<unsafe extern "C" fn()>(function.as_bytes())
        };
        assert!(symbol.is_ok(), "{function} is not exported");
    }
    let bytes = fs::read(&library).unwrap();
    let known: BTreeSet<&str> = FUNCTIONS.iter().copied().collect();
    let exported = bytes
        .split(|byte| *byte == 0)
        .filter_map(|name| std::str::from_utf8(name).ok())
        .filter(|name| {
            let looks = name.starts_with("nvml")
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            // SAFETY: the symbol is only looked up, never called.
            looks && unsafe { lib.__library.get::<unsafe extern "C" fn()>(name.as_bytes()) }.is_ok()
        });
    let unknown: Vec<&str> = exported.filter(|name| !known.contains(name)).collect();
    assert!(unknown.is_empty(), "scenarios do not support {unknown:?}");
}

/// Returns the functions in the tables of queries.
fn query_functions() -> BTreeSet<&'static str> {
    macro_rules! symbols {
        ($(
            $(#[$doc:meta])*
            $query:ident $(($($argument:ident: $kind:ty),+))?
            $(: $($shape:ident $(<$of:ty>)? = $symbol:ident)|+)? $(=> $method:ident)?
            $(, $attribute:ident $($cost:literal)? $(for $each:expr)?)*;
        )*) => {
            [$($($(stringify!($symbol)),+,)?)*]
        };
    }
    let of_gpus = gpumon_probe::nvml_queries! { symbols };
    let of_system = gpumon_probe::nvml_system_queries! { symbols };
    of_gpus.into_iter().chain(of_system).collect()
}

/// A scenario can define the answer of a function if and only if the function looks up this answer.
/// Functions that are generated from the tables of queries always do.
#[test]
fn only_functions_that_look_up_answers_accept_answers() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/src/exports");
    let files = fs::read_dir(directory)
        .unwrap()
        .map(|file| fs::read_to_string(file.unwrap().path()).unwrap());
    let source: String = files.collect::<String>().split_whitespace().collect();
    let of_queries = query_functions();
    for function in FUNCTIONS {
        let is_written = ["(", "="].map(|next| source.contains(&format!("fn{function}{next}")));
        let is_generated = of_queries.contains(function) && is_written == [false; 2];
        let looks = ["device", "part", "system"].map(|about| format!("fn{function}({about}|"));
        let looks_it_up = is_generated
            || looks.iter().any(|text| source.contains(text))
            || source.contains(&format!("given::device(\"{function}\""));
        let scenario = Scenario::from_toml(&format!("[answers]\n{function} = 1\n"), "test.toml");
        assert_eq!(
            scenario.is_ok(),
            looks_it_up,
            "{function}: {:?}",
            scenario.err()
        );
    }
}

#[test]
fn any_function_can_be_hidden() {
    let directory = tempfile::tempdir().unwrap();
    // The initialization functions cannot be hidden: the bindings require them, so the library
    // could not be opened.
    let (needed, hidden): (Vec<&str>, Vec<&str>) = FUNCTIONS
        .iter()
        .partition(|name| name.starts_with("nvmlInit"));
    assert_eq!(needed.len(), 2);
    let lib = open_library(&fake_nvml::install(directory.path(), &hidden));
    for function in hidden {
        // SAFETY: the symbol is only looked up, never called.
        let symbol = unsafe {
            lib.__library
                .get::<unsafe extern "C" fn()>(function.as_bytes())
        };
        assert!(symbol.is_err(), "{function} must not be exported");
    }
}

#[test]
fn calls_fail_before_init_and_after_shutdown() {
    let test = "contract::calls_fail_before_init_and_after_shutdown";
    run_with_library(test, "", &[], |library| {
        let lib = open_library(library);
        let mut count = 0;
        // SAFETY: every pointer is valid during its call.
        unsafe {
            assert_eq!(lib.nvmlDeviceGetCount_v2(&raw mut count), UNINITIALIZED);
            assert_eq!(lib.nvmlShutdown(), UNINITIALIZED);
            assert_eq!((lib.nvmlInit_v2(), lib.nvmlInitWithFlags(1)), (0, 0));
            assert_eq!(
                (
                    lib.nvmlShutdown(),
                    lib.nvmlDeviceGetCount_v2(&raw mut count)
                ),
                (0, 0)
            );
            assert_eq!(
                (
                    lib.nvmlShutdown(),
                    lib.nvmlDeviceGetCount_v2(&raw mut count)
                ),
                (0, UNINITIALIZED)
            );
            assert_eq!(CStr::from_ptr(lib.nvmlErrorString(15)), c"GPU is lost");
            assert_eq!(
                CStr::from_ptr(lib.nvmlErrorString(12_345)),
                c"Unknown Error"
            );
        }
    });
}

#[test]
fn bad_arguments_are_refused() {
    run_with_library(
        "contract::bad_arguments_are_refused",
        "gpus = 2\n[[process]]\ngpu = 0\npid = 5",
        &[],
        |library| {
            let lib = open_library(library);
            let (mut device, mut number, mut buffer) = (ptr::null_mut(), 0, [0; 8]);
            let nowhere: nvmlDevice_t = ptr::without_provenance_mut(99);
            // SAFETY: every pointer is null or valid during its call.
            unsafe {
                assert_eq!(lib.nvmlInit_v2(), 0);
                assert_eq!(
                    lib.nvmlDeviceGetHandleByIndex_v2(2, &raw mut device),
                    INVALID_ARGUMENT
                );
                assert_eq!(
                    lib.nvmlDeviceGetHandleByIndex_v2(0, ptr::null_mut()),
                    INVALID_ARGUMENT
                );
                assert_eq!(
                    lib.nvmlDeviceGetHandleByUUID(ptr::null(), &raw mut device),
                    INVALID_ARGUMENT
                );
                assert_eq!(
                    lib.nvmlDeviceGetHandleByUUID(c"GPU-1".as_ptr(), &raw mut device),
                    NOT_FOUND
                );
                assert_eq!(
                    lib.nvmlDeviceGetHandleByPciBusId_v2(c"0000:11:00.0".as_ptr(), &raw mut device),
                    0
                );
                assert_eq!(
                    (lib.nvmlDeviceGetIndex(device, &raw mut number), number),
                    (0, 1)
                );
                let serial =
                    CString::new(load_world("gpus = 2").gpu_identity(0).serial.as_str()).unwrap();
                assert_eq!(
                    lib.nvmlDeviceGetHandleBySerial(serial.as_ptr(), &raw mut device),
                    0
                );
                assert_eq!(
                    (lib.nvmlDeviceGetIndex(device, &raw mut number), number),
                    (0, 0)
                );

                assert_eq!(
                    lib.nvmlDeviceGetPowerUsage(ptr::null_mut(), &raw mut number),
                    INVALID_ARGUMENT
                );
                assert_eq!(
                    lib.nvmlDeviceGetPowerUsage(nowhere, &raw mut number),
                    INVALID_ARGUMENT
                );
                assert_eq!(
                    lib.nvmlDeviceGetPowerUsage(device, ptr::null_mut()),
                    INVALID_ARGUMENT
                );
                assert_eq!(
                    lib.nvmlDeviceGetName(device, buffer.as_mut_ptr(), 8),
                    INSUFFICIENT_SIZE
                );
                assert_eq!(
                    lib.nvmlDeviceGetTemperature(device, 7, &raw mut number),
                    INVALID_ARGUMENT
                );
                assert_eq!(
                    lib.nvmlDeviceGetClockInfo(device, 9, &raw mut number),
                    INVALID_ARGUMENT
                );
                assert_eq!(
                    lib.nvmlDeviceGetFieldValues(device, 0, ptr::null_mut()),
                    INVALID_ARGUMENT
                );
                assert_eq!(
                    lib.nvmlDeviceGetFieldValues(device, -1, ptr::null_mut()),
                    INVALID_ARGUMENT
                );

                let mut memory = nvmlMemory_v2_t {
                    version: 0,
                    total: 0,
                    reserved: 0,
                    free: 0,
                    used: 0,
                };
                assert_eq!(
                    lib.nvmlDeviceGetMemoryInfo_v2(device, &raw mut memory),
                    VERSION_MISMATCH
                );
                let mut temperature = nvmlTemperature_t {
                    version: 0,
                    sensorType: 0,
                    temperature: 0,
                };
                assert_eq!(
                    lib.nvmlDeviceGetTemperatureV(device, &raw mut temperature),
                    VERSION_MISMATCH
                );
                temperature.version = size_of::<nvmlTemperature_t>() as u32 | 1 << 24;
                assert_eq!(
                    lib.nvmlDeviceGetTemperatureV(device, &raw mut temperature),
                    0
                );
                assert!(
                    (25..95).contains(&temperature.temperature),
                    "{}",
                    temperature.temperature
                );

                let nobody: *mut nvmlProcessInfo_t = ptr::null_mut();
                number = 0;
                assert_eq!(
                    lib.nvmlDeviceGetComputeRunningProcesses_v3(device, &raw mut number, nobody),
                    INSUFFICIENT_SIZE
                );
                assert_eq!(number, 1);
                assert_eq!(
                    lib.nvmlDeviceGetComputeRunningProcesses_v3(device, &raw mut number, nobody),
                    INVALID_ARGUMENT
                );
                assert_eq!(
                    lib.nvmlDeviceGetComputeRunningProcesses_v3(device, ptr::null_mut(), nobody),
                    INVALID_ARGUMENT
                );
            }
        },
    );
}

#[test]
fn calls_have_latency_and_are_counted() {
    let scenario = "gpus = 2\n[latency]\ndefault = \"200 us\"\nnvmlDeviceGetSerial = \"30 ms\"";
    run_with_library(
        "contract::calls_have_latency_and_are_counted",
        scenario,
        &[],
        |library| {
            let nvml = initialize_nvml(library);
            let device = nvml.device_by_index(1).unwrap();
            let time = |call: &dyn Fn()| {
                let begun = Instant::now();
                call();
                begun.elapsed()
            };
            assert!(time(&|| assert!(device.serial().is_ok())) >= Duration::from_millis(30));
            let quick = (0..10)
                .map(|_| time(&|| assert!(device.index().is_ok())))
                .min()
                .unwrap();
            assert!(
                (Duration::from_micros(200)..Duration::from_millis(25)).contains(&quick),
                "{quick:?}"
            );

            nvml.shutdown().unwrap();
            let text = fs::read_to_string(library.with_file_name("counts.json")).unwrap();
            let counts: BTreeMap<String, BTreeMap<String, u64>> =
                serde_json::from_str(&text).unwrap();
            assert_eq!(counts["nvmlInit_v2"]["system"], 1);
            assert_eq!(counts["nvmlDeviceGetHandleByIndex_v2"]["1"], 1);
            assert_eq!(
                counts["nvmlDeviceGetSerial"],
                BTreeMap::from([("1".to_owned(), 1)])
            );
            assert_eq!(counts["nvmlShutdown"]["system"], 1);
        },
    );
}

#[test]
fn example_scenario_has_expected_values() {
    let example = include_str!("../../scenarios/example.toml");
    let world = load_world(example);
    assert_eq!(world.gpu_count(), 9);
    assert_eq!(world.gpu_identity(2).name, "NVIDIA L4");
    assert_eq!(world.state(3, 30_000).processes.len(), 2);
    assert_eq!(world.scenario().list_events(3, 0.0).len(), 2);
    assert_eq!(
        (
            world.state(6, 0).mig.len(),
            world.state(6, 130_000).mig.len()
        ),
        (3, 0)
    );
    assert_eq!(world.scenario().find_gpu_failure_code(1, 75.0), Some(999));
    let is_present = [10.0, 30.0, 80.0].map(|seconds| world.scenario().is_present(8, seconds));
    assert_eq!(
        (is_present, world.scenario().is_lost(8, 80.0)),
        ([false, true, false], true)
    );
    assert_eq!(world.state(3, 0).processes[0].encoder_sessions.len(), 1);
    assert_eq!(
        world.list_accounted(3, 0, &Timeline::start(world.scenario()))[0].pid,
        3977
    );
    assert_eq!(world.state(7, 0).processes.len(), 2_000);
    assert!(
        world.scenario().has_version_mismatch(90.0)
            && world
                .scenario()
                .is_crashing(Some(2), "nvmlDeviceGetSerial", 600.0)
    );
    assert_eq!(
        world
            .scenario()
            .find_forced_return(Some(0), "nvmlDeviceGetClockInfo", 25.0),
        Some(999)
    );
    assert_eq!(
        (
            world.state(3, 30_000).pcie_width,
            world.compute_wear(3, 60_000).ecc_volatile.uncorrected
        ),
        (8, 1)
    );
    assert!(
        world.scenario().is_lost(4, 45.0)
            && world
                .scenario()
                .remaining_hang(Some(5), None, 35.0)
                .is_some()
    );
}
