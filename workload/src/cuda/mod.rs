//! The CUDA driver: `libcuda.so.1`, loaded at run time. No other part of CUDA is used.
//!
//! - [`Driver`] is the library. If the library cannot be used, [`DriverUnavailable`] contains the
//!   reason and the remedy. [`CudaError`] is a failed call.
//! - [`Device`] describes a GPU, and [`Context`] lets this process use the GPU.
//! - [`DeviceMemory`] and [`PinnedMemory`] are released when dropped. [`Staging`] copies pageable
//!   memory. [`Module`] and [`Kernel`] are code on a device.
//! - [`Stream`] executes and times operations in order. A [`Graph`] contains many operations that
//!   are launched together.
//! - [`TensorMap`] describes a matrix for the copy engine, which reads it tile by tile.
//! - [`Pool`] allocates stream-ordered memory. [`AddressRange`] reserves addresses, to which
//!   [`PhysicalMemory`] can be mapped.
//!
//! In this crate, only this module and the matrix products on the CPU contain `unsafe` code. It is
//! needed here because a C interface uses raw pointers. Each block states why it is sound. Handles
//! belong to one thread, on which the contexts of several devices can take turns.

#![allow(unsafe_code)]

mod api;
mod cublas;
mod device;
mod driver;
mod memory;
mod module;
mod queue;
mod stream;
mod virtual_memory;

pub use self::driver::DriverUnavailable;
pub(crate) use self::{
    cublas::{Cublas, CublasError},
    device::{Attribute, Context, Device, FreeMemory},
    driver::{CudaError, Driver},
    memory::{DeviceMemory, PinnedMemory, Pool, PoolSize, Staging},
    module::{Argument, Code, Kernel, Module, TensorMap},
    queue::{Grid, Plain, Queue},
    stream::{Elapsed, Graph, Stream},
    virtual_memory::{AddressRange, PhysicalMemory},
};
