//! The operations that can be queued on a stream, and the configuration of kernel launches.

use std::{
    ffi::{c_int, c_uint},
    marker::PhantomData,
    ptr,
};

use super::{
    api::Handle,
    driver::{CudaError, Version},
    memory::DeviceMemory,
    module::{Argument, Kernel},
    stream::{Graph, Stream},
};

/// A stream to which operations are added. The arguments of operations live for `'scope`. This
/// lifetime outlives the operations, because the methods of the stream return only after the
/// operations have finished. Operations are executed in order, so each can read what earlier
/// operations have written.
pub(crate) struct Queue<'stream, 'scope> {
    pub(super) stream: &'stream Stream,
    /// Makes `'scope` invariant, as for scoped threads: it can be neither shortened nor extended.
    scope: PhantomData<&'scope mut &'scope ()>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Grid {
    pub blocks: u32,
    pub threads: u32,
}

impl Grid {
    /// A grid with a single thread.
    pub(crate) const SINGLE_THREAD: Self = Self {
        blocks: 1,
        threads: 1,
    };
}

/// A type that can be copied to and from a device.
///
/// # Safety
/// Every bit pattern must be a valid value, and the type must not have padding.
pub(crate) unsafe trait Plain: Copy + Send + Sync + 'static {}

// SAFETY: integers have no padding, and every bit pattern is valid.
unsafe impl Plain for u8 {}
// SAFETY: integers have no padding, and every bit pattern is valid.
unsafe impl Plain for u64 {}
// SAFETY: floating-point numbers have no padding, and every bit pattern is valid.
unsafe impl Plain for f32 {}
// SAFETY: floating-point numbers have no padding, and every bit pattern is valid.
unsafe impl Plain for f64 {}

impl<'stream, 'scope> Queue<'stream, 'scope> {
    pub(super) fn new(stream: &'stream Stream) -> Self {
        Self {
            stream,
            scope: PhantomData,
        }
    }

