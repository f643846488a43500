//! Moments in a stream, by the device's own clock.

use std::{ptr, rc::Rc};

use super::{api::Handle, context::Context, error::CudaError};

pub(super) struct Event {
    context: Rc<Context>,
    pub(super) handle: Handle,
}

impl Event {
    pub(super) fn new(context: &Rc<Context>) -> Result<Self, CudaError> {
        let mut handle = ptr::null_mut();
        // SAFETY: the pointer outlives the call, and the context is current.
        context.driver().done(
            unsafe { (context.driver().api.cuEventCreate)(&raw mut handle, 0) },
            "make an event",
        )?;
        Ok(Self {
            context: Rc::clone(context),
            handle,
        })
    }

    /// Waits until it has happened.
    pub(super) fn wait(&self) -> Result<(), CudaError> {
        let driver = self.context.driver();
        // SAFETY: the event is the driver's.
        driver.done(
            unsafe { (driver.api.cuEventSynchronize)(self.handle) },
            "wait for a copy",
        )
    }

    /// The time from this to a later one, both of which have happened.
    pub(super) fn until_us(&self, later: &Self) -> Result<f64, CudaError> {
        let driver = self.context.driver();
        let mut ms = 0.0;
        // SAFETY: the number outlives the call; the events are the driver's.
        let code =
            unsafe { (driver.api.cuEventElapsedTime)(&raw mut ms, self.handle, later.handle) };
        driver.done(code, "read the time between two events")?;
        Ok(f64::from(ms) * 1e3)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: the handle came from the driver and is given back once.
        unsafe { (self.context.driver().api.cuEventDestroy_v2)(self.handle) };
    }
}
