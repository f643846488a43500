//! The folder with a machine's `/sys` and `/proc`.

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

/// The `/sys` and `/proc` of a simulated machine.
#[derive(Debug)]
pub struct Tree {
    root: PathBuf,
    /// The guard that removes a temporary folder.
    _temporary: Option<TempDir>,
    /// A terminal that no other program can open: its path, and both of its ends.
    terminal: OnceLock<(PathBuf, [OwnedFd; 2])>,
}

impl Default for Tree {
    fn default() -> Self {
        Self::new()
    }
}

impl Tree {
    /// Creates a machine without GPUs in a temporary folder, which is removed on drop.
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self::new_at(folder.path().to_owned(), Some(folder))
    }

    /// Creates a machine without GPUs in this folder, which is kept.
    pub fn new_in(root: &Path) -> Self {
        Self::new_at(std::path::absolute(root).unwrap(), None)
    }

    fn new_at(root: PathBuf, temporary: Option<TempDir>) -> Self {
        for folder in ["sys/class/drm", "proc"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        // The process is in the PID namespace of the host, and the machine was started an hour ago.
        create_link("pid:[4026531836]".as_ref(), &root.join("proc/self/ns/pid"));
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let started = since_1970.as_secs() - 3600;
        write_file(&root.join("proc/stat"), format!("btime {started}\n"));
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

    /// Writes the machine's memory to `/proc/meminfo`.
    pub fn set_memory(&self, total_bytes: u64, available_bytes: u64) {
        let [total, available] = [total_bytes, available_bytes].map(|bytes| bytes / 1024);
        let text = format!(
            "MemTotal:       {total} kB\nMemFree:        {} kB\nMemAvailable:   {available} kB\n",
            available / 2
        );
        write_file(&self.proc().join("meminfo"), text);
    }

    /// Makes readers of a file wait until [`Tree::release_reads`] is called.
    pub fn block_reads(&self, file: &Path) {
        let _ = fs::remove_file(file);
        mknodat(CWD, file, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    }

    /// Makes a blocked file an ordinary file with this content, and passes the content to the
    /// program that waits for it. If no program waits yet, the function waits for one.
    pub fn release_reads(&self, file: &Path, content: impl AsRef<[u8]>) {
        let pipe = file.with_extension("pipe");
        fs::rename(file, &pipe).unwrap();
        write_file(file, &content);
        fs::write(&pipe, content).unwrap();
        fs::remove_file(pipe).unwrap();
    }

    /// Makes opening a file fail with EBUSY, unless the program has the capability `CAP_SYS_ADMIN`.
    pub fn make_file_busy(&self, file: &Path) {
        let (terminal, _) = self.terminal.get_or_init(open_terminal);
        create_link(terminal, file);
    }

    /// Makes opening a file fail with EPERM, unless the program has the capability `CAP_SYS_ADMIN`
    /// or `CAP_CHECKPOINT_RESTORE`.
    pub fn forbid_reads(&self, file: &Path) {
        let folder = PathBuf::from(format!("/proc/{}/map_files", std::process::id()));
        let mapped = fs::read_dir(folder).unwrap().flatten().next().unwrap();
        create_link(&mapped.path(), file);
    }
}

/// Writes a file atomically, so that readers never see a part of it.
pub(crate) fn write_file(file: &Path, content: impl AsRef<[u8]>) {
    let folder = file.parent().unwrap();
    fs::create_dir_all(folder).unwrap();
    let new = folder.join(format!(".{}", file.file_name().unwrap().display()));
    fs::write(&new, content).unwrap();
    fs::rename(new, file).unwrap();
}

/// Creates a link, and replaces an existing file.
pub(crate) fn create_link(target: &Path, link: &Path) {
    fs::create_dir_all(link.parent().unwrap()).unwrap();
    let _ = fs::remove_file(link);
    symlink(target, link).unwrap();
}

/// Creates a link to another file in the tree. The link is relative, as in the kernel.
pub(crate) fn create_relative_link(target: &Path, link: &Path) {
    let folder = link.parent().unwrap();
    let shared = folder
        .ancestors()
        .find(|above| target.starts_with(above))
        .unwrap();
    let mut path = PathBuf::new();
    path.extend(folder.strip_prefix(shared).unwrap().iter().map(|_| ".."));
    self::create_link(&path.join(target.strip_prefix(shared).unwrap()), link);
}

/// Opens a terminal and prevents other programs from opening it (`TIOCEXCL`).
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
