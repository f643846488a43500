//! Virtual memory: address ranges, physical memory, and the mapping of one to the other.

use std::{collections::BTreeMap, rc::Rc};

use super::{
    api::Address,
    api::{Access, AllocationProperties, VirtualMemory},
    context::Context,
    error::CudaError,
    stream::Stream,
};

/// The value of `CU_MEM_ALLOC_GRANULARITY_MINIMUM`.
const MINIMUM: i32 = 0;

/// Device memory without an address. It is released when the last reference is dropped, including
/// those of mappings.
pub(crate) struct PhysicalMemory {
    /// The context of the memory, which must live longer than the memory.
    _context: Rc<Context>,
    api: &'static VirtualMemory,
    handle: u64,
    bytes: u64,
}

/// A range of device addresses, to which memory can be mapped. The addresses are released when this
/// is dropped.
pub(crate) struct AddressRange {
    context: Rc<Context>,
    api: &'static VirtualMemory,
    address: Address,
    bytes: u64,
    /// The mapped memory, by its offset in bytes.
    mapped: BTreeMap<u64, Rc<PhysicalMemory>>,
}

impl PhysicalMemory {
    /// Returns the granularity in bytes: all sizes must be multiples of it.
    pub(crate) fn granularity_bytes(context: &Rc<Context>) -> Result<u64, CudaError> {
        let properties = AllocationProperties::for_device(context.device.handle);
        let mut bytes = 0;
        // SAFETY: the number and the structure outlive the call, and the structure has the driver's
        // layout.
        let code = unsafe {
            (api(context)?.cuMemGetAllocationGranularity)(
                &raw mut bytes,
                &raw const properties,
                MINIMUM,
            )
        };
        context
            .driver()
            .done(code, "read the granularity of virtual memory")?;
        Ok(bytes as u64)
    }

    /// Allocates memory. The size must be a multiple of the granularity.
    pub(crate) fn new(context: &Rc<Context>, bytes: u64) -> Result<Rc<Self>, CudaError> {
        let api = api(context)?;
        let properties = AllocationProperties::for_device(context.device.handle);
        let mut handle = 0;
        // SAFETY: the number and the structure outlive the call, and the structure has the driver's
        // layout.
        let code =
            unsafe { (api.cuMemCreate)(&raw mut handle, bytes as usize, &raw const properties, 0) };
        context.driver().done(
            code,
            format!(
                "create {bytes} bytes of memory on GPU {}",
                context.device.index
            ),
        )?;
        Ok(Rc::new(Self {
            _context: Rc::clone(context),
            api,
            handle,
            bytes,
        }))
    }
}

impl AddressRange {
    /// Reserves addresses without memory. The size must be a multiple of the granularity.
    pub(crate) fn new(context: &Rc<Context>, bytes: u64) -> Result<Self, CudaError> {
        let api = api(context)?;
        let mut address = 0;
        // SAFETY: the number outlives the call.
        let code = unsafe { (api.cuMemAddressReserve)(&raw mut address, bytes as usize, 0, 0, 0) };
        context.driver().done(
            code,
            format!("reserve {bytes} addresses of GPU {}", context.device.index),
        )?;
        Ok(Self {
            context: Rc::clone(context),
            api,
            address,
            bytes,
            mapped: BTreeMap::new(),
        })
    }

    pub(crate) fn map(
        &mut self,
        offset_bytes: u64,
        memory: &Rc<PhysicalMemory>,
    ) -> Result<(), CudaError> {
        let end = offset_bytes + memory.bytes;
        assert!(end <= self.bytes, "there are so many addresses");
        let before = self.mapped.range(..end).next_back();
        assert!(
            before.is_none_or(|(begin, own)| begin + own.bytes <= offset_bytes),
            "nothing is behind the addresses"
        );
        let (address, bytes) = (self.address + offset_bytes, memory.bytes as usize);
        let driver = self.context.driver();
        // SAFETY: the addresses are reserved and not mapped yet, and the memory has this size.
        let code = unsafe { (self.api.cuMemMap)(address, bytes, 0, memory.handle, 0) };
        driver.done(code, format!("map {bytes} bytes"))?;
        self.mapped.insert(offset_bytes, Rc::clone(memory));
        let access = Access::for_device(self.context.device.handle);
        // SAFETY: memory is mapped to all of these addresses, and the structure outlives the call.
        let code = unsafe { (self.api.cuMemSetAccess)(address, bytes, &raw const access, 1) };
        driver.done(code, format!("allow access to {bytes} bytes"))
    }

