//! Pools: memory of a device that is handed out, and taken back, in the order of a stream.

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

/// The first CUDA that has them.
const SINCE: Version = Version(11_020);
/// `CU_MEMPOOL_ATTR_RELEASE_THRESHOLD`.
const RELEASE_THRESHOLD: c_int = 4;
/// `CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT`.
const RESERVED: c_int = 5;
/// `CU_MEMPOOL_ATTR_USED_MEM_CURRENT`.
const USED: c_int = 7;

/// A pool with a stream of its own, in whose order memory is handed out. It ends, with all of it
/// given back, when the last of its memory is dropped.
pub(crate) struct Pool {
    stream: Stream,
    api: &'static Pools,
    handle: Handle,
    /// Kernels that may still run in the stream.
    started: RefCell<Vec<Kernel>>,
}

/// Memory of a pool. When it is dropped it is freed in the order of the stream: not before all that
/// was begun there.
pub(crate) struct PoolMemory {
    pool: Rc<Pool>,
    address: Address,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PoolSize {
    pub reserved_bytes: u64,
    /// Handed out, and not freed yet.
    pub used_bytes: u64,
}

impl Pool {
    /// A pool that keeps up to so many bytes whenever its stream has come to its end.
    pub(crate) fn new(context: &Rc<Context>, keep_bytes: u64) -> Result<Rc<Self>, CudaError> {
        let driver = context.driver();
        let api = driver.pools.as_ref();
        let api = api.filter(|_| driver.version >= SINCE);
        let api = api.ok_or_else(|| CudaError::too_old("make a memory pool", "11.2"))?;
        let stream = context.stream()?;
        let properties = PoolProperties::for_device(context.device.handle);
        let mut handle = ptr::null_mut();
        // SAFETY: the pointer and the structure, which is the driver's, outlive the call.
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
        // SAFETY: that attribute is a number of 64 bits, and it outlives the call.
        let code = unsafe {
            (api.cuMemPoolSetAttribute)(handle, RELEASE_THRESHOLD, (&raw mut keep_bytes).cast())
        };
        driver.done(code, "say how much a memory pool may keep")?;
        Ok(Rc::new(pool))
    }

    /// So much memory of it, there as soon as the stream is.
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
            // SAFETY: both attributes are numbers of 64 bits, and the place for it outlives the
            // call.
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

    /// Starts a kernel in the stream and does not wait for it. It takes one number.
    pub(crate) fn start(&self, kernel: Kernel, argument: u64) -> Result<(), CudaError> {
        kernel.check(&[super::Argument::U64(argument)]);
        let mut value = argument;
        let mut places: [*mut c_void; 1] = [(&raw mut value).cast()];
        let driver = self.stream.context.driver();
        // SAFETY: the kernel takes a number of 64 bits and no memory, and the driver copies it
        // before it returns. The code lives until the stream has waited.
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
        // Nothing more can be done about an error here; a device that is lost has nothing to give
        // back.
        let _ = self.finish();
        // SAFETY: the driver created the handle, and it is released only here, when no memory of
        // the pool is in use.
        unsafe { (self.api.cuMemPoolDestroy)(self.handle) };
    }
}

impl Drop for PoolMemory {
    fn drop(&mut self) {
        // SAFETY: the address came from the driver and is given back once; whatever uses it was
        // begun before, in the same stream.
        unsafe { (self.pool.api.cuMemFreeAsync)(self.address, self.pool.stream.handle) };
    }
}
