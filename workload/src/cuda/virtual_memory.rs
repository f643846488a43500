//! Virtual memory: address ranges, physical memory, and the mapping of physical memory to
//! addresses.

use std::{collections::BTreeMap, rc::Rc};

use super::{
    api::{Access, Address, AllocationProperties, VirtualMemory},
    device::Context,
    driver::CudaError,
    stream::Stream,
};

/// The value of `CU_MEM_ALLOC_GRANULARITY_MINIMUM`.
const GRANULARITY_MINIMUM: i32 = 0;

/// Device memory without an address. It is released when the last reference is dropped. Mappings
/// hold references too.
pub(crate) struct PhysicalMemory {
    /// The context, which must outlive its memory.
    _context: Rc<Context>,
    api: &'static VirtualMemory,
    handle: u64,
    bytes: u64,
}

/// A range of device addresses, to which physical memory can be mapped. The addresses are released
/// when this is dropped.
pub(crate) struct AddressRange {
    context: Rc<Context>,
    api: &'static VirtualMemory,
    address: Address,
    bytes: u64,
    /// The mapped memory, by offset in bytes.
    mapped: BTreeMap<u64, Rc<PhysicalMemory>>,
}

impl PhysicalMemory {
    /// Returns the granularity in bytes. All sizes must be multiples of it.
    pub(crate) fn granularity_bytes(context: &Rc<Context>) -> Result<u64, CudaError> {
        let properties = AllocationProperties::for_device(context.device.handle);
        let mut bytes = 0;
        // SAFETY: the variable and the structure outlive the call, and the structure has the layout
        // that the driver expects.
        let code = unsafe {
            (virtual_memory_functions(context)?.cuMemGetAllocationGranularity)(
                &raw mut bytes,
                &raw const properties,
                GRANULARITY_MINIMUM,
            )
        };
        context
            .driver()
            .check_result(code, "read the granularity of virtual memory")?;
        Ok(bytes as u64)
    }

