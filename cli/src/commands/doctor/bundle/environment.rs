//! The part of a bundle that describes the environment. Also searches the environment for names
//! that the bundle must not contain.

use std::{
    collections::BTreeMap,
    env,
    path::{self, PathBuf},
};

use gpumon_probe::{bounded, model::Vendor, vendor::SourceChoice};
use serde_json::{Value, json};

use super::{
    super::{installation, machine::Machine},
    scrub::{self, Scrubber},
};
use crate::{json_text::NameKind, snapshot::DriverState, visible_devices::VISIBILITY_VARIABLES};

/// Environment variables that the bundle lists with their values. Variables that restrict GPUs are
/// also listed with their values.
const VARIABLES_WITH_VALUE: &str = "\
    GPUMON_CONTROL GPUMON_LIBCUBLAS GPUMON_LIBCUDA GPUMON_LOCKS GPUMON_NVML_LIB \
    GPUMON_SOURCE LANG LD_LIBRARY_PATH NO_COLOR \
    NVIDIA_DISABLE_REQUIRE NVIDIA_DRIVER_CAPABILITIES \
    NVIDIA_REQUIRE_CUDA NVIDIA_VISIBLE_DEVICES TERM XDG_RUNTIME_DIR ZE_FLAT_DEVICE_HIERARCHY";

/// Name prefixes of further environment variables. The bundle states only that these variables are
/// set, because their values may be secret, as in `NVIDIA_API_KEY`.
const NAME_PREFIXES: [&str; 3] = ["CUDA_", "GPUMON_", "NVIDIA_"];

/// The UIDs of user accounts, as opposed to system accounts.
const USER_UIDS: std::ops::Range<u32> = 1000..60_000;

pub(super) fn read_environment_variables() -> BTreeMap<String, String> {
    let text = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
    env::vars_os()
        .map(|(name, value)| (text(name), text(value)))
        .collect()
}

/// Returns a line `NAME=value` or `NAME is set` for each listed variable.
pub(super) fn format_relevant_variables(environment: &BTreeMap<String, String>) -> Vec<String> {
    let lines = environment.iter().filter_map(|(name, value)| {
        let has_value = VARIABLES_WITH_VALUE.split(' ').any(|known| known == name);
        if has_value || VISIBILITY_VARIABLES.contains(&name.as_str()) {
            return Some(format!("{name}={value}"));
        }
        NAME_PREFIXES
            .iter()
            .any(|beginning| name.starts_with(beginning))
            .then(|| format!("{name} is set"))
    });
    lines.collect()
}

/// Adds user names, this machine's name, and unusual paths to the scrubber. The paths come from
/// three sources: the user's input in `paths`, the environment variables, and the files mapped into
/// this process. Paths that can be recognized by their format need not be added.
pub(super) fn add_environment_names_to_scrubber(
    scrubber: &mut Scrubber,
    machine: &Machine,
    environment: &BTreeMap<String, String>,
    paths: &[PathBuf],
) {
    let accounts = machine.read_text("/etc/passwd").unwrap_or_default();
    let people = accounts.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        fields
            .nth(1)?
            .parse()
            .ok()
            .filter(|uid| USER_UIDS.contains(uid))
            .map(|_: u32| name)
    });
    people.for_each(|name| scrubber.add_name(NameKind::User, name));
    for variable in ["USER", "LOGNAME", "SUDO_USER", "JUPYTERHUB_USER"] {
        scrubber.add_name(
            NameKind::User,
            environment.get(variable).map_or("", String::as_str),
        );
    }
    scrubber.add_name(
        NameKind::Host,
        &rustix::system::uname().nodename().to_string_lossy(),
    );
    let value_of = |name| environment.get(name).map(String::as_str);
    let own = VARIABLES_WITH_VALUE
        .split(' ')
        .filter(|name| name.starts_with("GPUMON_") && *name != "GPUMON_SOURCE");
    let own = own.filter_map(value_of).map(PathBuf::from);
    let scenario = match value_of("GPUMON_SOURCE").unwrap_or_default().parse() {
        Ok(SourceChoice::SimScenario(path)) => Some(path),
        _ => None,
    };
    let named: Vec<_> = paths.iter().cloned().chain(own).chain(scenario).collect();
    let absolute = named.iter().filter_map(|path| path::absolute(path).ok());
    let text = |path: PathBuf| path.to_string_lossy().into_owned();
    let named = absolute.chain(named.clone()).map(text);
    let set = environment.iter().flat_map(|(name, value)| {
        let is_list = name == "LD_LIBRARY_PATH";
        value
            .split(':')
            .filter(move |part| is_list || part.starts_with('/'))
    });
    // An entry of `PATH` usually ends with `bin`. The directory of the installation is the parent
    // of `bin`.
    let set = set.map(|part| part.strip_suffix("/bin").unwrap_or(part).to_owned());
    for path in named.chain(set).chain(machine.list_mapped_files()) {
        let is_plain = path.starts_with('/') && scrub::leading_path_length(&path) == path.len();
        if !is_plain && path.contains(char::is_alphanumeric) {
            scrubber.add_name(NameKind::Path, &path);
        }
    }
}

