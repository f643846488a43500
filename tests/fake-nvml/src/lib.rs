//! A libnvidia-ml.so.1 with simulated GPUs. It tests the real program through the real `dlopen`.
//!
//! The shared library exports NVML's C interface. Its answers come from `gpumon_probe`'s
//! simulation:
//!
//! - `GPUMON_FAKE_NVML_SCENARIO` names a TOML file with the GPUs and the events;
//!   `scenarios/example.toml` describes every key. By default, there is one busy GPU. The file is
//!   read at the first call.
//! - `GPUMON_FAKE_NVML_COUNTS` names an output file for the number of calls per function and GPU,
//!   such as `{"nvmlDeviceGetName": {"0": 2}, "nvmlInit_v2": {"system": 1}}`. It is written at
//!   every `nvmlShutdown`, and at most once a second while calls are made.
//! - `GPUMON_FAKE_GPU_STATE` names a folder with the memory and activity of processes that use the
//!   fake CUDA driver. These processes and their memory are added to those of the scenario. If one
//!   of them has been active on a GPU, utilization, activity and rates of that GPU come from the
//!   processes, but power still comes from the scenario.
//!
//! By hand: `GPUMON_FAKE_NVML_SCENARIO=FILE gpumon --nvml-lib target/debug/libfake_nvml.so`. In
//! tests: [`install()`] makes a copy, which may lack functions.
//!
//! `exports` are the functions of NVML. All of them use `call`, which counts, delays, hangs and
//! refuses calls as the scenario requires. `session` is the state of one process.

// A C interface uses raw pointers. Each unsafe block states why it is sound.
#![allow(unsafe_code)]

mod answers;
mod call;
mod code;
mod counts;
mod done;
mod exports;
mod given;
mod held;
mod install;
mod notes;
mod out;
mod session;

pub use install::install;
