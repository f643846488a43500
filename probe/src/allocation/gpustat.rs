//! Reads the files that Slurm's prolog writes for each GPU or MIG device of a job, and that its
//! epilog removes.
//!
//! The format is that of Princeton's jobstats: `/run/gpustat/<UUID>` contains `<job id> <uid>`.
//! Only files owned by root or by this process's user are trusted, and only regular files are
//! opened.

use std::{
    collections::HashMap,
    fs::{self, File},
    io::{self, ErrorKind},
    os::unix::fs::MetadataExt,
    path::Path,
    thread::sleep,
    time::Duration,
};

use rustix::fs::{CWD, Mode, OFlags, openat};

use super::{AllocatedDevice, MAX_DEVICES};
use crate::{bounded, model::Allocation, owner::user_name};

/// The interval between two reads of the files.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// The maximum number of bytes read from a file, twice the length of the longest job ID and user
/// ID.
const MAX_FILE_BYTES: usize = 64;

const WRITABLE_BY_ALL: u32 = 0o002;

/// Reads the files forever, and calls `set` after each change.
pub(super) fn follow_files(folder: &Path, set: impl Fn(Vec<AllocatedDevice>)) {
    let own_uid = rustix::process::geteuid().as_raw();
    let (mut names, mut reported) = (HashMap::new(), None);
    loop {
        let jobs = read_jobs(folder, own_uid);
        if reported.as_ref() != Some(&jobs) {
            // The jobs are first reported without user names, because looking up the names may take
            // long or never return.
            set(to_devices(&jobs, &names));
            names.retain(|uid, _| jobs.iter().any(|job| job.uid == Some(*uid)));
            for uid in jobs.iter().filter_map(|job| job.uid) {
                names.entry(uid).or_insert_with(|| user_name(uid));
            }
            set(to_devices(&jobs, &names));
            reported = Some(jobs);
        }
        sleep(POLL_INTERVAL);
    }
}

/// The content of a device's file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DeviceJob {
    pub(super) device: String,
    pub(super) job_id: String,
    pub(super) uid: Option<u32>,
}

fn to_devices(jobs: &[DeviceJob], names: &HashMap<u32, String>) -> Vec<AllocatedDevice> {
    let device = |job: &DeviceJob| {
        let user = job.uid.and_then(|uid| names.get(&uid).cloned());
        AllocatedDevice {
            device: job.device.clone(),
            to: Allocation::Slurm {
                job_id: job.job_id.clone(),
                user,
            },
        }
    };
    jobs.iter().map(device).collect()
}

/// Reads the files of a folder, and returns the jobs by device. Returns no jobs if the folder is
/// missing.
pub(super) fn read_jobs(folder: &Path, own_uid: u32) -> Vec<DeviceJob> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    // The folder also has files named after a GPU's ordinal, which is relative to the job.
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let names = names.filter(|name| name.starts_with("GPU-") || name.starts_with("MIG-"));
    let jobs = names.take(MAX_DEVICES).filter_map(|device| {
        let text = read_trusted_file(&folder.join(&device), own_uid).ok()?;
        let mut words = text.split_ascii_whitespace();
        let job_id = words
            .next()
            .filter(|id| id.bytes().all(|byte| byte.is_ascii_digit()))?
            .to_owned();
        Some(DeviceJob {
            device,
            job_id,
            uid: words.next().and_then(|uid| uid.parse().ok()),
        })
    });
    let mut jobs: Vec<_> = jobs.collect();
    jobs.sort_by(|one, other| one.device.cmp(&other.device));
    jobs
}

fn read_trusted_file(path: &Path, own_uid: u32) -> io::Result<String> {
    // These flags prevent waiting for the writer of a pipe, and following a symbolic link.
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(openat(CWD, path, flags, Mode::empty())?);
    let status = file.metadata()?;
    let is_trusted = [0, own_uid].contains(&status.uid()) && status.mode() & WRITABLE_BY_ALL == 0;
    if !status.is_file() || !is_trusted {
        return Err(ErrorKind::PermissionDenied.into());
    }
    String::from_utf8(bounded::read_from(file, MAX_FILE_BYTES)?)
        .map_err(|_| ErrorKind::InvalidData.into())
}
