//! A libcuda.so.1 whose devices are this machine's processor. It tests the real program through the
//! real `dlopen`, without a GPU.
//!
//! `GPUMON_FAKE_CUDA_SCENARIO` names a TOML file with the devices and their faults; `example.toml`
//! describes every key. By default, there is one device without faults.
//!
//! By hand: `GPUMON_LIBCUDA=target/debug/libfake_cuda.so gpumon bench copy --size 16MiB`. In tests:
//! [`install()`].
//!
//! `GPUMON_FAKE_GPU_STATE` names a folder. Processes with the same folder share the memory of the
//! devices. Their activity is stored there, and the fake NVML reports it.
//!
//! `exports` is the driver's interface. `state` is the state of one process, with its `budget` of
//! memory, `pools`, `virtual_memory` and `activity`. `kernels` has a function for each kernel of
//! the program.

// A C interface uses raw pointers. Each unsafe block states why it is sound.
#![allow(unsafe_code)]

mod activity;
mod budget;
mod code;
mod exports;
#[cfg(any(fuzzing, test))]
pub mod fuzzing;
mod install;
mod kernels;
mod pools;
mod scenario;
mod state;
mod streams;
mod virtual_memory;

pub use install::install;
