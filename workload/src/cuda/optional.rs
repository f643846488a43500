//! Functions that not every driver has, in groups of which a driver has all or none.

use std::ffi::{c_int, c_ulonglong, c_void};

use libloading::Library;

use super::api::{Address, Code, Handle, find};

macro_rules! group {
    ($(#[$meta:meta])* $group:ident { $($name:ident($($type:ty),*);)* }) => {
        $(#[$meta])*
        #[allow(non_snake_case)]
        pub(super) struct $group {
            $(pub(super) $name: unsafe extern "C" fn($($type),*) -> Code,)*
        }

        impl $group {
            pub(super) fn load(library: &Library) -> Option<Self> {
                // SAFETY: each name stands beside the type that `cuda.h` gives its function.
                unsafe { Some(Self { $($name: find(library, concat!(stringify!($name), "\0"))?,)* }) }
            }
        }
    };
}

group! {
    /// Memory that is handed out in the order of a stream.
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

group! {
    /// Addresses and the memory behind them, each on its own.
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

/// A `CUmemLocation`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct Location {
    kind: c_int,
    id: c_int,
}

/// What memory is: how a `CUmemPoolProps` and a `CUmemAllocationProp` begin.
#[repr(C)]
struct Properties {
    kind: c_int,
    handle_types: c_int,
    location: Location,
    security: *mut c_void,
}

/// A `CUmemPoolProps`.
#[repr(C)]
pub(super) struct PoolProperties {
    memory: Properties,
    most_bytes: usize,
    /// And its use, which is none.
    reserved: [u8; 56],
}

/// A `CUmemAllocationProp`.
#[repr(C)]
pub(super) struct AllocationProperties {
    memory: Properties,
    flags: [u8; 8],
}

/// A `CUmemAccessDesc`.
#[repr(C)]
pub(super) struct Access {
    location: Location,
    flags: c_int,
}

/// `CU_MEM_ALLOCATION_TYPE_PINNED`: memory that stays where it is.
const PINNED: c_int = 1;
/// `CU_MEM_LOCATION_TYPE_DEVICE`.
const DEVICE: c_int = 1;
/// `CU_MEM_ACCESS_FLAGS_PROT_READWRITE`.
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
    /// For memory of a device, as much as it has.
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
    /// All of it, from a device.
    pub(super) fn for_device(device: c_int) -> Self {
        Self {
            location: Location::for_device(device),
            flags: READ_AND_WRITE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_are_as_long_as_the_drivers() {
        let lengths = (
            size_of::<PoolProperties>(),
            size_of::<AllocationProperties>(),
            size_of::<Access>(),
        );
        assert_eq!(lengths, (88, 32, 12));
    }
}
