//! Detection of another Python package in this program's environment, with files of the same names.

use std::path::Path;

use super::{finding::Finding, machine::Machine};

pub(super) fn check(machine: &Machine) -> Option<Finding> {
    let program = std::env::current_exe().ok()?;
    other_package(machine, &program)
}

/// Finds the package called gpumon, which is another program, in the environment that this program
/// is installed in.
///
/// It also has `gpumon/__init__.py` and a command `gpumon`. The package that is installed last
/// replaces these files of the other, and uninstalling either package removes them. The package of
/// this program is called jupyterlab-gpumon.
fn other_package(machine: &Machine, program: &Path) -> Option<Finding> {
    let environment = program.parent()?.parent()?.to_str()?;
    let (folder, version) =
        package_folders(machine, environment)
            .into_iter()
            .find_map(|folder| {
                machine
                    .names(&folder)
                    .iter()
                    .find_map(|name| version(name).map(str::to_owned))
                    .map(|version| (folder, version))
            })?;
    let text = format!(
        "the Python package gpumon {version} in {folder} is another program, with files of the same names as this one"
    );
    let cure = "run `pip uninstall gpumon jupyterlab-gpumon`, then install the wheel of this program again, with \
                `pip install jupyterlab_gpumon-*.whl`";
    Some(Finding::warning("package", text, cure))
}

/// Returns the folders of an environment that can contain Python packages.
fn package_folders(machine: &Machine, environment: &str) -> Vec<String> {
    // `pip install --target` puts packages and programs into one folder.
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
fn version(name: &str) -> Option<&str> {
    let entry = name.strip_prefix("gpumon-")?;
    let version = entry
        .strip_suffix(".dist-info")
        .or_else(|| entry.strip_suffix(".egg-info"))?;
    version.split('-').next()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{super::finding::Verdict, *};

    /// Returns the finding for an environment with this entry among its packages.
    fn found(entry: &str) -> Option<Finding> {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("venv").join(entry)).unwrap();
        other_package(&Machine::below(root.path()), Path::new("/venv/bin/gpumon"))
    }

    #[test]
    fn other_package_in_same_environment_is_warning() {
        let finding = found("lib/python3.11/site-packages/gpumon-0.0.11.dist-info").unwrap();
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
            assert!(found(entry).is_some(), "{entry}");
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
                found(&format!("lib/python3.11/site-packages/{name}")),
                None,
                "{name}"
            );
        }
    }
}
