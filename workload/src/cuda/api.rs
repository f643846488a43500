//! The functions of the driver that gpumon calls. Names and types are those of `cuda.h`.

use std::ffi::{CStr, c_char, c_int, c_uint, c_ulonglong, c_void};

use libloading::Library;

use super::queue::LaunchConfig;

/// A `CUresult`. The value 0 means success.
pub(super) type Code = c_int;
/// A `CUdevice`, which is the number of a device, starting at 0.
pub(super) type DeviceHandle = c_int;
/// A `CUdeviceptr`: an address in device memory.
pub(super) type Address = u64;
/// A `CUcontext`, `CUstream`, `CUevent`, `CUmodule` or `CUfunction`. Only the driver dereferences
/// this pointer.
pub(super) type Handle = *mut c_void;

/// The memory of a `CUtensorMap`.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
pub(super) struct TensorMapBytes(pub(super) [u64; 16]);

/// Defines a group of functions by their C types. The group cannot be loaded if the library lacks
/// one of its functions, unless the function is marked as newer.
macro_rules! functions {
    ($(#[$meta:meta])* $group:ident {
        $($name:ident($($type:ty),*) $(-> $result:ty)?;)*
        $(=> newer { $($(#[$about:meta])* $newer:ident($($newer_type:ty),*);)* })?
    }) => {
        $(#[$meta])*
        #[allow(non_snake_case)]
        pub(super) struct $group {
            $(pub(super) $name:
                unsafe extern "C" fn($($type),*) -> $crate::cuda::api::functions!(@ $($result)?),)*
            $($($(#[$about])*
            pub(super) $newer: Option<unsafe extern "C" fn($($newer_type),*) -> Code>,)*)?
        }

        impl $group {
            /// Looks up all functions. The error is the name of the first function that the library
            /// lacks.
            pub(super) fn load(library: &libloading::Library) -> Result<Self, &'static str> {
                use $crate::cuda::api::find_function;
                // SAFETY: the names and types are as declared in the library's header.
                unsafe {
                    Ok(Self {
                        $($name: find_function(library, concat!(stringify!($name), "\0"))
                            .ok_or(stringify!($name))?,)*
                        $($($newer: find_function(library, concat!(stringify!($newer), "\0")),)*)?
                    })
                }
            }
        }
    };
    (@) => { std::ffi::c_int };
    (@ $result:ty) => { $result };
}
pub(super) use functions;

functions! {
/// The functions of the driver.
Api {
    cuInit(c_uint);
    cuGetErrorName(Code, *mut *const c_char);
    cuGetErrorString(Code, *mut *const c_char);
    cuDeviceGetCount(*mut c_int);
    cuDeviceGet(*mut DeviceHandle, c_int);
    cuDeviceGetName(*mut c_char, c_int, DeviceHandle);
    cuDeviceGetUuid(*mut [u8; 16], DeviceHandle);
    cuDeviceGetPCIBusId(*mut c_char, c_int, DeviceHandle);
    cuDeviceGetAttribute(*mut c_int, c_int, DeviceHandle);
    cuDeviceTotalMem_v2(*mut usize, DeviceHandle);
    cuDevicePrimaryCtxRetain(*mut Handle, DeviceHandle);
    cuDevicePrimaryCtxRelease_v2(DeviceHandle);
    cuCtxSetCurrent(Handle);
    cuMemGetInfo_v2(*mut usize, *mut usize);
    cuMemAlloc_v2(*mut Address, usize);
    cuMemFree_v2(Address);
    cuMemHostAlloc(*mut *mut c_void, usize, c_uint);
    cuMemFreeHost(*mut c_void);
    cuMemcpyHtoDAsync_v2(Address, *const c_void, usize, Handle);
    cuMemcpyDtoHAsync_v2(*mut c_void, Address, usize, Handle);
    cuMemsetD8Async(Address, u8, usize, Handle);
    cuStreamCreate(*mut Handle, c_uint);
    cuStreamDestroy_v2(Handle);
    cuStreamSynchronize(Handle);
    cuStreamWaitEvent(Handle, Handle, c_uint);
    cuStreamBeginCapture_v2(Handle, c_int);
    cuStreamEndCapture(Handle, *mut Handle);
    cuGraphLaunch(Handle, Handle);
    cuGraphExecDestroy(Handle);
    cuGraphDestroy(Handle);
    cuDeviceCanAccessPeer(*mut c_int, DeviceHandle, DeviceHandle);
    cuCtxEnablePeerAccess(Handle, c_uint);
    cuMemcpyPeerAsync(Address, Handle, Address, Handle, usize, Handle);
    cuEventCreate(*mut Handle, c_uint);
    cuEventDestroy_v2(Handle);
    cuEventRecord(Handle, Handle);
    cuEventSynchronize(Handle);
    cuEventElapsedTime(*mut f32, Handle, Handle);
    cuModuleLoadDataEx(*mut Handle, *const c_void, c_uint, *mut c_int, *mut *mut c_void);
    cuModuleUnload(Handle);
    cuModuleGetFunction(*mut Handle, Handle, *const c_char);
    cuFuncSetAttribute(Handle, c_int, c_int);
    cuFuncGetAttribute(*mut c_int, c_int, Handle);
    cuOccupancyMaxActiveBlocksPerMultiprocessor(*mut c_int, Handle, c_int, usize);
    cuLaunchKernel(
        Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle, *mut *mut c_void, *mut *mut c_void
    );
    => newer {
    /// Returns UUIDs that are different for each MIG device. Available since CUDA 11.4.
    cuDeviceGetUuid_v2(*mut [u8; 16], DeviceHandle);
    /// Makes a graph executable. This form is available since CUDA 11.4.
    cuGraphInstantiateWithFlags(*mut Handle, Handle, u64);
    /// Describes a matrix to the copy engine; available since CUDA 12.0.
    cuTensorMapEncodeTiled(
        *mut TensorMapBytes, c_int, c_uint, Address, *const u64, *const u64, *const c_uint, *const c_uint, c_int,
        c_int, c_int, c_int
    );
    /// Launches a kernel with attributes; available since CUDA 11.8.
    cuLaunchKernelEx(*const LaunchConfig, Handle, *mut *mut c_void, *mut *mut c_void);
    }
}
}

/// Looks up a function by its name, which must end with a NUL character.
///
/// # Safety
/// `F` must be the type of the library's function with this name.
pub(super) unsafe fn find_function<F: Copy>(library: &Library, name: &str) -> Option<F> {
    // SAFETY: the caller guarantees that the type is correct.
    unsafe { library.get::<F>(name.as_bytes()) }
        .ok()
        .map(|symbol| *symbol)
}

/// Returns the string at a pointer returned by the driver, or `None` if the pointer is null.
pub(super) fn copy_text(pointer: *const c_char) -> Option<String> {
    // SAFETY: the driver returns constants that end with a NUL character.
    (!pointer.is_null()).then(|| {
        unsafe { CStr::from_ptr(pointer) }
            .to_string_lossy()
            .into_owned()
    })
}

/// Returns the text in an array, up to the first NUL character.
pub(super) fn array_to_text(budget: &[c_char]) -> String {
    let bytes: Vec<u8> = budget
        .iter()
        .take_while(|byte| **byte != 0)
        .map(|byte| *byte as u8)
        .collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

functions! {
    /// Functions for stream-ordered memory allocation.
    Pools {
        cuMemPoolCreate(*mut Handle, *const PoolProperties);
        cuMemPoolDestroy(Handle);
        cuMemPoolSetAttribute(Handle, c_int, *mut c_void);
        cuMemPoolGetAttribute(Handle, c_int, *mut c_void);
        cuMemPoolTrimTo(Handle, usize);
        cuMemAllocFromPoolAsync(*mut Address, usize, Handle, Handle);
        cuMemFreeAsync(Address, Handle);
    }
}

functions! {
    /// Functions that manage address ranges separately from physical memory.
    VirtualMemory {
        cuMemGetAllocationGranularity(*mut usize, *const AllocationProperties, c_int);
        cuMemAddressReserve(*mut Address, usize, usize, Address, c_ulonglong);
        cuMemAddressFree(Address, usize);
        cuMemCreate(*mut c_ulonglong, usize, *const AllocationProperties, c_ulonglong);
        cuMemRelease(c_ulonglong);
        cuMemMap(Address, usize, usize, c_ulonglong, c_ulonglong);
        cuMemUnmap(Address, usize);
        cuMemSetAccess(Address, usize, *const Access, usize);
    }
}

/// The location of memory (`CUmemLocation`).
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Location {
    kind: c_int,
    id: c_int,
}

/// The properties of memory with which both `CUmemPoolProps` and `CUmemAllocationProp` begin.
#[repr(C)]
struct Properties {
    kind: c_int,
    handle_types: c_int,
    location: Location,
    security: *mut c_void,
}

/// The properties of a memory pool (`CUmemPoolProps`).
#[repr(C)]
pub(super) struct PoolProperties {
    memory: Properties,
    most_bytes: usize,
    /// The usage flags and the reserved bytes of `CUmemPoolProps`. All are 0.
    reserved: [u8; 56],
}

/// The properties of an allocation (`CUmemAllocationProp`).
#[repr(C)]
pub(super) struct AllocationProperties {
    memory: Properties,
    flags: [u8; 8],
}

/// The access of a device to a range of addresses (`CUmemAccessDesc`).
#[repr(C)]
pub(super) struct Access {
    location: Location,
    flags: c_int,
}

/// The value of `CU_MEM_ALLOCATION_TYPE_PINNED`: memory that is not moved.
const PINNED: c_int = 1;
/// The value of `CU_MEM_LOCATION_TYPE_DEVICE`.
const DEVICE: c_int = 1;
/// The value of `CU_MEM_ACCESS_FLAGS_PROT_READWRITE`.
const READ_AND_WRITE: c_int = 3;

impl Location {
    fn for_device(device: c_int) -> Self {
        Self {
            kind: DEVICE,
            id: device,
        }
    }
}

impl Properties {
    fn for_device(device: c_int) -> Self {
        let location = Location::for_device(device);
        Self {
            kind: PINNED,
            handle_types: 0,
            location,
            security: std::ptr::null_mut(),
        }
    }
}

impl PoolProperties {
    /// Returns the properties of a pool for a device's memory, without a size limit.
    pub(super) fn for_device(device: c_int) -> Self {
        Self {
            memory: Properties::for_device(device),
            most_bytes: 0,
            reserved: [0; 56],
        }
    }
}

impl AllocationProperties {
    pub(super) fn for_device(device: c_int) -> Self {
        Self {
            memory: Properties::for_device(device),
            flags: [0; 8],
        }
    }
}

impl Access {
    /// Returns read and write access for a device.
    pub(super) fn for_device(device: c_int) -> Self {
        Self {
            location: Location::for_device(device),
            flags: READ_AND_WRITE,
        }
    }
}

#[cfg(test)]
mod optional_tests {
    use super::*;

    #[test]
    fn optional_structures_have_size_of_driver() {
        let lengths = (
            size_of::<PoolProperties>(),
            size_of::<AllocationProperties>(),
            size_of::<Access>(),
        );
        assert_eq!(lengths, (88, 32, 12));
    }
}
