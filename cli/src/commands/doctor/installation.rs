//! Checks of the NVML library and the kernel driver, and that their versions match.

use std::path::Path;

use gpumon_probe::{
    model::{Reading, Vendor},
    surroundings::Surroundings,
    vendor::{SourceError, version_mismatch_advice},
};
use gpumon_smi::{NEWEST_KNOWN, OLDEST_KNOWN};

use super::{finding::Finding, machine::Machine};
use crate::driver::Driver;

const KERNEL_DRIVER: &str = "/proc/driver/nvidia/version";

pub(super) fn check(machine: &Machine, driver: &Driver) -> Vec<Finding> {
    let kernel_driver = kernel_driver(machine);
    let answer = match driver {
        Driver::Refused(error) => return vec![refused(error, kernel_driver.as_deref())],
        Driver::Silent => {
            let cure = "try again in a minute, since a driver without persistence mode opens its GPUs slowly; if it \
                        stays so, see `dmesg | grep -i nvrm` and reboot";
            return vec![Finding::problem(
                "driver",
                "the driver has not responded within 10 s",
                cure,
            )];
        }
        Driver::Answers(_) if driver.is_simulated() => {
            return vec![Finding::note("driver", "none: the GPUs are simulated")];
        }
        Driver::Answers(answer) => answer,
    };
    let platform = &answer.inventory.platform;
    let others = platform
        .drivers
        .iter()
        .filter(|own| own.vendor != Vendor::Nvidia);
    let others = others.flat_map(|own| {
        let vendor = own.vendor.name();
        let tested = format!(
            "gpumon was tested on recorded data of {vendor}'s GPUs, and never yet on a real board"
        );
        let send = "if a value is wrong, send it with `gpumon doctor --bundle`";
        [
            Finding::ok("driver", format!("{vendor} {}", known(&own.version))),
            Finding::note("driver", tested).with_cure(send),
        ]
    });
    let Some(nvidia) = platform.find_driver(Vendor::Nvidia) else {
        return others.collect();
    };
    let (of_driver, of_library) = (known(&nvidia.version), known(&nvidia.library_version));
    let cuda = nvidia
        .cuda_version
        .value()
        .map(|cuda| format!(", runs CUDA up to {cuda}"))
        .unwrap_or_default();
    let mut findings = vec![Finding::ok("driver", format!("{of_driver}{cuda}"))];
    let at = library(machine)
        .map(|path| format!(" at {path}"))
        .unwrap_or_default();
    findings.push(Finding::ok("library", format!("NVML {of_library}{at}")));
    let library_version = nvidia.library_version.value().map(String::as_str);
    findings.extend(compare(
        kernel_driver.as_deref(),
        library_version,
        machine.surroundings(),
    ));
    findings.extend(
        nvidia
            .version
            .value()
            .and_then(|driver| compare_branch(driver)),
    );
    findings.extend(others);
    findings
}

/// Returns the version of the loaded kernel driver.
pub(super) fn kernel_driver(machine: &Machine) -> Option<String> {
    machine
        .text(KERNEL_DRIVER)
        .as_deref()
        .and_then(version)
        .map(str::to_owned)
}

/// Reports a driver branch that is newer or older than those that gpumon was tested with.
fn compare_branch(driver: &str) -> Option<Finding> {
    let branch: u32 = driver.split('.').next()?.parse().ok()?;
    if branch > NEWEST_KNOWN {
        let text = format!(
            "driver {driver} is newer than this gpumon, whose nvidia-smi is that of {NEWEST_KNOWN}"
        );
        return Some(
            Finding::note("nvidia-smi", text).with_cure("install a newer gpumon, if there is one"),
        );
    }
    (branch < OLDEST_KNOWN).then(|| {
        let text = format!(
            "driver {driver} is older than those that gpumon was tested with, which begin with {OLDEST_KNOWN}: readings that \
             it lacks are absent, and `gpumon smi` prints the forms of {OLDEST_KNOWN}"
        );
        Finding::note("driver", text).with_cure("update the driver if something is missing")
    })
}

/// Reports versions of library and kernel driver that differ, as after an incomplete upgrade.
fn compare(
    kernel_driver: Option<&str>,
    library: Option<&str>,
    surroundings: Surroundings,
) -> Option<Finding> {
    let Some(kernel_driver) = kernel_driver else {
        return Some(Finding::note(
            "versions",
            format!("{KERNEL_DRIVER} is missing, so that the library version cannot be checked"),
        ));
    };
    // NVML's version starts with CUDA's major version, followed by the driver's version.
    let library = library?.split_once('.')?.1;
    (library != kernel_driver).then(|| {
        let text = format!("the kernel driver is {kernel_driver}, the library of {library}");
        Finding::warning("versions", text, version_mismatch_advice(surroundings))
    })
}

fn refused(error: &SourceError, kernel_driver: Option<&str>) -> Finding {
    let check = match error {
        SourceError::NoLibrary(_) => "library",
        SourceError::NoDevice(_) => "gpus",
        _ => "driver",
    };
    let runs = kernel_driver
        .map(|version| format!(" (kernel driver {version})"))
        .unwrap_or_default();
    let message = error.to_string();
    // The messages contain advice after the first semicolon.
    match message.split_once("; ") {
        Some((text, cure)) => Finding::problem(check, format!("{text}{runs}"), cure),
        None => Finding::problem(
            check,
            format!("{message}{runs}"),
            "see `dmesg | grep -i nvrm`",
        ),
    }
}

