//! What the environment says about gpumon and GPUs, and whom it names.

use std::{collections::BTreeMap, env, path};

use super::{
    super::machine::Machine,
    scrub::{Kind, Scrubber},
};

/// Variables whose values go in.
const WITH_VALUE: &str = "\
    CUDA_DEVICE_ORDER CUDA_VISIBLE_DEVICES GPUMON_CONTROL GPUMON_LIBCUDA GPUMON_LOCKS GPUMON_NVML_LIB \
    GPUMON_SOURCE LANG LD_LIBRARY_PATH NO_COLOR NVIDIA_DISABLE_REQUIRE NVIDIA_DRIVER_CAPABILITIES \
    NVIDIA_REQUIRE_CUDA NVIDIA_VISIBLE_DEVICES TERM XDG_RUNTIME_DIR";

/// Of others with these beginnings, only that they are set: one is `NVIDIA_API_KEY`.
const BY_NAME: [&str; 3] = ["CUDA_", "GPUMON_", "NVIDIA_"];

/// Accounts of people.
const UIDS: std::ops::Range<u32> = 1000..60_000;

pub(super) fn read() -> BTreeMap<String, String> {
    let text = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
    env::vars_os().map(|(name, value)| (text(name), text(value))).collect()
}

/// `NAME=value`, a line each.
pub(super) fn told(environment: &BTreeMap<String, String>) -> Vec<String> {
    let told = environment.iter().filter_map(|(name, value)| {
        if WITH_VALUE.split(' ').any(|told| told == name) {
            return Some(format!("{name}={value}"));
        }
        BY_NAME.iter().any(|beginning| name.starts_with(beginning)).then(|| format!("{name} is set"))
    });
    told.collect()
}

/// Knows the people of this machine, its name, and paths that could not be told from the words around them.
pub(super) fn learn(scrubber: &mut Scrubber, machine: &Machine, environment: &BTreeMap<String, String>) {
    let accounts = machine.text("/etc/passwd").unwrap_or_default();
    let people = accounts.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        fields.nth(1)?.parse().ok().filter(|uid| UIDS.contains(uid)).map(|_: u32| name)
    });
    people.for_each(|name| scrubber.know(Kind::User, name));
    for variable in ["USER", "LOGNAME", "SUDO_USER", "JUPYTERHUB_USER"] {
        scrubber.know(Kind::User, environment.get(variable).map_or("", String::as_str));
    }
    scrubber.know(Kind::Host, &rustix::system::uname().nodename().to_string_lossy());
    let maps = machine.text("/proc/self/maps").unwrap_or_default();
    let mapped = maps.lines().filter_map(|line| line.find('/').map(|start| &line[start..]));
    let set = environment.values().map(String::as_str).filter(|value| value.starts_with('/'));
    for path in set.chain(mapped).filter(|path| path.contains(char::is_whitespace)) {
        scrubber.know(Kind::Path, path);
    }
    // Relative ones are paths where gpumon takes them for paths.
    let typed = env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    let own = environment.iter().filter(|(name, _)| name.starts_with("GPUMON_")).map(|(_, value)| value.clone());
    for word in typed.chain(own) {
        let value = word.split_once('=').map_or(word.as_str(), |(_, value)| value);
        let path = value.strip_prefix("sim:").unwrap_or(value);
        if path.contains('/') {
            scrubber.know(Kind::Path, path);
            scrubber.know(Kind::Path, &path::absolute(path).unwrap_or_default().to_string_lossy());
        }
    }
}
