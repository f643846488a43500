//! The pipe through which a command marks moments.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::mpsc::SyncSender,
    thread,
};

use anyhow::Context;
use gpumon_probe::model::{CostMark, now_ms};
use rustix::fs::{CWD, FileType, Mode, OFlags, fcntl_setfl, mknodat, open};
use tempfile::TempDir;

use super::Happening;
use crate::exit::Failure;

/// Where the command finds its path.
pub(super) const MARKS: &str = "GPUMON_MARKS";

/// Bytes of a line; the rest of a longer one is a mark of its own.
const LONGEST: u64 = 400;

/// Removes the pipe when it is dropped; then, its reader ends with the last who may write.
pub(super) struct Pipe {
    path: PathBuf,
    /// So the reader does not end with the first who has written.
    _writer: OwnedFd,
    _folder: TempDir,
}

impl Pipe {
    /// In a folder that nobody else may enter.
    pub(super) fn new(happenings: SyncSender<Happening>) -> Result<Self, Failure> {
        let folder = tempfile::Builder::new()
            .prefix("gpumon-marks-")
            .tempdir()
            .context("cannot make the pipe for marks")?;
        let path = folder.path().join("marks");
        let (pipe, writer) = open_both(&path).context("cannot make the pipe for marks")?;
        let work = move || read(File::from(pipe), &happenings);
        thread::Builder::new()
            .name("marks".to_owned())
            .spawn(work)?;
        Ok(Self {
            path,
            _writer: writer,
            _folder: folder,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

fn open_both(path: &Path) -> rustix::io::Result<(OwnedFd, OwnedFd)> {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
    // Without waiting for the other end.
    let reader = open(
        path,
        OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    let writer = open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    fcntl_setfl(&reader, OFlags::empty())?;
    Ok((reader, writer))
}

fn read(pipe: File, happenings: &SyncSender<Happening>) {
    let mut lines = BufReader::new(pipe);
    let mut line = Vec::new();
    while lines
        .by_ref()
        .take(LONGEST)
        .read_until(b'\n', &mut line)
        .is_ok_and(|bytes| bytes > 0)
    {
        let mark = CostMark::read(now_ms(), &String::from_utf8_lossy(&line));
        line.clear();
        if !mark.text.is_empty() && happenings.send(Happening::Mark(mark)).is_err() {
            return;
        }
    }
    let _ = happenings.send(Happening::NoMoreMarks);
}
