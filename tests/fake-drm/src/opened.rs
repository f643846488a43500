//! A record of the card files that programs open.

use std::{
    collections::{BTreeSet, HashMap},
    fs,
    mem::MaybeUninit,
    path::{Path, PathBuf},
};

use rustix::{
    fd::OwnedFd,
    fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags},
    io::Errno,
};

use crate::CardFiles;

/// The files that every driver provides without waking a sleeping card.
const PASSIVE_FILES: [&str; 7] = [
    "uevent",
    "vendor",
    "device",
    "class",
    "revision",
    "resource",
    "numa_node",
];

/// Further files that `amdgpu` provides without waking a sleeping card. Newer versions of `amdgpu`
/// refuse access to all other files of a sleeping card.
const PASSIVE_AMD_FILES: [&str; 6] = [
    "unique_id",
    "serial_number",
    "vbios_version",
    "product_",
    "mem_info_",
    "hwmon/hwmon4/name",
];

/// The files that no program may ever read: reading `pcie_bw` takes a second, and reading
/// `xgmi_error` resets its counter.
pub const FORBIDDEN_FILES: [&str; 2] = ["pcie_bw", "xgmi_error"];

/// A record of the card files that programs have opened.
#[derive(Debug)]
pub struct OpenedFiles {
    device: PathBuf,
    inotify: OwnedFd,
    folders: HashMap<i32, PathBuf>,
}

impl CardFiles {
    /// Starts to record the opened files.
    pub fn record_opened_files(&self) -> OpenedFiles {
        let device = self.path("").canonicalize().unwrap();
        let inotify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).unwrap();
        let mut folders = HashMap::new();
        add_folder(&inotify, &device, &mut folders);
        OpenedFiles {
            device,
            inotify,
            folders,
        }
    }
}

fn add_folder(inotify: &OwnedFd, folder: &Path, folders: &mut HashMap<i32, PathBuf>) {
    let number = inotify::add_watch(inotify, folder, WatchFlags::OPEN).unwrap();
    folders.insert(number, folder.to_owned());
    for entry in fs::read_dir(folder).unwrap().flatten() {
        if entry.file_type().unwrap().is_dir() {
            add_folder(inotify, &entry.path(), folders);
        }
    }
}

impl OpenedFiles {
    /// Returns the files that have been opened since the last call, by path below the PCI device.
    pub fn take_opened_files(&self) -> BTreeSet<String> {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut events = Reader::new(&self.inotify, &mut buffer);
        let mut opened = BTreeSet::new();
        loop {
            let event = match events.next() {
                Ok(event) => event,
                Err(Errno::AGAIN) => return opened,
                Err(error) => panic!("{error}"),
            };
            let is_complete = !event.events().contains(ReadFlags::QUEUE_OVERFLOW);
            assert!(is_complete, "the event queue overflowed");
            if let Some(name) = event
                .file_name()
                .filter(|_| !event.events().contains(ReadFlags::ISDIR))
            {
                let file = self.folders[&event.wd()].join(name.to_str().unwrap());
                let file = file.strip_prefix(&self.device).unwrap();
                opened.insert(file.display().to_string());
            }
        }
    }

    /// Returns the files opened since the last call, except for those that every driver provides
    /// without waking a sleeping card. If `is_amd` is set, the files that `amdgpu` provides without
    /// waking the card are left out, too.
    pub fn take_waking_files(&self, is_amd: bool) -> BTreeSet<String> {
        let mut opened = self.take_opened_files();
        opened.retain(|file| {
            let is_link = file.contains("_link_");
            let is_of_amd = PASSIVE_AMD_FILES.iter().any(|free| file.starts_with(free));
            let is_free = PASSIVE_FILES.contains(&&**file) || file.starts_with("power/") || is_link;
            !is_free && !(is_amd && (is_of_amd || file.ends_with("_label")))
        });
        opened
    }
}
