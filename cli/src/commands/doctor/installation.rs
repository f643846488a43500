//! Checks that the NVML library and the kernel driver are present and have matching versions.

use std::path::Path;

use gpumon_probe::{
    model::{Reading, Vendor},
    surroundings::Surroundings,
    vendor::{SourceError, version_mismatch_advice},
};
use gpumon_smi::{NEWEST_KNOWN, OLDEST_KNOWN};

use super::{finding::Finding, machine::Machine};
use crate::driver::DriverState;

const KERNEL_DRIVER_FILE: &str = "/proc/driver/nvidia/version";

pub(super) fn check_installation(machine: &Machine, driver: &DriverState) -> Vec<Finding> {
    let kernel_driver = find_kernel_driver(machine);
    let answer = match driver {
        DriverState::Refused(error) => {
            return vec![report_open_failure(error, kernel_driver.as_deref())];
        }
        DriverState::Silent => {
            let cure = "try again in a minute, because a driver without persistence mode \
                        initializes its GPUs slowly; if the driver still does not respond, check \
                        `dmesg | grep -i nvrm` and reboot";
            return vec![Finding::new_problem(
                "driver",
                "the driver has not responded within 10 s",
                cure,
            )];
        }
        DriverState::Answers(_) if driver.is_simulated() => {
            return vec![Finding::new_note("driver", "none: the GPUs are simulated")];
        }
        DriverState::Answers(answer) => answer,
    };
    let platform = &answer.inventory.platform;
    let others = platform
        .drivers
        .iter()
        .filter(|own| own.vendor != Vendor::Nvidia);
    let others = others.flat_map(|own| {
        let vendor = own.vendor.name();
        let tested = format!(
            "gpumon was tested with recorded data from {vendor} GPUs, but not yet on real hardware"
        );
        let send = "if a value is wrong, report it with an archive of `gpumon doctor --bundle`";
        [
            Finding::new_ok(
                "driver",
                format!("{vendor} {}", format_version(&own.version)),
            ),
            Finding::new_note("driver", tested).with_cure(send),
        ]
    });
    let Some(nvidia) = platform.find_driver(Vendor::Nvidia) else {
        return others.collect();
    };
    let (of_driver, of_library) = (
        format_version(&nvidia.version),
        format_version(&nvidia.library_version),
    );
    let cuda = nvidia
        .cuda_version
        .value()
        .map(|cuda| format!(", supports CUDA up to {cuda}"))
        .unwrap_or_default();
    let mut findings = vec![Finding::new_ok("driver", format!("{of_driver}{cuda}"))];
    let at = find_library(machine)
        .map(|path| format!(" at {path}"))
        .unwrap_or_default();
    findings.push(Finding::new_ok("library", format!("NVML {of_library}{at}")));
    let library_version = nvidia.library_version.value().map(String::as_str);
    findings.extend(compare_versions(
        kernel_driver.as_deref(),
        library_version,
        machine.surroundings(),
    ));
    findings.extend(
        nvidia
            .version
            .value()
            .and_then(|driver| check_driver_branch(driver)),
    );
    findings.extend(others);
    findings
}

/// Returns the version of the loaded kernel driver.
pub(super) fn find_kernel_driver(machine: &Machine) -> Option<String> {
    machine
        .read_text(KERNEL_DRIVER_FILE)
        .as_deref()
        .and_then(parse_version)
        .map(str::to_owned)
}

/// Reports a driver branch that is outside the range of branches with which gpumon was tested.
fn check_driver_branch(driver: &str) -> Option<Finding> {
    let branch: u32 = driver.split('.').next()?.parse().ok()?;
    if branch > NEWEST_KNOWN {
        let text = format!(
            "driver {driver} is newer than the drivers that this gpumon knows: `gpumon smi` \
             prints the format of driver {NEWEST_KNOWN}"
        );
        return Some(
            Finding::new_note("nvidia-smi", text)
                .with_cure("update gpumon if a newer version is available"),
        );
    }
    (branch < OLDEST_KNOWN).then(|| {
        let text = format!(
            "driver {driver} is older than {OLDEST_KNOWN}, the oldest driver that gpumon was \
             tested with: readings that this driver does not support are missing, and `gpumon \
             smi` prints the format of driver {OLDEST_KNOWN}"
        );
        Finding::new_note("driver", text).with_cure("update the driver if readings are missing")
    })
}

