//! Memory of a device, given back when it is dropped.

use std::rc::Rc;

use super::{api::Address, context::Context, device::Device, driver::Driver, error::CudaError};

/// Memory of a device. It is plain `cuMemAlloc`: a pool would keep what was given back, and tell less than the truth
/// about what is free.
pub(crate) struct DeviceMemory {
    pub(super) context: Rc<Context>,
    pub(super) address: Address,
    bytes: u64,
}

impl DeviceMemory {
    pub(super) fn new(context: &Rc<Context>, bytes: u64) -> Result<Self, CudaError> {
        let mut address = 0;
        // SAFETY: the number outlives the call, and the context is current.
        let code =
            unsafe { (context.driver().api.cuMemAlloc_v2)(&raw mut address, bytes as usize) };
        context.driver().done(
            code,
            format!("allocate {bytes} bytes on GPU {}", context.device.index),
        )?;
        Ok(Self {
            context: Rc::clone(context),
            address,
            bytes,
        })
    }

    pub(super) fn driver(&self) -> &'static Driver {
        self.context.driver()
    }

    pub(crate) fn device(&self) -> &Device {
        &self.context.device
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        // SAFETY: the address came from the driver and is given back once. A device that is lost has nothing to give
        // back, so that the answer changes nothing.
        unsafe { (self.context.driver().api.cuMemFree_v2)(self.address) };
    }
}
