//! A fake CUDA driver with its scenario, and the program over it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::Duration,
};

use serde_json::Value;
use tempfile::TempDir;

use super::{Fake, eventually, gpumon, json_lines, signal, stderr, stdout};

/// A fake CUDA driver with its scenario, in a folder of its own.
pub(crate) struct FakeCuda {
    folder: TempDir,
    library: PathBuf,
}

/// Both libraries over the same GPUs: what is done on them through CUDA is what NVML tells of them.
pub(crate) struct FakeMachine {
    pub(crate) nvml: Fake,
    pub(crate) cuda: FakeCuda,
}

impl FakeMachine {
    /// `gpus` is the scenario of NVML.
    pub(crate) fn new(gpus: &str) -> Self {
        let nvml = Fake::new(gpus);
        let gpus = &nvml.json()["inventory"]["gpus"];
        let uuids: Vec<_> = gpus
            .as_array()
            .unwrap()
            .iter()
            .map(|gpu| gpu["uuid"].as_str().unwrap())
            .collect();
        // Of what an H200 moves and computes, what this processor does would hardly show.
        let small = "memory_bus_bits = 192\nmultiprocessors = 4\nsm_mhz = 16";
        let scenario = format!("devices = {}\nuuids = {uuids:?}\n{small}", uuids.len());
        Self {
            nvml,
            cuda: FakeCuda::new(&scenario),
        }
    }

    pub(crate) fn gpumon(&self, arguments: &[&str]) -> Command {
        self.with_state(self.cuda.gpumon_with(&self.nvml, arguments))
    }

    /// What work comes to, and the samples of a collector from before it until after it.
    pub(crate) fn sampled<T>(&self, work: impl FnOnce() -> T) -> (T, Vec<Value>) {
        let records = self.nvml.path("records");
        let mut collect = self.with_state(self.nvml.gpumon(&["collect", "--interval-ms", "100"]));
        // A pipe that nobody reads would hold it up.
        let mut collector = collect
            .stdout(fs::File::create(&records).unwrap())
            .spawn()
            .unwrap();
        let has_begun =
            || fs::read_to_string(&records).is_ok_and(|text| text.contains(r#""type":"sample""#));
        eventually("the collector samples", has_begun);
        let done = work();
        // What is asked once a second is told once more.
        thread::sleep(Duration::from_millis(2500));
        signal("-TERM", collector.id());
        collector.wait().unwrap();
        let mut lines = json_lines(&fs::read_to_string(records).unwrap());
        lines.retain(|line| line["type"] == "sample");
        (done, lines)
    }

    /// A command to which NVML tells what is done through CUDA, and the other way round.
    pub(crate) fn with_state(&self, mut command: Command) -> Command {
        command.env(fake_gpu_state::VARIABLE, self.cuda.folder().join("state"));
        command
    }
}

impl FakeCuda {
    /// `scenario` is TOML, as `tests/fake-cuda/example.toml` describes it.
    pub(crate) fn new(scenario: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let library = fake_cuda::install(folder.path());
        let counters = folder.path().join("counters.json");
        let scenario = format!("counters = {:?}\n{scenario}", counters.to_str().unwrap());
        fs::write(folder.path().join("scenario.toml"), scenario).unwrap();
        Self { folder, library }
    }

    pub(crate) fn gpumon(&self, arguments: &[&str]) -> Command {
        self.set(gpumon(arguments))
    }

    /// The same, with NVML's library beside it.
    pub(crate) fn gpumon_with(&self, nvml: &Fake, arguments: &[&str]) -> Command {
        self.set(nvml.gpumon(arguments))
    }

    /// The folder of this driver's locks, and of what a test wants to keep.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What the driver was asked for; nothing where that was nothing yet.
    pub(crate) fn counters(&self) -> Value {
        let text = fs::read_to_string(self.folder.path().join("counters.json")).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// Checks that all was given back, and gives what the driver was asked for.
    #[track_caller]
    pub(crate) fn counters_at_rest(&self) -> Value {
        let counters = self.counters();
        assert_eq!(
            (&counters["held_bytes"], &counters["contexts"]),
            (&0.into(), &0.into()),
            "{counters}"
        );
        counters
    }

    fn set(&self, mut command: Command) -> Command {
        command
            .env("GPUMON_LIBCUDA", &self.library)
            // The fakes' GPUs are alike, and runs of other tests are not in the way.
            .env("GPUMON_LOCKS", self.folder.path())
            .env(
                "GPUMON_FAKE_CUDA_SCENARIO",
                self.folder.path().join("scenario.toml"),
            );
        command
    }
}

/// Runs, and gives the exit code, the JSON objects that stand a line each, and what was complained
/// of.
pub(crate) fn lines_of(mut command: Command) -> (Option<i32>, Vec<Value>, String) {
    let output = command.output().unwrap();
    (
        output.status.code(),
        json_lines(&stdout(&output)),
        stderr(&output),
    )
}
