//! What the environment says about gpumon and GPUs, and whom it names.

use std::{
    collections::BTreeMap,
    env,
    path::{self, PathBuf},
};

use gpumon_probe::vendor::SourceChoice;

use super::{
    super::machine::Machine,
    scrub::{self, Scrubber},
};
use crate::{json_text::NameKind, visible::VISIBILITY_VARIABLES};

/// Variables whose values go in, next to those that show GPUs to programs.
const WITH_VALUE: &str = "\
    GPUMON_CONTROL GPUMON_LIBCUBLAS GPUMON_LIBCUDA GPUMON_LOCKS GPUMON_NVML_LIB \
    GPUMON_SOURCE LANG LD_LIBRARY_PATH NO_COLOR \
    NVIDIA_DISABLE_REQUIRE NVIDIA_DRIVER_CAPABILITIES \
    NVIDIA_REQUIRE_CUDA NVIDIA_VISIBLE_DEVICES TERM XDG_RUNTIME_DIR ZE_FLAT_DEVICE_HIERARCHY";

/// Of others with these beginnings, only that they are set: one is `NVIDIA_API_KEY`.
const BY_NAME: [&str; 3] = ["CUDA_", "GPUMON_", "NVIDIA_"];

/// Accounts of people.
const UIDS: std::ops::Range<u32> = 1000..60_000;

pub(super) fn read() -> BTreeMap<String, String> {
    let text = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
    env::vars_os()
        .map(|(name, value)| (text(name), text(value)))
        .collect()
}

/// `NAME=value`, a line each.
pub(super) fn reported(environment: &BTreeMap<String, String>) -> Vec<String> {
    let lines = environment.iter().filter_map(|(name, value)| {
        let has_value = WITH_VALUE.split(' ').any(|known| known == name);
        if has_value || VISIBILITY_VARIABLES.contains(&name.as_str()) {
            return Some(format!("{name}={value}"));
        }
        BY_NAME
            .iter()
            .any(|beginning| name.starts_with(beginning))
            .then(|| format!("{name} is set"))
    });
    lines.collect()
}

/// Knows the people of this machine, its name, and paths that could not be told from the words around them: among those
/// that were typed, as `paths`, that variables name, and of mapped files.
pub(super) fn learn(
    scrubber: &mut Scrubber,
    machine: &Machine,
    environment: &BTreeMap<String, String>,
    paths: &[PathBuf],
) {
    let accounts = machine.text("/etc/passwd").unwrap_or_default();
    let people = accounts.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        fields
            .nth(1)?
            .parse()
            .ok()
            .filter(|uid| UIDS.contains(uid))
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
    let own = WITH_VALUE
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
    // Of an installation of Python, the folder above that of its programs is told.
    let set = set.map(|part| part.strip_suffix("/bin").unwrap_or(part).to_owned());
    for path in named.chain(set).chain(machine.mapped()) {
        let is_plain = path.starts_with('/') && scrub::path_end(&path) == path.len();
        if !is_plain && path.contains(char::is_alphanumeric) {
            scrubber.add_name(NameKind::Path, &path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_known_that_their_form_does_not_give_away() {
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
        learn(
            &mut scrubber,
            &Machine::below(root.path()),
            &environment,
            &["typed.so".into()],
        );
        let lines: Vec<_> = reported(&environment)
            .iter()
            .map(|line| scrubber.text(line))
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
        assert_eq!(scrubber.text(text), "path-6, path-7, path-8, sim");
    }
}
