//! Copying of a card's files for bug reports.

use std::path::{Component, Path, PathBuf};

use super::{Card, list_names};
use crate::{
    bounded,
    vendor::{FileContent, FilePart, SystemFile},
};

/// The maximum size of a copied file, in bytes.
const MAX_FILE_BYTES: usize = 64 << 10;

/// A PCI device's files that the kernel can read without waking the device.
const IDENTITY_FILES: [&str; 8] = [
    "uevent",
    "vendor",
    "device",
    "class",
    "revision",
    "subsystem_vendor",
    "subsystem_device",
    "numa_node",
];

/// A PCI device's files that describe its link. With newer kernels, reading these files wakes the
/// device.
const LINK_FILES: [&str; 4] = [
    "current_link_speed",
    "current_link_width",
    "max_link_speed",
    "max_link_width",
];

const POWER_FILES: [&str; 3] = ["runtime_status", "control", "autosuspend_delay_ms"];

/// The names of the sensor files. `*` stands for any suffix.
const SENSOR_FILES: [&str; 9] = [
    "name", "temp*", "power*", "freq*", "fan*", "pwm*", "in*", "energy*", "curr*",
];

/// Copies the files below a root folder and sends the copies to a callback.
pub(crate) struct Recorder<'a> {
    root: PathBuf,
    /// The name of the folder that the copies are stored in.
    prefix: &'static str,
    send: &'a dyn Fn(SystemFile),
}

impl<'a> Recorder<'a> {
    /// Creates a recorder for files below `root`. The copies are passed to `send` with paths below
    /// `prefix`.
    pub(crate) fn new(root: &Path, prefix: &'static str, send: &'a dyn Fn(SystemFile)) -> Self {
        Self {
            root: root.to_owned(),
            prefix,
            send,
        }
    }

    /// Copies the existing files of a folder. `folder` is relative to the root, and `names` can end
    /// with `*`.
    pub(crate) fn copy(&self, folder: &Path, names: &[&str]) {
        self.copy_file_parts(folder, names, |content| {
            vec![FilePart::Plain(content.to_vec())]
        });
    }

    /// Copies a folder's files. The `split` function first divides the content of each file into
    /// parts.
    pub(crate) fn copy_file_parts(
        &self,
        folder: &Path,
        names: &[&str],
        split: impl Fn(&[u8]) -> Vec<FilePart>,
    ) {
        for name in self.find_names(folder, names) {
            let path = folder.join(name);
            let from = self.root.join(&path);
            if !from.is_file() {
                continue;
            }
            if let Ok(content) = bounded::read(from, MAX_FILE_BYTES) {
                self.send_file(&path, FileContent::Parts(split(&content)));
            }
        }
    }

    /// Adds a symbolic link to `target` at `place`, which is relative to the root.
    pub(crate) fn add_link(&self, place: &Path, target: PathBuf) {
        self.send_file(place, FileContent::Link(target));
    }

    fn send_file(&self, place: &Path, content: FileContent) {
        let path = Path::new(self.prefix).join(place);
        (self.send)(SystemFile { path, content });
    }

    /// Returns the names of the files in a folder that match `names`, whose entries can end with
    /// `*`.
    fn find_names(&self, folder: &Path, names: &[&str]) -> Vec<String> {
        let mut found = Vec::new();
        for name in names {
            match name.strip_suffix('*') {
                None => found.push((*name).to_owned()),
                Some(beginning) => {
                    let all = self.list_entries(folder).into_iter();
                    found.extend(all.filter(|own| own.starts_with(beginning)));
                }
            }
        }
        found
    }

    /// Returns the names of a folder's entries, sorted.
    pub(crate) fn list_entries(&self, folder: &Path) -> Vec<String> {
        list_names(&self.root.join(folder))
    }

    /// Copies the files that every driver provides for a card. Sensor files are included only if
    /// the card is awake. Returns the card's folders.
    pub(crate) fn copy_card(&self, card: &Card) -> CardFolders {
        let folders = self.copy_link_and_find_folders(card);
        let device = &folders.device;
        let is_awake = !card.is_asleep();
        self.copy_pci_device(device, is_awake);
        self.copy(&device.join("power"), &POWER_FILES);
        for minor in card.render_minors() {
            // Readers only check that this folder exists, so one small file in it is enough.
            let content = format!("226:{minor}\n").into_bytes();
            let place = device.join(format!("drm/renderD{minor}/dev"));
            self.send_file(&place, FileContent::Parts(vec![FilePart::Plain(content)]));
        }
        // If the card has a PCIe switch, the device in the slot is the switch's upstream port,
        // which is an ancestor of the GPU. The files of such bridges are therefore copied, too.
        for bridge in device.ancestors().skip(1).take(2) {
            if self.root.join(bridge).join("class").exists() {
                self.copy_pci_device(bridge, is_awake);
            }
        }
        if is_awake {
            for sensors in self.list_entries(&device.join("hwmon")) {
                self.copy(&device.join("hwmon").join(sensors), &SENSOR_FILES);
            }
        }
        folders
    }

    fn copy_pci_device(&self, folder: &Path, is_awake: bool) {
        self.copy(folder, &IDENTITY_FILES);
        if is_awake {
            self.copy(folder, &LINK_FILES);
        }
    }

    /// Returns the card's folders and copies the symbolic link from the card to its PCI device.
    fn copy_link_and_find_folders(&self, card: &Card) -> CardFolders {
        let name = card.folder().file_name().unwrap_or_default();
        let place = Path::new("class/drm").join(name);
        let link = place.join("device");
        let real = self.root.canonicalize().ok().and_then(|root| {
            let device = card.device.folder().canonicalize().ok()?;
            device.strip_prefix(root).map(Path::to_owned).ok()
        });
        let device = match real {
            Some(real) if real != link => {
                self.add_link(&link, make_relative_path(&place, &real));
                real
            }
            _ => link,
        };
        CardFolders {
            card: place,
            device,
        }
    }
}

/// A card's folders, relative to the root.
pub(crate) struct CardFolders {
    /// The path `class/drm/cardN`.
    pub(crate) card: PathBuf,
    /// The path of the PCI device's folder.
    pub(crate) device: PathBuf,
}

/// Returns the path of `target` relative to `folder`. Both parameters are relative to the same
/// root.
fn make_relative_path(folder: &Path, target: &Path) -> PathBuf {
    let up = folder.components().map(|_| Component::ParentDir);
    up.collect::<PathBuf>().join(target)
}
