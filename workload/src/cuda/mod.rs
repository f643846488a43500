//! The CUDA driver: `libcuda.so.1` and nothing else of CUDA, loaded while the program runs.
//!
//! - [`Driver`] is the library; what keeps it from being used is an [`Unavailable`], each with its
//!   fix.
//! - [`Device`] is a GPU as the driver describes it, [`Context`] what makes it work for this
//!   process.
//! - [`DeviceMemory`] and [`PinnedMemory`] give themselves back, and a [`Staging`] is how pageable
//!   memory is copied; [`Module`] and [`Kernel`] are code on a device.
//! - [`Stream`] does things in their order, and times them; a [`Graph`] is many of them, started at
//!   once.
//! - [`Pool`] hands memory out in the order of a stream; [`AddressRange`] is addresses alone,
//!   behind which [`PhysicalMemory`] can be put.
//!
//! It has `unsafe` code, as the CPU's products alone have beside it: a C interface is raw pointers,
//! and each block says why it may touch them. Handles are of one thread, on which contexts of
//! several devices take turns.

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
