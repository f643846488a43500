//! A fake CUDA driver with its scenario, and the program over it.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;
use tempfile::TempDir;

use super::{Fake, gpumon, stderr, stdout};

/// A fake CUDA driver with its scenario, in a folder of its own.
pub(crate) struct FakeCuda {
    folder: TempDir,
    library: PathBuf,
}

impl FakeCuda {
    /// `scenario` is TOML, as `tests/fake-cuda/example.toml` describes it.
    pub(crate) fn new(scenario: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let library = fake_cuda::install(folder.path());
        let book = folder.path().join("book.json");
        let scenario = format!("book = {:?}\n{scenario}", book.to_str().unwrap());
        std::fs::write(folder.path().join("scenario.toml"), scenario).unwrap();
        Self { folder, library }
    }

    /// `gpumon` with these arguments, over this driver.
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
    pub(crate) fn book(&self) -> Value {
        let text = std::fs::read_to_string(self.folder.path().join("book.json")).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    fn set(&self, mut command: Command) -> Command {
        command
            .env("GPUMON_LIBCUDA", &self.library)
            // The fakes' GPUs are alike, and runs of other tests are not in the way.
            .env("GPUMON_LOCKS", self.folder.path())
            .env("GPUMON_FAKE_CUDA_SCENARIO", self.folder.path().join("scenario.toml"));
        command
    }
}

/// Runs, and gives the exit code, the JSON objects that stand a line each, and what was complained of.
pub(crate) fn lines_of(mut command: Command) -> (Option<i32>, Vec<Value>, String) {
    let output = command.output().unwrap();
    let lines = stdout(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (output.status.code(), lines, stderr(&output))
}
