//! Cards, which are GPUs with a DRM driver. This module also finds the GPUs on the PCI bus that
//! have no such driver.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use super::{Attributes, list_names};
use crate::{
    bounded,
    model::{Absence, Severity, Vendor, normalize_bus_id},
    vendor::{DeviceError, DriverFinding, lock, log_advice},
};

/// A GPU with a driver of the kernel's Direct Rendering Manager (DRM).
#[derive(Debug, Clone)]
pub(crate) struct Card {
    /// The name of the kernel driver, for example `amdgpu`.
    pub(crate) driver: String,
    /// The PCI bus ID, for example `00000000:3B:00.0`.
    pub(crate) bus_id: String,
    /// The PCI device's sysfs folder. Symbolic links in its path have been resolved, because files
    /// then open faster.
    pub(crate) device: Attributes,
    /// The card's sysfs folder. It disappears when the driver loses the card.
    folder: PathBuf,
    /// The minor numbers of the card's nodes in `/dev/dri`, such as `card0` and `renderD128`.
    pub(crate) minors: Vec<u32>,
    /// The PCI IDs of the vendor and the device.
    pub(crate) pci_id: Option<(u16, u16)>,
    sleep: Arc<Mutex<SleepRecord>>,
}

/// The last time at which a card was asleep, and its total sleep time.
#[derive(Debug, Default)]
struct SleepRecord {
    /// The last time at which the card was observed to be asleep.
    last: Option<Instant>,
    /// The total time that the card has been asleep, in milliseconds.
    total_ms: Option<u64>,
}

/// Returns the cards that use one of `drivers`, sorted by PCI bus ID. `sys_root` is `/sys` except
/// in tests.
pub(crate) fn find_cards(sys_root: &Path, drivers: &[&str]) -> Vec<Card> {
    let folder = sys_root.join("class/drm");
    let names = list_names(&folder).into_iter();
    let cards = names.filter_map(|name| Card::read(&folder.join(name)));
    let mut cards: Vec<_> = cards
        .filter(|card| drivers.contains(&card.driver.as_str()))
        .collect();
    cards.sort_by(|one, other| one.bus_id.cmp(&other.bus_id));
    cards
}

impl Card {
    /// Reads the card in `folder`. Returns `None` for connectors, such as `card0-DP-1`, and for
    /// cards without a PCI device.
    fn read(folder: &Path) -> Option<Self> {
        let number = folder
            .file_name()?
            .to_str()?
            .strip_prefix("card")?
            .parse()
            .ok()?;
        let folder = folder.canonicalize().ok()?;
        let device = Attributes::new(folder.join("device").canonicalize().ok()?);
        let event = device.read_text("uevent").ok()?;
        let value = |key: &str| {
            let mut lines = event.lines();
            lines.find_map(|line| line.trim_matches('\0').strip_prefix(key)?.strip_prefix('='))
        };
        let pci_id = value("PCI_ID").and_then(|ids| {
            let (vendor, device) = ids.split_once(':')?;
            let parse = |id| u16::from_str_radix(id, 16).ok();
            Some((parse(vendor)?, parse(device)?))
        });
        let mut minors = vec![number];
        minors.extend(find_render_minors(device.folder()));
        Some(Self {
            driver: value("DRIVER")?.to_owned(),
            bus_id: normalize_bus_id(value("PCI_SLOT_NAME")?)?,
            device,
            folder,
            minors,
            pci_id,
            sleep: Arc::default(),
        })
    }

    /// Returns `true` if the card is suspended, or is currently being suspended or resumed. This
    /// does not wake the card. A card without power management is always awake.
    pub(crate) fn is_asleep(&self) -> bool {
        let status = self.device.read_text("power/runtime_status");
        let is_asleep = status.is_ok_and(|status| status != "active" && status != "unsupported");
        if is_asleep {
            lock(&self.sleep).last = Some(Instant::now());
        }
        is_asleep
    }

    /// Checks that the card can be read.
    ///
    /// # Errors
    /// Returns an error if the card is missing or asleep.
    pub(crate) fn check_is_awake(&self) -> Result<(), DeviceError> {
        if !self.exists() {
            Err(DeviceError::Lost)
        } else if self.is_asleep() {
            Err(DeviceError::Asleep)
        } else {
            Ok(())
        }
    }

