//! PCI Express links in sysfs.

use std::path::{Path, PathBuf};

use super::Attributes;
use crate::model::Absence;

/// A link's PCIe generation and number of lanes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::vendor) struct PcieLink {
    pub(in crate::vendor) generation: Result<u32, Absence>,
    pub(in crate::vendor) width: Result<u32, Absence>,
}

/// The PCI device whose link connects the card to its slot.
#[derive(Debug, Clone)]
pub(in crate::vendor) struct PciePort(Attributes);

impl PciePort {
    /// Finds the PCI device whose link connects a card to its slot.
    pub(in crate::vendor) fn find(device: &Path) -> Self {
        Self(Attributes::new(find_slot_port(device)))
    }

    /// Reads the current link.
    pub(in crate::vendor) fn read_link(&self) -> PcieLink {
        self.read("current_link_speed", "current_link_width")
    }

    /// Reads the fastest link that both the card and its slot support.
    pub(in crate::vendor) fn read_max_link(&self) -> PcieLink {
        self.read("max_link_speed", "max_link_width")
    }

    fn read(&self, speed: &str, width: &str) -> PcieLink {
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
pub(in crate::vendor) fn parse_pcie_generation(speed: &str) -> Option<u32> {
    generation_from_speed(speed.split_once(" GT/s")?.0.trim().parse().ok()?)
}

/// Returns the PCIe generation for a speed per lane in GT/s.
pub(in crate::vendor) fn generation_from_speed(gigatransfers: f64) -> Option<u32> {
    let generations = [2.5, 5.0, 8.0, 16.0, 32.0, 64.0];
    let mut known = (1..).zip(generations);
    known.find_map(|(number, speed): (u32, f64)| {
        ((speed - gigatransfers).abs() < 0.1).then_some(number)
    })
}

/// Returns the PCI device whose link connects the card to its slot. If the card has a PCIe switch,
/// the GPU's own link is inside the card. In that case, the device is the switch's upstream port,
/// two levels above the GPU.
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
    use std::fs;

    use super::*;

    #[test]
    fn slot_link_is_preferred_to_internal_link() {
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