/// Reports different versions of the NVML library and the kernel driver, as after an incomplete
/// upgrade.
fn compare_versions(
    kernel_driver: Option<&str>,
    library: Option<&str>,
    surroundings: Surroundings,
) -> Option<Finding> {
    let Some(kernel_driver) = kernel_driver else {
        return Some(Finding::new_note(
            "versions",
            format!("{KERNEL_DRIVER_FILE} is missing, so the library version cannot be checked"),
        ));
    };
    // NVML's version starts with CUDA's major version, followed by the driver's version.
    let library = library?.split_once('.')?.1;
    (library != kernel_driver).then(|| {
        let text = format!(
            "the kernel driver has version {kernel_driver}, but the NVML library has version \
             {library}"
        );
        Finding::new_warning("versions", text, version_mismatch_advice(surroundings))
    })
}

fn report_open_failure(error: &SourceError, kernel_driver: Option<&str>) -> Finding {
    let check = match error {
        SourceError::NoLibrary(_) => "library",
        SourceError::NoDevice(_) => "gpus",
        _ => "driver",
    };
    let runs = kernel_driver
        .map(|version| format!(" (kernel driver {version})"))
        .unwrap_or_default();
    let message = error.to_string();
    // Messages with advice have it after the first semicolon.
    match message.split_once("; ") {
        Some((text, cure)) => Finding::new_problem(check, format!("{text}{runs}"), cure),
        None => Finding::new_problem(
            check,
            format!("{message}{runs}"),
            "see `dmesg | grep -i nvrm`",
        ),
    }
}

/// Returns the version in `NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Release
/// Build (...)`.
fn parse_version(text: &str) -> Option<&str> {
    let is_version =
        |word: &&str| word.contains('.') && word.split('.').all(|part| part.parse::<u32>().is_ok());
    text.lines()
        .next()?
        .split_ascii_whitespace()
        .find(is_version)
}

/// Returns the path of the NVML library that this process has loaded.
fn find_library(machine: &Machine) -> Option<String> {
    machine.find_mapped_file(|name| name.contains("nvidia-ml"))
}

fn format_version(reading: &Reading<String>) -> String {
    reading
        .value()
        .map_or_else(|| "of unknown version".to_owned(), Clone::clone)
}

pub(super) fn check_package(machine: &Machine) -> Option<Finding> {
    let program = std::env::current_exe().ok()?;
    find_unrelated_package(machine, &program)
}

/// Finds an unrelated Python package that is also called gpumon, in the environment in which this
/// program is installed.
///
/// Both packages contain `gpumon/__init__.py` and a command `gpumon`. Whichever is installed last
/// overwrites the other's files, and uninstalling either package removes these files. The package
/// of this program is called jupyterlab-gpumon.
fn find_unrelated_package(machine: &Machine, program: &Path) -> Option<Finding> {
    let environment = program.parent()?.parent()?.to_str()?;
    let (folder, version) = list_package_dirs(machine, environment)
        .into_iter()
        .find_map(|folder| {
            machine
                .list_names(&folder)
                .iter()
                .find_map(|name| parse_package_version(name).map(str::to_owned))
                .map(|version| (folder, version))
        })?;
    let text = format!(
        "the Python package gpumon {version} in {folder} belongs to a different project, whose \
         files have the same names as the files of this gpumon"
    );
    let cure = "run `pip uninstall gpumon jupyterlab-gpumon`, then reinstall this gpumon with `pip \
                install jupyterlab_gpumon-*.whl`";
    Some(Finding::new_warning("package", text, cure))
}

/// Returns the directories of an environment that can contain Python packages.
fn list_package_dirs(machine: &Machine, environment: &str) -> Vec<String> {
    // `pip install --target` puts packages and programs into one directory.
    let mut folders = vec![environment.to_owned()];
    for library in ["lib", "lib64"] {
        let pythons = machine.list_names(&format!("{environment}/{library}"));
        for python in pythons.iter().filter(|name| name.starts_with("python3")) {
            folders.extend(
                ["site-packages", "dist-packages"]
                    .map(|packages| format!("{environment}/{library}/{python}/{packages}")),
            );
        }
    }
    folders
}

