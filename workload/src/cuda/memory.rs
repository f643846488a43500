//! Device memory and pinned host memory, which are released when they are dropped.

use std::{ffi::c_void, ptr, rc::Rc, slice};

use super::{
    api::Address,
    context::Context,
    device::Device,
    driver::Driver,
    error::CudaError,
    queue::{Plain, Queue},
    stream::Event,
};
use crate::parallel;

/// Device memory, allocated by plain `cuMemAlloc`. A pool would keep released memory, so that less
/// memory would seem to be free.
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
        // SAFETY: the address came from the driver and is released once. An error changes nothing,
        // because a lost device has nothing to release.
        unsafe { (self.context.driver().api.cuMemFree_v2)(self.address) };
    }
}

/// Pinned host memory, which is released when it is dropped.
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
        // SAFETY: the driver allocated this number of bytes. They are written here before anything
        // reads them.
        unsafe { ptr::write_bytes(place.cast::<u8>(), 0, bytes as usize) };
        Ok(Self {
            context: Rc::clone(context),
            place,
            bytes: bytes as usize,
        })
    }

    /// Returns the address, which host and devices share.
    pub(super) fn address(&self) -> Address {
        self.place.addr() as Address
    }

    pub(crate) fn slice<T: Plain>(&self) -> &[T] {
        // SAFETY: the driver aligns this memory to pages, all of it has been written, and every
        // bit pattern is a valid value. Copies into it borrow it mutably.
        unsafe { slice::from_raw_parts(self.place.cast(), self.bytes / size_of::<T>()) }
    }

    pub(crate) fn slice_mut<T: Plain>(&mut self) -> &mut [T] {
        // SAFETY: the same as in `slice`; the mutable borrow excludes other accesses.
        unsafe { slice::from_raw_parts_mut(self.place.cast(), self.bytes / size_of::<T>()) }
    }
}

impl Drop for PinnedMemory {
    fn drop(&mut self) {
        // SAFETY: the address came from the driver and is released once. No copy is running,
        // because a stream waits for its operations.
        unsafe { (self.context.driver().api.cuMemFreeHost)(self.place) };
    }
}

/// Copies a slice to another one of the same length, bypassing the caches.
#[cfg(target_arch = "x86_64")]
fn copy_past_caches<T: Plain>(to: &mut [T], from: &[T]) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};

    // SAFETY: every bit pattern is a value of both types.
    let (start, packs, end) = unsafe { to.align_to_mut::<__m128i>() };
    let of_pack = size_of::<__m128i>() / size_of::<T>();
    let (from_start, rest) = from.split_at(start.len());
    let (from_packs, from_end) = rest.split_at(packs.len() * of_pack);
    start.copy_from_slice(from_start);
    end.copy_from_slice(from_end);
    for (pack, from) in packs.iter_mut().zip(from_packs.chunks_exact(of_pack)) {
        // SAFETY: the pack is aligned, and there are as many bytes to read.
        unsafe { _mm_stream_si128(pack, _mm_loadu_si128(from.as_ptr().cast())) };
    }
    // These stores are not ordered with others before a fence. SAFETY: every 64-bit processor of
    // this architecture has the instruction.
    unsafe { _mm_sfence() };
}

/// Copies a slice to another one of the same length.
#[cfg(not(target_arch = "x86_64"))]
fn copy_past_caches<T: Plain>(to: &mut [T], from: &[T]) {
    to.copy_from_slice(from);
}

/// The number of buffers, so that neither the device nor the threads wait if the other is late.
const BUFFERS: usize = 4;
/// The size of a buffer. A device copies it in 80 us, in which starting the copy and waking the
/// threads take little. It is a small part of a usual copy, because nothing is copied while the
/// first buffer is filled.
const BUFFER_BYTES: usize = 4 << 20;
/// The number of bytes that a thread copies at a time.
const PIECE_BYTES: usize = 128 << 10;

pub(crate) struct Staging {
    buffers: Vec<Buffer>,
}

struct Buffer {
    memory: PinnedMemory,
    /// An event that happens when the device has copied the buffer.
    done: Event,
}

