//! Which versions of what are here, read from files: nothing is run for it.

use std::collections::BTreeMap;

use gpumon_probe::{bounded, model::Vendor};
use serde_json::{Value, json};

use super::super::{installation, machine::Machine};
use crate::driver::Driver;

/// Packages that have to do with the panel.
const PACKAGES: [&str; 7] = [
    "gpumon",
    "jupyter_server",
    "jupyter_server_proxy",
    "jupyterhub",
    "jupyterlab",
    "notebook",
    "ipykernel",
];

/// The GNU C library says its version in a text, which comes after all of its code.
const LIBC: usize = 8 << 20;

pub(super) fn versions(
    machine: &Machine,
    driver: &Driver,
    environment: &BTreeMap<String, String>,
) -> Value {
    let nvidia = driver
        .answer()
        .and_then(|answer| answer.inventory.platform.find_driver(Vendor::Nvidia));
    json!({
        "gpumon": env!("CARGO_PKG_VERSION"),
        "machine": std::env::consts::ARCH,
        "driver_version": nvidia.map(|driver| &driver.version),
        "nvml_version": nvidia.map(|driver| &driver.library_version),
        "cuda_version": nvidia.map(|driver| &driver.cuda_version),
        "kernel_driver": installation::kernel_driver(machine),
        "kernel": machine.kernel(),
        "libc": libc(machine),
        "os": os(machine),
        "python": pythons(machine, environment),
    })
}

fn os(machine: &Machine) -> Option<String> {
    let release = machine.text("/etc/os-release")?;
    let name = release
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(name.trim_matches('"').to_owned())
}

fn libc(machine: &Machine) -> Option<String> {
    // Up to glibc 2.33, it is called libc-2.33.so.
    let path = machine.mapped_as(|name| {
        ["libc.so", "libc-2."]
            .iter()
            .any(|beginning| name.starts_with(beginning))
    })?;
    let library = bounded::read(machine.path(&path), LIBC).ok()?;
    let before = b"stable release version ";
    let at = library
        .windows(before.len())
        .position(|window| window == before)?
        + before.len();
    let version = library[at..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit() || **byte == b'.');
    let version: String = version.map(|byte| char::from(*byte)).collect();
    Some(format!("glibc {}", version.trim_end_matches('.')))
}

/// Each installation of Python that this user's commands come from, with those of the packages that it has.
fn pythons(machine: &Machine, environment: &BTreeMap<String, String>) -> Vec<Value> {
    let variable = |name: &str| environment.get(name).cloned();
    let path = variable("PATH").unwrap_or_default();
    let of_path = path
        .split(':')
        .filter(|folder| machine.exists(&format!("{folder}/python3")));
    let of_path = of_path
        .filter_map(|folder| folder.strip_suffix("/bin"))
        .filter(|prefix| !prefix.is_empty())
        .map(str::to_owned);
    let own = variable("HOME").map(|home| format!("{home}/.local"));
    let named = ["VIRTUAL_ENV", "CONDA_PREFIX"]
        .into_iter()
        .filter_map(variable);
    let mut prefixes = Vec::new();
    for prefix in named.chain(of_path).chain(own) {
        if !prefixes.contains(&prefix) {
            prefixes.push(prefix);
        }
    }
    prefixes
        .iter()
        .flat_map(|prefix| below(machine, prefix))
        .collect()
}

fn below(machine: &Machine, prefix: &str) -> Vec<Value> {
    let lib = format!("{prefix}/lib");
    let versions = machine
        .names(&lib)
        .into_iter()
        .filter(|name| name.starts_with("python3"));
    let found = versions.filter_map(|python| {
        let mut packages = BTreeMap::new();
        for folder in ["site-packages", "dist-packages"] {
            for name in machine.names(&format!("{lib}/{python}/{folder}")) {
                let installed = name
                    .strip_suffix(".dist-info")
                    .and_then(|name| name.split_once('-'));
                let listed = installed.filter(|(name, _)| PACKAGES.contains(name));
                packages
                    .extend(listed.map(|(name, version)| (name.to_owned(), version.to_owned())));
            }
        }
        (!packages.is_empty() || python != "python3")
            .then(|| json!({ "prefix": prefix, "version": python, "packages": packages }))
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn versions_are_read_from_files() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let mapped = |name| format!("7f00-7f01 r-xp 00000000 08:01 42  /usr/lib/{name}\n");
        write(
            "proc/self/maps",
            &(mapped("libcap.so.2") + &mapped("libc.so.6")),
        );
        write("usr/lib/libcap.so.2", "");
        write(
            "usr/lib/libc.so.6",
            "\0GNU C Library (Debian GLIBC 2.36-9) stable release version 2.36.\nCopyright",
        );
        write(
            "etc/os-release",
            "ID=debian\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n",
        );
        write("env/bin/python3", "");
        for package in ["jupyterlab-4.2.5", "gpumon-0.2.0", "secret_project-1.0"] {
            write(
                &format!("env/lib/python3.12/site-packages/{package}.dist-info/METADATA"),
                "",
            );
        }
        let environment = BTreeMap::from([("PATH".to_owned(), "/bin:/env/bin".to_owned())]);
        let found = versions(&Machine::below(root.path()), &Driver::Silent, &environment);
        assert_eq!(
            (&found["libc"], &found["os"]),
            (
                &json!("glibc 2.36"),
                &json!("Debian GNU/Linux 12 (bookworm)")
            )
        );
        let packages = json!({ "jupyterlab": "4.2.5", "gpumon": "0.2.0" });
        assert_eq!(
            found["python"],
            json!([{ "prefix": "/env", "version": "python3.12", "packages": packages }])
        );
        assert!(found["driver_version"].is_null());
    }
}
