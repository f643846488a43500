//! Launches with attributes, by `cuLaunchKernelEx`.

use std::{
    ffi::{c_int, c_uint},
    ptr,
};

use super::{api::Handle, driver::Version, queue::Grid};

/// `CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION`.
const PROGRAMMATIC_STREAM_SERIALIZATION: c_int = 6;
/// Stream capture supports the attribute from here on; a queue may belong to a stream that is captured.
pub(super) const PROGRAMMATIC_SINCE: Version = Version(12_030);

/// `CUlaunchConfig` with one attribute.
#[repr(C)]
pub(super) struct LaunchConfig {
    blocks: [c_uint; 3],
    threads: [c_uint; 3],
    shared_bytes: c_uint,
    stream: Handle,
    attributes: *const LaunchAttribute,
    attribute_count: c_uint,
}

/// `CUlaunchAttribute`.
#[repr(C)]
pub(super) struct LaunchAttribute {
    id: c_int,
    /// A 32-bit integer in a union of 64 bytes.
    value: [u64; 8],
}

impl LaunchAttribute {
    /// Programmatic dependent launch: the kernel may start before the previous one in the stream has ended.
    pub(super) const PROGRAMMATIC: Self = Self {
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
    fn structures_are_as_long_as_the_drivers() {
        assert_eq!(
            (size_of::<LaunchConfig>(), size_of::<LaunchAttribute>()),
            (56, 72)
        );
    }
}
