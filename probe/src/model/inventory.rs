//! The inventory of a machine: its drivers, its GPUs with their constant properties, and the links
//! between GPUs. It is read at the start and again after every change.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{Absence, Health, MigInstance, Reading, Vendor, absent};

/// The machine, its drivers and its GPUs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Inventory {
    /// The time at which the inventory was read.
    pub at_ms: u64,
    /// The machine's host name.
    pub hostname: String,
    /// The drivers and libraries that provide the readings.
    pub platform: Platform,
    /// All GPUs that the driver lists, in the driver's order. A lost GPU keeps its position.
    pub gpus: Vec<Gpu>,
    /// The links between GPUs: one entry per pair, the lower index first. Empty until the links
    /// have been read.
    #[serde(default)]
    pub topology: Vec<GpuLink>,
    /// The state of the playback, if the data comes from a recording instead of the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub playback: Option<Playback>,
}

/// The drivers that provide the readings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
#[serde(from = "PlatformJson", into = "PlatformJson")]
#[ts(as = "PlatformJson")]
pub struct Platform {
    /// Whether the GPUs are simulated. Simulated values are labeled wherever they are shown.
    pub is_simulated: bool,
    /// The drivers of the machine's GPUs, one per vendor.
    pub drivers: Vec<Driver>,
}

/// A GPU driver with its versions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Driver {
    /// The vendor of the driver's GPUs.
    pub vendor: Vendor,
    /// The version of the driver, such as `580.159.04` (`nvmlSystemGetDriverVersion`).
    pub version: Reading<String>,
    /// The version of the library for accessing the driver, such as `13.580.159.04`
    /// (`nvmlSystemGetNVMLVersion`).
    pub library_version: Reading<String>,
    /// The newest CUDA version that the driver supports, such as `13.0`
    /// (`nvmlSystemGetCudaDriverVersion_v2`).
    pub cuda_version: Reading<String>,
}

/// The JSON format of [`Platform`]. Recordings and servers of version 0.2 and older have no
/// `drivers`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
#[ts(rename = "Platform")]
#[schemars(rename = "Platform")]
struct PlatformJson {
    /// The kind of source. Simulated values are labeled wherever they are shown.
    source: SourceKind,
    /// The version of NVIDIA's driver, such as `580.159.04` (`nvmlSystemGetDriverVersion`).
    driver_version: Reading<String>,
    /// The version of NVML, such as `13.580.159.04` (`nvmlSystemGetNVMLVersion`).
    nvml_version: Reading<String>,
    /// The newest CUDA version that NVIDIA's driver supports, such as `13.0`
    /// (`nvmlSystemGetCudaDriverVersion_v2`).
    cuda_version: Reading<String>,
    /// The drivers of the machine's GPUs, one per vendor.
    #[serde(default)]
    #[ts(optional, as = "Option<Vec<Driver>>")]
    drivers: Vec<Driver>,
}

impl From<PlatformJson> for Platform {
    fn from(json: PlatformJson) -> Self {
        let drivers = if json.drivers.is_empty() {
            vec![Driver {
                vendor: Vendor::Nvidia,
                version: json.driver_version,
                library_version: json.nvml_version,
                cuda_version: json.cuda_version,
            }]
        } else {
            json.drivers
        };
        Self {
            is_simulated: json.source == SourceKind::Simulated,
            drivers,
        }
    }
}

impl From<Platform> for PlatformJson {
    fn from(platform: Platform) -> Self {
        let of_nvidia = |read: fn(&Driver) -> &Reading<String>| {
            platform
                .find_driver(Vendor::Nvidia)
                .map_or(Reading::Absent(Absence::NotSupported), |driver| {
                    read(driver).clone()
                })
        };
        Self {
            source: platform.source(),
            driver_version: of_nvidia(|driver| &driver.version),
            nvml_version: of_nvidia(|driver| &driver.library_version),
            cuda_version: of_nvidia(|driver| &driver.cuda_version),
            drivers: platform.drivers,
        }
    }
}

impl Platform {
    /// Returns the driver for the GPUs of a vendor.
    pub fn find_driver(&self, vendor: Vendor) -> Option<&Driver> {
        self.drivers.iter().find(|driver| driver.vendor == vendor)
    }

