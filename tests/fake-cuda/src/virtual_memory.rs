//! Virtual memory: reserved addresses, physical memory, and the mapping between them. The memory is
//! real host memory, so data that is written through one address can be read through another.

use std::{collections::BTreeMap, ffi::c_void, os::fd::OwnedFd, ptr};

use rustix::{
    fs::{MemfdFlags, ftruncate, memfd_create},
    mm::{MapFlags, MprotectFlags, ProtFlags, mmap, mmap_anonymous, mprotect, munmap},
};

use crate::{
    code::{Code, Outcome},
    state::State,
};

/// All sizes and addresses are multiples of this number.
pub(crate) const GRANULARITY: usize = 2 << 20;

/// All reserved addresses, all physical memory, and all mappings.
#[derive(Debug, Default)]
pub(crate) struct VirtualMemory {
    reserved: BTreeMap<usize, usize>,
    made: u64,
    physical: BTreeMap<u64, PhysicalMemory>,
    mapped: BTreeMap<usize, Mapping>,
}

#[derive(Debug)]
struct PhysicalMemory {
    device: u32,
    bytes: usize,
    memory: OwnedFd,
    /// Whether the creator still has its reference to the memory.
    is_held: bool,
    mappings: usize,
}

#[derive(Debug)]
struct Mapping {
    physical: u64,
    bytes: usize,
    is_accessible: bool,
}

impl VirtualMemory {
    /// Returns whether all of these bytes can be read and written.
    pub(crate) fn is_range_accessible(&self, address: usize, bytes: usize) -> bool {
        let mut at = address;
        while at < address + bytes {
            let found = self
                .mapped
                .range(..=at)
                .next_back()
                .filter(|(_, mapped)| mapped.is_accessible);
            match found.map(|(begin, mapped)| begin + mapped.bytes) {
                Some(end) if end > at => at = end,
                _ => return false,
            }
        }
        bytes > 0
    }

    pub(crate) fn reserve_addresses(&mut self, bytes: usize) -> Outcome<usize> {
        check_size(bytes)?;
        // SAFETY: the kernel chooses the address, and the memory cannot be accessed yet.
        let place = unsafe {
            mmap_anonymous(
                ptr::null_mut(),
                bytes,
                ProtFlags::empty(),
                MapFlags::PRIVATE,
            )
        };
        let place = place.map_err(|_| Code::OUT_OF_MEMORY)?.expose_provenance();
        self.reserved.insert(place, bytes);
        Ok(place)
    }

    /// Releases reserved addresses, to which no memory may be mapped.
    pub(crate) fn release_addresses(&mut self, address: usize, bytes: usize) -> Outcome {
        let is_mapped = self.mapped.range(address..address + bytes).next().is_some();
        if is_mapped || self.reserved.get(&address) != Some(&bytes) {
            return Err(Code::INVALID_VALUE);
        }
        self.reserved.remove(&address);
        // SAFETY: the addresses were reserved with this size, and nothing is mapped there.
        unsafe { munmap(to_pointer(address), bytes) }.map_err(|_| Code::INVALID_VALUE)
    }

    /// Maps physical memory to reserved addresses that have no mapping yet.
    pub(crate) fn map_memory(&mut self, address: usize, bytes: usize, handle: u64) -> Outcome {
        let is_inside = self.reserved.range(..=address).next_back();
        let is_inside = is_inside.is_some_and(|(begin, size)| address + bytes <= begin + size);
        let is_taken = self
            .mapped
            .range(..address + bytes)
            .next_back()
            .is_some_and(|(at, own)| at + own.bytes > address);
        let physical = self
            .physical
            .get_mut(&handle)
            .filter(|physical| physical.bytes == bytes && physical.is_held);
        let physical = physical
            .filter(|_| is_inside && !is_taken)
            .ok_or(Code::INVALID_VALUE)?;
        let flags = MapFlags::SHARED | MapFlags::FIXED;
        // SAFETY: these addresses are reserved, and no other memory is mapped there.
        unsafe {
            mmap(
                to_pointer(address),
                bytes,
                ProtFlags::empty(),
                flags,
                &physical.memory,
                0,
            )
        }
        .map_err(|_| Code::OUT_OF_MEMORY)?;
        physical.mappings += 1;
        self.mapped.insert(
            address,
            Mapping {
                physical: handle,
                bytes,
                is_accessible: false,
            },
        );
        Ok(())
    }

