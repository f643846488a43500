//! What is there: read once, and again whenever it changes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{Absence, Board, GpuLink, Health, MigDevice, Playback, Reading, Vendor};

/// The machine, its driver and its GPUs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Inventory {
    /// When it was read.
    pub at_ms: u64,
    /// The machine's host name.
    pub hostname: String,
    /// The driver and library that the readings come from.
    pub platform: Platform,
    /// Every GPU the driver lists, in the driver's order; a lost one keeps its place.
    pub gpus: Vec<Gpu>,
    /// Which GPUs are linked by what: one entry per pair, the lower index first. Empty until it is
    /// known.
    #[serde(default)]
    pub topology: Vec<GpuLink>,
    /// Where all of this is played from a recording, and is not how things are now: how it is
    /// played.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub playback: Option<Playback>,
}

/// The drivers that the readings come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
#[serde(from = "PlatformJson", into = "PlatformJson")]
#[ts(as = "PlatformJson")]
pub struct Platform {
    /// Whether the GPUs are simulated. Whatever shows a simulated value is labeled.
    pub is_simulated: bool,
    /// The drivers of the machine's GPUs, one of each vendor.
    pub drivers: Vec<Driver>,
}

/// A driver, with what it can run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Driver {
    /// The vendor of its GPUs.
    pub vendor: Vendor,
    /// Its version, such as `580.159.04` (`nvmlSystemGetDriverVersion`).
    pub version: Reading<String>,
    /// The version of the library through which it is read, such as `13.580.159.04`
    /// (`nvmlSystemGetNVMLVersion`).
    pub library_version: Reading<String>,
    /// The newest CUDA that it runs, such as `13.0` (`nvmlSystemGetCudaDriverVersion_v2`).
    pub cuda_version: Reading<String>,
}

/// [`Platform`] in JSON. Recordings and servers of version 0.2 and older have no `drivers`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
#[ts(rename = "Platform")]
#[schemars(rename = "Platform")]
struct PlatformJson {
    /// The kind of source. Whatever shows a simulated value is labeled.
    source: SourceKind,
    /// The version of NVIDIA's driver, such as `580.159.04` (`nvmlSystemGetDriverVersion`).
    driver_version: Reading<String>,
    /// The version of NVML, such as `13.580.159.04` (`nvmlSystemGetNVMLVersion`).
    nvml_version: Reading<String>,
    /// The newest CUDA that NVIDIA's driver runs, such as `13.0`
    /// (`nvmlSystemGetCudaDriverVersion_v2`).
    cuda_version: Reading<String>,
    /// The drivers of the machine's GPUs, one of each vendor.
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
    /// Returns the driver of a vendor's GPUs.
    pub fn find_driver(&self, vendor: Vendor) -> Option<&Driver> {
        self.drivers.iter().find(|driver| driver.vendor == vendor)
    }

    /// Returns the kind of source.
    pub fn source(&self) -> SourceKind {
        if self.is_simulated {
            SourceKind::Simulated
        } else {
            SourceKind::Nvml
        }
    }

    /// Returns the versions to show: `driver 580.159.04` and `CUDA 13.0`. With several drivers,
    /// each has its vendor's name.
    pub fn versions(&self) -> Vec<String> {
        let versions = self.drivers.iter().flat_map(|driver| {
            let cuda = driver.cuda_version.value();
            let cuda = cuda.map(|version| format!("CUDA {version}"));
            [self.driver_version(driver, "driver "), cuda]
        });
        versions.flatten().collect()
    }

    /// Returns the versions of the drivers, for a short line: `580.159.04`, or with several drivers
    /// `NVIDIA 580.159.04`.
    pub fn driver_versions(&self) -> Vec<String> {
        let drivers = self.drivers.iter();
        drivers
            .filter_map(|driver| self.driver_version(driver, ""))
            .collect()
    }

    fn driver_version(&self, driver: &Driver, only: &str) -> Option<String> {
        let version = driver.version.value()?;
        Some(match self.drivers.len() {
            1 => format!("{only}{version}"),
            _ => format!("{} {version}", driver.vendor.name()),
        })
    }
}

/// The kind of source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SourceKind {
    /// NVIDIA's driver, through NVML.
    Nvml,
    /// The built-in simulation.
    Simulated,
}

/// A GPU that an earlier collector has read. The next collector keeps its index, even if the GPU is
/// gone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KnownGpu {
    /// The GPU's identity.
    pub gpu: Gpu,
    /// The GPU's last known health.
    pub health: Health,
}

/// One GPU's identity and what never changes about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Gpu {
    /// The index among all GPUs of the machine. For an NVIDIA GPU it is NVML's index when the GPU
    /// was first read. It never changes, even when another GPU is lost, added or removed.
    pub index: u32,
    /// The GPU's vendor.
    #[serde(default)]
    #[ts(optional, as = "Option<Vendor>")]
    pub vendor: Vendor,
    /// The index that the vendor's driver has given the GPU; missing while the driver does not list
    /// it, and in recordings of version 0.2 and older.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub vendor_index: Option<u32>,
    /// `nvmlDeviceGetUUID`; `None` while the driver has not told it (a GPU that was lost or hung
    /// from the start).
    pub uuid: Option<String>,
    /// `nvmlDeviceGetName`, as `NVIDIA H200`.
    pub name: Reading<String>,
    /// `nvmlDeviceGetPciInfo_v3`, as `00000000:00:06.0`.
    pub pci_bus_id: Reading<String>,
    /// The rest of what never changes.
    pub board: Board,
    /// Its MIG devices; empty where MIG is off. They change while the driver runs, which makes a
    /// new inventory.
    #[serde(default)]
    pub mig_devices: Vec<MigDevice>,
}

impl Gpu {
    /// Returns a GPU with a known index; its other properties are absent for this reason.
    pub fn unidentified(index: u32, reason: &Absence) -> Self {
        Self {
            index,
            vendor: Vendor::default(),
            vendor_index: None,
            uuid: None,
            name: Reading::Absent(reason.clone()),
            pci_bus_id: Reading::Absent(reason.clone()),
            board: Board::absent(reason),
            mig_devices: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_of_several_drivers_has_its_vendor() {
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
        assert_eq!(platform.versions(), ["NVIDIA 580.1", "NVIDIA 6.16"]);
        assert_eq!(platform.driver_versions(), platform.versions());
    }

    #[test]
    fn platform_of_old_recording_has_nvidia_driver() {
        let old = serde_json::json!({
            "source": "nvml",
            "driver_version": "580.1",
            "nvml_version": "13.580.1",
            "cuda_version": "13.0",
        });
        let platform: Platform = serde_json::from_value(old.clone()).unwrap();
        assert_eq!(platform.versions(), ["driver 580.1", "CUDA 13.0"]);
        assert_eq!(platform.driver_versions(), ["580.1"]);
        let written = serde_json::to_value(&platform).unwrap();
        for (key, value) in old.as_object().unwrap() {
            assert_eq!(written[key], *value, "{key}");
        }
        assert_eq!(written["drivers"][0]["version"], "580.1");
    }
}
