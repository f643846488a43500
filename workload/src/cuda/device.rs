//! A GPU or MIG device, as described by the driver.

use std::ffi::c_char;

use super::{
    api::{DeviceHandle, array_to_text},
    driver::Driver,
    error::CudaError,
};

/// The maximum length of a device's name or bus ID in bytes.
const MAX_TEXT_BYTES: i32 = 256;

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
        // Only its name shows that a device is a MIG device. The UUID itself has no prefix, but
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