    /// Allows reading and writing of all of these bytes.
    pub(crate) fn allow_access(&mut self, address: usize, bytes: usize) -> Outcome {
        let mapped = self
            .mapped
            .get_mut(&address)
            .filter(|mapped| mapped.bytes == bytes);
        let mapped = mapped.ok_or(Code::INVALID_VALUE)?;
        // SAFETY: memory of this size is mapped at the address.
        unsafe {
            mprotect(
                to_pointer(address),
                bytes,
                MprotectFlags::READ | MprotectFlags::WRITE,
            )
        }
        .map_err(|_| Code::INVALID_VALUE)?;
        mapped.is_accessible = true;
        Ok(())
    }
}

impl State {
    /// Allocates physical memory of a device, without an address.
    pub(crate) fn create_physical(&mut self, device: u32, bytes: usize) -> Outcome<u64> {
        check_size(bytes)?;
        self.take_memory(Some(device), bytes)?;
        let memory = memfd_create("fake-cuda", MemfdFlags::CLOEXEC)
            .and_then(|memory| ftruncate(&memory, bytes as u64).map(|()| memory))
            .map_err(|_| Code::OUT_OF_MEMORY)
            .inspect_err(|_| self.release_memory(Some(device), bytes))?;
        let own = &mut self.virtual_memory;
        own.made += 1;
        own.physical.insert(
            own.made,
            PhysicalMemory {
                device,
                bytes,
                memory,
                is_held: true,
                mappings: 0,
            },
        );
        Ok(own.made)
    }

    /// Releases the creator's reference to physical memory.
    pub(crate) fn release_physical(&mut self, handle: u64) -> Outcome {
        let physical = self
            .virtual_memory
            .physical
            .get_mut(&handle)
            .filter(|physical| physical.is_held);
        physical.ok_or(Code::INVALID_VALUE)?.is_held = false;
        self.free_unreferenced_memory(handle);
        Ok(())
    }

    /// Removes a mapping; the addresses stay reserved.
    pub(crate) fn unmap_memory(&mut self, address: usize, bytes: usize) -> Outcome {
        let own = &mut self.virtual_memory;
        if own
            .mapped
            .get(&address)
            .is_none_or(|mapped| mapped.bytes != bytes)
        {
            return Err(Code::INVALID_VALUE);
        }
        let flags = MapFlags::PRIVATE | MapFlags::FIXED;
        // SAFETY: these addresses are reserved, and only this module uses the mapping.
        unsafe { mmap_anonymous(to_pointer(address), bytes, ProtFlags::empty(), flags) }
            .map_err(|_| Code::OUT_OF_MEMORY)?;
        let Some(Mapping { physical, .. }) = own.mapped.remove(&address) else {
            return Ok(());
        };
        if let Some(physical) = own.physical.get_mut(&physical) {
            physical.mappings -= 1;
        }
        self.free_unreferenced_memory(physical);
        Ok(())
    }

    /// Frees physical memory without references and mappings.
    fn free_unreferenced_memory(&mut self, handle: u64) {
        let is_over = |physical: &PhysicalMemory| !physical.is_held && physical.mappings == 0;
        if self
            .virtual_memory
            .physical
            .get(&handle)
            .is_some_and(is_over)
            && let Some(physical) = self.virtual_memory.physical.remove(&handle)
        {
            self.release_memory(Some(physical.device), physical.bytes);
        }
    }
}

fn check_size(bytes: usize) -> Outcome {
    if bytes > 0 && bytes.is_multiple_of(GRANULARITY) {
        Ok(())
    } else {
        Err(Code::INVALID_VALUE)
    }
}

fn to_pointer(address: usize) -> *mut c_void {
    ptr::with_exposed_provenance_mut(address)
}
