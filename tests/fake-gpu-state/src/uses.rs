//! The activity of all processes on a device.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs::{self, File},
    io::Read,
    path::{Path, PathBuf},
};

use crate::{
    activity::{Activity, Peaks},
    activity_file::ActivityFile,
    entry::read_start_time,
    now_ns,
};

/// The extension of the activity files.
pub(crate) const ACTIVITY_SUFFIX: &str = "done";

/// The activity on a device up to one moment.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DeviceActivity {
    /// The activity of each process by PID. It includes processes that have ended, so that the sum
    /// never decreases.
    pub by_pid: BTreeMap<u32, Activity>,
    /// The peak performance of the device.
    pub peaks: Peaks,
}

impl DeviceActivity {
    /// Returns the sum of all processes' activity.
    pub fn total(&self) -> Activity {
        self.by_pid
            .values()
            .fold(Activity::default(), |sum, own| sum.sum_with(*own))
    }
}

/// Returns the activity on a device so far, or `None` if there was none.
pub fn read_activity(folder: &Path, device: &str) -> Option<DeviceActivity> {
    let end = format!(".{device}.{ACTIVITY_SUFFIX}");
    let mut found: Option<DeviceActivity> = None;
    let files = fs::read_dir(folder).into_iter().flatten();
    for (pid, since, path) in files.filter_map(|file| parse_path(&file.ok()?.path(), &end)) {
        // The file of a killed process still lists its running work, but this work has ended with
        // the process.
        let is_alive = read_start_time(pid) == Some(since);
        let Some(page) = read_file(&path, is_alive) else {
            continue;
        };
        let uses = found.get_or_insert_default();
        uses.peaks = page.peaks;
        let own = uses.by_pid.entry(pid).or_default();
        *own = own.sum_with(page.done);
    }
    found
}

/// Returns the PID, the start time and the path of an activity file for the device.
fn parse_path(path: &Path, end: &str) -> Option<(u32, u64, PathBuf)> {
    let name = path
        .file_name()
        .and_then(OsStr::to_str)?
        .strip_suffix(end)?;
    let mut parts = name.split('-');
    Some((
        parts.next()?.parse().ok()?,
        parts.next()?.parse().ok()?,
        path.to_owned(),
    ))
}

/// Reads an activity file, and counts the time of running work until now if the process is alive.
/// Returns `None` if nothing has been written yet.
fn read_file(path: &Path, is_alive: bool) -> Option<ActivityFile> {
    let mut file = File::open(path).ok()?;
    file.lock_shared().ok()?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).ok()?;
    let mut page = ActivityFile::from_bytes(&bytes)?;
    if is_alive {
        page.count_times_until(now_ns());
    }
    Some(page)
}

#[cfg(test)]
mod tests {
    use std::{
        process, thread,
        time::{Duration, Instant},
    };

    use super::*;
    use crate::{ActivityWriter, Load};

    const WHOLE_LOAD: Load = Load {
        sms: 1.0,
        warps: 0.5,
        tensor: 0.0,
        single: 0.0,
        dram: 0.0,
    };
    const PEAKS: Peaks = Peaks {
        multiprocessors: 132.0,
        sm_mhz: 1980.0,
        dram_bytes: 2.0,
    };
    const MS: u64 = 1_000_000;

    #[test]
    fn activity_includes_running_and_ended_work() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read_activity(folder.path(), "GPU-a"), None);
        let open = || ActivityWriter::open(Some(folder.path().to_owned()), PEAKS);
        let (mut one, mut other) = (open(), open());
        let begun = one.start_work("GPU-a", WHOLE_LOAD);
        thread::sleep(Duration::from_millis(20));
        let meanwhile = read_activity(folder.path(), "GPU-a").unwrap();
        assert!(
            meanwhile.total().busy_ns >= 20 * MS && meanwhile.peaks == PEAKS,
            "{meanwhile:?}"
        );
        one.end_work(
            "GPU-a",
            begun,
            Activity {
                dram_bytes: 7,
                ..Activity::default()
            },
        );
        let from_ns = now_ns();
        other.record_work("GPU-a", WHOLE_LOAD, from_ns, 10 * MS);
        // A span cannot start before it is written, so it is shorter by up to `late_ns`.
        let late_ns = now_ns() - from_ns;
        drop(one);
        let done = read_activity(folder.path(), "GPU-a").unwrap();
        assert_eq!(
            (
                done.by_pid.keys().collect::<Vec<_>>(),
                done.total().dram_bytes
            ),
            (vec![&process::id()], 7)
        );
        thread::sleep(Duration::from_millis(15));
        let (later, last) = (
            read_activity(folder.path(), "GPU-a").unwrap(),
            read_activity(folder.path(), "GPU-a").unwrap(),
        );
        assert_eq!(later, last, "all work must have ended");
        let both = later.total();
        assert!(
            both.busy_ns + late_ns >= 30 * MS
                && both.sm_ns.abs_diff(both.busy_ns) < 10
                && both.warp_ns * 2 <= both.sm_ns + 9
        );
        assert_eq!(read_activity(folder.path(), "GPU-b"), None);
    }

    #[test]
    fn running_work_ends_with_its_process() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = ActivityWriter::open(Some(folder.path().to_owned()), PEAKS);
        writer.start_work("GPU-a", WHOLE_LOAD);
        let page = fs::read_dir(folder.path())
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .path();
        let name = page.file_name().unwrap().to_str().unwrap();
        // The file gets another start time, as if another process had reused the PID.
        let since = name.split('-').nth(1).unwrap();
        fs::copy(&page, folder.path().join(name.replace(since, "1"))).unwrap();
        fs::remove_file(&page).unwrap();
        thread::sleep(Duration::from_millis(5));
        assert_eq!(
            read_activity(folder.path(), "GPU-a")
                .unwrap()
                .total()
                .busy_ns,
            0
        );
    }

    #[test]
    fn counters_never_decrease_for_concurrent_reader() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = ActivityWriter::open(Some(folder.path().to_owned()), PEAKS);
        let begun = writer.start_work("GPU-a", WHOLE_LOAD);
        thread::scope(|scope| {
            let writer = scope.spawn(move || {
                writer.end_work("GPU-a", begun, Activity::default());
                let until = Instant::now() + Duration::from_millis(200);
                let mut kernels = 0_u64;
                while Instant::now() < until {
                    let begun = writer.start_work("GPU-a", WHOLE_LOAD);
                    writer.end_work(
                        "GPU-a",
                        begun,
                        Activity {
                            dram_bytes: 1,
                            half_clocks: 1,
                            ..Activity::default()
                        },
                    );
                    kernels += 1;
                }
                kernels
            });
            let mut before = Activity::default();
            while !writer.is_finished() {
                let now = read_activity(folder.path(), "GPU-a").unwrap().total();
                assert_eq!(
                    now.dram_bytes, now.half_clocks,
                    "a page was read while it was written"
                );
                assert_eq!(
                    before.subtract(now),
                    Activity::default(),
                    "{before:?} then {now:?}"
                );
                before = now;
            }
            let kernels = writer.join().unwrap();
            assert!(kernels > 1000 && before.dram_bytes > 0, "{kernels}");
        });
    }
}
