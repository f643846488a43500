//! A libcuda.so.1 whose devices are this machine's processor, so that the real program is tested
//! through the real `dlopen`, without a GPU.
//!
//! `GPUMON_FAKE_CUDA_SCENARIO` names the TOML file that says which devices there are and what goes
//! wrong; `example.toml` describes every key. Without it there is one device, which is well.
//!
//! By hand: `GPUMON_LIBCUDA=target/debug/libfake_cuda.so gpumon bench copy --size 16MiB`. In tests:
//! [`install`].
//!
//! `GPUMON_FAKE_GPU_STATE` names a folder, and processes that have the same share the devices'
//! memory. What each does on them stands there, too, and the fake NVML tells it.
//!
//! `exports` is the driver's interface; `state` is what one process holds of it, with its `budget`
//! of memory, `pools` and `virtual_memory`, and `activity` what it does; `kernels` has for each
//! kernel of the program, by its name, what it does.

// A C interface is raw pointers; each block says why it may touch them.
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