    /// Returns `true` if the card was asleep within the last `time`. If the card slept between two
    /// calls, and nobody observed this, the sleep is assumed to have ended at the later call.
    pub(crate) fn has_slept_within(&self, time: Duration) -> bool {
        let total_ms = self.device.read_number("power/runtime_suspended_time").ok();
        let mut sleep = lock(&self.sleep);
        let before = std::mem::replace(&mut sleep.total_ms, total_ms);
        if before.is_some_and(|before| total_ms > Some(before)) {
            sleep.last = Some(Instant::now());
        }
        sleep.last.is_some_and(|last| last.elapsed() < time)
    }

    /// Returns `true` if the card still exists in sysfs.
    fn exists(&self) -> bool {
        self.folder.join("device").exists()
    }

    /// Returns a copy of the card for frequent reads. If the driver recreates the card, the copy
    /// still refers to the old sysfs folder.
    pub(crate) fn open_for_frequent_reading(&self) -> Self {
        Self {
            device: Attributes::open(self.device.folder()),
            ..self.clone()
        }
    }

    /// Returns the file system's device number and the inode number of the card's folder. They
    /// change if the driver recreates the card.
    pub(crate) fn folder_id(&self) -> Option<(u64, u64)> {
        let folder = fs::metadata(&self.folder).ok()?;
        Some((folder.dev(), folder.ino()))
    }

    /// Returns `true` if the system may suspend the card when it is idle.
    pub(crate) fn may_sleep(&self) -> bool {
        self.device
            .read_text("power/control")
            .is_ok_and(|control| control == "auto")
    }

    /// Returns how long the card must be left alone after a reading before the system can suspend
    /// it. Each reading restarts the driver's suspend delay. Returns `None` if the card is never
    /// suspended.
    pub(crate) fn rest_time_after_reading(&self) -> Option<Duration> {
        let may_sleep = self.may_sleep();
        let delay_ms: i64 = self.device.read_number("power/autosuspend_delay_ms").ok()?;
        let delay_ms = u64::try_from(delay_ms).ok().filter(|_| may_sleep)?;
        Some(Duration::from_millis(delay_ms.saturating_mul(2)))
    }

