//! A libnvidia-ml.so.1 that speaks for simulated GPUs, so that the real program is tested through
//! the real `dlopen`.
//!
//! The shared library exports NVML's C interface over `gpumon_probe`'s simulation:
//!
//! - `GPUMON_FAKE_NVML_SCENARIO` names the TOML file that says which GPUs there are and what
//!   happens to them; `scenarios/example.toml` describes every key. Without it there is one busy
//!   GPU. It is read at the first call.
//! - `GPUMON_FAKE_NVML_COUNTS` names a file that gets the number of calls per function and GPU, as
//!   `{"nvmlDeviceGetName": {"0": 2}, "nvmlInit_v2": {"system": 1}}`: at every `nvmlShutdown`, and
//!   at most once a second while calls are made.
//! - `GPUMON_FAKE_GPU_STATE` names a folder in which processes that use the fake CUDA driver say
//!   what they hold and do. Their memory and they themselves are told beside those of the scenario.
//!   Of a GPU on which one of them has done anything, use, activity and rates are what they did,
//!   and power is still the scenario's.
//!
//! By hand: `GPUMON_FAKE_NVML_SCENARIO=FILE gpumon --nvml-lib target/debug/libfake_nvml.so`. In
//! tests: [`install`] makes a copy, from which functions can be missing.
//!
//! What the parts are: `exports` is NVML's interface, function by function; every one of them goes
//! through `call`, which counts, delays, hangs and refuses as the scenario says; `session` holds
//! what one process has loaded.

// A C interface is raw pointers; each block says why it may touch them.
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
