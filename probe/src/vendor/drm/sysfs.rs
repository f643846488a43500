//! Access to sysfs folders in which each file contains one value. A card's sensors and PCIe links
//! are such folders.

use std::{
    collections::HashSet,
    fs,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    str::FromStr,
    sync::Arc,
};

use rustix::{
    fd::OwnedFd,
    fs::{CWD, Mode, OFlags, openat},
    io::Errno,
};

use super::Card;
use crate::{
    bounded,
    model::{Absence, Severity},
    vendor::DriverFinding,
};

/// A sysfs folder in which each file contains one value.
#[derive(Debug, Clone, Default)]
pub(crate) struct Attributes {
    folder: PathBuf,
    /// The open folder. Opening files relative to an open folder is faster.
    opened: Option<Arc<OwnedFd>>,
}

impl Attributes {
    /// Creates a reader for `folder`, which does not have to exist.
    pub(crate) fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            opened: None,
        }
    }

    /// Opens `folder` for frequent reads. If the folder is replaced later, reads still refer to the
    /// original.
    pub(crate) fn open(folder: impl Into<PathBuf>) -> Self {
        let folder = folder.into();
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = openat(CWD, &folder, flags, Mode::empty());
        Self {
            folder,
            opened: opened.ok().map(Arc::new),
        }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Reads a file as text and trims whitespace.
    ///
    /// # Errors
    /// Returns the reason why there is no text. If the file is empty, the hardware lacks the value.
    pub(crate) fn read_text(&self, name: &str) -> Result<String, Absence> {
        let text = self.read_bytes(name)?;
        let text = String::from_utf8_lossy(&text);
        // Some drivers terminate values with a NUL character.
        let text = text.trim_matches(|letter: char| letter.is_whitespace() || letter == '\0');
        if text.is_empty() {
            return Err(Absence::NotSupported);
        }
        Ok(text.to_owned())
    }

    /// Reads a decimal number.
    ///
    /// # Errors
    /// Returns the reason why there is no number.
    pub(crate) fn read_number<T: FromStr>(&self, name: &str) -> Result<T, Absence> {
        self.read_text(name)?.parse().map_err(|_| Absence::Unknown)
    }

    /// Reads a hexadecimal number, with or without `0x`.
    ///
    /// # Errors
    /// Returns the reason why there is no number.
    pub(crate) fn read_hex(&self, name: &str) -> Result<u64, Absence> {
        let text = self.read_text(name)?;
        let digits = text.strip_prefix("0x").unwrap_or(&text);
        u64::from_str_radix(digits, 16).map_err(|_| Absence::Unknown)
    }

    /// Reads all bytes of a file, up to one page.
    ///
    /// # Errors
    /// Returns the reason why the file cannot be read.
    pub(crate) fn read_bytes(&self, name: &str) -> Result<Vec<u8>, Absence> {
        let read = || match &self.opened {
            Some(folder) => {
                let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY;
                let file = openat(folder, name, flags, Mode::empty())?;
                bounded::read_attribute_from(file.into())
            }
            None => bounded::read_attribute(self.folder.join(name)),
        };
        read().map_err(|error| absence_from_error(&error))
    }
}

/// Returns the reason why a sysfs file has no value.
fn absence_from_error(error: &io::Error) -> Absence {
    // The drivers refuse to read a card that is asleep or being reset: amdgpu returns EPERM, or
    // EBUSY since 2026. A user without permission to open the file gets EACCES instead.
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::ACCESS) => Absence::NoPermission,
        Some(Errno::PERM | Errno::BUSY | Errno::AGAIN | Errno::TIMEDOUT) => Absence::NoAnswer,
        Some(Errno::NODEV) => Absence::GpuLost,
        Some(Errno::NOENT | Errno::NODATA | Errno::NOTSUP | Errno::NXIO | Errno::NOTDIR) => {
            Absence::NotSupported
        }
        None if error.kind() == ErrorKind::NotFound => Absence::NotSupported,
        _ => Absence::Unknown,
    }
}

/// Returns the names of a folder's entries, sorted. A folder that cannot be read counts as empty.
pub(crate) fn list_names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

/// Returns the file names in a folder that are numbers.
pub(crate) fn list_numbers(folder: &Path) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let names = entries.flatten().map(|entry| entry.file_name());
    names
        .filter_map(|name| name.to_str()?.parse().ok())
        .collect()
}

