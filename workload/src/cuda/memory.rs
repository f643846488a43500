//! Device memory, memory pools, and pinned host memory. All are released when dropped. Pageable
//! memory is copied through pinned buffers.

use std::{
    cell::RefCell,
    ffi::{c_int, c_void},
    ptr,
    rc::Rc,
    slice,
};

use super::{
    api::{Address, Handle, PoolProperties, Pools},
    device::{Context, Device},
    driver::{CudaError, Driver, Version},
    module::Kernel,
    queue::{Plain, Queue},
    stream::{Event, Stream},
};
use crate::parallel;

/// Device memory, allocated with `cuMemAlloc`. It does not come from a memory pool: a pool keeps
/// released memory, which would then not count as free.
pub(crate) struct DeviceMemory {
    pub(super) context: Rc<Context>,
    pub(super) address: Address,
    bytes: u64,
}

impl DeviceMemory {
    pub(super) fn new(context: &Rc<Context>, bytes: u64) -> Result<Self, CudaError> {
        let mut address = 0;
        // SAFETY: the variable outlives the call, and the context is current.
        let code =
            unsafe { (context.driver().api.cuMemAlloc_v2)(&raw mut address, bytes as usize) };
        context.driver().check_result(
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
        // SAFETY: the address was returned by the driver and is released once. An error can be
        // ignored: a lost device has nothing left to release.
        unsafe { (self.context.driver().api.cuMemFree_v2)(self.address) };
    }
}

/// Pinned host memory, from which and to which devices can copy directly. It is released when
/// dropped.
pub(crate) struct PinnedMemory {
    context: Rc<Context>,
    place: *mut c_void,
    bytes: usize,
}

impl PinnedMemory {
    pub(crate) fn new(context: &Rc<Context>, bytes: u64) -> Result<Self, CudaError> {
        let mut place = ptr::null_mut();
        // SAFETY: the pointer outlives the call, and the context is current.
        let code =
            unsafe { (context.driver().api.cuMemHostAlloc)(&raw mut place, bytes as usize, 0) };
        context
            .driver()
            .check_result(code, format!("pin {bytes} bytes of the host's memory"))?;
        // SAFETY: the driver allocated this number of bytes. They are initialized here, before
        // anything reads them.
        unsafe { ptr::write_bytes(place.cast::<u8>(), 0, bytes as usize) };
        Ok(Self {
            context: Rc::clone(context),
            place,
            bytes: bytes as usize,
        })
    }

    /// Returns the memory's address, which is the same for the host and for devices.
    pub(super) fn address(&self) -> Address {
        self.place.addr() as Address
    }

    pub(crate) fn slice<T: Plain>(&self) -> &[T] {
        // SAFETY: the driver aligns this memory to pages, all of the memory has been initialized,
        // and every bit pattern is a valid value. Copies into this memory borrow it mutably.
        unsafe { slice::from_raw_parts(self.place.cast(), self.bytes / size_of::<T>()) }
    }

    pub(crate) fn slice_mut<T: Plain>(&mut self) -> &mut [T] {
        // SAFETY: as in `slice`. In addition, the mutable borrow excludes other accesses.
        unsafe { slice::from_raw_parts_mut(self.place.cast(), self.bytes / size_of::<T>()) }
    }
}

impl Drop for PinnedMemory {
    fn drop(&mut self) {
        // SAFETY: the address was returned by the driver and is released once. No copy is running,
        // because every stream waits for its operations.
        unsafe { (self.context.driver().api.cuMemFreeHost)(self.place) };
    }
}

/// Copies a slice to another slice of the same length, bypassing the caches.
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
        // SAFETY: the pack is aligned, and `from` has at least as many bytes.
        unsafe { _mm_stream_si128(pack, _mm_loadu_si128(from.as_ptr().cast())) };
    }
    // Without a fence, these stores are not ordered with other stores. SAFETY: every x86-64
    // processor has this instruction.
    unsafe { _mm_sfence() };
}

/// Copies a slice to another slice of the same length. On this architecture, the caches are not
/// bypassed.
#[cfg(not(target_arch = "x86_64"))]
fn copy_past_caches<T: Plain>(to: &mut [T], from: &[T]) {
    to.copy_from_slice(from);
}

/// The number of buffers, chosen so that the device and the threads rarely have to wait for each
/// other.
const STAGING_BUFFER_COUNT: usize = 4;
/// The size of a buffer in bytes. A device copies a buffer in 80 us. This is long compared with the
/// time for starting the copy and waking threads. A usual copy is much larger than a buffer, so the
/// device waits only a short time while the first buffer is filled.
const STAGING_BUFFER_BYTES: usize = 4 << 20;
/// The number of bytes that a thread copies at a time.
const STAGING_PIECE_BYTES: usize = 128 << 10;

