//! The numbers that a device has, by the places where the driver keeps them.

/// A `CUdevice_attribute`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Attribute {
    /// Threads in a block, at most.
    MaxThreadsPerBlock = 1,
    /// Threads that go together.
    WarpSize = 10,
    /// Registers of a block, of 32 bits.
    RegistersPerBlock = 12,
    /// Highest clock of the multiprocessors in kHz.
    ClockRateKhz = 13,
    /// Multiprocessors.
    Multiprocessors = 16,
    /// Whether memory errors are corrected.
    EccEnabled = 32,
    /// Highest clock of the memory in kHz.
    MemoryClockKhz = 36,
    /// Width of the bus to the memory in bits.
    MemoryBusBits = 37,
    /// Size of the second cache in bytes.
    L2CacheBytes = 38,
    /// Threads of a multiprocessor, at most.
    MaxThreadsPerMultiprocessor = 39,
    /// Engines that copy while kernels run.
    CopyEngines = 40,
    /// First number of the compute capability.
    CapabilityMajor = 75,
    /// Second number of the compute capability.
    CapabilityMinor = 76,
    /// Shared memory of a multiprocessor in bytes.
    SharedMemoryPerMultiprocessor = 81,
    /// Shared memory of a block in bytes, where it asks for it.
    SharedMemoryPerBlockOptIn = 97,
}
