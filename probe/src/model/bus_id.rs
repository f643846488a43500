//! PCI bus IDs, for which drivers use several formats.

use std::path::{Path, PathBuf};

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
