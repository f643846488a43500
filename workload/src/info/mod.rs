//! The machine's hardware for computing: the CPU, as described by the operating system, and the
//! GPUs, as described by the driver. [`peaks`] contains their theoretical peaks.

pub(crate) mod peaks;

use std::{collections::BTreeSet, fs, path::Path};

use gpumon_probe::{
    bounded,
    model::{Absence, Reading},
};
use serde::Serialize;

use self::peaks::RatedPeak;
use crate::{
    cuda::{Attribute, Device, Driver, DriverUnavailable},
    memory_budget::parse_kib,
    protocol::Dtype,
};

pub use self::peaks::{ClockSource, Peak, Peaks};

/// The instruction sets that affect computing speed. Their names are the kernel's.
const CPU_FEATURES: [&str; 10] = [
    "sse4_2",
    "avx",
    "fma",
    "avx2",
    "avx512f",
    "avx512_bf16",
    "avx512_fp16",
    "amx_tile",
    "asimd",
    "sve",
];

/// The properties of a CPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cpu {
    /// The CPU's name, as given by its vendor.
    pub name: String,
    /// The number of CPU sockets in use.
    pub sockets: usize,
    /// The total number of cores in all sockets.
    pub cores: usize,
    /// The total number of hardware threads.
    pub threads: usize,
    /// The total memory of the host, in bytes.
    pub memory_bytes: u64,
    /// The caches of all cores, by level from the smallest to the largest. Instruction caches are
    /// not included.
    pub caches: Vec<Cache>,
    /// The supported instruction sets that affect computing speed.
    pub features: Vec<&'static str>,
}

/// All caches of the same level.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cache {
    /// The cache level. Level 1 is nearest to a core.
    pub level: u32,
    /// The total size of all caches of this level.
    pub bytes: u64,
}

impl Cpu {
    /// Reads the properties of this machine's CPU.
    pub fn read() -> Self {
        Self::read_from(Path::new("/"))
    }

    /// Returns the size in bytes of the last cache before memory.
    pub fn last_cache_bytes(&self) -> u64 {
        self.caches.last().map_or(0, |cache| cache.bytes)
    }

    fn read_from(root: &Path) -> Self {
        let text = |path: &str| {
            bounded::read_text(root.join(path), bounded::TABLE_LIMIT).unwrap_or_default()
        };
        let cpuinfo = text("proc/cpuinfo");
        let values = |key: &str| {
            let lines = cpuinfo.lines().filter_map(|line| line.split_once(':'));
            lines
                .filter(|(name, _)| name.trim() == key)
                .map(|(_, value)| value.trim())
                .collect::<Vec<_>>()
        };
        let threads = values("processor").len().max(1);
        let (sockets, cores) = (values("physical id"), values("core id"));
        let each_core: BTreeSet<_> = sockets.iter().zip(&cores).collect();
        let flags = [values("flags"), values("Features")].concat();
        let flags: BTreeSet<_> = flags
            .first()
            .map(|flags| flags.split(' ').collect())
            .unwrap_or_default();
        Self {
            name: values("model name")
                .first()
                .copied()
                .unwrap_or("unknown CPU")
                .to_owned(),
            sockets: sockets.iter().collect::<BTreeSet<_>>().len().max(1),
            // If the kernel does not report cores, each thread counts as a core.
            cores: if each_core.is_empty() {
                threads
            } else {
                each_core.len()
            },
            threads,
            memory_bytes: parse_kib(&text("proc/meminfo"), "MemTotal:").unwrap_or(0) * 1024,
            caches: read_caches(&root.join("sys/devices/system/cpu")),
            features: CPU_FEATURES
                .into_iter()
                .filter(|feature| flags.contains(feature))
                .collect(),
        }
    }
}

