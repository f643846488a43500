//! The CUDA driver: `libcuda.so.1`, loaded at run time. No other part of CUDA is used.
//!
//! - [`Driver`] is the library. If the library cannot be used, [`DriverUnavailable`] contains the
//!   reason and the remedy.
//! - [`Device`] describes a GPU, and [`Context`] lets this process use the GPU.
//! - [`DeviceMemory`] and [`PinnedMemory`] are released when dropped. [`Staging`] copies pageable
//!   memory. [`Module`] and [`Kernel`] are code on a device.
//! - [`Stream`] executes and times operations in order. A [`Graph`] contains many operations that
//!   are launched together.
//! - [`Pool`] allocates stream-ordered memory. [`AddressRange`] reserves addresses, to which
//!   [`PhysicalMemory`] can be mapped.
//!
//! In this crate, only this module and the matrix products on the CPU contain `unsafe` code. It is
//! needed here because a C interface uses raw pointers. Each block states why it is sound. Handles
//! belong to one thread, on which the contexts of several devices can take turns.

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

pub use self::error::DriverUnavailable;
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