/// A card's sensors, which the kernel provides as hardware monitoring (hwmon) files. See
/// `Documentation/hwmon/sysfs-interface.rst`. The default has no sensors, so all of its readings
/// are absent.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hwmon {
    files: Attributes,
    /// The names of all sensor files, which never change.
    names: HashSet<String>,
    /// The labels of the sensors, each with the prefix of the sensor's file names, for example
    /// `temp1`.
    labels: Vec<(String, String)>,
}

impl Hwmon {
    /// Finds a PCI device's sensors and reads their labels, which never change. This does not wake
    /// the card.
    pub(crate) fn find(device: &Path, driver: &str) -> Option<Self> {
        let parent = device.join("hwmon");
        let folders = list_names(&parent)
            .into_iter()
            .map(|name| parent.join(name));
        let folders: Vec<_> = folders
            .filter(|folder| folder.join("name").exists())
            .collect();
        // The `i915` driver also creates a hwmon folder for each engine. Only the card's own folder
        // has the driver's name.
        let is_of_driver = |folder: &PathBuf| {
            let name = Attributes::new(folder).read_text("name");
            name.is_ok_and(|name| name == driver)
        };
        let position = folders.iter().position(is_of_driver).unwrap_or(0);
        let folder = folders.into_iter().nth(position)?;
        let files = Attributes::open(folder);
        let entries = fs::read_dir(files.folder()).ok()?.flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let names: HashSet<_> = names.collect();
        let label_of = |name: &String| {
            let sensor = name.strip_suffix("_label")?.to_owned();
            Some((files.read_text(name).ok()?, sensor))
        };
        let mut labels: Vec<_> = names.iter().filter_map(label_of).collect();
        labels.sort();
        Some(Self {
            files,
            names,
            labels,
        })
    }

    /// Reads a number from `file`. Does not open files that did not exist when the sensors were
    /// found.
    fn read<T: FromStr>(&self, file: &str) -> Result<T, Absence> {
        if !self.names.contains(file) {
            return Err(Absence::NotSupported);
        }
        self.files.read_number(file)
    }

    /// Returns the prefix of the sensor's file names, such as `temp1`. The sensors' numbers differ
    /// between boards.
    fn find_sensor(&self, kind: &str, label: &str) -> Option<&str> {
        let mut labels = self.labels.iter();
        labels.find_map(|(own, sensor)| {
            (own.eq_ignore_ascii_case(label) && sensor.starts_with(kind)).then_some(sensor.as_str())
        })
    }

    /// Returns `true` if the card has a sensor of the given kind with the given label.
    pub(crate) fn has_sensor(&self, kind: &str, label: &str) -> bool {
        self.find_sensor(kind, label).is_some()
    }

    /// Reads a temperature in °C. `suffix` is `input`, `crit` or `emergency`.
    ///
    /// # Errors
    /// Returns the reason why there is no value.
    pub(crate) fn read_celsius(&self, label: &str, suffix: &str) -> Result<f64, Absence> {
        let sensor = self
            .find_sensor("temp", label)
            .ok_or(Absence::NotSupported)?;
        let millidegrees: i32 = self.read(&format!("{sensor}_{suffix}"))?;
        Ok(f64::from(millidegrees) / 1e3)
    }

    /// Reads a number that is stored in millionths of a unit, for example from `power1_average`,
    /// and returns it in the unit itself.
    ///
    /// # Errors
    /// Returns the reason why there is no value.
    pub(crate) fn read_millionths(&self, file: &str) -> Result<f64, Absence> {
        // The conversion to double precision is exact up to 2^53 millionths, which are 9,000 MJ in
        // the case of energy.
        self.read::<u64>(file).map(|micro| micro as f64 / 1e6)
    }

    /// Reads a whole number.
    ///
    /// # Errors
    /// Returns the reason why there is no value.
    pub(crate) fn read_number(&self, file: &str) -> Result<u64, Absence> {
        self.read(file)
    }

    /// Reads a clock in MHz.
    ///
    /// # Errors
    /// Returns the reason why there is no value.
    pub(crate) fn read_megahertz(&self, label: &str) -> Result<u32, Absence> {
        let sensor = self
            .find_sensor("freq", label)
            .ok_or(Absence::NotSupported)?;
        let hertz: u64 = self.read(&format!("{sensor}_input"))?;
        u32::try_from(hertz / 1_000_000).map_err(|_| Absence::Unknown)
    }
}

