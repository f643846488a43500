//! The numbers that a device has, by the places where the driver keeps them.

/// A `CUdevice_attribute`.
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
