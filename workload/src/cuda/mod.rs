//! The CUDA driver: `libcuda.so.1`, loaded at run time, and no other part of CUDA.
//!
//! - [`Driver`] is the library. If it cannot be used, [`Unavailable`] has the reason and the
//!   remedy.
//! - [`Device`] describes a GPU, and [`Context`] lets this process use it.
//! - [`DeviceMemory`] and [`PinnedMemory`] are released when they are dropped, and [`Staging`]
//!   copies pageable memory. [`Module`] and [`Kernel`] are code on a device.
//! - [`Stream`] executes operations in order, and times them. A [`Graph`] contains many operations
//!   that are launched together.
//! - [`Pool`] allocates memory in the order of a stream. [`AddressRange`] reserves addresses, to
//!   which [`PhysicalMemory`] can be mapped.
//!
//! This module has `unsafe` code, like the matrix products on the CPU and nothing else in the
//! crate, because a C interface uses raw pointers. Each block states why it is sound. Handles
//! belong to one thread, on which contexts of several devices take turns.

#![allow(unsafe_code)]

mod api;
mod context;
mod cublas;
mod device;
mod driver;
mod error;
mod memory;
mod module;
mod pool;
mod queue;
mod stream;
mod tensor_map;
mod virtual_memory;

pub use self::error::Unavailable;
pub(crate) use self::{
    context::{Context, FreeMemory},
    cublas::{Cublas, CublasError},
    device::Attribute,
    device::Device,
    driver::Driver,
    error::CudaError,
    memory::DeviceMemory,
    memory::PinnedMemory,
    memory::Staging,
    module::{Argument, Code, Kernel, Module},
    pool::{Pool, PoolSize},
    queue::{Grid, Plain, Queue},
    stream::Graph,
    stream::{Elapsed, Stream},
    tensor_map::TensorMap,
    virtual_memory::{AddressRange, PhysicalMemory},
};