/// Returns the version in `gpumon-0.0.11.dist-info` or `gpumon-0.0.11-py3.9.egg-info`.
fn parse_package_version(name: &str) -> Option<&str> {
    let entry = name.strip_prefix("gpumon-")?;
    let version = entry
        .strip_suffix(".dist-info")
        .or_else(|| entry.strip_suffix(".egg-info"))?;
    version.split('-').next()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::finding::Verdict;

    use super::*;

    const VERSION_FILE_TEXT: &str = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  \
                        Release Build  (dvs)\nGCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n";

    #[test]
    fn untested_driver_branch_is_noted() {
        assert_eq!(
            ["580.65.06", "610.57.04", "of its own"].map(check_driver_branch),
            [None, None, None]
        );
        for (driver, words) in [
            ("9999.1", "newer than the drivers that this gpumon knows"),
            (
                "470.256.02",
                "older than 580, the oldest driver that gpumon was tested with",
            ),
        ] {
            let finding = check_driver_branch(driver).unwrap();
            assert_eq!(finding.verdict, Verdict::Note);
            assert!(
                finding.text.contains(driver) && finding.text.contains(words),
                "{}",
                finding.text
            );
        }
    }

    #[test]
    fn version_mismatch_causes_warning() {
        assert_eq!(parse_version(VERSION_FILE_TEXT), Some("580.159.04"));
        let compare = |kernel, library| compare_versions(kernel, library, Surroundings::Docker);
        assert_eq!(
            compare(parse_version(VERSION_FILE_TEXT), Some("13.580.159.04")),
            None
        );
        let finding = compare(parse_version(VERSION_FILE_TEXT), Some("12.570.10")).unwrap();
        assert!(
            finding
                .cure
                .as_ref()
                .unwrap()
                .contains("restart the container"),
            "{finding:?}"
        );
        assert_eq!(finding.verdict, Verdict::Warning);
        assert!(
            finding.text.contains("580.159.04") && finding.text.contains("570.10"),
            "{}",
            finding.text
        );
        assert_eq!(
            compare(None, Some("12.570.10")).unwrap().verdict,
            Verdict::Note
        );
    }

    #[test]
    fn library_is_found_in_mapped_files() {
        let maps = "7f00-7f01 r-xp 00000000 08:01 42  /usr/lib/libc.so.6\n7f02-7f03 rw-p 00000000 \
                    00:00 0\n7f04-7f05 r-xp 00000000 08:01 43  /opt/my \
                    libs/libnvidia-ml.so.580.159.04\n";
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("proc/self")).unwrap();
        std::fs::write(root.path().join("proc/self/maps"), maps).unwrap();
        let found = find_library(&Machine::with_root(root.path()));
        assert_eq!(
            found.as_deref(),
            Some("/opt/my libs/libnvidia-ml.so.580.159.04")
        );
    }

    /// Returns the finding for an environment that contains the package metadata `entry`.
    fn check_environment_with_package(entry: &str) -> Option<Finding> {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("venv").join(entry)).unwrap();
        find_unrelated_package(
            &Machine::with_root(root.path()),
            Path::new("/venv/bin/gpumon"),
        )
    }

    #[test]
    fn unrelated_package_in_same_environment_causes_warning() {
        let finding =
            check_environment_with_package("lib/python3.11/site-packages/gpumon-0.0.11.dist-info")
                .unwrap();
        assert_eq!(finding.verdict, Verdict::Warning);
        assert!(
            finding
                .text
                .contains("gpumon 0.0.11 in /venv/lib/python3.11/site-packages"),
            "{}",
            finding.text
        );
        assert!(
            finding
                .cure
                .unwrap()
                .contains("pip uninstall gpumon jupyterlab-gpumon")
        );
        for entry in [
            "lib64/python3/dist-packages/gpumon-0.0.11-py3.9.egg-info",
            "gpumon-1.dist-info",
        ] {
            assert!(check_environment_with_package(entry).is_some(), "{entry}");
        }
    }

    #[test]
    fn gpumon_package_and_similar_names_are_accepted() {
        for name in [
            "jupyterlab_gpumon-0.2.0.dist-info",
            "gpumon",
            "gpumon_x-1.dist-info",
            "gpumonitor-1.dist-info",
        ] {
            assert_eq!(
                check_environment_with_package(&format!("lib/python3.11/site-packages/{name}")),
                None,
                "{name}"
            );
        }
    }
}
