//! Checks whether GPUs on the PCI bus have a suitable kernel driver.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{Attributes, Card};
use crate::{
    model::{Severity, Vendor, normal_bus_id},
    vendor::{DriverFinding, log_advice},
};

/// The kernel drivers of a vendor's GPUs, and how to recognize the GPUs.
pub(in crate::vendor) struct Binding {
    pub(in crate::vendor) vendor: Vendor,
    /// The vendor's PCI ID, for example `0x1002`.
    pub(in crate::vendor) vendor_id: &'static str,
    /// The prefixes of the PCI classes that GPUs have.
    pub(in crate::vendor) classes: &'static [&'static str],
    /// The drivers that gpumon supports. The most common one comes first.
    pub(in crate::vendor) drivers: &'static [&'static str],
    /// An old driver that gpumon does not support, and the suggested fix.
    pub(in crate::vendor) old_driver: Option<(&'static str, &'static str)>,
    /// The end of the PCI address of a GPU that is integrated into the processor.
    pub(in crate::vendor) integrated: Option<&'static str>,
}

/// The driver that passes devices through to virtual machines.
const PASSED_TO_GUEST: &str = "vfio-pci";

impl Binding {
    /// Returns a finding for each of the vendor's GPUs that has no card, because no supported
    /// driver has started it. `cards` are the existing cards.
    pub(in crate::vendor) fn check(&self, sys_root: &Path, cards: &[Card]) -> Vec<DriverFinding> {
        let Ok(entries) = fs::read_dir(sys_root.join("bus/pci/devices")) else {
            return Vec::new();
        };
        let mut folders: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        folders.sort();
        folders.retain(|folder| self.is_gpu(folder));
        let unread = folders.iter().filter_map(|folder| {
            let address = folder.file_name()?.to_str()?;
            let bus_id = normal_bus_id(address)?;
            let has_card = cards.iter().any(|card| card.bus_id == bus_id);
            (!has_card).then(|| self.explain(folder, address))
        });
        unread.collect()
    }

    /// Returns `true` if a device is a GPU of this vendor and not one of its virtual functions.
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
        match (driver_of(folder).as_deref(), self.old_driver) {
            (None, _) => finding(
                severity,
                format!("{gpu} has no kernel driver ({names}), and is not shown"),
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
                format!("{gpu} has the kernel driver {old}, which gpumon does not read"),
                Some(cure.to_owned()),
            ),
            (Some(PASSED_TO_GUEST), _) => finding(
                Severity::Notice,
                format!("{gpu} is reserved for a virtual machine ({PASSED_TO_GUEST})"),
                None,
            ),
            (Some(name), _) => finding(
                severity,
                format!("{gpu} has the kernel driver {name} in place of {names}"),
                Some(log.to_owned()),
            ),
        }
    }
}

/// Returns the name of a PCI device's driver.
fn driver_of(folder: &Path) -> Option<String> {
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

    fn find(vendor: &str, class: &str, address: &str, driver: Option<&str>) -> Vec<DriverFinding> {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("bus/pci/devices").join(address);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("vendor"), format!("{vendor}\n")).unwrap();
        fs::write(folder.join("class"), format!("{class}\n")).unwrap();
        if let Some(driver) = driver {
            symlink(format!("../../drivers/{driver}"), folder.join("driver")).unwrap();
        }
        BINDING.check(root.path(), &[])
    }

    #[test]
    fn each_driver_has_its_explanation() {
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
                "which gpumon does not read",
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
                "nouveau in place of",
            ),
        ] {
            let found = find("0x8086", "0x030000", address, driver);
            let [finding] = &found[..] else {
                panic!("{found:?}")
            };
            assert_eq!(finding.severity, severity, "{finding:?}");
            assert!(
                finding.text.contains(words) && finding.text.contains(address),
                "{finding:?}"
            );
        }
        let cure = find("0x8086", "0x038000", "0000:03:00.0", None)[0]
            .cure
            .clone();
        assert_eq!(
            cure.as_deref(),
            Some("run `modprobe i915`, then see `dmesg | grep -e i915 -e xe`")
        );
    }

    #[test]
    fn other_devices_are_no_gpus() {
        for (vendor, class) in [("0x1002", "0x030000"), ("0x8086", "0x120000")] {
            assert_eq!(find(vendor, class, "0000:03:00.0", None), []);
        }
        assert_eq!(BINDING.check(Path::new("/nowhere"), &[]), []);
    }
}
