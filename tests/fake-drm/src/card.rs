//! Simulated cards: the files of a GPU's PCI device and its sensors.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use crate::tree::{self, Tree};

/// A simulated GPU. [`crate::products`] has complete cards, to which files can be added.
#[derive(Debug, Clone)]
pub struct Card {
    driver: &'static str,
    pci_id: [u16; 2],
    address: String,
    /// Whether the card has its own PCIe switch, as Radeon cards do.
    has_switch: bool,
    /// The content of each file, by its path below the PCI device. `cardN` in a path stands for the
    /// card's name.
    files: BTreeMap<String, Vec<u8>>,
}

impl Card {
    /// Creates a GPU without readings. `address` is the PCI address, for example `0000:03:00.0`.
    pub fn new(driver: &'static str, pci_id: [u16; 2], address: &str) -> Self {
        let card = Self {
            driver,
            pci_id,
            address: address.to_owned(),
            has_switch: false,
            files: BTreeMap::new(),
        };
        let [vendor, device] = pci_id;
        card.with_files(&[
            ("vendor", &format!("{vendor:#06x}")),
            ("device", &format!("{device:#06x}")),
            ("class", "0x030000"),
            ("numa_node", "-1"),
        ])
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    /// Adds or replaces files. A newline is appended to their content.
    #[must_use]
    pub fn with_files(mut self, files: &[(&str, &str)]) -> Self {
        for (name, content) in files {
            let content = format!("{content}\n").into_bytes();
            self.files.insert((*name).to_owned(), content);
        }
        self
    }

    #[must_use]
    pub fn with_sensors(self, files: &[(&str, &str)]) -> Self {
        let driver = self.driver;
        let folder = |name: &str| format!("hwmon/hwmon4/{name}");
        let named: Vec<_> = [("name", driver)].iter().chain(files).copied().collect();
        named.iter().fold(self, |card, (name, content)| {
            card.with_files(&[(&folder(name), content)])
        })
    }

    /// Adds a file with this content.
    #[must_use]
    pub fn with_binary_file(mut self, name: &str, content: impl Into<Vec<u8>>) -> Self {
        self.files.insert(name.to_owned(), content.into());
        self
    }

    #[must_use]
    pub fn without_file(mut self, name: &str) -> Self {
        self.files.remove(name);
        self
    }

    /// Adds a PCIe switch between the card and its slot.
    #[must_use]
    pub fn with_pcie_switch(self) -> Self {
        Self {
            has_switch: true,
            ..self
        }
    }

    /// Returns the path of the PCI device's folder below `/sys`.
    fn folder(&self) -> PathBuf {
        let folder = PathBuf::from("devices/pci0000:00");
        if self.has_switch {
            let bus = &self.address[..8];
            folder
                .join(format!("{bus}1e.0"))
                .join(format!("{bus}1f.0"))
                .join(&self.address)
        } else {
            folder.join(&self.address)
        }
    }
}

impl Tree {
    /// Adds a card as `cardN` and `renderD(128 + N)`.
    pub fn add_card(&self, number: u32, card: &Card) -> CardFiles {
        let sys = self.sys();
        let device = sys.join(card.folder());
        for (name, content) in &card.files {
            let name = name.replace("cardN", &format!("card{number}"));
            tree::write_file(&device.join(name), content);
        }
        let [vendor, id] = card.pci_id;
        let event = format!(
            "DRIVER={}\nPCI_CLASS=30000\nPCI_ID={vendor:04X}:{id:04X}\nPCI_SLOT_NAME={}\n",
            card.driver, card.address
        );
        tree::write_file(&device.join("uevent"), event);
        if card.has_switch {
            add_switch(&device, vendor);
        }
        let driver = sys.join("bus/pci/drivers").join(card.driver);
        fs::create_dir_all(sys.join("module").join(card.driver)).unwrap();
        fs::create_dir_all(&driver).unwrap();
        tree::create_relative_link(&device, &driver.join(&card.address));
        tree::create_relative_link(&driver, &device.join("driver"));
        tree::create_relative_link(&device, &sys.join("bus/pci/devices").join(&card.address));
        for name in [format!("card{number}"), format!("renderD{}", 128 + number)] {
            let node = device.join("drm").join(&name);
            fs::create_dir_all(&node).unwrap();
            tree::create_relative_link(&device, &node.join("device"));
            tree::create_relative_link(&node, &sys.join("class/drm").join(&name));
        }
        CardFiles {
            class: sys.join("class/drm"),
            device,
            number,
        }
    }

    /// Adds a recorded card. `card` is the recording's `/sys/class/drm/cardN`.
    pub fn add_recorded_card(&self, card: &Path) {
        let name = card.file_name().unwrap();
        tree::create_link(card, &self.sys().join("class/drm").join(name));
    }
}

/// Adds the two ports of the PCIe switch on a card. The upstream port leads to the slot, which has
/// PCIe 4.0.
fn add_switch(device: &Path, vendor: u16) {
    let ports = device.ancestors().skip(1).take(2);
    for (port, speed) in ports.zip(["32.0 GT/s PCIe", "16.0 GT/s PCIe"]) {
        let vendor = format!("{vendor:#06x}");
        for (name, content) in [
            ("vendor", vendor.as_str()),
            ("class", "0x060400"),
            ("current_link_speed", speed),
            ("current_link_width", "16"),
            ("max_link_speed", speed),
            ("max_link_width", "16"),
        ] {
            tree::write_file(&port.join(name), format!("{content}\n"));
        }
    }
}

/// The files of an added card. They can change while programs read them.
#[derive(Debug)]
pub struct CardFiles {
    class: PathBuf,
    device: PathBuf,
    number: u32,
}

impl CardFiles {
    /// Returns the path of a file of the PCI device.
    pub fn path(&self, name: &str) -> PathBuf {
        self.device.join(name)
    }

    /// Replaces the content of files. A newline is appended.
    pub fn write(&self, files: &[(&str, &str)]) {
        for (name, content) in files {
            self.write_bytes(name, format!("{content}\n"));
        }
    }

    /// Replaces the content of a file.
    pub fn write_bytes(&self, name: &str, content: impl AsRef<[u8]>) {
        tree::write_file(&self.path(name), content);
    }

    pub fn remove(&self, name: &str) {
        fs::remove_file(self.path(name)).unwrap();
    }

    /// Sets the card's power state to suspended.
    pub fn suspend_card(&self) {
        self.write(&[("power/runtime_status", "suspended")]);
    }

    /// Sets the card's power state to active.
    pub fn resume_card(&self) {
        self.write(&[("power/runtime_status", "active")]);
    }

    /// Removes the card from the machine.
    pub fn unplug_card(&self) {
        for name in [
            format!("card{}", self.number),
            format!("renderD{}", 128 + self.number),
        ] {
            fs::remove_file(self.class.join(name)).unwrap();
        }
        fs::remove_dir_all(&self.device).unwrap();
    }
}
