//! The files that Slurm's prolog writes for each GPU or MIG device of a job, and its epilog
//! removes.
//!
//! The format is that of Princeton's jobstats: `/run/gpustat/<UUID>` contains `<job id> <uid>`.
//! Only files of root or of this process's own user are trusted, and only regular files are opened.

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

use super::{AllocatedDevice, MOST_DEVICES};
use crate::{bounded, model::Allocation, owner::user_name};

/// The interval between two readings of the files.
const EVERY: Duration = Duration::from_secs(5);

/// The maximum number of bytes that are read, twice what the IDs of a job and a user need.
const LONGEST: usize = 64;

const WRITABLE_BY_ALL: u32 = 0o002;

/// Reads the files forever, and calls `set` after each change.
pub(super) fn follow(folder: &Path, set: impl Fn(Vec<AllocatedDevice>)) {
    let own_uid = rustix::process::geteuid().as_raw();
    let (mut names, mut told) = (HashMap::new(), None);
    loop {
        let jobs = read(folder, own_uid);
        if told.as_ref() != Some(&jobs) {
            // The jobs are reported before their users have names, because looking up the names may
            // take long or never return.
            set(devices(&jobs, &names));
            names.retain(|uid, _| jobs.iter().any(|job| job.uid == Some(*uid)));
            for uid in jobs.iter().filter_map(|job| job.uid) {
                names.entry(uid).or_insert_with(|| user_name(uid));
            }
            set(devices(&jobs, &names));
            told = Some(jobs);
        }
        sleep(EVERY);
    }
}

/// The content of a device's file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct JobOfDevice {
    pub(super) device: String,
    pub(super) job_id: String,
    pub(super) uid: Option<u32>,
}

fn devices(jobs: &[JobOfDevice], names: &HashMap<u32, String>) -> Vec<AllocatedDevice> {
    let device = |job: &JobOfDevice| {
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
pub(super) fn read(folder: &Path, own_uid: u32) -> Vec<JobOfDevice> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    // The folder also has files named by the GPU's ordinal, which depends on the job.
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let names = names.filter(|name| name.starts_with("GPU-") || name.starts_with("MIG-"));
    let jobs = names.take(MOST_DEVICES).filter_map(|device| {
        let text = contents(&folder.join(&device), own_uid).ok()?;
        let mut words = text.split_ascii_whitespace();
        let job_id = words
            .next()
            .filter(|id| id.bytes().all(|byte| byte.is_ascii_digit()))?
            .to_owned();
        Some(JobOfDevice {
            device,
            job_id,
            uid: words.next().and_then(|uid| uid.parse().ok()),
        })
    });
    let mut jobs: Vec<_> = jobs.collect();
    jobs.sort_by(|one, other| one.device.cmp(&other.device));
    jobs
}

fn contents(path: &Path, own_uid: u32) -> io::Result<String> {
    // The flags keep the call from waiting for the writer of a pipe, and from following a link.
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(openat(CWD, path, flags, Mode::empty())?);
    let status = file.metadata()?;
    let is_trusted = [0, own_uid].contains(&status.uid()) && status.mode() & WRITABLE_BY_ALL == 0;
    if !status.is_file() || !is_trusted {
        return Err(ErrorKind::PermissionDenied.into());
    }
    String::from_utf8(bounded::read_from(file, LONGEST)?).map_err(|_| ErrorKind::InvalidData.into())
}