    pub fn source(&self) -> SourceKind {
        if self.is_simulated {
            SourceKind::Simulated
        } else {
            SourceKind::Nvml
        }
    }

    /// Returns the versions to display, such as `driver 580.159.04` and `CUDA 13.0`. If there are
    /// several drivers, each version is preceded by the vendor's name.
    pub fn driver_and_cuda_versions(&self) -> Vec<String> {
        let versions = self.drivers.iter().flat_map(|driver| {
            let cuda = driver.cuda_version.value();
            let cuda = cuda.map(|version| format!("CUDA {version}"));
            [self.format_driver_version(driver, "driver "), cuda]
        });
        versions.flatten().collect()
    }

    /// Returns the driver versions in a short format: `580.159.04`, or `NVIDIA 580.159.04` if there
    /// are several drivers.
    pub fn driver_versions(&self) -> Vec<String> {
        let drivers = self.drivers.iter();
        drivers
            .filter_map(|driver| self.format_driver_version(driver, ""))
            .collect()
    }

    fn format_driver_version(&self, driver: &Driver, only: &str) -> Option<String> {
        let version = driver.version.value()?;
        Some(match self.drivers.len() {
            1 => format!("{only}{version}"),
            _ => format!("{} {version}", driver.vendor.name()),
        })
    }
}

/// The kind of source that provides the readings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SourceKind {
    /// NVIDIA's driver, through NVML.
    Nvml,
    /// The built-in simulation.
    Simulated,
}

/// A GPU that an earlier collector has read. Later collectors reserve its index, even if the GPU
/// has been removed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KnownGpu {
    pub gpu: Gpu,
    pub health: Health,
}

/// The identity and the constant properties of one GPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Gpu {
    /// The index among all GPUs of the machine. For an NVIDIA GPU, NVML's index at the time when
    /// the GPU was first read. The index stays the same when another GPU is lost, added or removed.
    pub index: u32,
    /// The GPU's vendor.
    #[serde(default)]
    #[ts(optional, as = "Option<Vendor>")]
    pub vendor: Vendor,
    /// The index that the vendor's driver assigned to the GPU. Missing while the driver does not
    /// list the GPU, and in recordings of version 0.2 and older.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub vendor_index: Option<u32>,
    /// The UUID (`nvmlDeviceGetUUID`). `null` if the driver has not reported it yet, because the
    /// GPU was lost or hung from the start.
    pub uuid: Option<String>,
    /// The name of the model, such as `NVIDIA H200` (`nvmlDeviceGetName`).
    pub name: Reading<String>,
    /// The PCI bus ID, such as `00000000:00:06.0` (`nvmlDeviceGetPciInfo_v3`).
    pub pci_bus_id: Reading<String>,
    /// The constant properties of the board.
    pub board: Board,
    /// The MIG devices of the GPU; empty if MIG is off. When MIG devices change, the inventory is
    /// sent again.
    #[serde(default)]
    pub mig_devices: Vec<MigDevice>,
}

impl Gpu {
    /// Returns a GPU with a known index whose other properties are absent for the given reason.
    pub fn new_unidentified(index: u32, reason: &Absence) -> Self {
        Self {
            index,
            vendor: Vendor::default(),
            vendor_index: None,
            uuid: None,
            name: Reading::Absent(reason.clone()),
            pci_bus_id: Reading::Absent(reason.clone()),
            board: Board::new_absent(reason),
            mig_devices: Vec::new(),
        }
    }
}

