//! Test functions that run in their own process with a scenario, because the library reads its
//! environment only once.

#![allow(dead_code, reason = "each test file uses what it needs")]

use std::{
    env, fs,
    path::Path,
    process::Command,
    ptr, thread,
    time::{Duration, Instant},
};

use gpumon_probe::vendor::sim::{Scenario, World};
use nvml_wrapper::Nvml;
use nvml_wrapper_sys::bindings::{NvmlLib, nvmlDevice_t};

const LIBRARY_VARIABLE: &str = "FAKE_NVML_TEST_LIBRARY";

/// Runs `body` in a process of its own, in which the library uses `scenario`. `body` receives the
/// path of a copy of the library that lacks the functions in `hidden`. `test` is the name of the
/// calling test.
#[track_caller]
pub(crate) fn run_with_library(test: &str, scenario: &str, hidden: &[&str], body: fn(&Path)) {
    if let Some(library) = env::var_os(LIBRARY_VARIABLE) {
        return body(Path::new(&library));
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("scenario.toml");
    fs::write(&file, scenario).unwrap();
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(
            LIBRARY_VARIABLE,
            fake_nvml::install(directory.path(), hidden),
        )
        .env("GPUMON_FAKE_NVML_SCENARIO", &file)
        .env(
            "GPUMON_FAKE_NVML_COUNTS",
            directory.path().join("counts.json"),
        )
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{printed}");
    assert!(
        printed.contains("1 passed"),
        "there is no test {test}: {printed}"
    );
}

/// Initializes NVML in the same way as gpumon.
pub(crate) fn initialize_nvml(library: &Path) -> Nvml {
    Nvml::builder()
        .lib_path(library.as_os_str())
        .init()
        .unwrap()
}

/// Opens the library without the wrapper, as a C program would.
#[allow(unsafe_code)]
pub(crate) fn open_library(library: &Path) -> NvmlLib {
    // SAFETY: the library's initializers only run code of Rust's standard library.
    unsafe { NvmlLib::new(library) }.unwrap()
}

/// Initializes an opened library and returns the handle of a GPU.
#[allow(unsafe_code)]
pub(crate) fn initialize_and_open_gpu(lib: &NvmlLib, gpu: u32) -> nvmlDevice_t {
    let mut device = ptr::null_mut();
    // SAFETY: the pointer is valid during the call.
    unsafe {
        assert_eq!(lib.nvmlInit_v2(), 0);
        assert_eq!(lib.nvmlDeviceGetHandleByIndex_v2(gpu, &raw mut device), 0);
    }
    device
}

pub(crate) fn struct_version<T>(_: &T, number: u32) -> u32 {
    size_of::<T>() as u32 | number << 24
}

/// Waits up to a minute until a condition is met.
#[track_caller]
pub(crate) fn wait_until(what: &str, happened: impl Fn() -> bool) {
    let begun = Instant::now();
    while !happened() {
        assert!(
            begun.elapsed() < Duration::from_mins(1),
            "{what} has not happened within a minute"
        );
        thread::sleep(Duration::from_millis(20));
    }
}

pub(crate) fn load_world(scenario: &str) -> World {
    World::new(Scenario::from_toml(scenario, "scenario.toml").unwrap())
}

/// Asserts that a call fails with this error. `NvmlError` cannot be compared with `assert_eq!`.
macro_rules! fails_with {
    ($result:expr, $error:pat) => {
        match $result {
            Err($error) => {}
            Err(other) => panic!("failed with another error: {other:?}"),
            Ok(_) => panic!("must fail, but succeeded"),
        }
    };
}

pub(crate) use fails_with;