/// Pinned buffers for copying pageable memory.
pub(crate) struct Staging {
    buffers: Vec<StagingBuffer>,
}

struct StagingBuffer {
    memory: PinnedMemory,
    /// The event that the device records after it has copied the buffer.
    done: Event,
}

impl Staging {
    pub(crate) fn new(context: &Rc<Context>) -> Result<Self, CudaError> {
        let buffer = |_| {
            Ok(StagingBuffer {
                memory: PinnedMemory::new(context, STAGING_BUFFER_BYTES as u64)?,
                done: Event::new(context)?,
            })
        };
        Ok(Self {
            buffers: (0..STAGING_BUFFER_COUNT)
                .map(buffer)
                .collect::<Result<_, _>>()?,
        })
    }
}

impl<'scope> Queue<'_, 'scope> {
    /// Copies pageable memory to the beginning of device memory.
    pub(crate) fn copy_to_device_staged<T: Plain>(
        &self,
        to: &'scope DeviceMemory,
        from: &[T],
        staging: &'scope mut Staging,
    ) -> Result<(), CudaError> {
        let pieces = from
            .chunks(count_elements::<T>(STAGING_BUFFER_BYTES))
            .enumerate();
        for (at, piece) in pieces {
            let StagingBuffer { memory, done } = &mut staging.buffers[at % STAGING_BUFFER_COUNT];
            if at >= STAGING_BUFFER_COUNT {
                done.wait_until_reached()?;
            }
            let buffer = &mut memory.slice_mut()[..piece.len()];
            copy_in_pieces(buffer, piece, copy_past_caches);
            // SAFETY: nothing writes to the buffer before the event of its copy, and the buffer
            // stays borrowed until the stream has finished.
            unsafe { self.start_copy_to_device(to, (at * STAGING_BUFFER_BYTES) as u64, buffer)? };
            self.stream.record_event(done)?;
        }
        Ok(())
    }

    /// Copies the beginning of device memory to pageable memory. When this function returns, the
    /// copy is complete.
    pub(crate) fn copy_to_host_staged<T: Plain>(
        &self,
        to: &mut [T],
        from: &'scope DeviceMemory,
        staging: &'scope mut Staging,
    ) -> Result<(), CudaError> {
        let mut pieces: Vec<_> = to
            .chunks_mut(count_elements::<T>(STAGING_BUFFER_BYTES))
            .collect();
        let lengths: Vec<_> = pieces.iter().map(|piece| piece.len()).collect();
        let start = |at: usize, StagingBuffer { memory, done }: &mut StagingBuffer| {
            let buffer = &mut memory.slice_mut::<T>()[..lengths[at]];
            // SAFETY: nothing reads the buffer before the event of its copy, and the buffer stays
            // borrowed until the stream has finished.
            unsafe { self.start_copy_to_host(buffer, from, (at * STAGING_BUFFER_BYTES) as u64)? };
            self.stream.record_event(done)
        };
        for at in 0..lengths.len().min(STAGING_BUFFER_COUNT) {
            start(at, &mut staging.buffers[at])?;
        }
        for (at, piece) in pieces.iter_mut().enumerate() {
            let buffer = &mut staging.buffers[at % STAGING_BUFFER_COUNT];
            buffer.done.wait_until_reached()?;
            copy_in_pieces(
                piece,
                &buffer.memory.slice()[..piece.len()],
                <[T]>::copy_from_slice,
            );
            if at + STAGING_BUFFER_COUNT < lengths.len() {
                start(at + STAGING_BUFFER_COUNT, buffer)?;
            }
        }
        Ok(())
    }
}

fn count_elements<T>(bytes: usize) -> usize {
    bytes / size_of::<T>()
}

fn copy_in_pieces<T: Plain>(to: &mut [T], from: &[T], copy_piece: fn(&mut [T], &[T])) {
    let piece = count_elements::<T>(STAGING_PIECE_BYTES);
    let pairs = to.chunks_mut(piece).zip(from.chunks(piece));
    parallel::for_each(pairs, &|(to, from): (&mut [T], &[T])| copy_piece(to, from));
}

// Memory pools, whose device memory is allocated and freed in stream order.

/// The first CUDA version with memory pools.
const POOLS_SINCE: Version = Version(11_020);
/// The value of `CU_MEMPOOL_ATTR_RELEASE_THRESHOLD`.
const POOL_RELEASE_THRESHOLD: c_int = 4;
/// The value of `CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT`.
const POOL_RESERVED_CURRENT: c_int = 5;
/// The value of `CU_MEMPOOL_ATTR_USED_MEM_CURRENT`.
const POOL_USED_CURRENT: c_int = 7;