/// The constant properties of a board, read once when the GPU is opened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Board {
    /// The serial number of the board (`nvmlDeviceGetSerial`).
    pub serial: Reading<String>,
    /// The part number of the board (`nvmlDeviceGetBoardPartNumber`).
    pub part_number: Reading<String>,
    /// The version of the VBIOS (`nvmlDeviceGetVbiosVersion`).
    pub vbios_version: Reading<String>,
    /// NVIDIA's name of the architecture, such as `Hopper` (`nvmlDeviceGetArchitecture`).
    pub architecture: Reading<String>,
    /// The CUDA compute capability, such as `9.0` (`nvmlDeviceGetCudaComputeCapability`).
    pub compute_capability: Reading<String>,
    /// Number of CUDA cores (`nvmlDeviceGetNumGpuCores`).
    pub cores: Reading<u32>,
    /// Width of the bus to device memory, in bits (`nvmlDeviceGetMemoryBusWidth`).
    pub memory_bus_bits: Reading<u32>,
    /// The number in `/dev/nvidiaN` (`nvmlDeviceGetMinorNumber`).
    pub minor_number: Reading<u32>,
    /// The NUMA node nearest to the GPU (`nvmlDeviceGetNumaNodeId`, otherwise sysfs).
    pub numa_node: Reading<u32>,
    /// The highest PCIe generation that both board and slot support
    /// (`nvmlDeviceGetMaxPcieLinkGeneration`).
    pub pcie_max_generation: Reading<u32>,
    /// The maximum number of PCIe lanes that both board and slot support
    /// (`nvmlDeviceGetMaxPcieLinkWidth`).
    pub pcie_max_width: Reading<u32>,
    /// The maximum clocks of the GPU (`nvmlDeviceGetMaxClockInfo`).
    pub max_clocks: MaxClocks,
    /// The default, minimum and maximum power limits.
    pub power_limits: PowerLimits,
    /// Temperatures at which the GPU protects itself (`nvmlDeviceGetTemperatureThreshold`).
    pub thresholds: Thresholds,
    /// The source of the energy readings, on GPUs of AMD and Intel.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub energy_source: Option<EnergySource>,
}

/// The source of a GPU's energy readings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EnergySource {
    /// The energy counter of the hardware.
    Counter,
    /// The power readings, integrated by gpumon since it started to read the GPU.
    Power,
}

/// The maximum clocks of a GPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct MaxClocks {
    /// Maximum clock of the graphics engine.
    pub graphics_mhz: Reading<u32>,
    /// Maximum clock of the streaming multiprocessors.
    pub sm_mhz: Reading<u32>,
    /// Maximum clock of device memory.
    pub memory_mhz: Reading<u32>,
    /// Maximum clock of the video encoder and decoder.
    pub video_mhz: Reading<u32>,
}

/// The default power limit, and the range in which the limit can be set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct PowerLimits {
    /// The power limit after a reset of the driver (`nvmlDeviceGetPowerManagementDefaultLimit`).
    pub default_watts: Reading<f64>,
    /// The lowest power limit that can be set (`nvmlDeviceGetPowerManagementLimitConstraints`).
    pub min_watts: Reading<f64>,
    /// The highest power limit that can be set (`nvmlDeviceGetPowerManagementLimitConstraints`).
    pub max_watts: Reading<f64>,
}

/// Temperatures at which the GPU protects itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Thresholds {
    /// The temperature at which the GPU switches itself off.
    pub shutdown_celsius: Reading<f64>,
    /// The temperature at which the hardware reduces the clocks.
    pub slowdown_celsius: Reading<f64>,
    /// The memory temperature at which the software reduces the clocks.
    pub memory_max_celsius: Reading<f64>,
    /// The GPU temperature at which the software reduces the clocks.
    pub gpu_max_celsius: Reading<f64>,
}

impl Board {
    /// Returns a board whose readings are all absent for the given reason.
    pub fn new_absent(reason: &Absence) -> Self {
        let energy_source = None;
        absent!(reason; Self { energy_source }; serial, part_number, vbios_version, architecture,
            compute_capability, cores, memory_bus_bits, minor_number, numa_node,
            pcie_max_generation, pcie_max_width, max_clocks, power_limits, thresholds)
    }
}

absent! {
    MaxClocks { graphics_mhz, sm_mhz, memory_mhz, video_mhz }
    PowerLimits { default_watts, min_watts, max_watts }
    Thresholds { shutdown_celsius, slowdown_celsius, memory_max_celsius, gpu_max_celsius }
}

