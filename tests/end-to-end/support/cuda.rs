//! A fake CUDA driver with its scenario, and gpumon commands that use it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::Duration,
};

use serde_json::Value;
use tempfile::TempDir;

use super::{
    FakeNvml, gpumon_command, parse_json_lines, send_signal, stderr_text, stdout_text,
    wait_for_condition,
};

/// The width of the memory bus of each device of [`FakeMachine::new`], in bits.
pub(crate) const SMALL_BUS_BITS: u32 = 48;
/// The number of multiprocessors of each device of [`FakeMachine::new`].
pub(crate) const SMALL_MULTIPROCESSORS: u32 = 4;
/// The clock of the multiprocessors of each device of [`FakeMachine::new`], in MHz.
pub(crate) const SMALL_SM_MHZ: u32 = 4;

/// A fake CUDA driver with its scenario in a temporary folder.
pub(crate) struct FakeCuda {
    folder: TempDir,
    library: PathBuf,
}

/// The fake CUDA and NVML libraries with the same GPUs. NVML reports the activity that CUDA
/// programs cause.
pub(crate) struct FakeMachine {
    pub(crate) nvml: FakeNvml,
    pub(crate) cuda: FakeCuda,
}

impl FakeMachine {
    /// Creates both libraries. `gpus` is the scenario of NVML.
    pub(crate) fn new(gpus: &str) -> Self {
        // The device is small and slow, because this CPU executes the work. On a device as large as
        // an H200, this work would hardly be visible as a percentage of the peak.
        Self::with_device(
            gpus,
            &format!(
                "memory_bus_bits = {SMALL_BUS_BITS}\nmultiprocessors = {SMALL_MULTIPROCESSORS}\n\
                 sm_mhz = {SMALL_SM_MHZ}\nslowdown = 4"
            ),
        )
    }

    /// Creates both libraries. `device` contains keys of the scenario of CUDA.
    pub(crate) fn with_device(gpus: &str, device: &str) -> Self {
        let nvml = FakeNvml::new(gpus);
        let gpus = &nvml.read_json()["inventory"]["gpus"];
        let uuids: Vec<_> = gpus
            .as_array()
            .unwrap()
            .iter()
            .map(|gpu| gpu["uuid"].as_str().unwrap())
            .collect();
        let scenario = format!("devices = {}\nuuids = {uuids:?}\n{device}", uuids.len());
        Self {
            nvml,
            cuda: FakeCuda::new(&scenario),
        }
    }

    pub(crate) fn gpumon_command(&self, arguments: &[&str]) -> Command {
        self.set_state_folder(self.cuda.gpumon_command_with(&self.nvml, arguments))
    }

    /// Returns the result of `work`, and the samples of a collector that runs before, during and
    /// after it.
    pub(crate) fn sample_during<T>(&self, work: impl FnOnce() -> T) -> (T, Vec<Value>) {
        let records = self.nvml.path("records");
        let mut collect =
            self.set_state_folder(
                self.nvml
                    .gpumon_command(&["collect", "--interval-ms", "100"]),
            );
        // The output goes to a file, because a full pipe would block the collector.
        let mut collector = collect
            .stdout(fs::File::create(&records).unwrap())
            .spawn()
            .unwrap();
        let has_begun =
            || fs::read_to_string(&records).is_ok_and(|text| text.contains(r#""type":"sample""#));
        wait_for_condition("the collector has written a sample", has_begun);
        let done = work();
        // The collector reads some values once a second. It must read them once more after the
        // work.
        thread::sleep(Duration::from_millis(2500));
        send_signal("-TERM", collector.id());
        collector.wait().unwrap();
        let mut lines = parse_json_lines(&fs::read_to_string(records).unwrap());
        lines.retain(|line| line["type"] == "sample");
        (done, lines)
    }

    /// Adds the shared state to a command, so that NVML and CUDA see each other's activity.
    pub(crate) fn set_state_folder(&self, mut command: Command) -> Command {
        command.env(
            fake_gpu_state::STATE_VARIABLE,
            self.cuda.folder().join("state"),
        );
        command
    }
}

impl FakeCuda {
    /// Creates a driver. `scenario` is TOML in the format of `tests/fake-cuda/example.toml`.
    pub(crate) fn new(scenario: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let library = fake_cuda::install(folder.path());
        let counters = folder.path().join("counters.json");
        let scenario = format!("counters = {:?}\n{scenario}", counters.to_str().unwrap());
        fs::write(folder.path().join("scenario.toml"), scenario).unwrap();
        Self { folder, library }
    }

    pub(crate) fn gpumon_command(&self, arguments: &[&str]) -> Command {
        self.set_variables(gpumon_command(arguments))
    }

    /// Returns `gpumon` with both this driver and the NVML library.
    pub(crate) fn gpumon_command_with(&self, nvml: &FakeNvml, arguments: &[&str]) -> Command {
        self.set_variables(nvml.gpumon_command(arguments))
    }

    /// Returns the folder with this driver's locks. A test may store its own files there.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the driver's counters; null before the first call.
    pub(crate) fn read_counters(&self) -> Value {
        let text = fs::read_to_string(self.folder.path().join("counters.json")).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// Checks that all resources were released, and returns the driver's counters.
    #[track_caller]
    pub(crate) fn assert_resources_released(&self) -> Value {
        let counters = self.read_counters();
        assert_eq!(
            (&counters["held_bytes"], &counters["contexts"]),
            (&0.into(), &0.into()),
            "{counters}"
        );
        counters
    }

    fn set_variables(&self, mut command: Command) -> Command {
        command
            .env("GPUMON_LIBCUDA", &self.library)
            // All fake GPUs have the same IDs, so tests that shared a folder for locks would block
            // each other.
            .env("GPUMON_LOCKS", self.folder.path())
            .env(
                "GPUMON_FAKE_CUDA_SCENARIO",
                self.folder.path().join("scenario.toml"),
            );
        command
    }
}

/// Runs the command. Returns its exit code, the JSON objects of its output lines, and its error
/// output.
pub(crate) fn run_json_lines(mut command: Command) -> (Option<i32>, Vec<Value>, String) {
    let output = command.output().unwrap();
    (
        output.status.code(),
        parse_json_lines(&stdout_text(&output)),
        stderr_text(&output),
    )
}