/// Returns the caches by level. The kernel lists a cache once for every CPU that shares it, but
/// each cache is counted only once.
fn read_caches(folder: &Path) -> Vec<Cache> {
    let mut each = BTreeSet::new();
    for cpu in numbered_entries(folder, "cpu") {
        for cache in numbered_entries(&cpu.join("cache"), "index") {
            let text = |name| {
                bounded::read_text(cache.join(name), bounded::VALUE_LIMIT)
                    .unwrap_or_default()
                    .trim()
                    .to_owned()
            };
            let bytes = text("size")
                .strip_suffix('K')
                .and_then(|kib| kib.parse::<u64>().ok())
                .map(|kib| kib * 1024);
            if let (Ok(level), Some(bytes), true) = (
                text("level").parse::<u32>(),
                bytes,
                text("type") != "Instruction",
            ) {
                each.insert((level, text("shared_cpu_list"), bytes));
            }
        }
    }
    let levels: BTreeSet<u32> = each.iter().map(|(level, ..)| *level).collect();
    let of_level = |level| {
        each.iter()
            .filter(move |(of, ..)| *of == level)
            .map(|(.., bytes)| bytes)
            .sum()
    };
    levels
        .into_iter()
        .map(|level| Cache {
            level,
            bytes: of_level(level),
        })
        .collect()
}

/// Returns the entries of a directory whose names consist of `name` and a number.
fn numbered_entries(folder: &Path, name: &str) -> Vec<std::path::PathBuf> {
    let is_numbered = |path: &std::path::PathBuf| {
        let number = path
            .file_name()
            .and_then(|file| file.to_str()?.strip_prefix(name));
        number.is_some_and(|number| {
            !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit())
        })
    };
    fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(is_numbered)
        .collect()
}

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
        let number = |attribute| read_attribute(device, attribute, |value| value as u32);
        let bytes = |attribute| read_attribute(device, attribute, |value| value as u64);
        let mhz = |attribute| read_attribute(device, attribute, |khz| f64::from(khz) / 1e3);
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
            memory_bytes_per_second: peak_memory_bandwidth(device),
            ecc: read_attribute(device, Attribute::EccEnabled, |value| value != 0),
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
pub(crate) fn peak_compute_rate(device: &Device, dtype: Dtype) -> Reading<RatedPeak> {
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
pub(crate) fn peak_memory_bandwidth(device: &Device) -> Reading<f64> {
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

fn read_attribute<T>(device: &Device, attribute: Attribute, of: impl Fn(i32) -> T) -> Reading<T> {
    device
        .attribute(attribute)
        .map_or(Reading::Absent(Absence::NotSupported), |value| {
            Reading::Now(of(value))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write_file(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn threads_share_cores_and_caches() {
        let root = tempfile::tempdir().unwrap();
        let thread = |number: u32, core: u32| {
            format!(
                "processor\t: {number}\nmodel name\t: Fast CPU\nphysical id\t: 0\ncore id\t: \
                 {core}\nflags\t: fma x avx2\n"
            )
        };
        write_file(
            root.path(),
            "proc/cpuinfo",
            &[thread(0, 0), thread(1, 0), thread(2, 1), thread(3, 1)].join("\n"),
        );
        write_file(root.path(), "proc/meminfo", "MemTotal:       16 kB\n");
        for (cpu, pair) in [(0, "0-1"), (1, "0-1"), (2, "2-3"), (3, "2-3")] {
            for (index, level, kind, shared, size) in [
                (0, 1, "Data", pair, "32K"),
                (1, 1, "Instruction", pair, "32K"),
                (3, 3, "Unified", "0-3", "8192K"),
            ] {
                let place = format!("sys/devices/system/cpu/cpu{cpu}/cache/index{index}");
                for (name, text) in [
                    ("level", &*level.to_string()),
                    ("type", kind),
                    ("shared_cpu_list", shared),
                    ("size", size),
                ] {
                    write_file(
                        root.path(),
                        &format!("{place}/{name}"),
                        &format!("{text}\n"),
                    );
                }
            }
        }
        let cpu = Cpu::read_from(root.path());
        assert_eq!(
            (cpu.name.as_str(), cpu.sockets, cpu.cores, cpu.threads),
            ("Fast CPU", 1, 2, 4)
        );
        assert_eq!(
            cpu.caches,
            [
                Cache {
                    level: 1,
                    bytes: 64 << 10
                },
                Cache {
                    level: 3,
                    bytes: 8 << 20
                }
            ]
        );
        assert_eq!(
            (cpu.memory_bytes, cpu.features),
            (16 << 10, vec!["fma", "avx2"])
        );
    }

    #[test]
    fn machine_without_cpu_information_reports_one_thread() {
        let cpu = Cpu::read_from(Path::new("/nowhere"));
        assert_eq!((cpu.threads, cpu.cores, cpu.last_cache_bytes()), (1, 1, 0));
    }
}