    /// Returns the minor numbers of the render nodes, which programs use for computing.
    pub(crate) fn render_minors(&self) -> Vec<u32> {
        find_render_minors(self.device.folder())
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns an identifier that does not change while the card stays in its slot.
    pub(crate) fn slot_id(&self) -> String {
        format!("PCI-{}", self.pci_address())
    }

    /// Returns the vendor's name followed by the product's name from the system's list of PCI IDs.
    /// If the card is not listed, its IDs replace the product's name.
    pub(crate) fn find_name(&self, vendor: Vendor) -> Option<String> {
        let (vendor_id, device_id) = self.pci_id?;
        let listed = PCI_ID_LISTS
            .iter()
            .find_map(|list| find_pci_name(Path::new(list), vendor_id, device_id));
        let name = listed.unwrap_or_else(|| format!("GPU {vendor_id:04x}:{device_id:04x}"));
        Some(add_vendor_name(vendor, name))
    }

    /// Returns the PCI address in the kernel's format, for example `0000:3b:00.0`.
    pub(crate) fn pci_address(&self) -> String {
        let short = self.bus_id.strip_prefix("0000").unwrap_or(&self.bus_id);
        short.to_ascii_lowercase()
    }

    /// Reads the NUMA node that is nearest to the card.
    pub(crate) fn numa_node(&self) -> Result<u32, Absence> {
        // The kernel reports -1 if there is no NUMA node.
        let node: i64 = self.device.read_number("numa_node")?;
        u32::try_from(node).map_err(|_| Absence::NotSupported)
    }
}

/// Adds the vendor's name before a product's name, unless the name already starts with it.
pub(crate) fn add_vendor_name(vendor: Vendor, name: String) -> String {
    if name.starts_with(vendor.name()) {
        name
    } else {
        format!("{} {name}", vendor.name())
    }
}

/// Returns `true` if the node in `/dev/dri` with this minor number belongs to one of `cards`, and
/// the card is awake.
pub(crate) fn is_node_of_awake_card(cards: &[Card], minor: u32) -> bool {
    let card = cards.iter().find(|card| card.minors.contains(&minor));
    card.is_some_and(|card| !card.is_asleep())
}

/// Returns the minor numbers of a PCI device's render nodes.
fn find_render_minors(device: &Path) -> Vec<u32> {
    let names = list_names(&device.join("drm")).into_iter();
    names
        .filter_map(|name| name.strip_prefix("renderD")?.parse().ok())
        .collect()
}

/// The system's lists of PCI device names.
const PCI_ID_LISTS: [&str; 2] = ["/usr/share/hwdata/pci.ids", "/usr/share/misc/pci.ids"];

/// The maximum size of a list of PCI IDs, in bytes.
const MAX_PCI_LIST_BYTES: usize = 8 << 20;

/// Looks up a device's name in a list in the format of `pci.ids(5)`. In a name such as `Navi 31
/// [Radeon RX 7900 XTX]`, the chip's name comes first, and the product's name is in brackets.
fn find_pci_name(list: &Path, vendor: u16, device: u16) -> Option<String> {
    let text = bounded::read_text(list, MAX_PCI_LIST_BYTES).ok()?;
    let (vendor, device) = (format!("{vendor:04x}  "), format!("\t{device:04x}  "));
    let mut lines = text
        .lines()
        .skip_while(|line| !line.starts_with(&vendor))
        .skip(1);
    let mut devices = lines
        .by_ref()
        .take_while(|line| line.starts_with(['\t', '#']));
    let name = devices.find_map(|line| line.strip_prefix(&device))?;
    let product = name
        .split_once('[')
        .and_then(|(_, rest)| rest.strip_suffix(']'));
    Some(product.unwrap_or(name).trim().to_owned())
}

/// The properties by which a vendor's GPUs are recognized, and their kernel drivers.
pub(crate) struct Binding {
    pub(crate) vendor: Vendor,
    /// The vendor's PCI ID, for example `0x1002`.
    pub(crate) vendor_id: &'static str,
    /// The prefixes of the PCI classes that the vendor's GPUs have.
    pub(crate) classes: &'static [&'static str],
    /// The drivers that gpumon supports, starting with the most common one.
    pub(crate) drivers: &'static [&'static str],
    /// An older driver that gpumon does not support, and the suggested fix.
    pub(crate) old_driver: Option<(&'static str, &'static str)>,
    /// The end of an integrated GPU's PCI address.
    pub(crate) integrated: Option<&'static str>,
}

/// The driver that passes devices through to virtual machines.
const PASSTHROUGH_DRIVER: &str = "vfio-pci";

impl Binding {
    /// Returns a finding for each of the vendor's GPUs that has no card because no supported driver
    /// has initialized it. `cards` are the existing cards.
    pub(crate) fn find_unbound_gpus(&self, sys_root: &Path, cards: &[Card]) -> Vec<DriverFinding> {
        let devices = sys_root.join("bus/pci/devices");
        let unread = list_names(&devices).into_iter().filter_map(|address| {
            let folder = devices.join(&address);
            let bus_id = normalize_bus_id(&address).filter(|_| self.is_gpu(&folder))?;
            let has_card = cards.iter().any(|card| card.bus_id == bus_id);
            (!has_card).then(|| self.explain_unbound_gpu(&folder, &address))
        });
        unread.collect()
    }

    /// Returns `true` if the device is one of the vendor's GPUs. Virtual functions of a GPU do not
    /// count.
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

