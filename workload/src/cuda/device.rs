//! GPUs and MIG devices, as described by the driver, and the contexts through which this process
//! uses them.

use std::{cell::Cell, ffi::c_char, ptr, rc::Rc};

use super::{
    api::{self, DeviceHandle, Handle, array_to_text},
    driver::{CudaError, Driver},
    memory::DeviceMemory,
};

/// The maximum length of a device's name or bus ID in bytes.
const MAX_TEXT_BYTES: i32 = 256;
/// The value of `CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED`.
const PEER_ACCESS_ALREADY_ENABLED: i32 = 704;

/// A GPU, or a MIG device, that this process may use.
#[derive(Clone)]
pub struct Device {
    pub(super) driver: &'static Driver,
    pub(super) handle: DeviceHandle,
    /// The index in CUDA's order. It can differ from NVML's, because `CUDA_VISIBLE_DEVICES` and
    /// `CUDA_DEVICE_ORDER` affect it.
    pub index: u32,
    pub name: String,
    /// The UUID, as reported by NVML: `GPU-…` or `MIG-…`.
    pub uuid: String,
    pub pci_bus_id: String,
    pub capability: (u32, u32),
    pub memory_bytes: u64,
}

impl Device {
    pub(super) fn open(driver: &'static Driver, index: i32) -> Result<Self, CudaError> {
        let api = &driver.api;
        let mut handle = 0;
        // SAFETY: the variable outlives the call.
        driver.check_result(
            unsafe { (api.cuDeviceGet)(&raw mut handle, index) },
            format!("open GPU {index}"),
        )?;
        let mut budget = [0 as c_char; MAX_TEXT_BYTES as usize];
        // SAFETY: the buffer has the stated size.
        let code = unsafe { (api.cuDeviceGetName)(budget.as_mut_ptr(), MAX_TEXT_BYTES, handle) };
        driver.check_result(code, format!("read the name of GPU {index}"))?;
        let name = array_to_text(&budget);
        // SAFETY: the buffer has the stated size.
        let code =
            unsafe { (api.cuDeviceGetPCIBusId)(budget.as_mut_ptr(), MAX_TEXT_BYTES, handle) };
        driver.check_result(code, format!("read the PCI bus ID of GPU {index}"))?;
        let pci_bus_id = array_to_text(&budget);
        let mut total = 0;
        // SAFETY: the variable outlives the call.
        let code = unsafe { (api.cuDeviceTotalMem_v2)(&raw mut total, handle) };
        driver.check_result(code, format!("read the memory of GPU {index}"))?;
        let mut device = Self {
            driver,
            handle,
            index: index as u32,
            name,
            uuid: String::new(),
            pci_bus_id,
            capability: (0, 0),
            memory_bytes: total as u64,
        };
        device.uuid = device.read_uuid()?;
        let number = |attribute| device.attribute(attribute).map(|value| value as u32);
        device.capability = (
            number(Attribute::CapabilityMajor)?,
            number(Attribute::CapabilityMinor)?,
        );
        Ok(device)
    }

    /// Returns the value of an attribute of the device.
    ///
    /// # Errors
    /// Returns an error if the driver or the device does not support the attribute.
    pub fn attribute(&self, attribute: Attribute) -> Result<i32, CudaError> {
        let mut value = 0;
        // SAFETY: the variable outlives the call.
        let code = unsafe {
            (self.driver.api.cuDeviceGetAttribute)(&raw mut value, attribute as i32, self.handle)
        };
        self.driver
            .check_result(code, format!("read {attribute:?} of GPU {}", self.index))?;
        Ok(value)
    }

    pub fn driver(&self) -> &'static Driver {
        self.driver
    }

    fn read_uuid(&self) -> Result<String, CudaError> {
        let call = self
            .driver
            .api
            .cuDeviceGetUuid_v2
            .unwrap_or(self.driver.api.cuDeviceGetUuid);
        let mut bytes = [0; 16];
        // SAFETY: the array outlives the call.
        let code = unsafe { call(&raw mut bytes, self.handle) };
        self.driver
            .check_result(code, format!("read the UUID of GPU {}", self.index))?;
        // Only the name shows that a device is a MIG device. The UUID itself has no prefix, but
        // differs from that of every GPU.
        let prefix = if self.name.contains(" MIG ") {
            "MIG"
        } else {
            "GPU"
        };
        Ok(format_uuid(prefix, bytes))
    }
}

/// Formats a UUID as a prefix, such as `GPU`, followed by 32 digits in five groups.
fn format_uuid(prefix: &str, bytes: [u8; 16]) -> String {
    let digits = format!("{:032x}", u128::from_be_bytes(bytes));
    let groups = [
        &digits[..8],
        &digits[8..12],
        &digits[12..16],
        &digits[16..20],
        &digits[20..],
    ];
    format!("{prefix}-{}", groups.join("-"))
}

