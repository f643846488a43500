//! Records the activity of a process on devices while it happens.

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
    entry::read_start_time,
    now_ns,
    uses::ACTIVITY_SUFFIX,
};

/// A writer of a process's activity on devices, which other processes read.
#[derive(Debug)]
pub struct ActivityWriter {
    /// The folder and the prefix of the file names, or `None` if nothing is recorded.
    shared: Option<(PathBuf, String)>,
    peaks: Peaks,
    /// The files by the UUID of the device.
    files: BTreeMap<String, (ActivityFile, File)>,
}

/// A kernel or copy that has started and not ended.
#[derive(Debug, Clone, Copy)]
pub struct RunningWork {
    from_ns: u64,
    load: Load,
}

impl ActivityWriter {
    /// Opens a writer in this folder for devices with these peaks. Without a folder, nothing is
    /// recorded.
    ///
    /// # Panics
    /// Panics if the folder cannot be created.
    pub fn open(folder: Option<PathBuf>, peaks: Peaks) -> Self {
        /// The number makes file names unique, because a test can open several writers in one
        /// process.
        static OPENED: AtomicU32 = AtomicU32::new(0);
        let shared = folder.map(|folder| {
            fs::create_dir_all(&folder)
                .unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
            let (pid, number) = (process::id(), OPENED.fetch_add(1, Relaxed));
            (
                folder,
                format!("{pid}-{}-{number}", read_start_time(pid).unwrap_or(0)),
            )
        });
        Self {
            shared,
            peaks,
            files: BTreeMap::new(),
        }
    }

    /// Records the start of a kernel or copy, which runs until [`end_work`](Self::end_work) is
    /// called.
    pub fn start_work(&mut self, device: &str, load: Load) -> RunningWork {
        let mut begun = RunningWork { from_ns: 0, load };
        self.update_activity_file(device, |page, now_ns| {
            begun.from_ns = now_ns;
            page.add_span(Span {
                from_ns: now_ns,
                until_ns: u64::MAX,
                load,
            });
        });
        begun
    }

    /// Records the end of a kernel or copy, and the activity that it caused.
    pub fn end_work(&mut self, device: &str, begun: RunningWork, did: Activity) {
        self.update_activity_file(device, |page, now_ns| {
            page.end_span(begun.from_ns, begun.load, now_ns);
            page.done = page.done.sum_with(did);
        });
    }

    /// Records a kernel or copy that runs for `ns` nanoseconds from `from_ns` on.
    pub fn record_work(&mut self, device: &str, load: Load, from_ns: u64, ns: u64) {
        let until_ns = from_ns.saturating_add(ns);
        self.update_activity_file(device, |page, now_ns| {
            page.add_span(Span {
                from_ns: from_ns.max(now_ns),
                until_ns,
                load,
            });
        });
    }

    /// Changes the file of a device. The file is overwritten in place with a single write, which
    /// takes microseconds, so that even thousands of short kernels can be recorded. The lock is
    /// held from reading the clock until the file is written. Otherwise, a reader in between would
    /// count the time of a kernel beyond its end.
    fn update_activity_file(&mut self, device: &str, change: impl FnOnce(&mut ActivityFile, u64)) {
        let Some((folder, name)) = &self.shared else {
            return;
        };
        if !self.files.contains_key(device) {
            let file = File::create(folder.join(format!("{name}.{device}.{ACTIVITY_SUFFIX}")));
            self.files.insert(
                device.to_owned(),
                (
                    ActivityFile::new(self.peaks),
                    file.expect("the activity file must be writable"),
                ),
            );
        }
        if let Some((page, file)) = self.files.get_mut(device) {
            file.lock().expect("the activity file can be locked");
            let now_ns = now_ns();
            page.count_times_until(now_ns);
            change(page, now_ns);
            let written = file
                .write_all_at(&page.bytes(), 0)
                .and_then(|()| file.unlock());
            written.expect("the activity file must be writable");
        }
    }
}
