//! Memory of the host that stays where it is, so that a device copies without the processor's help.

use std::{ffi::c_void, ptr, rc::Rc, slice};

use super::{api::Address, context::Context, error::CudaError, queue::Plain};

/// Pinned memory of the host, given back when it is dropped.
pub(crate) struct PinnedMemory {
    context: Rc<Context>,
    place: *mut c_void,
    bytes: usize,
}

impl PinnedMemory {
    pub(super) fn new(context: &Rc<Context>, bytes: u64) -> Result<Self, CudaError> {
        let mut place = ptr::null_mut();
        // SAFETY: the pointer outlives the call, and the context is current.
        let code =
            unsafe { (context.driver().api.cuMemHostAlloc)(&raw mut place, bytes as usize, 0) };
        context
            .driver()
            .done(code, format!("pin {bytes} bytes of the host's memory"))?;
        // SAFETY: the driver gave so many bytes. They are written before anybody reads them.
        unsafe { ptr::write_bytes(place.cast::<u8>(), 0, bytes as usize) };
        Ok(Self {
            context: Rc::clone(context),
            place,
            bytes: bytes as usize,
        })
    }

    /// Where it is, for the host and for every device.
    pub(super) fn address(&self) -> Address {
        self.place.addr() as Address
    }

    pub(crate) fn slice<T: Plain>(&self) -> &[T] {
        // SAFETY: the driver's memory is aligned to pages and all written, and every pattern of bits is a value; who
        // copies into it borrows it mutably.
        unsafe { slice::from_raw_parts(self.place.cast(), self.bytes / size_of::<T>()) }
    }

    pub(crate) fn slice_mut<T: Plain>(&mut self) -> &mut [T] {
        // SAFETY: as above, and nobody else has it.
        unsafe { slice::from_raw_parts_mut(self.place.cast(), self.bytes / size_of::<T>()) }
    }
}

impl Drop for PinnedMemory {
    fn drop(&mut self) {
        // SAFETY: the place came from the driver and is given back once; nothing copies any more, since a stream waits
        // for what it was given.
        unsafe { (self.context.driver().api.cuMemFreeHost)(self.place) };
    }
}
