//! What one process does on devices, written down while it does it.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    os::unix::fs::FileExt,
    path::PathBuf,
    process,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

use crate::{
    activity::{Activity, Load, Peaks},
    activity_file::{ActivityFile, Span},
    entry::started,
    now_ns,
    uses::SUFFIX,
};

/// What one process does on devices, for others to read.
#[derive(Debug)]
pub struct ActivityWriter {
    /// The folder, and how its files begin; `None` where nobody reads it.
    shared: Option<(PathBuf, String)>,
    peaks: Peaks,
    /// By the device's UUID.
    files: BTreeMap<String, (ActivityFile, File)>,
}

/// Something that was begun and not yet ended.
#[derive(Debug, Clone, Copy)]
pub struct Begun {
    from_ns: u64,
    load: Load,
}

impl ActivityWriter {
    /// A writer in this folder, of devices that have these peaks; without a folder nothing is
    /// written down.
    ///
    /// # Panics
    /// Where the folder cannot be made.
    pub fn open(folder: Option<PathBuf>, peaks: Peaks) -> Self {
        /// A process may have several, as a test has that is its own neighbor.
        static OPENED: AtomicU32 = AtomicU32::new(0);
        let shared = folder.map(|folder| {
            fs::create_dir_all(&folder)
                .unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
            let (pid, number) = (process::id(), OPENED.fetch_add(1, Relaxed));
            (
                folder,
                format!("{pid}-{}-{number}", started(pid).unwrap_or(0)),
            )
        });
        Self {
            shared,
            peaks,
            files: BTreeMap::new(),
        }
    }

    /// Something begins on a device, and is under way until it is ended.
    pub fn begin(&mut self, device: &str, load: Load) -> Begun {
        let mut begun = Begun { from_ns: 0, load };
        self.write(device, |page, now_ns| {
            begun.from_ns = now_ns;
            page.add(Span {
                from_ns: now_ns,
                until_ns: u64::MAX,
                load,
            });
        });
        begun
    }

    /// It ends, and this is what it did.
    pub fn end(&mut self, device: &str, begun: Begun, did: Activity) {
        self.write(device, |page, now_ns| {
            page.end(begun.from_ns, begun.load, now_ns);
            page.done = page.done.and(did);
        });
    }

    /// Something runs on a device from a moment to come on, for so long.
    pub fn run(&mut self, device: &str, load: Load, from_ns: u64, ns: u64) {
        let until_ns = from_ns.saturating_add(ns);
        self.write(device, |page, now_ns| {
            page.add(Span {
                from_ns: from_ns.max(now_ns),
                until_ns,
                load,
            });
        });
    }

    /// A file is written in one write to a place that stays where it is, so that it costs
    /// microseconds, and thousands of short kernels can each have theirs. Nobody reads between the
    /// look at the clock and the write: a kernel would go on there that has ended.
    fn write(&mut self, device: &str, change: impl FnOnce(&mut ActivityFile, u64)) {
        let Some((folder, name)) = &self.shared else {
            return;
        };
        if !self.files.contains_key(device) {
            let file = File::create(folder.join(format!("{name}.{device}.{SUFFIX}")));
            self.files.insert(
                device.to_owned(),
                (
                    ActivityFile::new(self.peaks),
                    file.expect("the activity can be written"),
                ),
            );
        }
        if let Some((page, file)) = self.files.get_mut(device) {
            file.lock().expect("the activity file can be locked");
            let now_ns = now_ns();
            page.advance(now_ns);
            change(page, now_ns);
            let written = file
                .write_all_at(&page.bytes(), 0)
                .and_then(|()| file.unlock());
            written.expect("the activity can be written");
        }
    }
}
