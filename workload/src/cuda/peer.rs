//! Two devices that reach each other's memory.

use super::{context::Context, error::CudaError};

/// `CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED`.
const ALREADY_ENABLED: i32 = 704;

impl Context {
    /// Lets this device reach the other's memory without the host between them, where the hardware has a way; else copies
    /// go over the host.
    pub(crate) fn reach(&self, other: &Self) -> Result<(), CudaError> {
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
        // SAFETY: this context is current, and the other is retained while it is borrowed. That may end before this
        // one does, and takes the way to it along.
        match unsafe { (driver.api.cuCtxEnablePeerAccess)(other.handle, 0) } {
            ALREADY_ENABLED => Ok(()),
            code => driver.done(code, format!("let GPU {own} reach GPU {its}")),
        }
    }
}