/// A memory pool with its own stream. Memory is allocated and freed in the order of the stream's
/// operations. When the last allocation is dropped, the pool releases all memory.
pub(crate) struct Pool {
    stream: Stream,
    api: &'static Pools,
    handle: Handle,
    /// The kernels that may still be running in the stream.
    started: RefCell<Vec<Kernel>>,
}

/// Memory from a pool. Dropping it frees the memory in stream order, after all operations that were
/// started earlier.
pub(crate) struct PoolMemory {
    pool: Rc<Pool>,
    address: Address,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PoolSize {
    pub reserved_bytes: u64,
    /// The size of the memory that is allocated and not yet freed, in bytes.
    pub used_bytes: u64,
}

impl Pool {
    /// Creates a pool that keeps up to `keep_bytes` of free memory when its stream has finished.
    pub(crate) fn new(context: &Rc<Context>, keep_bytes: u64) -> Result<Rc<Self>, CudaError> {
        let driver = context.driver();
        let api = driver.pools.as_ref();
        let api = api.filter(|_| driver.version >= POOLS_SINCE);
        let api = api.ok_or_else(|| CudaError::from_old_driver("create a memory pool", "11.2"))?;
        let stream = Stream::new(context)?;
        let properties = PoolProperties::for_device(context.device.handle);
        let mut handle = ptr::null_mut();
        // SAFETY: the pointer and the structure outlive the call, and the structure has the layout
        // that the driver expects.
        let code = unsafe { (api.cuMemPoolCreate)(&raw mut handle, &raw const properties) };
        driver.check_result(
            code,
            format!("create a memory pool on GPU {}", context.device.index),
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
            (api.cuMemPoolSetAttribute)(
                handle,
                POOL_RELEASE_THRESHOLD,
                (&raw mut keep_bytes).cast(),
            )
        };
        driver.check_result(code, "set the amount that a memory pool keeps")?;
        Ok(Rc::new(pool))
    }

    /// Allocates memory. It is available to operations that follow in the stream.
    pub(crate) fn allocate(self: &Rc<Self>, bytes: u64) -> Result<PoolMemory, CudaError> {
        let mut address = 0;
        // SAFETY: the variable outlives the call, and the driver created both handles.
        let code = unsafe {
            (self.api.cuMemAllocFromPoolAsync)(
                &raw mut address,
                bytes as usize,
                self.handle,
                self.stream.handle,
            )
        };
        let context = &self.stream.context;
        context.driver().check_result(
            code,
            format!(
                "allocate {bytes} bytes from a pool on GPU {}",
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
                .check_result(code, "read the size of a memory pool")
                .map(|()| value)
        };
        Ok(PoolSize {
            reserved_bytes: number(POOL_RESERVED_CURRENT)?,
            used_bytes: number(POOL_USED_CURRENT)?,
        })
    }

    pub(crate) fn trim(&self) -> Result<(), CudaError> {
        // SAFETY: the driver created the handle.
        let code = unsafe { (self.api.cuMemPoolTrimTo)(self.handle, 0) };
        self.stream
            .context
            .driver()
            .check_result(code, "trim a memory pool")
    }

    /// Launches a kernel with a number as its only argument, without waiting for the kernel.
    pub(crate) fn launch(&self, kernel: Kernel, argument: u64) -> Result<(), CudaError> {
        kernel.check_arguments(&[super::Argument::U64(argument)]);
        let mut value = argument;
        let mut places: [*mut c_void; 1] = [(&raw mut value).cast()];
        let driver = self.stream.context.driver();
        // SAFETY: the kernel takes a 64-bit number and no memory. The driver copies the number
        // before the call returns. The code stays loaded until the stream has finished.
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
        driver.check_result(code, format!("start the kernel {}", kernel.name))?;
        self.started.borrow_mut().push(kernel);
        Ok(())
    }

    pub(crate) fn wait_until_finished(&self) -> Result<(), CudaError> {
        let finished = self.stream.run(|_| Ok(()));
        self.started.borrow_mut().clear();
        finished.map(|_| ())
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // An error cannot be handled here. A lost device has nothing left to release.
        let _ = self.wait_until_finished();
        // SAFETY: the driver created the handle. It is released only here, when no memory of the
        // pool is in use.
        unsafe { (self.api.cuMemPoolDestroy)(self.handle) };
    }
}

impl Drop for PoolMemory {
    fn drop(&mut self) {
        // SAFETY: the address was returned by the driver and is released once. Everything that uses
        // the memory was started earlier in the same stream.
        unsafe { (self.pool.api.cuMemFreeAsync)(self.address, self.pool.stream.handle) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_of_any_length_and_alignment_are_copied() {
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
