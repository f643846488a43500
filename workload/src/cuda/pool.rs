//! Pools of device memory, which is allocated and freed in the order of a stream.

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

/// The first version of CUDA with memory pools.
const SINCE: Version = Version(11_020);
/// The value of `CU_MEMPOOL_ATTR_RELEASE_THRESHOLD`.
const RELEASE_THRESHOLD: c_int = 4;
/// The value of `CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT`.
const RESERVED: c_int = 5;
/// The value of `CU_MEMPOOL_ATTR_USED_MEM_CURRENT`.
const USED: c_int = 7;

/// A pool that allocates memory in the order of its own stream. It releases all memory when the
/// last allocation is dropped.
pub(crate) struct Pool {
    stream: Stream,
    api: &'static Pools,
    handle: Handle,
    /// Kernels that may still run in the stream.
    started: RefCell<Vec<Kernel>>,
}

/// Memory of a pool. After it is dropped, it is freed in the order of the stream, and not before
/// everything that was started earlier.
pub(crate) struct PoolMemory {
    pool: Rc<Pool>,
    address: Address,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PoolSize {
    pub reserved_bytes: u64,
    /// The memory that is allocated and not freed yet.
    pub used_bytes: u64,
}

impl Pool {
    /// Creates a pool that keeps up to this many bytes each time its stream has finished.
    pub(crate) fn new(context: &Rc<Context>, keep_bytes: u64) -> Result<Rc<Self>, CudaError> {
        let driver = context.driver();
        let api = driver.pools.as_ref();
        let api = api.filter(|_| driver.version >= SINCE);
        let api = api.ok_or_else(|| CudaError::too_old("make a memory pool", "11.2"))?;
        let stream = context.stream()?;
        let properties = PoolProperties::for_device(context.device.handle);
        let mut handle = ptr::null_mut();
        // SAFETY: the pointer and the structure outlive the call, and the structure has the
        // driver's layout.
        let code = unsafe { (api.cuMemPoolCreate)(&raw mut handle, &raw const properties) };
        driver.done(
            code,
            format!("make a memory pool on GPU {}", context.device.index),
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
        driver.done(code, "say how much a memory pool may keep")?;
        Ok(Rc::new(pool))
    }

    /// Allocates memory that is available as soon as the stream gets to the allocation.
    pub(crate) fn allocate(self: &Rc<Self>, bytes: u64) -> Result<PoolMemory, CudaError> {
        let mut address = 0;
        // SAFETY: the number outlives the call, and both handles are the driver's.
        let code = unsafe {
            (self.api.cuMemAllocFromPoolAsync)(
                &raw mut address,
                bytes as usize,
                self.handle,
                self.stream.handle,
            )
        };
        let context = &self.stream.context;
        context.driver().done(
            code,
            format!(
                "allocate {bytes} bytes of a pool on GPU {}",
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
                .done(code, "read the size of a memory pool")
                .map(|()| value)
        };
        Ok(PoolSize {
            reserved_bytes: number(RESERVED)?,
            used_bytes: number(USED)?,
        })
    }

    pub(crate) fn trim(&self) -> Result<(), CudaError> {
        // SAFETY: the handle is the driver's.
        let code = unsafe { (self.api.cuMemPoolTrimTo)(self.handle, 0) };
        self.stream
            .context
            .driver()
            .done(code, "trim a memory pool")
    }

    /// Launches a kernel with one number as its argument, without waiting for it.
    pub(crate) fn start(&self, kernel: Kernel, argument: u64) -> Result<(), CudaError> {
        kernel.check(&[super::Argument::U64(argument)]);
        let mut value = argument;
        let mut places: [*mut c_void; 1] = [(&raw mut value).cast()];
        let driver = self.stream.context.driver();
        // SAFETY: the kernel takes a 64-bit number and no memory, and the driver copies the number
        // before it returns. The code lives until the stream has been waited for.
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
        driver.done(code, format!("start the kernel {}", kernel.name))?;
        self.started.borrow_mut().push(kernel);
        Ok(())
    }

    pub(crate) fn finish(&self) -> Result<(), CudaError> {
        let finished = self.stream.run(|_| Ok(()));
        self.started.borrow_mut().clear();
        finished.map(|_| ())
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // An error cannot be handled here, and a lost device has nothing to release.
        let _ = self.finish();
        // SAFETY: the driver created the handle, and it is released only here, when no memory of
        // the pool is in use.
        unsafe { (self.api.cuMemPoolDestroy)(self.handle) };
    }
}

impl Drop for PoolMemory {
    fn drop(&mut self) {
        // SAFETY: the address came from the driver and is released once. Everything that uses it
        // was started earlier in the same stream.
        unsafe { (self.pool.api.cuMemFreeAsync)(self.address, self.pool.stream.handle) };
    }
}