/// Returns the version in `NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Release
/// Build (...)`.
fn version(text: &str) -> Option<&str> {
    let is_version =
        |word: &&str| word.contains('.') && word.split('.').all(|part| part.parse::<u32>().is_ok());
    text.lines()
        .next()?
        .split_ascii_whitespace()
        .find(is_version)
}

/// Returns the path of the NVML library that this process has loaded.
fn library(machine: &Machine) -> Option<String> {
    machine.mapped_as(|name| name.contains("nvidia-ml"))
}

fn known(reading: &Reading<String>) -> String {
    reading
        .value()
        .map_or_else(|| "of unknown version".to_owned(), Clone::clone)
}

pub(super) fn check_package(machine: &Machine) -> Option<Finding> {
    let program = std::env::current_exe().ok()?;
    other_package(machine, &program)
}

/// Finds an unrelated Python package that is also called gpumon, in the environment in which this
/// program is installed.
///
/// The other package also has `gpumon/__init__.py` and a command `gpumon`. The package that is
/// installed last replaces these files of the other, and uninstalling either package removes them.
/// The package of this program is called jupyterlab-gpumon.
fn other_package(machine: &Machine, program: &Path) -> Option<Finding> {
    let environment = program.parent()?.parent()?.to_str()?;
    let (folder, version) =
        package_folders(machine, environment)
            .into_iter()
            .find_map(|folder| {
                machine
                    .names(&folder)
                    .iter()
                    .find_map(|name| package_version(name).map(str::to_owned))
                    .map(|version| (folder, version))
            })?;
    let text = format!(
        "the Python package gpumon {version} in {folder} is another program, with files of the \
         same names as this one"
    );
    let cure = "run `pip uninstall gpumon jupyterlab-gpumon`, then install the wheel of this \
                program again, with \
                `pip install jupyterlab_gpumon-*.whl`";
    Some(Finding::warning("package", text, cure))
}

/// Returns the directories of an environment that can contain Python packages.
fn package_folders(machine: &Machine, environment: &str) -> Vec<String> {
    // `pip install --target` puts packages and programs into one directory.
    let mut folders = vec![environment.to_owned()];
    for library in ["lib", "lib64"] {
        let pythons = machine.names(&format!("{environment}/{library}"));
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
fn package_version(name: &str) -> Option<&str> {
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

    const PROC: &str = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (dvs)\n\
                        GCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n";

    #[test]
    fn untested_driver_branch_is_noted() {
        assert_eq!(
            ["580.65.06", "610.57.04", "of its own"].map(compare_branch),
            [None, None, None]
        );
        for (driver, words) in [
            ("9999.1", "newer than this gpumon"),
            ("470.256.02", "older than those that gpumon was tested"),
        ] {
            let finding = compare_branch(driver).unwrap();
            assert_eq!(finding.verdict, Verdict::Note);
            assert!(
                finding.text.contains(driver) && finding.text.contains(words),
                "{}",
                finding.text
            );
        }
    }

    #[test]
    fn a_library_of_another_version_is_found() {
        assert_eq!(version(PROC), Some("580.159.04"));
        let compare = |kernel, library| compare(kernel, library, Surroundings::Docker);
        assert_eq!(compare(version(PROC), Some("13.580.159.04")), None);
        let finding = compare(version(PROC), Some("12.570.10")).unwrap();
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
    fn the_library_is_found_among_the_mapped_files() {
        let maps = "7f00-7f01 r-xp 00000000 08:01 42  /usr/lib/libc.so.6\n7f02-7f03 rw-p 00000000 00:00 0\n\
                    7f04-7f05 r-xp 00000000 08:01 43  /opt/my libs/libnvidia-ml.so.580.159.04\n";
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("proc/self")).unwrap();
        std::fs::write(root.path().join("proc/self/maps"), maps).unwrap();
        let found = library(&Machine::below(root.path()));
        assert_eq!(
            found.as_deref(),
            Some("/opt/my libs/libnvidia-ml.so.580.159.04")
        );
    }

    /// Returns the finding for an environment that contains this package entry.
    fn find_package(entry: &str) -> Option<Finding> {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("venv").join(entry)).unwrap();
        other_package(&Machine::below(root.path()), Path::new("/venv/bin/gpumon"))
    }

    #[test]
    fn other_package_in_same_environment_is_warning() {
        let finding = find_package("lib/python3.11/site-packages/gpumon-0.0.11.dist-info").unwrap();
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
            assert!(find_package(entry).is_some(), "{entry}");
        }
    }

    #[test]
    fn own_package_and_similar_names_are_no_finding() {
        for name in [
            "jupyterlab_gpumon-0.2.0.dist-info",
            "gpumon",
            "gpumon_x-1.dist-info",
            "gpumonitor-1.dist-info",
        ] {
            assert_eq!(
                find_package(&format!("lib/python3.11/site-packages/{name}")),
                None,
                "{name}"
            );
        }
    }
}