/// The constant properties of a MIG device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct MigDevice {
    /// NVML's index among the MIG devices of the GPU.
    pub index: u32,
    /// The UUID, such as `MIG-...`, for use in `CUDA_VISIBLE_DEVICES`.
    pub uuid: String,
    /// The part of the GPU that the device uses.
    #[serde(flatten)]
    #[ts(flatten)]
    pub instance: MigInstance,
    /// The profile in nvidia-smi's format, such as `1g.18gb`, from the name of the device
    /// (`nvmlDeviceGetName`).
    pub profile: Reading<String>,
    /// Number of multiprocessors (`nvmlDeviceGetAttributes_v2`).
    pub multiprocessors: Reading<u32>,
    /// Number of copy engines (`nvmlDeviceGetAttributes_v2`).
    pub copy_engines: Reading<u32>,
    /// Number of video decoders (`nvmlDeviceGetAttributes_v2`).
    pub decoders: Reading<u32>,
    /// Number of video encoders (`nvmlDeviceGetAttributes_v2`).
    pub encoders: Reading<u32>,
}

/// The links between two GPUs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct GpuLink {
    /// The lower index of the two GPUs.
    pub a: u32,
    /// The higher index of the two GPUs.
    pub b: u32,
    /// The path through PCI Express (`nvmlDeviceGetTopologyCommonAncestor`).
    pub path: Reading<PciPath>,
    /// The number of active NVLinks between the two GPUs, directly or through switches.
    pub nvlinks: Reading<u32>,
}

/// The path between two GPUs through PCI Express, from the shortest to the longest; in parentheses
/// the abbreviation of `nvidia-smi topo -m`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, TS, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum PciPath {
    /// Both GPUs are on one board.
    Internal = 0,
    /// The path crosses one PCIe switch (`PIX`).
    Single = 10,
    /// The path crosses several PCIe switches, but no host bridge (`PXB`).
    Multiple = 20,
    /// The path crosses a host bridge (`PHB`).
    HostBridge = 30,
    /// The path crosses several host bridges of one NUMA node (`NODE`).
    Node = 40,
    /// The path crosses the link between NUMA nodes (`SYS`).
    System = 50,
}

impl PciPath {
    const ALL: [Self; 6] = [
        Self::Internal,
        Self::Single,
        Self::Multiple,
        Self::HostBridge,
        Self::Node,
        Self::System,
    ];

    /// Returns the kind of path that NVML's topology level (`nvmlGpuTopologyLevel_t`) stands for,
    /// or `None` for an unknown level.
    pub fn from_level(level: i128) -> Option<Self> {
        Self::ALL.into_iter().find(|path| *path as i128 == level)
    }
}

/// The state of a recording's playback. All other data is from the newest sample played.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Playback {
    /// The time of the recording's first sample.
    pub from_ms: u64,
    /// The time of the recording's last sample.
    pub to_ms: u64,
    /// The speed relative to real time.
    pub speed: f64,
    /// Whether a user has paused the playback.
    pub paused: bool,
    /// Whether the playback has reached the last sample.
    pub ended: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_driver_versions_are_listed_with_vendor() {
        let driver = |version: &str| Driver {
            vendor: Vendor::Nvidia,
            version: Reading::Now(version.to_owned()),
            library_version: Reading::Absent(Absence::NotSupported),
            cuda_version: Reading::Absent(Absence::NotSupported),
        };
        let platform = Platform {
            is_simulated: false,
            drivers: vec![driver("580.1"), driver("6.16")],
        };
        assert_eq!(
            platform.driver_and_cuda_versions(),
            ["NVIDIA 580.1", "NVIDIA 6.16"]
        );
        assert_eq!(
            platform.driver_versions(),
            platform.driver_and_cuda_versions()
        );
    }

    #[test]
    fn platform_of_old_recording_is_read_as_nvidia() {
        let old = serde_json::json!({
            "source": "nvml",
            "driver_version": "580.1",
            "nvml_version": "13.580.1",
            "cuda_version": "13.0",
        });
        let platform: Platform = serde_json::from_value(old.clone()).unwrap();
        assert_eq!(
            platform.driver_and_cuda_versions(),
            ["driver 580.1", "CUDA 13.0"]
        );
        assert_eq!(platform.driver_versions(), ["580.1"]);
        let written = serde_json::to_value(&platform).unwrap();
        for (key, value) in old.as_object().unwrap() {
            assert_eq!(written[key], *value, "{key}");
        }
        assert_eq!(written["drivers"][0]["version"], "580.1");
    }
}
