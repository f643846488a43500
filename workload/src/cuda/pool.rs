//! Memory pools, whose device memory is allocated and freed in stream order.

use std::{
    cell::RefCell,
    ffi::{c_int, c_void},
    ptr,
    rc::Rc,
};

use super::{
    api::{Address, Handle},
    api::{PoolProperties, Pools},
    context::Context,
    driver::Version,
    error::CudaError,
    module::Kernel,
    stream::Stream,
};

/// The first CUDA version with memory pools.
const POOLS_SINCE: Version = Version(11_020);
/// The value of `CU_MEMPOOL_ATTR_RELEASE_THRESHOLD`.
const RELEASE_THRESHOLD: c_int = 4;
/// The value of `CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT`.
const RESERVED_CURRENT: c_int = 5;
/// The value of `CU_MEMPOOL_ATTR_USED_MEM_CURRENT`.
const USED_CURRENT: c_int = 7;

/// A memory pool that allocates memory in the order of its own stream. When the last allocation is
/// dropped, the pool releases all memory.
pub(crate) struct Pool {
    stream: Stream,
    api: &'static Pools,
    handle: Handle,
    /// The kernels that may still be running in the stream.
    started: RefCell<Vec<Kernel>>,
}

/// Memory from a pool. Dropping it frees the memory in stream order, after everything that was
/// started earlier.
pub(crate) struct PoolMemory {
    pool: Rc<Pool>,
    address: Address,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PoolSize {
    pub reserved_bytes: u64,
    /// The size of the memory that is allocated and not yet freed, in bytes.
    pub used_bytes: u64,
}

impl Pool {
    /// Creates a pool that keeps up to `keep_bytes` of free memory when its stream has finished.
    pub(crate) fn new(context: &Rc<Context>, keep_bytes: u64) -> Result<Rc<Self>, CudaError> {
        let driver = context.driver();
        let api = driver.pools.as_ref();
        let api = api.filter(|_| driver.version >= POOLS_SINCE);
        let api = api.ok_or_else(|| CudaError::from_old_driver("create a memory pool", "11.2"))?;
        let stream = context.create_stream()?;
        let properties = PoolProperties::for_device(context.device.handle);
        let mut handle = ptr::null_mut();
        // SAFETY: the pointer and the structure outlive the call, and the structure has the layout
        // that the driver expects.
        let code = unsafe { (api.cuMemPoolCreate)(&raw mut handle, &raw const properties) };
        driver.check_result(
            code,
            format!("create a memory pool on GPU {}", context.device.index),
        )?;
        let pool = Self {
            stream,
            api,
            handle,
            started: RefCell::default(),
        };
        let mut keep_bytes = keep_bytes;
        // SAFETY: the attribute is a 64-bit number, which outlives the call.
        let code = unsafe {
            (api.cuMemPoolSetAttribute)(handle, RELEASE_THRESHOLD, (&raw mut keep_bytes).cast())
        };
        driver.check_result(code, "set the amount that a memory pool keeps")?;
        Ok(Rc::new(pool))
    }

    /// Allocates memory. It is available to operations that follow in the stream.
    pub(crate) fn allocate(self: &Rc<Self>, bytes: u64) -> Result<PoolMemory, CudaError> {
        let mut address = 0;
        // SAFETY: the variable outlives the call, and the driver created both handles.
        let code = unsafe {
            (self.api.cuMemAllocFromPoolAsync)(
                &raw mut address,
                bytes as usize,
                self.handle,
                self.stream.handle,
            )
        };
        let context = &self.stream.context;
        context.driver().check_result(
            code,
            format!(
                "allocate {bytes} bytes from a pool on GPU {}",
                context.device.index
            ),
        )?;
        Ok(PoolMemory {
            pool: Rc::clone(self),
            address,
        })
    }

    pub(crate) fn size(&self) -> Result<PoolSize, CudaError> {
        let number = |attribute| {
            let mut value = 0_u64;
            // SAFETY: both attributes are 64-bit numbers, and the variable outlives the call.
            let code = unsafe {
                (self.api.cuMemPoolGetAttribute)(self.handle, attribute, (&raw mut value).cast())
            };
            self.stream
                .context
                .driver()
                .check_result(code, "read the size of a memory pool")
                .map(|()| value)
        };
        Ok(PoolSize {
            reserved_bytes: number(RESERVED_CURRENT)?,
            used_bytes: number(USED_CURRENT)?,
        })
    }

    pub(crate) fn trim(&self) -> Result<(), CudaError> {
        // SAFETY: the driver created the handle.
        let code = unsafe { (self.api.cuMemPoolTrimTo)(self.handle, 0) };
        self.stream
            .context
            .driver()
            .check_result(code, "trim a memory pool")
    }

    /// Launches a kernel with a number as its only argument, without waiting for the kernel.
    pub(crate) fn launch(&self, kernel: Kernel, argument: u64) -> Result<(), CudaError> {
        kernel.check_arguments(&[super::Argument::U64(argument)]);
        let mut value = argument;
        let mut places: [*mut c_void; 1] = [(&raw mut value).cast()];
        let driver = self.stream.context.driver();
        // SAFETY: the kernel takes a 64-bit number and no memory. The driver copies the number
        // before the call returns. The code stays loaded until the stream has finished.
        let code = unsafe {
            let (kernel, stream) = (kernel.handle, self.stream.handle);
            (driver.api.cuLaunchKernel)(
                kernel,
                1,
                1,
                1,
                1,
                1,
                1,
                0,
                stream,
                places.as_mut_ptr(),
                ptr::null_mut(),
            )
        };
        driver.check_result(code, format!("start the kernel {}", kernel.name))?;
        self.started.borrow_mut().push(kernel);
        Ok(())
    }

    pub(crate) fn wait_until_finished(&self) -> Result<(), CudaError> {
        let finished = self.stream.run(|_| Ok(()));
        self.started.borrow_mut().clear();
        finished.map(|_| ())
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // An error cannot be handled here. A lost device has nothing left to release.
        let _ = self.wait_until_finished();
        // SAFETY: the driver created the handle. It is released only here, when no memory of the
        // pool is in use.
        unsafe { (self.api.cuMemPoolDestroy)(self.handle) };
    }
}

impl Drop for PoolMemory {
    fn drop(&mut self) {
        // SAFETY: the address was returned by the driver and is released once. Everything that uses
        // the memory was started earlier in the same stream.
        unsafe { (self.pool.api.cuMemFreeAsync)(self.address, self.pool.stream.handle) };
    }
}