    /// Allocates memory. The size must be a multiple of the granularity.
    pub(crate) fn new(context: &Rc<Context>, bytes: u64) -> Result<Rc<Self>, CudaError> {
        let api = virtual_memory_functions(context)?;
        let properties = AllocationProperties::for_device(context.device.handle);
        let mut handle = 0;
        // SAFETY: the variable and the structure outlive the call, and the structure has the layout
        // that the driver expects.
        let code =
            unsafe { (api.cuMemCreate)(&raw mut handle, bytes as usize, &raw const properties, 0) };
        context.driver().check_result(
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
        let api = virtual_memory_functions(context)?;
        let mut address = 0;
        // SAFETY: the variable outlives the call.
        let code = unsafe { (api.cuMemAddressReserve)(&raw mut address, bytes as usize, 0, 0, 0) };
        context.driver().check_result(
            code,
            format!(
                "reserve addresses for {bytes} bytes on GPU {}",
                context.device.index
            ),
        )?;
        Ok(Self {
            context: Rc::clone(context),
            api,
            address,
            bytes,
            mapped: BTreeMap::new(),
        })
    }

    pub(crate) fn map_memory(
        &mut self,
        offset_bytes: u64,
        memory: &Rc<PhysicalMemory>,
    ) -> Result<(), CudaError> {
        let end = offset_bytes + memory.bytes;
        assert!(end <= self.bytes, "the addresses are reserved");
        let before = self.mapped.range(..end).next_back();
        assert!(
            before.is_none_or(|(begin, own)| begin + own.bytes <= offset_bytes),
            "the addresses are not mapped yet"
        );
        let (address, bytes) = (self.address + offset_bytes, memory.bytes as usize);
        let driver = self.context.driver();
        // SAFETY: the addresses are reserved and not yet mapped, and the memory has this size.
        let code = unsafe { (self.api.cuMemMap)(address, bytes, 0, memory.handle, 0) };
        driver.check_result(code, format!("map {bytes} bytes"))?;
        self.mapped.insert(offset_bytes, Rc::clone(memory));
        let access = Access::for_device(self.context.device.handle);
        // SAFETY: memory is mapped to all of these addresses, and the structure outlives the call.
        let code = unsafe { (self.api.cuMemSetAccess)(address, bytes, &raw const access, 1) };
        driver.check_result(code, format!("allow access to {bytes} bytes"))
    }

    pub(crate) fn unmap_memory(&mut self, offset_bytes: u64) -> Result<(), CudaError> {
        let Some(memory) = self.mapped.remove(&offset_bytes) else {
            return Ok(());
        };
        // SAFETY: memory of this size is mapped at these addresses. No operation is using it,
        // because streams wait for their operations.
        let code =
            unsafe { (self.api.cuMemUnmap)(self.address + offset_bytes, memory.bytes as usize) };
        self.context
            .driver()
            .check_result(code, format!("unmap {} bytes", memory.bytes))
    }

    pub(crate) fn fill(
        &mut self,
        stream: &Stream,
        offset_bytes: u64,
        bytes: u64,
        value: u8,
    ) -> Result<(), CudaError> {
        self.assert_range_is_mapped(offset_bytes, bytes);
        let (driver, address) = (self.context.driver(), self.address + offset_bytes);
        stream.run(|_| {
            // SAFETY: memory is mapped to all of these addresses, and stays borrowed until the
            // stream has finished.
            let code = unsafe {
                (driver.api.cuMemsetD8Async)(address, value, bytes as usize, stream.handle)
            };
            driver.check_result(code, format!("fill {bytes} bytes of mapped memory"))
        })?;
        Ok(())
    }

    pub(crate) fn read(
        &self,
        stream: &Stream,
        offset_bytes: u64,
        budget: &mut [u8],
    ) -> Result<(), CudaError> {
        self.assert_range_is_mapped(offset_bytes, budget.len() as u64);
        let (driver, address) = (self.context.driver(), self.address + offset_bytes);
        stream.run(|_| {
            // SAFETY: memory is mapped to all of these addresses, and the buffer has the same size.
            // Both stay borrowed until the stream has finished.
            let code = unsafe {
                (driver.api.cuMemcpyDtoHAsync_v2)(
                    budget.as_mut_ptr().cast(),
                    address,
                    budget.len(),
                    stream.handle,
                )
            };
            driver.check_result(
                code,
                format!("read {} bytes of mapped memory", budget.len()),
            )
        })?;
        Ok(())
    }

    fn assert_range_is_mapped(&self, offset_bytes: u64, bytes: u64) {
        let mut at = offset_bytes;
        for (begin, memory) in &self.mapped {
            if (*begin..begin + memory.bytes).contains(&at) {
                at = begin + memory.bytes;
            }
        }
        assert!(
            at >= offset_bytes + bytes,
            "all of the addresses are mapped"
        );
    }
}

impl Drop for PhysicalMemory {
    fn drop(&mut self) {
        // SAFETY: the driver created the handle. It is released only here, when the memory is not
        // mapped, because a mapping holds a reference to its memory.
        unsafe { (self.api.cuMemRelease)(self.handle) };
    }
}

impl Drop for AddressRange {
    fn drop(&mut self) {
        let offsets: Vec<_> = self.mapped.keys().copied().collect();
        for offset_bytes in offsets {
            // An error cannot be handled here, because this is a destructor.
            let _ = self.unmap_memory(offset_bytes);
        }
        // SAFETY: the driver returned the addresses with this size. They are released once, when no
        // memory is mapped to them.
        unsafe { (self.api.cuMemAddressFree)(self.address, self.bytes as usize) };
    }
}

fn virtual_memory_functions(context: &Context) -> Result<&'static VirtualMemory, CudaError> {
    let api = context.driver().virtual_memory.as_ref();
    api.ok_or_else(|| CudaError::from_old_driver("map memory", "10.2"))
}