    fn explain_unbound_gpu(&self, folder: &Path, address: &str) -> DriverFinding {
        let gpu = format!("the {} GPU at {address}", self.vendor.name());
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
                format!("{gpu} is not shown, because it has no kernel driver (expected: {names})"),
                Some(format!("run `modprobe {}`, then {log}", self.drivers[0])),
            ),
            (Some(name), _) if self.drivers.contains(&name) => {
                let needs_firmware = folder.join("survivability_mode").exists();
                let cure = if needs_firmware {
                    "flash the GPU's firmware: the driver runs the GPU in survivability mode"
                        .to_owned()
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
    use super::*;

    /// Creates a card's folder. `event` is the content of the card's `uevent` file.
    fn add_card(root: &Path, name: &str, event: &str) {
        let device = root.join("class/drm").join(name).join("device");
        fs::create_dir_all(device.join("drm/renderD128")).unwrap();
        fs::create_dir_all(device.join("power")).unwrap();
        fs::write(device.join("uevent"), event).unwrap();
    }

    #[test]
    fn cards_of_driver_are_sorted_by_bus() {
        let root = tempfile::tempdir().unwrap();
        let event = |driver: &str, slot: &str| {
            format!("DRIVER={driver}\nPCI_ID=1002:744C\nPCI_SLOT_NAME={slot}\n")
        };
        add_card(root.path(), "card0", &event("amdgpu", "0000:83:00.0"));
        add_card(root.path(), "card1", &event("amdgpu", "0000:03:00.0"));
        add_card(root.path(), "card2", &event("radeon", "0000:01:00.0"));
        add_card(root.path(), "card1-DP-1", &event("amdgpu", "0000:04:00.0"));
        let cards = find_cards(root.path(), &["amdgpu"]);
        let ids: Vec<_> = cards.iter().map(|card| card.bus_id.as_str()).collect();
        assert_eq!(ids, ["00000000:03:00.0", "00000000:83:00.0"]);
        assert_eq!(cards[0].minors, [1, 128]);
        assert_eq!(cards[0].pci_id, Some((0x1002, 0x744c)));
        assert_eq!(cards[0].pci_address(), "0000:03:00.0");
        assert!(find_cards(Path::new("/nowhere"), &["amdgpu"]).is_empty());
    }

    #[test]
    fn suspended_card_is_asleep() {
        let root = tempfile::tempdir().unwrap();
        add_card(
            root.path(),
            "card0",
            "DRIVER=amdgpu\nPCI_SLOT_NAME=0000:03:00.0\n",
        );
        let [card] = &find_cards(root.path(), &["amdgpu"])[..] else {
            panic!("one card")
        };
        assert!(!card.is_asleep(), "no power management");
        let status = card.device.folder().join("power/runtime_status");
        for (text, is_asleep) in [
            ("active\n", false),
            ("unsupported\n", false),
            ("suspended\n", true),
            ("resuming\n", true),
        ] {
            fs::write(&status, text).unwrap();
            assert_eq!(card.is_asleep(), is_asleep, "{text}");
        }
    }

    #[test]
    fn unobserved_sleep_is_detected_from_suspended_time() {
        let root = tempfile::tempdir().unwrap();
        let event = "DRIVER=amdgpu\nPCI_SLOT_NAME=0000:03:00.0\n";
        add_card(root.path(), "card0", event);
        let card = find_cards(root.path(), &["amdgpu"]).remove(0);
        let slept = || card.clone().has_slept_within(Duration::from_mins(1));
        assert!(!slept(), "a card without power management");
        let file = card.device.folder().join("power/runtime_suspended_time");
        fs::write(&file, "5000\n").unwrap();
        assert!(!slept(), "before gpumon was started");
        fs::write(&file, "5200\n").unwrap();
        assert!(slept());
        assert!(!card.has_slept_within(Duration::ZERO));
    }

    #[test]
    fn product_name_is_taken_from_brackets() {
        let list = tempfile::NamedTempFile::new().unwrap();
        let text = "# list\n1001  Other\n\t744c  Wrong\n1002  Advanced Micro Devices\n\
                    \t73bf  Navi 21 [Radeon RX 6800/6900]\n\t\t1002 0e3a  A board\n\
                    \t744c  Navi 31 [Radeon RX 7900 XTX]\n\t15bf  Phoenix1\n1003  Third\n\
                    \t9999  Not AMD's\n";
        fs::write(list.path(), text).unwrap();
        let name = |device| find_pci_name(list.path(), 0x1002, device);
        assert_eq!(name(0x744c).as_deref(), Some("Radeon RX 7900 XTX"));
        assert_eq!(name(0x15bf).as_deref(), Some("Phoenix1"));
        assert_eq!(name(0x9999), None);
    }
}

#[cfg(test)]
mod binding_tests {
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
                "is not shown, because it has no kernel driver (expected: i915 or xe)",
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
                "driver xe has not started the Intel GPU",
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