/// A numeric property of a device (`CUdevice_attribute`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Attribute {
    MaxThreadsPerBlock = 1,
    WarpSize = 10,
    RegistersPerBlock = 12,
    ClockRateKhz = 13,
    Multiprocessors = 16,
    EccEnabled = 32,
    MemoryClockKhz = 36,
    MemoryBusBits = 37,
    L2CacheBytes = 38,
    MaxThreadsPerMultiprocessor = 39,
    CopyEngines = 40,
    CapabilityMajor = 75,
    CapabilityMinor = 76,
    SharedMemoryPerMultiprocessor = 81,
    SharedMemoryPerBlockOptIn = 97,
}

/// A GPU's primary context. It stays on the thread that created it. Several contexts can take turns
/// on a thread: each is made current before it is used. The context is released when the last
/// reference to it is dropped.
pub(crate) struct Context {
    pub device: Device,
    /// The handle of the context. It is a raw pointer, so the compiler also prevents the context
    /// from being sent to another thread.
    pub(super) handle: Handle,
}

thread_local! {
    /// The context that this module last made current on this thread.
    static CURRENT_CONTEXT: Cell<Handle> = const { Cell::new(ptr::null_mut()) };
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FreeMemory {
    pub free_bytes: u64,
    pub total_bytes: u64,
}

impl Context {
    pub(crate) fn new(device: &Device) -> Result<Rc<Self>, CudaError> {
        let api = &device.driver.api;
        let mut handle = ptr::null_mut();
        // SAFETY: the pointer outlives the call.
        let code = unsafe { (api.cuDevicePrimaryCtxRetain)(&raw mut handle, device.handle) };
        device
            .driver
            .check_result(code, format!("create a context on GPU {}", device.index))?;
        let context = Rc::new(Self {
            device: device.clone(),
            handle,
        });
        device.driver.check_result(
            context.make_current(),
            format!("use GPU {} in this thread", device.index),
        )?;
        Ok(context)
    }

    pub(crate) fn read_free_memory(&self) -> Result<FreeMemory, CudaError> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: both variables outlive the call, and the context is current.
        let code = unsafe { (self.driver().api.cuMemGetInfo_v2)(&raw mut free, &raw mut total) };
        self.driver().check_result(
            code,
            format!("read the free memory of GPU {}", self.device.index),
        )?;
        Ok(FreeMemory {
            free_bytes: free as u64,
            total_bytes: total as u64,
        })
    }

    pub(crate) fn allocate(self: &Rc<Self>, bytes: u64) -> Result<DeviceMemory, CudaError> {
        DeviceMemory::new(self, bytes)
    }

    /// Returns the driver after making this context current. All calls that depend on the context
    /// must get the driver from this method.
    pub(super) fn driver(&self) -> &'static Driver {
        // If this fails, the next call of the driver returns the error, so the result is ignored.
        self.make_current();
        self.device.driver
    }

    fn make_current(&self) -> api::Code {
        if CURRENT_CONTEXT.get() == self.handle {
            return 0;
        }
        // SAFETY: the context is retained until `self` is dropped.
        let code = unsafe { (self.device.driver.api.cuCtxSetCurrent)(self.handle) };
        CURRENT_CONTEXT.set(if code == 0 {
            self.handle
        } else {
            ptr::null_mut()
        });
        code
    }

    /// Lets this device access the other device's memory directly, if the hardware supports this.
    /// Otherwise, copies go through host memory.
    pub(crate) fn enable_peer_access(&self, other: &Self) -> Result<(), CudaError> {
        let driver = self.driver();
        let (own, its) = (self.device.index, other.device.index);
        let mut can = 0;
        // SAFETY: the variable outlives the call.
        let code = unsafe {
            (driver.api.cuDeviceCanAccessPeer)(
                &raw mut can,
                self.device.handle,
                other.device.handle,
            )
        };
        driver.check_result(
            code,
            format!("check whether GPU {own} can access GPU {its}"),
        )?;
        if can == 0 {
            return Ok(());
        }
        // SAFETY: this context is current, and the other context stays retained while it is
        // borrowed. If the other context ends first, access to its memory ends with it.
        match unsafe { (driver.api.cuCtxEnablePeerAccess)(other.handle, 0) } {
            PEER_ACCESS_ALREADY_ENABLED => Ok(()),
            code => driver.check_result(code, format!("give GPU {own} access to GPU {its}")),
        }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the context was retained once, and is released once. Everything created in it
        // holds a reference to it, and has therefore been dropped. An error of the driver would
        // change nothing.
        unsafe { (self.device.driver.api.cuDevicePrimaryCtxRelease_v2)(self.device.handle) };
        // The driver may have destroyed the context. If this process uses the same context later,
        // it must make the context current again.
        if CURRENT_CONTEXT.get() == self.handle {
            CURRENT_CONTEXT.set(ptr::null_mut());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuid_has_same_format_as_in_nvml() {
        let bytes = [0xaa, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0xff];
        assert_eq!(
            format_uuid("GPU", bytes),
            "GPU-aa010203-0405-0607-0809-0a0b0c0d0eff"
        );
    }
}
