//! Checks for GPUs on the PCI bus that lack a suitable kernel driver.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{Attributes, Card};
use crate::{
    model::{Severity, Vendor, normalize_bus_id},
    vendor::{DriverFinding, log_advice},
};

/// The properties by which a vendor's GPUs are recognized, and their kernel drivers.
pub(in crate::vendor) struct Binding {
    pub(in crate::vendor) vendor: Vendor,
    /// The vendor's PCI ID, for example `0x1002`.
    pub(in crate::vendor) vendor_id: &'static str,
    /// The prefixes of the PCI classes that the vendor's GPUs have.
    pub(in crate::vendor) classes: &'static [&'static str],
    /// The drivers that gpumon supports, starting with the most common one.
    pub(in crate::vendor) drivers: &'static [&'static str],
    /// An older driver that gpumon does not support, and the suggested fix.
    pub(in crate::vendor) old_driver: Option<(&'static str, &'static str)>,
    /// The last part of the PCI address that an integrated GPU has.
    pub(in crate::vendor) integrated: Option<&'static str>,
}

/// The driver that passes devices through to virtual machines.
const PASSTHROUGH_DRIVER: &str = "vfio-pci";

impl Binding {
    /// Returns a finding for each of the vendor's GPUs that has no card because no supported driver
    /// has initialized it. `cards` are the existing cards.
    pub(in crate::vendor) fn find_unbound_gpus(
        &self,
        sys_root: &Path,
        cards: &[Card],
    ) -> Vec<DriverFinding> {
        let Ok(entries) = fs::read_dir(sys_root.join("bus/pci/devices")) else {
            return Vec::new();
        };
        let mut folders: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        folders.sort();
        folders.retain(|folder| self.is_gpu(folder));
        let unread = folders.iter().filter_map(|folder| {
            let address = folder.file_name()?.to_str()?;
            let bus_id = normalize_bus_id(address)?;
            let has_card = cards.iter().any(|card| card.bus_id == bus_id);
            (!has_card).then(|| self.explain(folder, address))
        });
        unread.collect()
    }

    /// Returns `true` if the device is one of the vendor's GPUs, and not a virtual function of one.
    fn is_gpu(&self, folder: &Path) -> bool {
        let device = Attributes::new(folder);
        let is_of_vendor = device
            .read_text("vendor")
            .is_ok_and(|id| id == self.vendor_id);
        let has_class = |class: String| self.classes.iter().any(|own| class.starts_with(own));
        is_of_vendor
            && device.read_text("class").is_ok_and(has_class)
            && !folder.join("physfn").exists()
    }

    fn explain(&self, folder: &Path, address: &str) -> DriverFinding {
        let gpu = format!("the GPU of {} at {address}", self.vendor.name());
        let names = self.drivers.join(" or ");
        let log = log_advice(self.vendor);
        let is_integrated = self.integrated.is_some_and(|end| address.ends_with(end));
        let severity = if is_integrated {
            Severity::Notice
        } else {
            Severity::Warning
        };
        let finding = |severity, text, cure| DriverFinding {
            check: "driver",
            severity,
            text,
            cure,
        };
        match (read_driver_name(folder).as_deref(), self.old_driver) {
            (None, _) => finding(
                severity,
                format!("{gpu} has no kernel driver ({names}) and is not shown"),
                Some(format!("run `modprobe {}`, then {log}", self.drivers[0])),
            ),
            (Some(name), _) if self.drivers.contains(&name) => {
                let needs_firmware = folder.join("survivability_mode").exists();
                let cure = if needs_firmware {
                    "flash its firmware: the driver runs it in survivability mode".to_owned()
                } else {
                    log.to_owned()
                };
                let text = format!("the kernel driver {name} has not started {gpu}");
                finding(Severity::Warning, text, Some(cure))
            }
            (Some(name), Some((old, cure))) if name == old => finding(
                Severity::Notice,
                format!("{gpu} uses the kernel driver {old}, which gpumon does not support"),
                Some(cure.to_owned()),
            ),
            (Some(PASSTHROUGH_DRIVER), _) => finding(
                Severity::Notice,
                format!("{gpu} is reserved for a virtual machine ({PASSTHROUGH_DRIVER})"),
                None,
            ),
            (Some(name), _) => finding(
                severity,
                format!("{gpu} uses the kernel driver {name} instead of {names}"),
                Some(log.to_owned()),
            ),
        }
    }
}

/// Returns the name of a PCI device's driver.
fn read_driver_name(folder: &Path) -> Option<String> {
    let link: PathBuf = fs::read_link(folder.join("driver")).ok()?;
    Some(link.file_name()?.to_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    const BINDING: Binding = Binding {
        vendor: Vendor::Intel,
        vendor_id: "0x8086",
        classes: &["0x03"],
        drivers: &["i915", "xe"],
        old_driver: Some(("gma500", "buy another")),
        integrated: Some(":00:02.0"),
    };

    fn find_unbound(
        vendor: &str,
        class: &str,
        address: &str,
        driver: Option<&str>,
    ) -> Vec<DriverFinding> {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("bus/pci/devices").join(address);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("vendor"), format!("{vendor}\n")).unwrap();
        fs::write(folder.join("class"), format!("{class}\n")).unwrap();
        if let Some(driver) = driver {
            symlink(format!("../../drivers/{driver}"), folder.join("driver")).unwrap();
        }
        BINDING.find_unbound_gpus(root.path(), &[])
    }

    #[test]
    fn each_driver_state_is_explained() {
        for (driver, address, severity, words) in [
            (
                None,
                "0000:03:00.0",
                Severity::Warning,
                "has no kernel driver (i915 or xe)",
            ),
            (
                None,
                "0000:00:02.0",
                Severity::Notice,
                "has no kernel driver",
            ),
            (
                Some("xe"),
                "0000:03:00.0",
                Severity::Warning,
                "driver xe has not started the GPU",
            ),
            (
                Some("gma500"),
                "0000:03:00.0",
                Severity::Notice,
                "which gpumon does not support",
            ),
            (
                Some("vfio-pci"),
                "0000:03:00.0",
                Severity::Notice,
                "for a virtual machine",
            ),
            (
                Some("nouveau"),
                "0000:03:00.0",
                Severity::Warning,
                "nouveau instead of",
            ),
        ] {
            let found = find_unbound("0x8086", "0x030000", address, driver);
            let [finding] = &found[..] else {
                panic!("{found:?}")
            };
            assert_eq!(finding.severity, severity, "{finding:?}");
            assert!(
                finding.text.contains(words) && finding.text.contains(address),
                "{finding:?}"
            );
        }
        let cure = find_unbound("0x8086", "0x038000", "0000:03:00.0", None)[0]
            .cure
            .clone();
        assert_eq!(
            cure.as_deref(),
            Some("run `modprobe i915`, then see `dmesg | grep -e i915 -e xe`")
        );
    }

    #[test]
    fn devices_other_than_vendor_gpus_are_ignored() {
        for (vendor, class) in [("0x1002", "0x030000"), ("0x8086", "0x120000")] {
            assert_eq!(find_unbound(vendor, class, "0000:03:00.0", None), []);
        }
        assert_eq!(BINDING.find_unbound_gpus(Path::new("/nowhere"), &[]), []);
    }
}
