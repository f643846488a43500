//! A GPU: its numbers as the driver gives them, and what they come to.

use gpumon_probe::model::{Absence, Reading};
use serde::Serialize;

use super::peaks::Peaks;
use crate::{
    cuda::{Attribute, Device, Driver, Unavailable},
    protocol::Dtype,
    roofline::Rated,
};

/// What a GPU has, and what it can do at best.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GpuInfo {
    /// In CUDA's order.
    pub index: u32,
    /// As `NVIDIA H200`.
    pub name: String,
    /// As NVML says it.
    pub uuid: String,
    /// As `0000:1A:00.0`.
    pub pci_bus_id: String,
    /// As `9.0`.
    pub compute_capability: String,
    /// Streaming multiprocessors.
    pub multiprocessors: Reading<u32>,
    /// The highest clock of those.
    pub max_clock_mhz: Reading<f64>,
    /// All of its memory.
    pub memory_bytes: u64,
    /// Width of the bus to the memory.
    pub memory_bus_bits: Reading<u32>,
    /// The highest clock of the memory.
    pub memory_clock_mhz: Reading<f64>,
    /// What the bus can carry, by width and clock, at two bits a line in each clock.
    pub memory_bytes_per_second: Reading<f64>,
    /// Whether memory errors are corrected.
    pub ecc: Reading<bool>,
    /// The cache of the whole chip.
    pub l2_cache_bytes: Reading<u64>,
    /// Shared memory of a multiprocessor.
    pub shared_memory_bytes: Reading<u64>,
    /// Of that, what one block may have.
    pub shared_memory_per_block_bytes: Reading<u64>,
    /// Registers of 32 bits of a block.
    pub registers_per_block: Reading<u32>,
    /// Threads of a multiprocessor, at most.
    pub max_threads: Reading<u32>,
    /// Threads of a block, at most.
    pub max_threads_per_block: Reading<u32>,
    /// Threads that go together.
    pub warp_size: Reading<u32>,
    /// Engines that copy while kernels run.
    pub copy_engines: Reading<u32>,
    /// What it can do in a second.
    pub peaks: Reading<Peaks>,
}

/// The GPUs that the CUDA driver shows.
pub struct Gpus {
    /// The newest CUDA that the driver knows.
    pub cuda: String,
    /// In CUDA's order.
    pub gpus: Vec<GpuInfo>,
}

impl Gpus {
    /// Asks the driver.
    ///
    /// # Errors
    /// Where there is none, or no GPU.
    pub fn read() -> Result<Self, Unavailable> {
        let driver = Driver::load()?;
        Ok(Self {
            cuda: driver.version.to_string(),
            gpus: driver.devices()?.iter().map(GpuInfo::new).collect(),
        })
    }
}

impl GpuInfo {
    fn new(device: &Device) -> Self {
        let number = |attribute| read(device, attribute, |value| value as u32);
        let bytes = |attribute| read(device, attribute, |value| value as u64);
        let mhz = |attribute| read(device, attribute, |khz| f64::from(khz) / 1e3);
        let (multiprocessors, max_clock_mhz) = (
            number(Attribute::Multiprocessors),
            mhz(Attribute::ClockRateKhz),
        );
        let (major, minor) = device.capability;
        Self {
            index: device.index,
            name: device.name.clone(),
            uuid: device.uuid.clone(),
            pci_bus_id: device.pci_bus_id.clone(),
            compute_capability: format!("{major}.{minor}"),
            multiprocessors,
            max_clock_mhz,
            memory_bytes: device.memory_bytes,
            memory_bus_bits: number(Attribute::MemoryBusBits),
            memory_clock_mhz: mhz(Attribute::MemoryClockKhz),
            memory_bytes_per_second: memory_bandwidth(device),
            ecc: read(device, Attribute::EccEnabled, |value| value != 0),
            l2_cache_bytes: bytes(Attribute::L2CacheBytes),
            shared_memory_bytes: bytes(Attribute::SharedMemoryPerMultiprocessor),
            shared_memory_per_block_bytes: bytes(Attribute::SharedMemoryPerBlockOptIn),
            registers_per_block: number(Attribute::RegistersPerBlock),
            max_threads: number(Attribute::MaxThreadsPerMultiprocessor),
            max_threads_per_block: number(Attribute::MaxThreadsPerBlock),
            warp_size: number(Attribute::WarpSize),
            copy_engines: number(Attribute::CopyEngines),
            peaks: peaks(device),
        }
    }
}

/// What a GPU can do in a second with numbers of a type, by the tensor cores where there are any
/// for it.
pub(crate) fn compute_peak(device: &Device, dtype: Dtype) -> Reading<Rated> {
    let rated = |peaks: &Peaks| {
        let per_second = peaks.of_type(dtype)?;
        Some(Rated {
            per_second,
            at_mhz: Some(peaks.clock_mhz),
        })
    };
    peaks(device)
        .value()
        .and_then(rated)
        .map_or(Reading::Absent(Absence::Unknown), Reading::Now)
}

fn peaks(device: &Device) -> Reading<Peaks> {
    let number = |attribute| device.attribute(attribute).ok();
    let found = number(Attribute::Multiprocessors)
        .zip(number(Attribute::ClockRateKhz))
        .and_then(|(count, khz)| {
            Peaks::new(
                &device.name,
                device.capability,
                count as u32,
                f64::from(khz) / 1e3,
            )
        });
    found.map_or(Reading::Absent(Absence::Unknown), Reading::Now)
}

/// What the bus to a GPU's memory can carry. A driver that gives 0 for one of the numbers does not
/// know it.
pub(crate) fn memory_bandwidth(device: &Device) -> Reading<f64> {
    let number = |attribute| {
        device
            .attribute(attribute)
            .ok()
            .filter(|value| *value > 0)
            .map(f64::from)
    };
    match (
        number(Attribute::MemoryBusBits),
        number(Attribute::MemoryClockKhz),
    ) {
        (Some(bits), Some(khz)) => Reading::Now(bits / 8.0 * khz * 1e3 * 2.0),
        _ => Reading::Absent(Absence::Unknown),
    }
}

fn read<T>(device: &Device, attribute: Attribute, of: impl Fn(i32) -> T) -> Reading<T> {
    device
        .attribute(attribute)
        .map_or(Reading::Absent(Absence::NotSupported), |value| {
            Reading::Now(of(value))
        })
}