    pub(crate) fn launch(
        &self,
        kernel: &'scope Kernel,
        grid: Grid,
        arguments: &[Argument<'scope>],
    ) -> Result<(), CudaError> {
        kernel.check_arguments(arguments);
        let mut values: Vec<u64> = arguments.iter().map(Argument::bits).collect();
        let place = |(value, argument): (&mut u64, &Argument<'scope>)| match argument {
            Argument::Tiles(map) => ptr::from_ref(&map.bytes).cast_mut().cast(),
            _ => ptr::from_mut(value).cast(),
        };
        let mut places: Vec<_> = values.iter_mut().zip(arguments).map(place).collect();
        let driver = self.stream.context.driver();
        let (stream, places) = (self.stream.handle, places.as_mut_ptr());
        // SAFETY: the driver copies the arguments before the call returns, each with as many bytes
        // as the kernel's parameter has. The kernel runs on the device, and writes to memory that
        // stays borrowed until the stream has finished.
        let code = unsafe {
            match driver.api.cuLaunchKernelEx {
                Some(launch) if kernel.is_programmatic => {
                    let config = LaunchConfig::new(
                        grid,
                        kernel.shared_bytes,
                        stream,
                        &LaunchAttribute::PROGRAMMATIC,
                    );
                    launch(&raw const config, kernel.handle, places, ptr::null_mut())
                }
                _ => (driver.api.cuLaunchKernel)(
                    kernel.handle,
                    grid.blocks,
                    1,
                    1,
                    grid.threads,
                    1,
                    1,
                    kernel.shared_bytes,
                    stream,
                    places,
                    ptr::null_mut(),
                ),
            }
        };
        driver.check_result(
            code,
            format!(
                "start the kernel {} on GPU {}",
                kernel.name, self.stream.context.device.index
            ),
        )
    }

    /// Copies a slice to the beginning of device memory.
    pub(crate) fn copy_to_device<T: Plain>(
        &self,
        to: &'scope DeviceMemory,
        from: &'scope [T],
    ) -> Result<(), CudaError> {
        // SAFETY: source and destination stay borrowed until the stream has finished.
        unsafe { self.start_copy_to_device(to, 0, from) }
    }

    /// Starts a copy from host memory to device memory. The copy begins at this offset in device
    /// memory, in bytes.
    ///
    /// # Safety
    /// Until the copy is complete, the source must not be moved or written to.
    pub(super) unsafe fn start_copy_to_device<T: Plain>(
        &self,
        to: &'scope DeviceMemory,
        offset_bytes: u64,
        from: &[T],
    ) -> Result<(), CudaError> {
        assert!(
            offset_bytes + size_of_val(from) as u64 <= to.bytes(),
            "the copy fits"
        );
        let driver = self.stream.context.driver();
        // SAFETY: source and destination are large enough, and the caller guarantees that the
        // source does not change.
        let code = unsafe {
            (driver.api.cuMemcpyHtoDAsync_v2)(
                to.address + offset_bytes,
                from.as_ptr().cast(),
                size_of_val(from),
                self.stream.handle,
            )
        };
        driver.check_result(code, format!("copy {} bytes to the GPU", size_of_val(from)))
    }

    /// Copies a part of device memory, which begins at this offset in bytes, to a slice.
    pub(crate) fn copy_to_host<T: Plain>(
        &self,
        to: &'scope mut [T],
        from: &'scope DeviceMemory,
        offset_bytes: u64,
    ) -> Result<(), CudaError> {
        // SAFETY: source and destination stay borrowed until the stream has finished.
        unsafe { self.start_copy_to_host(to, from, offset_bytes) }
    }

    /// Starts a copy from device memory, beginning at this offset in bytes, to host memory.
    ///
    /// # Safety
    /// Until the copy is complete, the destination must not be moved, read or written to.
    pub(super) unsafe fn start_copy_to_host<T: Plain>(
        &self,
        to: &mut [T],
        from: &'scope DeviceMemory,
        offset_bytes: u64,
    ) -> Result<(), CudaError> {
        assert!(
            offset_bytes + size_of_val(to) as u64 <= from.bytes(),
            "the copy fits"
        );
        let driver = self.stream.context.driver();
        // SAFETY: source and destination are large enough, and every bit pattern is a valid value.
        // The caller guarantees that nothing else accesses the destination.
        let code = unsafe {
            (driver.api.cuMemcpyDtoHAsync_v2)(
                to.as_mut_ptr().cast(),
                from.address + offset_bytes,
                size_of_val(to),
                self.stream.handle,
            )
        };
        driver.check_result(code, format!("copy {} bytes from the GPU", size_of_val(to)))
    }

    pub(crate) fn fill(&self, memory: &'scope DeviceMemory, byte: u8) -> Result<(), CudaError> {
        let driver = self.stream.context.driver();
        // SAFETY: the memory has this number of bytes, and stays borrowed until the stream has
        // finished.
        let code = unsafe {
            (driver.api.cuMemsetD8Async)(
                memory.address,
                byte,
                memory.bytes() as usize,
                self.stream.handle,
            )
        };
        driver.check_result(
            code,
            format!("fill {} bytes of the GPU's memory", memory.bytes()),
        )
    }

    /// Copies all of `from` to the beginning of `to`. The two can belong to different devices.
    pub(crate) fn copy_between_devices(
        &self,
        to: &'scope DeviceMemory,
        from: &'scope DeviceMemory,
    ) -> Result<(), CudaError> {
        assert!(from.bytes() <= to.bytes(), "the copy fits");
        let driver = self.stream.context.driver();
        // SAFETY: source and destination are large enough, and each belongs to the stated context.
        // Both stay borrowed until the stream has finished.
        let code = unsafe {
            (driver.api.cuMemcpyPeerAsync)(
                to.address,
                to.context.handle,
                from.address,
                from.context.handle,
                from.bytes() as usize,
                self.stream.handle,
            )
        };
        let (source, target) = (from.context.device.index, to.context.device.index);
        driver.check_result(
            code,
            format!(
                "copy {} bytes from GPU {source} to GPU {target}",
                from.bytes()
            ),
        )
    }

    pub(crate) fn launch_graph(&self, graph: &'scope Graph) -> Result<(), CudaError> {
        let driver = self.stream.context.driver();
        // SAFETY: the graph and everything that it uses stay borrowed until the stream has
        // finished.
        let code = unsafe { (driver.api.cuGraphLaunch)(graph.handle, self.stream.handle) };
        driver.check_result(
            code,
            format!("start a graph on GPU {}", self.stream.context.device.index),
        )
    }
}

/// The value of `CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION`.
const PROGRAMMATIC_STREAM_SERIALIZATION: c_int = 6;
/// The first CUDA version in which stream capture supports programmatic dependent launch. This
/// matters because a queue may belong to a stream that is being captured.
pub(super) const PROGRAMMATIC_SINCE: Version = Version(12_030);

/// A launch configuration with one attribute (`CUlaunchConfig`).
#[repr(C)]
pub(super) struct LaunchConfig {
    blocks: [c_uint; 3],
    threads: [c_uint; 3],
    shared_bytes: c_uint,
    stream: Handle,
    attributes: *const LaunchAttribute,
    attribute_count: c_uint,
}

/// An attribute of a launch (`CUlaunchAttribute`).
#[repr(C)]
pub(super) struct LaunchAttribute {
    id: c_int,
    /// The value: a 32-bit integer in a union of 64 bytes.
    value: [u64; 8],
}

impl LaunchAttribute {
    /// The attribute for programmatic dependent launch: the kernel may start before the previous
    /// kernel in the stream has ended.
    const PROGRAMMATIC: Self = Self {
        id: PROGRAMMATIC_STREAM_SERIALIZATION,
        value: [1, 0, 0, 0, 0, 0, 0, 0],
    };
}

impl LaunchConfig {
    pub(super) fn new(
        grid: Grid,
        shared_bytes: u32,
        stream: Handle,
        attribute: &'static LaunchAttribute,
    ) -> Self {
        Self {
            blocks: [grid.blocks, 1, 1],
            threads: [grid.threads, 1, 1],
            shared_bytes,
            stream,
            attributes: ptr::from_ref(attribute),
            attribute_count: 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launch_structures_have_size_of_driver() {
        assert_eq!(
            (size_of::<LaunchConfig>(), size_of::<LaunchAttribute>()),
            (56, 72)
        );
    }
}