/// Returns a finding if an awake card has no sensors.
pub(crate) fn check_sensors(card: &Card, cure: &str) -> Option<DriverFinding> {
    let is_missing = Hwmon::find(card.device.folder(), &card.driver).is_none();
    let address = card.pci_address();
    is_missing.then(|| DriverFinding {
        check: "sensors",
        severity: Severity::Notice,
        text: format!(
            "{address} has no sensors (hwmon), which is normal in some virtual machines: \
             temperature, power and fans are absent"
        ),
        cure: Some(cure.to_owned()),
    })
}

/// A link's PCIe generation and number of lanes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PcieLink {
    pub(crate) generation: Result<u32, Absence>,
    pub(crate) width: Result<u32, Absence>,
}

/// The PCI device at the card's end of the link to the slot.
#[derive(Debug, Clone)]
pub(crate) struct PciePort(Attributes);

impl PciePort {
    /// Finds the PCI device at the card's end of the link to the slot.
    pub(crate) fn find(device: &Path) -> Self {
        Self(Attributes::new(find_slot_port(device)))
    }

    /// Reads the current link.
    pub(crate) fn read_link(&self) -> PcieLink {
        self.read_link_from("current_link_speed", "current_link_width")
    }

    /// Reads the fastest link that both the card and its slot support.
    pub(crate) fn read_max_link(&self) -> PcieLink {
        self.read_link_from("max_link_speed", "max_link_width")
    }

    fn read_link_from(&self, speed: &str, width: &str) -> PcieLink {
        let generation = self
            .0
            .read_text(speed)
            .and_then(|speed| parse_pcie_generation(&speed).ok_or(Absence::Unknown));
        // Ports without a link report 0 or 255 lanes.
        let width = self.0.read_number(width).and_then(|width| match width {
            1..=32 => Ok(width),
            _ => Err(Absence::Unknown),
        });
        PcieLink { generation, width }
    }
}

/// Returns the PCIe generation for a speed in the kernel's format, for example `32.0 GT/s PCIe`.
pub(crate) fn parse_pcie_generation(speed: &str) -> Option<u32> {
    generation_from_speed(speed.split_once(" GT/s")?.0.trim().parse().ok()?)
}

/// Returns the PCIe generation for a speed per lane in GT/s.
pub(crate) fn generation_from_speed(gigatransfers: f64) -> Option<u32> {
    let generations = [2.5, 5.0, 8.0, 16.0, 32.0, 64.0];
    let mut known = (1..).zip(generations);
    known.find_map(|(number, speed): (u32, f64)| {
        ((speed - gigatransfers).abs() < 0.1).then_some(number)
    })
}

