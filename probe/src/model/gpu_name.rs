//! The names by which users can identify GPUs, and the formats of PCI bus IDs.

use std::{
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
};

use schemars::JsonSchema;
use serde::Deserialize;
use thiserror::Error;

use super::{Gpu, Vendor};

/// A name of a GPU.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "TypedName")]
#[schemars(inline)]
pub enum GpuName {
    /// The index among all GPUs of the machine: `3`.
    Index(u32),
    /// The index among the GPUs of one vendor: `amd:0`.
    OfVendor(Vendor, u32),
    /// A UUID or its first characters, in lowercase.
    Uuid(String),
    /// A PCI bus ID, such as `00000000:3B:00.0`.
    BusId(String),
}

/// The error for text that does not identify a GPU.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "'{0}' is not a GPU: use an index (0), an index among the GPUs of a vendor (amd:0), a UUID or \
     its beginning (GPU-1a2b3c4d), or a PCI bus ID (0000:3b:00.0)"
)]
pub struct GpuNameError(String);

/// A GPU's name as written in JSON or TOML.
#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
#[serde(
    untagged,
    expecting = "a GPU is an index, such as 0, or a name, such as \"amd:0\" or \"GPU-1a2b3c4d\""
)]
enum TypedName {
    /// The index among all GPUs of the machine.
    Index(u32),
    /// An index among the GPUs of a vendor, such as amd:0; a UUID or its first characters; or a PCI
    /// bus ID.
    Name(String),
}

/// The prefixes of UUIDs, each with the characters that may follow in addition to letters and
/// digits. A GPU without a UUID is identified by its PCI slot.
const UUID_PREFIXES: [(&str, &str); 2] = [("gpu-", "-"), ("pci-", "-:.")];

impl GpuName {
    /// Returns `true` if this name identifies the GPU.
    pub fn is_name_of(&self, gpu: &Gpu) -> bool {
        match self {
            Self::Index(index) => gpu.index == *index,
            Self::OfVendor(vendor, index) => {
                gpu.vendor == *vendor && gpu.vendor_index == Some(*index)
            }
            Self::Uuid(beginning) => gpu
                .uuid
                .as_ref()
                .is_some_and(|uuid| uuid.to_ascii_lowercase().starts_with(beginning)),
            Self::BusId(id) => gpu
                .pci_bus_id
                .value()
                .is_some_and(|own| normalize_bus_id(own).as_ref() == Some(id)),
        }
    }
}

impl FromStr for GpuName {
    type Err = GpuNameError;

    fn from_str(text: &str) -> Result<Self, GpuNameError> {
        let bad = || GpuNameError(text.to_owned());
        if let Ok(index) = text.parse() {
            return Ok(Self::Index(index));
        }
        if let Some((vendor, index)) = text.split_once(':')
            && let Some(vendor) = Vendor::from_name(vendor)
        {
            return index
                .parse()
                .map(|index| Self::OfVendor(vendor, index))
                .map_err(|_| bad());
        }
        let name = text.to_ascii_lowercase();
        let is_uuid = UUID_PREFIXES.iter().any(|(prefix, others)| {
            let fits = |letter: char| letter.is_ascii_alphanumeric() || others.contains(letter);
            let rest = name.strip_prefix(prefix);
            rest.is_some_and(|rest| !rest.is_empty() && rest.chars().all(fits))
        });
        if is_uuid {
            return Ok(Self::Uuid(name));
        }
        // Without a function number, as in `0:1`, a bus ID would be ambiguous, so it is not
        // accepted.
        let bus_id = normalize_bus_id(text).filter(|_| text.contains('.'));
        bus_id.map(Self::BusId).ok_or_else(bad)
    }
}

impl TryFrom<TypedName> for GpuName {
    type Error = GpuNameError;

    fn try_from(typed: TypedName) -> Result<Self, GpuNameError> {
        match typed {
            TypedName::Index(index) => Ok(Self::Index(index)),
            TypedName::Name(name) => name.parse(),
        }
    }
}

impl fmt::Display for GpuName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Index(index) => write!(f, "{index}"),
            Self::OfVendor(vendor, index) => write!(f, "{}:{index}", vendor.lower_name()),
            Self::Uuid(name) | Self::BusId(name) => f.write_str(name),
        }
    }
}

/// Converts a PCI bus ID in any of the driver's formats (`0000:3b:00`, `3b:00.0`,
/// `00000000:3B:00.0`) to NVML's format (`00000000:3B:00.0`). Returns `None` if the text is not a
/// bus ID.
pub fn normalize_bus_id(text: &str) -> Option<String> {
    let hex = |text: &str, longest: usize| {
        let fits = (1..=longest).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        fits.then(|| u32::from_str_radix(text, 16).ok())?
    };
    let mut parts = text.rsplit(':');
    let last = parts.next()?;
    let bus = hex(parts.next()?, 2)?;
    let domain = parts.next().map_or(Some(0), |domain| hex(domain, 8))?;
    if parts.next().is_some() {
        return None;
    }
    let (device, function) = last.split_once('.').unwrap_or((last, "0"));
    let (device, function) = (hex(device, 2)?, hex(function, 1)?);
    Some(format!("{domain:08X}:{bus:02X}:{device:02X}.{function:X}"))
}

