//! The machine's file system, below a root directory that tests can replace.

use std::{fs, path::PathBuf};

use gpumon_probe::{
    bounded,
    surroundings::{Surroundings, is_wsl},
    vendor::Roots,
};

pub(super) struct Machine {
    root: PathBuf,
    /// The directories in which drivers are found. Environment variables can change them.
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
    pub(super) fn below(root: &std::path::Path) -> Self {
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

    /// Returns a path of the machine below its root directory.
    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    pub(super) fn exists(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    pub(super) fn text(&self, path: &str) -> Option<String> {
        bounded::text(self.path(path), bounded::TABLE).ok()
    }

    /// Returns the sorted names in a directory.
    pub(super) fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(folder))
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
    pub(super) fn mapped(&self) -> Vec<String> {
        let maps = self.text("/proc/self/maps").unwrap_or_default();
        maps.lines()
            .filter_map(|line| line.find('/').map(|start| line[start..].to_owned()))
            .collect()
    }

    /// Returns the first mapped file whose name matches.
    pub(super) fn mapped_as(&self, is_meant: impl Fn(&str) -> bool) -> Option<String> {
        self.mapped()
            .into_iter()
            .find(|path| path.rsplit('/').next().is_some_and(&is_meant))
    }

    /// Returns the release of the kernel, such as `5.15.90.1-microsoft-standard-WSL2`.
    pub(super) fn kernel(&self) -> String {
        self.text("/proc/sys/kernel/osrelease")
            .unwrap_or_default()
            .trim()
            .to_owned()
    }

    /// Returns `true` under WSL, in which the driver is that of Windows.
    pub(super) fn is_wsl(&self) -> bool {
        is_wsl(&self.root)
    }

    pub(super) fn surroundings(&self) -> Surroundings {
        Surroundings::below(&self.root)
    }

    /// Returns `true` if this process belongs to a Slurm job, which may open only its own GPUs.
    pub(super) fn is_slurm_job(&self) -> bool {
        let environment = bounded::read(self.path("/proc/self/environ"), bounded::ENVIRONMENT)
            .unwrap_or_default();
        let has_variable = environment
            .split(|byte| *byte == 0)
            .any(|variable| variable.starts_with(b"SLURM_JOB_ID="));
        has_variable
            || self
                .text("/proc/self/cgroup")
                .is_some_and(|cgroup| cgroup.contains("slurm"))
    }
}
