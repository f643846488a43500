//! The folder with `/sys` and `/proc`.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    sync::OnceLock,
    time::{SystemTime, UNIX_EPOCH},
};

use rustix::{
    fd::OwnedFd,
    fs::{CWD, FileType, Mode, mknodat},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
};
use tempfile::TempDir;

/// A machine's `/sys` and `/proc`.
#[derive(Debug)]
pub struct Tree {
    root: PathBuf,
    /// Removes the folder at the end.
    _temporary: Option<TempDir>,
    /// A terminal that nobody else may open: its path, and both of its ends.
    terminal: OnceLock<(PathBuf, [OwnedFd; 2])>,
}

impl Default for Tree {
    fn default() -> Self {
        Self::new()
    }
}

impl Tree {
    /// Makes a machine without GPUs, which is removed with the value.
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self::make(folder.path().to_owned(), Some(folder))
    }

    /// Makes a machine without GPUs in a folder, which remains.
    pub fn new_in(root: &Path) -> Self {
        Self::make(std::path::absolute(root).unwrap(), None)
    }

    fn make(root: PathBuf, temporary: Option<TempDir>) -> Self {
        for folder in ["sys/class/drm", "proc"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        // Processes are those of the machine, which was started an hour ago.
        link("pid:[4026531836]".as_ref(), &root.join("proc/self/ns/pid"));
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let started = since_1970.as_secs() - 3600;
        write(&root.join("proc/stat"), format!("btime {started}\n"));
        Self {
            root,
            _temporary: temporary,
            terminal: OnceLock::new(),
        }
    }

    /// Returns the folder that replaces `/sys`.
    pub fn sys(&self) -> PathBuf {
        self.root.join("sys")
    }

    /// Returns the folder that replaces `/proc`.
    pub fn proc(&self) -> PathBuf {
        self.root.join("proc")
    }

    /// Writes the machine's memory into `/proc/meminfo`.
    pub fn set_memory(&self, total_bytes: u64, available_bytes: u64) {
        let [total, available] = [total_bytes, available_bytes].map(|bytes| bytes / 1024);
        let text = format!(
            "MemTotal:       {total} kB\nMemFree:        {} kB\nMemAvailable:   {available} kB\n",
            available / 2
        );
        write(&self.proc().join("meminfo"), text);
    }

    /// Makes each reading of a file wait until [`Tree::release_reads`].
    pub fn block_reads(&self, file: &Path) {
        let _ = fs::remove_file(file);
        mknodat(CWD, file, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    }

    /// Gives this content to the program that waits for a blocked file, which is then an ordinary
    /// file with the same content. It waits for such a program.
    pub fn release_reads(&self, file: &Path, content: impl AsRef<[u8]>) {
        let pipe = file.with_extension("pipe");
        fs::rename(file, &pipe).unwrap();
        write(file, &content);
        fs::write(&pipe, content).unwrap();
        fs::remove_file(pipe).unwrap();
    }

    /// Makes each opening of a file fail with EBUSY, for programs without the capability
    /// `CAP_SYS_ADMIN`.
    pub fn make_busy(&self, file: &Path) {
        let (terminal, _) = self.terminal.get_or_init(open_terminal);
        link(terminal, file);
    }

    /// Makes each opening of a file fail with EPERM, for programs without the capabilities
    /// `CAP_SYS_ADMIN` and `CAP_CHECKPOINT_RESTORE`.
    pub fn forbid_reads(&self, file: &Path) {
        let folder = PathBuf::from(format!("/proc/{}/map_files", std::process::id()));
        let mapped = fs::read_dir(folder).unwrap().flatten().next().unwrap();
        link(&mapped.path(), file);
    }
}

/// Writes a file in one step, so that a reader never sees a part of it.
pub(crate) fn write(file: &Path, content: impl AsRef<[u8]>) {
    let folder = file.parent().unwrap();
    fs::create_dir_all(folder).unwrap();
    let new = folder.join(format!(".{}", file.file_name().unwrap().display()));
    fs::write(&new, content).unwrap();
    fs::rename(new, file).unwrap();
}

/// Makes a link in place of what is there.
pub(crate) fn link(target: &Path, link: &Path) {
    fs::create_dir_all(link.parent().unwrap()).unwrap();
    let _ = fs::remove_file(link);
    symlink(target, link).unwrap();
}

/// Makes a link to another file of the same tree. Like the kernel's, it is relative.
pub(crate) fn link_within(target: &Path, link: &Path) {
    let folder = link.parent().unwrap();
    let shared = folder
        .ancestors()
        .find(|above| target.starts_with(above))
        .unwrap();
    let mut path = PathBuf::new();
    path.extend(folder.strip_prefix(shared).unwrap().iter().map(|_| ".."));
    self::link(&path.join(target.strip_prefix(shared).unwrap()), link);
}

/// Opens a terminal, and keeps everybody from opening it again (`TIOCEXCL`).
fn open_terminal() -> (PathBuf, [OwnedFd; 2]) {
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&controller).unwrap();
    unlockpt(&controller).unwrap();
    let path = ptsname(&controller, Vec::new()).unwrap();
    let path = PathBuf::from(path.into_string().unwrap());
    let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY;
    let terminal = rustix::fs::open(&path, flags, Mode::empty()).unwrap();
    rustix::termios::ioctl_tiocexcl(&terminal).unwrap();
    (path, [controller, terminal])
}