/// Returns the PCI device at the card's end of the link to the slot. If the card has a PCIe switch,
/// this is the switch's upstream port, two levels above the GPU. The GPU's own link is then inside
/// the card.
fn find_slot_port(device: &Path) -> PathBuf {
    let Ok(place) = device.canonicalize() else {
        return device.to_owned();
    };
    let vendor = |folder: &Path| Attributes::new(folder).read_text("vendor").ok();
    let is_bridge = |folder: &Path| {
        Attributes::new(folder)
            .read_text("class")
            .is_ok_and(|class| class.starts_with("0x0604"))
    };
    let upstream = place.parent().and_then(Path::parent);
    match (place.parent(), upstream) {
        (Some(downstream), Some(upstream))
            if is_bridge(downstream)
                && is_bridge(upstream)
                && vendor(downstream) == vendor(&place)
                && vendor(upstream) == vendor(&place) =>
        {
            upstream.to_owned()
        }
        _ => place,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_parsed_or_absent_with_reason() {
        let folder = tempfile::tempdir().unwrap();
        let attributes = Attributes::new(folder.path());
        for (name, content) in [
            ("number", "42\n"),
            ("nul", "42 \0"),
            ("hex", "0x744c\n"),
            ("empty", "\n"),
            ("garbage", "N/A\n"),
        ] {
            fs::write(folder.path().join(name), content).unwrap();
        }
        assert_eq!(attributes.read_number("number"), Ok(42_u64));
        assert_eq!(attributes.read_number("nul"), Ok(42_i64));
        assert_eq!(attributes.read_hex("hex"), Ok(0x744c));
        assert_eq!(
            attributes.read_number::<u64>("empty"),
            Err(Absence::NotSupported)
        );
        assert_eq!(
            attributes.read_number::<u64>("garbage"),
            Err(Absence::Unknown)
        );
        assert_eq!(
            attributes.read_number::<u64>("missing"),
            Err(Absence::NotSupported)
        );
    }

    #[test]
    fn each_sysfs_read_error_has_its_absence_reason() {
        let reason =
            |errno: Errno| absence_from_error(&io::Error::from_raw_os_error(errno.raw_os_error()));
        assert_eq!(reason(Errno::ACCESS), Absence::NoPermission);
        assert_eq!(reason(Errno::PERM), Absence::NoAnswer);
        assert_eq!(reason(Errno::BUSY), Absence::NoAnswer);
        assert_eq!(reason(Errno::NODEV), Absence::GpuLost);
        assert_eq!(reason(Errno::IO), Absence::Unknown);
    }
}

#[cfg(test)]
mod hwmon_tests {
    use super::*;

    #[test]
    fn sensors_are_found_by_label() {
        let device = tempfile::tempdir().unwrap();
        let folder = device.path().join("hwmon/hwmon3");
        fs::create_dir_all(&folder).unwrap();
        for (name, content) in [
            ("name", "amdgpu"),
            ("temp1_label", "edge"),
            ("temp1_input", "41000"),
            ("temp2_label", "junction"),
            ("temp2_input", "-2500"),
            ("freq1_label", "sclk"),
            ("freq1_input", "1500000000"),
            ("power1_average", "35500000"),
        ] {
            fs::write(folder.join(name), format!("{content}\n")).unwrap();
        }
        let hwmon = Hwmon::find(device.path(), "amdgpu").unwrap();
        assert_eq!(hwmon.read_celsius("edge", "input"), Ok(41.0));
        assert_eq!(hwmon.read_celsius("junction", "input"), Ok(-2.5));
        assert_eq!(
            hwmon.read_celsius("mem", "input"),
            Err(Absence::NotSupported)
        );
        assert_eq!(hwmon.read_megahertz("sclk"), Ok(1500));
        assert_eq!(hwmon.read_megahertz("edge"), Err(Absence::NotSupported));
        assert_eq!(hwmon.read_millionths("power1_average"), Ok(35.5));
        assert!(Hwmon::find(Path::new("/nowhere"), "amdgpu").is_none());
    }
}

#[cfg(test)]
mod pcie_tests {
    use std::fs;

    use super::*;

    #[test]
    fn pcie_slot_link_is_preferred_to_internal_link() {
        let root = tempfile::tempdir().unwrap();
        let port = root.path().join("pci0000:00/0000:00:01.0");
        let upstream = port.join("0000:01:00.0");
        let gpu = upstream.join("0000:02:00.0/0000:03:00.0");
        fs::create_dir_all(&gpu).unwrap();
        let describe = |folder: &Path, vendor: &str, class: &str, speed: &str| {
            for (name, content) in [
                ("vendor", vendor),
                ("class", class),
                ("current_link_speed", speed),
                ("current_link_width", "16"),
            ] {
                fs::write(folder.join(name), content).unwrap();
            }
        };
        describe(&gpu, "0x1002", "0x030000", "32.0 GT/s PCIe");
        describe(
            gpu.parent().unwrap(),
            "0x1002",
            "0x060400",
            "32.0 GT/s PCIe",
        );
        describe(&upstream, "0x1002", "0x060400", "16.0 GT/s PCIe");
        describe(&port, "0x8086", "0x060400", "16.0 GT/s PCIe");
        assert_eq!(
            PciePort::find(&gpu).read_link(),
            PcieLink {
                generation: Ok(4),
                width: Ok(16)
            }
        );
        describe(&upstream, "0x8086", "0x060400", "16.0 GT/s PCIe");
        assert_eq!(
            PciePort::find(&gpu).read_link().generation,
            Ok(5),
            "a switch of the mainboard"
        );
        assert_eq!(parse_pcie_generation("2.5 GT/s PCIe\n"), Some(1));
        assert_eq!(parse_pcie_generation("64.0 GT/s PCIe"), Some(6));
        assert_eq!(parse_pcie_generation("Unknown speed"), None);
        assert_eq!(
            PciePort::find(Path::new("/nowhere")).read_link().width,
            Err(Absence::NotSupported)
        );
    }
}
