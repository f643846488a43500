//! Copies of pageable memory: while the device copies one pinned buffer, all threads of the CPU fill or empty another. The
//! driver does the same with a single thread, at the speed of that.

use std::rc::Rc;

use super::{
    context::Context,
    error::CudaError,
    event::Event,
    memory::DeviceMemory,
    past_caches::copy_past_caches,
    pinned::PinnedMemory,
    queue::{Plain, Queue},
};
use crate::parallel;

/// Enough that neither the device nor the threads wait for the other where one is late.
const BUFFERS: usize = 4;
/// Of a buffer: a device copies it in 80 us, beside which starting that and waking the threads is little, and a small part
/// of what is usually copied, since nothing is under way while the first is filled.
const BUFFER_BYTES: usize = 4 << 20;
/// What a thread copies at a time.
const PIECE_BYTES: usize = 128 << 10;

pub(crate) struct Staging {
    buffers: Vec<Buffer>,
}

struct Buffer {
    memory: PinnedMemory,
    /// When the device has copied it.
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
    /// Copies pageable memory to the beginning of the device's.
    pub(crate) fn copy_in_staged<T: Plain>(
        &self,
        to: &'scope DeviceMemory,
        from: &[T],
        staging: &'scope mut Staging,
    ) -> Result<(), CudaError> {
        let pieces = from.chunks(elements::<T>(BUFFER_BYTES)).enumerate();
        for (at, piece) in pieces {
            let Buffer { memory, done } = &mut staging.buffers[at % BUFFERS];
            if at >= BUFFERS {
                done.wait()?;
            }
            let buffer = &mut memory.slice_mut()[..piece.len()];
            copy(buffer, piece, copy_past_caches);
            // SAFETY: nobody writes to the buffer before the event says that it was copied, and it is borrowed until the
            // stream has waited.
            unsafe { self.start_copy_in(to, (at * BUFFER_BYTES) as u64, buffer)? };
            self.stream.record(done)?;
        }
        Ok(())
    }

    /// Copies the beginning of the device's memory to pageable memory, which has it when this returns.
    pub(crate) fn copy_out_staged<T: Plain>(
        &self,
        to: &mut [T],
        from: &'scope DeviceMemory,
        staging: &'scope mut Staging,
    ) -> Result<(), CudaError> {
        let mut pieces: Vec<_> = to.chunks_mut(elements::<T>(BUFFER_BYTES)).collect();
        let lengths: Vec<_> = pieces.iter().map(|piece| piece.len()).collect();
        let start = |at: usize, Buffer { memory, done }: &mut Buffer| {
            let buffer = &mut memory.slice_mut::<T>()[..lengths[at]];
            // SAFETY: nobody reads the buffer before the event says that it was copied, and it is borrowed until the
            // stream has waited.
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

fn elements<T>(bytes: usize) -> usize {
    bytes / size_of::<T>()
}

fn copy<T: Plain>(to: &mut [T], from: &[T], copy_piece: fn(&mut [T], &[T])) {
    let piece = elements::<T>(PIECE_BYTES);
    let pairs = to.chunks_mut(piece).zip(from.chunks(piece));
    parallel::for_each(pairs, &|(to, from): (&mut [T], &[T])| copy_piece(to, from));
}