/// Returns the sysfs directory of the device with this bus ID. The domain has eight digits in
/// NVML's bus IDs, but four in sysfs. `sys_root` is `/sys`, except in tests.
pub(crate) fn sysfs_device_path(sys_root: &Path, bus_id: &str) -> PathBuf {
    let short = bus_id
        .strip_prefix("0000")
        .unwrap_or(bus_id)
        .to_ascii_lowercase();
    sys_root.join("bus/pci/devices").join(short)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Absence, Reading};

    fn make_radeon(uuid: &str) -> Gpu {
        Gpu {
            vendor: Vendor::Amd,
            vendor_index: Some(0),
            uuid: Some(uuid.to_owned()),
            pci_bus_id: Reading::Now("00000000:1B:00.0".to_owned()),
            ..Gpu::new_unidentified(2, &Absence::Unknown)
        }
    }

    fn is_named(name: &str, gpu: &Gpu) -> bool {
        name.parse::<GpuName>()
            .is_ok_and(|name| name.is_name_of(gpu))
    }

    #[test]
    fn gpu_matches_each_of_its_names() {
        let gpu = make_radeon("GPU-a1b2c3d4e5f60718");
        for name in [
            "2",
            "amd:0",
            "AMD:0",
            "GPU-a1b2c3d4e5f60718",
            "gpu-A1",
            "00000000:1B:00.0",
            "0000:1b:00.0",
            "1b:00.0",
            "00000000:1b:0.0",
        ] {
            assert!(is_named(name, &gpu), "{name}");
        }
        for name in [
            "0",
            "amd:2",
            "nvidia:0",
            "intel:0",
            "GPU-b1",
            "0001:1b:00.0",
            "1b:00.1",
        ] {
            assert!(!is_named(name, &gpu), "{name}");
            assert!(name.parse::<GpuName>().is_ok(), "{name}");
        }
        let without_id = make_radeon("PCI-0000:1b:00.0");
        assert!(is_named("pci-0000:1B:00.0", &without_id) && is_named("PCI-0000:1b", &without_id));
    }

    #[test]
    fn invalid_name_is_refused_with_examples() {
        for text in [
            "",
            "-1",
            "H200",
            "amd",
            "amd:",
            "amd:x",
            "amd:0:1",
            "radeon:0",
            "GPU-",
            "GPU-a.1",
            "MIG-1",
            "1b",
            "1b:00",
            "x:1b:00.0",
            "0:0:1b:00.0",
            "GPU-1b00.0",
            "1:0",
        ] {
            let error = text.parse::<GpuName>().unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("'{text}'")) && error.contains("amd:0"),
                "{error}"
            );
        }
    }

    #[test]
    fn gpu_name_round_trips_through_json() {
        let names = r#"[1, "2", "Amd:0", "GPU-1A2b", "3b:00.0"]"#;
        let names: Vec<GpuName> = serde_json::from_str(names).unwrap();
        let written: Vec<_> = names.iter().map(ToString::to_string).collect();
        assert_eq!(written, ["1", "2", "amd:0", "gpu-1a2b", "00000000:3B:00.0"]);
        let error = serde_json::from_str::<GpuName>("1.5").unwrap_err();
        assert!(error.to_string().contains("a GPU is an index"), "{error}");
    }
}

#[cfg(test)]
mod bus_id_tests {
    use super::*;

    #[test]
    fn bus_id_is_converted_to_nvml_format() {
        for text in ["0000:3b:00", "3b:00.0", "00000000:3B:00.0", "0:3B:0"] {
            assert_eq!(
                normalize_bus_id(text).as_deref(),
                Some("00000000:3B:00.0"),
                "{text}"
            );
        }
        assert_eq!(
            normalize_bus_id("10000:e1:00.0").as_deref(),
            Some("00010000:E1:00.0")
        );
        for text in [
            "",
            ":",
            "3b",
            "0000:3b:00:0:1",
            "0000:3b:0g",
            "0000:+3:00",
            "123456789:3b:00",
        ] {
            assert_eq!(normalize_bus_id(text), None, "{text}");
        }
    }

    #[test]
    fn sysfs_bus_id_has_short_domain() {
        let folder = |bus_id| sysfs_device_path(Path::new("/sys"), bus_id);
        assert_eq!(
            folder("00000000:3B:00.0"),
            Path::new("/sys/bus/pci/devices/0000:3b:00.0")
        );
        assert_eq!(
            folder("00010000:3B:00.0"),
            Path::new("/sys/bus/pci/devices/00010000:3b:00.0")
        );
    }
}
