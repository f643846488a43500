//! A card's sensors, which the kernel provides as hardware monitoring (hwmon) files. See
//! `Documentation/hwmon/sysfs-interface.rst`.

use std::{
    collections::HashSet,
    fs,
    path::{Path, PathBuf},
    str::FromStr,
};

use super::{Attributes, Card};
use crate::{
    model::{Absence, Severity},
    vendor::DriverFinding,
};

#[derive(Debug, Clone)]
pub(in crate::vendor) struct Hwmon {
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
    pub(in crate::vendor) fn find(device: &Path, driver: &str) -> Option<Self> {
        let folders = fs::read_dir(device.join("hwmon")).ok()?;
        let mut folders: Vec<_> = folders.flatten().map(|entry| entry.path()).collect();
        folders.sort();
        folders.retain(|folder| folder.join("name").exists());
        // The `i915` driver also creates a hwmon folder for each engine.
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

    /// Reads a number from `file`. Files that did not exist at first are not opened.
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
    pub(in crate::vendor) fn has_sensor(&self, kind: &str, label: &str) -> bool {
        self.find_sensor(kind, label).is_some()
    }

    /// Reads a temperature in °C. `suffix` is `input`, `crit` or `emergency`.
    ///
    /// # Errors
    /// Returns the reason why there is no value.
    pub(in crate::vendor) fn read_celsius(
        &self,
        label: &str,
        suffix: &str,
    ) -> Result<f64, Absence> {
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
    pub(in crate::vendor) fn read_micro(&self, file: &str) -> Result<f64, Absence> {
        // The conversion to double precision is exact for values up to 9,000 MJ.
        #[allow(clippy::cast_precision_loss)]
        self.read::<u64>(file).map(|micro| micro as f64 / 1e6)
    }

    /// Reads a whole number.
    ///
    /// # Errors
    /// Returns the reason why there is no value.
    pub(in crate::vendor) fn read_number(&self, file: &str) -> Result<u64, Absence> {
        self.read(file)
    }

    /// Reads a clock in MHz.
    ///
    /// # Errors
    /// Returns the reason why there is no value.
    pub(in crate::vendor) fn read_megahertz(&self, label: &str) -> Result<u32, Absence> {
        let sensor = self
            .find_sensor("freq", label)
            .ok_or(Absence::NotSupported)?;
        let hertz: u64 = self.read(&format!("{sensor}_input"))?;
        u32::try_from(hertz / 1_000_000).map_err(|_| Absence::Unknown)
    }
}

/// Returns a finding if an awake card has no sensors.
pub(in crate::vendor) fn check_sensors(card: &Card, cure: &str) -> Option<DriverFinding> {
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

#[cfg(test)]
mod tests {
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
        assert_eq!(hwmon.read_micro("power1_average"), Ok(35.5));
        assert!(Hwmon::find(Path::new("/nowhere"), "amdgpu").is_none());
    }
}
