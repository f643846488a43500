//! The context through which this process uses a GPU.

use std::{cell::Cell, ptr, rc::Rc};

use super::{
    api::{self, Handle},
    device::Device,
    driver::Driver,
    error::CudaError,
    memory::DeviceMemory,
    memory::PinnedMemory,
    memory::Staging,
    module::{Code, Module},
    stream::Stream,
};

/// The primary context of a GPU. It stays on the thread that created it. Several contexts can take
/// turns on a thread: each becomes current before it is used. The GPU is released when the last
/// reference is dropped.
pub(crate) struct Context {
    pub device: Device,
    /// A raw pointer, which also prevents the context from being sent to another thread.
    pub(super) handle: Handle,
}

thread_local! {
    /// The context that is current on this thread, if this module made it current.
    static CURRENT: Cell<Handle> = const { Cell::new(ptr::null_mut()) };
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FreeMemory {
    pub free_bytes: u64,
    pub total_bytes: u64,
}

impl Context {
    pub(crate) fn new(device: &Device) -> Result<Rc<Self>, CudaError> {
        let api = &device.driver.api;
        let mut handle = ptr::null_mut();
        // SAFETY: the pointer outlives the call.
        let code = unsafe { (api.cuDevicePrimaryCtxRetain)(&raw mut handle, device.handle) };
        device
            .driver
            .done(code, format!("start to work on GPU {}", device.index))?;
        let context = Rc::new(Self {
            device: device.clone(),
            handle,
        });
        device.driver.done(
            context.make_current(),
            format!("work on GPU {} from this thread", device.index),
        )?;
        Ok(context)
    }

    pub(crate) fn memory(&self) -> Result<FreeMemory, CudaError> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: the numbers outlive the call, and the context is current.
        let code = unsafe { (self.driver().api.cuMemGetInfo_v2)(&raw mut free, &raw mut total) };
        self.driver().done(
            code,
            format!("read the free memory of GPU {}", self.device.index),
        )?;
        Ok(FreeMemory {
            free_bytes: free as u64,
            total_bytes: total as u64,
        })
    }

    pub(crate) fn allocate(self: &Rc<Self>, bytes: u64) -> Result<DeviceMemory, CudaError> {
        DeviceMemory::new(self, bytes)
    }

    /// Allocates pinned host memory, from which the device copies by itself.
    pub(crate) fn pin(self: &Rc<Self>, bytes: u64) -> Result<PinnedMemory, CudaError> {
        PinnedMemory::new(self, bytes)
    }

    /// Returns pinned buffers for copies of pageable memory.
    pub(crate) fn staging(self: &Rc<Self>) -> Result<Staging, CudaError> {
        Staging::new(self)
    }

    pub(crate) fn load(self: &Rc<Self>, code: Code) -> Result<Rc<Module>, CudaError> {
        Module::load(self, code)
    }

    pub(crate) fn stream(self: &Rc<Self>) -> Result<Stream, CudaError> {
        Stream::new(self)
    }

    /// Returns the driver, after making this context current. All calls that depend on the context
    /// use this method.
    pub(super) fn driver(&self) -> &'static Driver {
        // If this fails, the next call of the driver returns the error.
        self.make_current();
        self.device.driver
    }

    fn make_current(&self) -> api::Code {
        if CURRENT.get() == self.handle {
            return 0;
        }
        // SAFETY: the context is retained until `self` is dropped.
        let code = unsafe { (self.device.driver.api.cuCtxSetCurrent)(self.handle) };
        CURRENT.set(if code == 0 {
            self.handle
        } else {
            ptr::null_mut()
        });
        code
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the context was retained once. Everything in it has a reference to it, and has
        // therefore been dropped. An error of the driver would change nothing.
        unsafe { (self.device.driver.api.cuDevicePrimaryCtxRelease_v2)(self.device.handle) };
        // The driver may have destroyed the context, so it must become current again if it is
        // retained again.
        if CURRENT.get() == self.handle {
            CURRENT.set(ptr::null_mut());
        }
    }
}

/// The value of `CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED`.
const ALREADY_ENABLED: i32 = 704;

impl Context {
    /// Lets this device access the other's memory directly if the hardware supports that.
    /// Otherwise, copies pass through the host.
    pub(crate) fn enable_access(&self, other: &Self) -> Result<(), CudaError> {
        let driver = self.driver();
        let (own, its) = (self.device.index, other.device.index);
        let mut can = 0;
        // SAFETY: the number outlives the call.
        let code = unsafe {
            (driver.api.cuDeviceCanAccessPeer)(
                &raw mut can,
                self.device.handle,
                other.device.handle,
            )
        };
        driver.done(code, format!("ask whether GPU {own} reaches GPU {its}"))?;
        if can == 0 {
            return Ok(());
        }
        // SAFETY: this context is current, and the other is retained while it is borrowed. If the
        // other context ends first, the access to its memory ends with it.
        match unsafe { (driver.api.cuCtxEnablePeerAccess)(other.handle, 0) } {
            ALREADY_ENABLED => Ok(()),
            code => driver.done(code, format!("let GPU {own} reach GPU {its}")),
        }
    }
}
