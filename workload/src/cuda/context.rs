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

/// A GPU's primary context. It stays on the thread that created it. Several contexts can take turns
/// on a thread: each is made current before it is used. The context is released when the last
/// reference to it is dropped.
pub(crate) struct Context {
    pub device: Device,
    /// The context. As a raw pointer, it also prevents the context from being sent to another
    /// thread.
    pub(super) handle: Handle,
}

thread_local! {
    /// The context that this module last made current on this thread.
    static CURRENT_CONTEXT: Cell<Handle> = const { Cell::new(ptr::null_mut()) };
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
            .check_result(code, format!("create a context on GPU {}", device.index))?;
        let context = Rc::new(Self {
            device: device.clone(),
            handle,
        });
        device.driver.check_result(
            context.make_current(),
            format!("use GPU {} in this thread", device.index),
        )?;
        Ok(context)
    }

    pub(crate) fn memory(&self) -> Result<FreeMemory, CudaError> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: both variables outlive the call, and the context is current.
        let code = unsafe { (self.driver().api.cuMemGetInfo_v2)(&raw mut free, &raw mut total) };
        self.driver().check_result(
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

    /// Allocates pinned host memory, from which and to which the device can copy directly.
    pub(crate) fn allocate_pinned(self: &Rc<Self>, bytes: u64) -> Result<PinnedMemory, CudaError> {
        PinnedMemory::new(self, bytes)
    }

    /// Creates pinned buffers for copying pageable memory.
    pub(crate) fn create_staging(self: &Rc<Self>) -> Result<Staging, CudaError> {
        Staging::new(self)
    }

    pub(crate) fn load_module(self: &Rc<Self>, code: Code) -> Result<Rc<Module>, CudaError> {
        Module::load(self, code)
    }

    pub(crate) fn create_stream(self: &Rc<Self>) -> Result<Stream, CudaError> {
        Stream::new(self)
    }

    /// Returns the driver after making this context current. All calls that depend on the context
    /// must get the driver from this method.
    pub(super) fn driver(&self) -> &'static Driver {
        // If this fails, the next call of the driver returns the error, so the result is ignored.
        self.make_current();
        self.device.driver
    }

    fn make_current(&self) -> api::Code {
        if CURRENT_CONTEXT.get() == self.handle {
            return 0;
        }
        // SAFETY: the context is retained until `self` is dropped.
        let code = unsafe { (self.device.driver.api.cuCtxSetCurrent)(self.handle) };
        CURRENT_CONTEXT.set(if code == 0 {
            self.handle
        } else {
            ptr::null_mut()
        });
        code
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the context was retained once, and is released once. Everything created in it
        // holds a reference to it, and has therefore been dropped. An error of the driver would
        // change nothing.
        unsafe { (self.device.driver.api.cuDevicePrimaryCtxRelease_v2)(self.device.handle) };
        // The driver may have destroyed the context. If it is retained again, it must be made
        // current again.
        if CURRENT_CONTEXT.get() == self.handle {
            CURRENT_CONTEXT.set(ptr::null_mut());
        }
    }
}

/// The value of `CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED`.
const ALREADY_ENABLED: i32 = 704;

impl Context {
    /// Lets this device access the other device's memory directly, if the hardware supports this.
    /// Otherwise, copies go through host memory.
    pub(crate) fn enable_peer_access(&self, other: &Self) -> Result<(), CudaError> {
        let driver = self.driver();
        let (own, its) = (self.device.index, other.device.index);
        let mut can = 0;
        // SAFETY: the variable outlives the call.
        let code = unsafe {
            (driver.api.cuDeviceCanAccessPeer)(
                &raw mut can,
                self.device.handle,
                other.device.handle,
            )
        };
        driver.check_result(
            code,
            format!("check whether GPU {own} can access GPU {its}"),
        )?;
        if can == 0 {
            return Ok(());
        }
        // SAFETY: this context is current, and the other context stays retained while it is
        // borrowed. If the other context ends first, access to its memory ends with it.
        match unsafe { (driver.api.cuCtxEnablePeerAccess)(other.handle, 0) } {
            ALREADY_ENABLED => Ok(()),
            code => driver.check_result(code, format!("give GPU {own} access to GPU {its}")),
        }
    }
}