impl Staging {
    pub(super) fn new(context: &Rc<Context>) -> Result<Self, CudaError> {
        let buffer = |_| {
            Ok(Buffer {
                memory: context.pin(BUFFER_BYTES as u64)?,
                done: Event::new(context)?,
            })
        };
        Ok(Self {
            buffers: (0..BUFFERS).map(buffer).collect::<Result<_, _>>()?,
        })
    }
}

impl<'scope> Queue<'_, 'scope> {
    /// Copies pageable memory to the beginning of device memory.
    pub(crate) fn copy_in_staged<T: Plain>(
        &self,
        to: &'scope DeviceMemory,
        from: &[T],
        staging: &'scope mut Staging,
    ) -> Result<(), CudaError> {
        let pieces = from.chunks(count_elements::<T>(BUFFER_BYTES)).enumerate();
        for (at, piece) in pieces {
            let Buffer { memory, done } = &mut staging.buffers[at % BUFFERS];
            if at >= BUFFERS {
                done.wait()?;
            }
            let buffer = &mut memory.slice_mut()[..piece.len()];
            copy(buffer, piece, copy_past_caches);
            // SAFETY: nothing writes to the buffer before the event of its copy, and it is borrowed
            // until the stream has been waited for.
            unsafe { self.start_copy_in(to, (at * BUFFER_BYTES) as u64, buffer)? };
            self.stream.record(done)?;
        }
        Ok(())
    }

    /// Copies the beginning of device memory to pageable memory. The copy is complete when this
    /// returns.
    pub(crate) fn copy_out_staged<T: Plain>(
        &self,
        to: &mut [T],
        from: &'scope DeviceMemory,
        staging: &'scope mut Staging,
    ) -> Result<(), CudaError> {
        let mut pieces: Vec<_> = to.chunks_mut(count_elements::<T>(BUFFER_BYTES)).collect();
        let lengths: Vec<_> = pieces.iter().map(|piece| piece.len()).collect();
        let start = |at: usize, Buffer { memory, done }: &mut Buffer| {
            let buffer = &mut memory.slice_mut::<T>()[..lengths[at]];
            // SAFETY: nothing reads the buffer before the event of its copy, and it is borrowed
            // until the stream has been waited for.
            unsafe { self.start_copy_out(buffer, from, (at * BUFFER_BYTES) as u64)? };
            self.stream.record(done)
        };
        for at in 0..lengths.len().min(BUFFERS) {
            start(at, &mut staging.buffers[at])?;
        }
        for (at, piece) in pieces.iter_mut().enumerate() {
            let buffer = &mut staging.buffers[at % BUFFERS];
            buffer.done.wait()?;
            copy(
                piece,
                &buffer.memory.slice()[..piece.len()],
                <[T]>::copy_from_slice,
            );
            if at + BUFFERS < lengths.len() {
                start(at + BUFFERS, buffer)?;
            }
        }
        Ok(())
    }
}

fn count_elements<T>(bytes: usize) -> usize {
    bytes / size_of::<T>()
}

fn copy<T: Plain>(to: &mut [T], from: &[T], copy_piece: fn(&mut [T], &[T])) {
    let piece = count_elements::<T>(PIECE_BYTES);
    let pairs = to.chunks_mut(piece).zip(from.chunks(piece));
    parallel::for_each(pairs, &|(to, from): (&mut [T], &[T])| copy_piece(to, from));
}

#[cfg(test)]
mod past_caches_tests {
    use super::*;

    #[test]
    fn pieces_of_every_length_arrive_wherever_they_begin() {
        let from: Vec<f32> = (0..100_u8).map(f32::from).collect();
        for (start, end) in [(0, 0), (0, 100), (1, 100), (2, 3), (3, 50), (0, 4), (5, 97)] {
            let mut to = [-1.0; 100];
            copy_past_caches(&mut to[start..end], &from[start..end]);
            for (at, number) in to.iter().enumerate() {
                let expected = if (start..end).contains(&at) {
                    from[at]
                } else {
                    -1.0
                };
                assert!(
                    number.to_bits() == f32::to_bits(expected),
                    "{start}..{end} at {at}"
                );
            }
        }
        copy_past_caches::<u8>(&mut [], &[]);
    }
}