/// Python packages that may affect the panel in JupyterLab.
const PACKAGES: [&str; 7] = [
    "gpumon",
    "jupyter_server",
    "jupyter_server_proxy",
    "jupyterhub",
    "jupyterlab",
    "notebook",
    "ipykernel",
];

/// The version string of the GNU C library is stored after the code. At most this many bytes of the
/// library are searched for the version string.
const MAX_LIBC_BYTES: usize = 8 << 20;

pub(super) fn collect_versions(
    machine: &Machine,
    driver: &DriverState,
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
        "kernel_driver": installation::find_kernel_driver(machine),
        "kernel": machine.kernel_release(),
        "libc": find_libc(machine),
        "os": find_os(machine),
        "python": list_python_installations(machine, environment),
    })
}

fn find_os(machine: &Machine) -> Option<String> {
    let release = machine.read_text("/etc/os-release")?;
    let name = release
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(name.trim_matches('"').to_owned())
}

fn find_libc(machine: &Machine) -> Option<String> {
    // In glibc before 2.34, the file is called `libc-2.33.so` or similar.
    let path = machine.find_mapped_file(|name| {
        ["libc.so", "libc-2."]
            .iter()
            .any(|beginning| name.starts_with(beginning))
    })?;
    let library = bounded::read(machine.resolve_path(&path), MAX_LIBC_BYTES).ok()?;
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

/// Returns the relevant packages and their versions in each Python installation that the
/// environment variables refer to.
fn list_python_installations(
    machine: &Machine,
    environment: &BTreeMap<String, String>,
) -> Vec<Value> {
    let variable = |name: &str| environment.get(name).cloned();
    let path = variable("PATH").unwrap_or_default();
    let of_path = path
        .split(':')
        .filter(|folder| machine.has_path(&format!("{folder}/python3")));
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
        .flat_map(|prefix| list_packages(machine, prefix))
        .collect()
}

fn list_packages(machine: &Machine, prefix: &str) -> Vec<Value> {
    let lib = format!("{prefix}/lib");
    let versions = machine
        .list_directory_entries(&lib)
        .into_iter()
        .filter(|name| name.starts_with("python3"));
    let found = versions.filter_map(|python| {
        let mut packages = BTreeMap::new();
        for folder in ["site-packages", "dist-packages"] {
            for name in machine.list_directory_entries(&format!("{lib}/{python}/{folder}")) {
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
    fn unusual_paths_in_environment_variables_are_replaced() {
        let variables = [
            ("PATH", "/bin:/opt/my env/bin:/home/o'neil/bin"),
            (
                "LD_LIBRARY_PATH",
                ".::/usr/lib/x:/opt/a:/opt/top secret:acme libs",
            ),
            ("GPUMON_CONTROL", "thesis.sock"),
            ("GPUMON_LIBCUBLAS", "libcublas.so.12"),
            ("GPUMON_SOURCE", "sim:acme.toml"),
        ];
        let environment = variables
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
        let mut scrubber = Scrubber::default();
        let root = tempfile::tempdir().unwrap();
        add_environment_names_to_scrubber(
            &mut scrubber,
            &Machine::with_root(root.path()),
            &environment,
            &["typed.so".into()],
        );
        let lines: Vec<_> = format_relevant_variables(&environment)
            .iter()
            .map(|line| scrubber.scrub_text(line))
            .collect();
        assert_eq!(
            lines,
            [
                "GPUMON_CONTROL=path-1",
                "GPUMON_LIBCUBLAS=libcublas.so.12",
                "GPUMON_SOURCE=sim:path-2",
                "LD_LIBRARY_PATH=.::/usr/lib/x:path-3:path-4:path-5",
            ]
        );
        let text = "/opt/my env/lib, /home/o'neil, typed.so, sim";
        assert_eq!(scrubber.scrub_text(text), "path-6, path-7, path-8, sim");
    }

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
        let found = collect_versions(
            &Machine::with_root(root.path()),
            &DriverState::Silent,
            &environment,
        );
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