    pub(crate) fn unmap(&mut self, offset_bytes: u64) -> Result<(), CudaError> {
        let Some(memory) = self.mapped.remove(&offset_bytes) else {
            return Ok(());
        };
        // SAFETY: memory of this size is mapped there, and no operation uses it, because streams
        // are waited for.
        let code =
            unsafe { (self.api.cuMemUnmap)(self.address + offset_bytes, memory.bytes as usize) };
        self.context
            .driver()
            .done(code, format!("unmap {} bytes", memory.bytes))
    }

    pub(crate) fn fill(
        &mut self,
        stream: &Stream,
        offset_bytes: u64,
        bytes: u64,
        value: u8,
    ) -> Result<(), CudaError> {
        self.check(offset_bytes, bytes);
        let (driver, address) = (self.context.driver(), self.address + offset_bytes);
        stream.run(|_| {
            // SAFETY: memory is mapped to all of these addresses, and is borrowed until the stream
            // has been waited for.
            let code = unsafe {
                (driver.api.cuMemsetD8Async)(address, value, bytes as usize, stream.handle)
            };
            driver.done(code, format!("fill {bytes} bytes of mapped memory"))
        })?;
        Ok(())
    }

    pub(crate) fn read(
        &self,
        stream: &Stream,
        offset_bytes: u64,
        budget: &mut [u8],
    ) -> Result<(), CudaError> {
        self.check(offset_bytes, budget.len() as u64);
        let (driver, address) = (self.context.driver(), self.address + offset_bytes);
        stream.run(|_| {
            // SAFETY: memory is mapped to all of these addresses, and the buffer is as large. Both
            // are borrowed until the stream has been waited for.
            let code = unsafe {
                (driver.api.cuMemcpyDtoHAsync_v2)(
                    budget.as_mut_ptr().cast(),
                    address,
                    budget.len(),
                    stream.handle,
                )
            };
            driver.done(
                code,
                format!("read {} bytes of mapped memory", budget.len()),
            )
        })?;
        Ok(())
    }

    fn check(&self, offset_bytes: u64, bytes: u64) {
        let mut at = offset_bytes;
        for (begin, memory) in &self.mapped {
            if (*begin..begin + memory.bytes).contains(&at) {
                at = begin + memory.bytes;
            }
        }
        assert!(
            at >= offset_bytes + bytes,
            "there is memory behind all of the addresses"
        );
    }
}

impl Drop for PhysicalMemory {
    fn drop(&mut self) {
        // SAFETY: the driver created the handle, and it is released only here. It is not mapped,
        // because a mapping owns its memory.
        unsafe { (self.api.cuMemRelease)(self.handle) };
    }
}

impl Drop for AddressRange {
    fn drop(&mut self) {
        let offsets: Vec<_> = self.mapped.keys().copied().collect();
        for offset_bytes in offsets {
            // An error cannot be handled here.
            let _ = self.unmap(offset_bytes);
        }
        // SAFETY: the addresses came from the driver with this size and are released once, and no
        // memory is mapped to them.
        unsafe { (self.api.cuMemAddressFree)(self.address, self.bytes as usize) };
    }
}

fn api(context: &Context) -> Result<&'static VirtualMemory, CudaError> {
    let api = context.driver().virtual_memory.as_ref();
    api.ok_or_else(|| CudaError::too_old("map memory", "10.2"))
}
