//! The properties of a GPU that the driver reports, and the peak rates that result from them.

use gpumon_probe::model::{Absence, Reading};
use serde::Serialize;

use super::peaks::Peaks;
use crate::{
    cuda::{Attribute, Device, Driver, DriverUnavailable},
    protocol::Dtype,
    roofline::RatedPeak,
};

/// The properties and theoretical peaks of a GPU.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GpuInfo {
    /// The index in CUDA's order.
    pub index: u32,
    /// The GPU's name, such as `NVIDIA H200`.
    pub name: String,
    /// The UUID, as reported by NVML.
    pub uuid: String,
    /// The PCI address, such as `0000:1A:00.0`.
    pub pci_bus_id: String,
    /// The compute capability, such as `9.0`.
    pub compute_capability: String,
    /// The number of streaming multiprocessors.
    pub multiprocessors: Reading<u32>,
    /// The highest clock of the multiprocessors, in MHz.
    pub max_clock_mhz: Reading<f64>,
    /// The total device memory, in bytes.
    pub memory_bytes: u64,
    /// The width of the memory bus, in bits.
    pub memory_bus_bits: Reading<u32>,
    /// The highest clock of the memory, in MHz.
    pub memory_clock_mhz: Reading<f64>,
    /// The bandwidth of the memory bus, calculated from its width and clock. Each line of the bus
    /// transfers two bits per clock.
    pub memory_bytes_per_second: Reading<f64>,
    /// Whether the GPU corrects memory errors (ECC).
    pub ecc: Reading<bool>,
    /// The size of the whole chip's L2 cache, in bytes.
    pub l2_cache_bytes: Reading<u64>,
    /// The shared memory of a multiprocessor, in bytes.
    pub shared_memory_bytes: Reading<u64>,
    /// The maximum shared memory of a block, in bytes.
    pub shared_memory_per_block_bytes: Reading<u64>,
    /// The maximum number of 32-bit registers of a block.
    pub registers_per_block: Reading<u32>,
    /// The maximum number of threads of a multiprocessor.
    pub max_threads: Reading<u32>,
    /// The maximum number of threads of a block.
    pub max_threads_per_block: Reading<u32>,
    /// The number of threads in a warp.
    pub warp_size: Reading<u32>,
    /// The number of engines that can copy memory while kernels run.
    pub copy_engines: Reading<u32>,
    /// The theoretical peak rates.
    pub peaks: Reading<Peaks>,
}

/// The GPUs that the CUDA driver reports.
pub struct CudaGpus {
    /// The newest CUDA version that the driver supports.
    pub cuda: String,
    /// All GPUs in CUDA's order.
    pub gpus: Vec<GpuInfo>,
}

impl CudaGpus {
    /// Reads the properties of all GPUs from the driver.
    ///
    /// # Errors
    /// Returns an error if there is no driver, or if there is no GPU.
    pub fn read() -> Result<Self, DriverUnavailable> {
        let driver = Driver::load()?;
        Ok(Self {
            cuda: driver.version.to_string(),
            gpus: driver.list_devices()?.iter().map(GpuInfo::new).collect(),
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
            peaks: read_peaks(device),
        }
    }
}

/// Returns a GPU's peak rate for a number type. The rate is that of tensor cores if they support
/// the type.
pub(crate) fn compute_peak(device: &Device, dtype: Dtype) -> Reading<RatedPeak> {
    let rated = |peaks: &Peaks| {
        let per_second = peaks.find_rate(dtype)?;
        Some(RatedPeak {
            per_second,
            at_mhz: Some(peaks.clock_mhz),
        })
    };
    read_peaks(device)
        .value()
        .and_then(rated)
        .map_or(Reading::Absent(Absence::Unknown), Reading::Now)
}

fn read_peaks(device: &Device) -> Reading<Peaks> {
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

/// Returns the bandwidth of the memory bus. If the driver reports 0 for a property, the property is
/// unknown.
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
