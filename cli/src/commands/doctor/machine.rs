//! Access to the machine's file system. All paths are resolved below a root directory, which tests
//! can replace.

use std::{fs, path::PathBuf};

use gpumon_probe::{
    bounded,
    surroundings::{Surroundings, is_wsl},
    vendor::Roots,
};

pub(super) struct Machine {
    root: PathBuf,
    /// The directories in which drivers are searched for. Environment variables can override them.
    roots: Roots,
}

impl Machine {
    pub(super) fn with_roots(roots: Roots) -> Self {
        Self {
            root: "/".into(),
            roots,
        }
    }

    #[cfg(test)]
    pub(super) fn with_root(root: &std::path::Path) -> Self {
        Self {
            root: root.to_owned(),
            roots: Roots {
                sys: root.join("sys"),
                proc: root.join("proc"),
                ..Roots::default()
            },
        }
    }

    pub(super) fn roots(&self) -> &Roots {
        &self.roots
    }

    /// Returns `path` below this machine's root directory.
    pub(super) fn resolve_path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    pub(super) fn has_path(&self, path: &str) -> bool {
        self.resolve_path(path).exists()
    }

    pub(super) fn read_text(&self, path: &str) -> Option<String> {
        bounded::read_text(self.resolve_path(path), bounded::TABLE_LIMIT).ok()
    }

    /// Returns the sorted names of the entries in a directory.
    pub(super) fn list_directory_entries(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.resolve_path(folder))
            .into_iter()
            .flatten()
            .flatten();
        let mut names: Vec<_> = entries
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// Returns the files that this process has mapped into memory.
    pub(super) fn list_mapped_files(&self) -> Vec<String> {
        let maps = self.read_text("/proc/self/maps").unwrap_or_default();
        maps.lines()
            .filter_map(|line| line.find('/').map(|start| line[start..].to_owned()))
            .collect()
    }

    /// Returns the path of the first mapped file whose file name satisfies `is_meant`.
    pub(super) fn find_mapped_file(&self, is_meant: impl Fn(&str) -> bool) -> Option<String> {
        self.list_mapped_files()
            .into_iter()
            .find(|path| path.rsplit('/').next().is_some_and(&is_meant))
    }

    /// Returns the release of the kernel, such as `5.15.90.1-microsoft-standard-WSL2`.
    pub(super) fn kernel_release(&self) -> String {
        self.read_text("/proc/sys/kernel/osrelease")
            .unwrap_or_default()
            .trim()
            .to_owned()
    }

    /// Returns `true` under WSL, where the GPU driver is part of Windows.
    pub(super) fn is_wsl(&self) -> bool {
        is_wsl(&self.root)
    }

    pub(super) fn surroundings(&self) -> Surroundings {
        Surroundings::detect_below(&self.root)
    }

    /// Returns `true` if this process belongs to a Slurm job. Such a process may be able to open
    /// only the job's own GPUs.
    pub(super) fn is_slurm_job(&self) -> bool {
        let environment = bounded::read(
            self.resolve_path("/proc/self/environ"),
            bounded::ENVIRONMENT_LIMIT,
        )
        .unwrap_or_default();
        let has_variable = environment
            .split(|byte| *byte == 0)
            .any(|variable| variable.starts_with(b"SLURM_JOB_ID="));
        has_variable
            || self
                .read_text("/proc/self/cgroup")
                .is_some_and(|cgroup| cgroup.contains("slurm"))
    }
}
