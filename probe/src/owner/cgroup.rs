//! What a process's cgroup path tells: Slurm, Kubernetes, containers and systemd each leave their mark in it.

use crate::model::{Container, ContainerRuntime, Owner, Pod, SlurmJob};

/// Fills in what `/proc/PID/cgroup` tells (cgroups(7)): one line per hierarchy, `id:controllers:path`.
pub(super) fn read(text: &str, owner: &mut Owner) {
    for path in text.lines().filter_map(|line| line.splitn(3, ':').nth(2)) {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        owner.slurm = owner.slurm.take().or_else(|| slurm(&parts));
        owner.pod = owner.pod.take().or_else(|| parts.iter().find_map(|part| pod(part)));
        owner.container = owner.container.take().or_else(|| container(&parts));
        owner.unit = owner.unit.take().or_else(|| unit(&parts));
    }
}

/// `/system.slice/slurmstepd.scope/job_42/step_0/user/task_0` (v2), `/slurm/uid_1000/job_42/step_batch` (v1). Slurm 26.05
/// has the job's SLUID instead of `job_42` in v2, unless cgroup.conf(5) says `CgroupJobIdPaths=yes`.
fn slurm(parts: &[&str]) -> Option<SlurmJob> {
    let below = parts.iter().position(|part| part.ends_with("slurmstepd.scope") || part.starts_with("slurm"))?;
    let named = |prefix: &str| parts[below..].iter().find_map(|part| part.strip_prefix(prefix)).map(str::to_owned);
    let job_id = named("job_").filter(|id| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit()));
    let sluid = || parts.get(below + 1).filter(|part| is_sluid(part)).map(|part| (*part).to_owned());
    Some(SlurmJob { job_id: job_id.or_else(sluid)?, step: named("step_"), private: false })
}

/// Whether it is a job's SLUID as Slurm writes it: `s` and 13 digits of Crockford's base 32.
pub(crate) fn is_sluid(id: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (byte.is_ascii_uppercase() && !b"ILOU".contains(&byte));
    id.len() == 14 && id.strip_prefix('s').is_some_and(|digits| digits.bytes().all(is_digit))
}

/// `kubepods-burstable-pod0a1b_….slice` (systemd driver, dashes as underscores), `pod0a1b-…` (cgroupfs driver).
fn pod(part: &str) -> Option<Pod> {
    let name = part.strip_suffix(".slice").unwrap_or(part);
    let uid = match name.strip_prefix("kubepods") {
        Some(rest) => rest.rsplit_once("-pod")?.1,
        None => name.strip_prefix("pod")?,
    };
    let uid = uid.replace('_', "-");
    let is_uid = uid.len() >= 32 && uid.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    is_uid.then_some(Pod { uid, namespace: None, name: None })
}

fn container(parts: &[&str]) -> Option<Container> {
    parts.iter().enumerate().rev().find_map(|(at, part)| {
        let name = part.strip_suffix(".scope").unwrap_or(part);
        let (prefix, id) = name.rsplit_once('-').unwrap_or(("", name));
        let is_id = id.len() == 64 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        let parent = at.checked_sub(1).map_or("", |above| parts[above]);
        let runtime = match (prefix, parent) {
            ("docker", _) | ("", "docker") => ContainerRuntime::Docker,
            ("libpod", _) | ("", "libpod_parent") => ContainerRuntime::Podman,
            ("cri-containerd", _) => ContainerRuntime::Containerd,
            ("crio", _) => ContainerRuntime::Crio,
            _ => ContainerRuntime::Unknown,
        };
        is_id.then(|| Container { runtime, id: id.to_owned(), name: None })
    })
}

/// The innermost unit. A container's or a session's own scope is told elsewhere, or tells nothing.
fn unit(parts: &[&str]) -> Option<String> {
    let is_unit = |part: &&&str| part.rsplit_once('.').is_some_and(|(_, kind)| kind == "service" || kind == "scope");
    let tells_something = |part: &&&str| {
        let is_container = container(&[part]).is_some();
        !is_container && !part.ends_with("slurmstepd.scope") && !part.starts_with("session-") && **part != "init.scope"
    };
    parts.iter().rev().filter(is_unit).find(tells_something).map(|part| unescape(part))
}

/// systemd writes odd characters as `\x2d` (systemd.unit(5), "String Escaping for Inclusion in Unit Names").
fn unescape(name: &str) -> String {
    let mut plain = String::new();
    let mut rest = name;
    while let Some((before, after)) = rest.split_once("\\x") {
        plain += before;
        match after.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) if byte.is_ascii() => {
                plain.push(char::from(byte));
                rest = &after[2..];
            }
            _ => {
                plain += "\\x";
                rest = after;
            }
        }
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    fn owner(text: &str) -> Owner {
        let mut owner = Owner::default();
        read(text, &mut owner);
        owner
    }

    #[test]
    fn slurm_of_both_cgroup_versions() {
        for (path, step) in [
            ("0::/system.slice/slurmstepd.scope/job_42/step_0/user/task_0", "0"),
            ("0::/system.slice/node1_slurmstepd.scope/job_42/step_batch/user", "batch"),
            ("4:memory:/slurm/uid_1000/job_42/step_interactive", "interactive"),
            ("4:memory:/slurm_node1/uid_1000/job_42/step_extern", "extern"),
        ] {
            let job = owner(path).slurm.unwrap();
            assert_eq!((job.job_id.as_str(), job.step.as_deref()), ("42", Some(step)), "{path}");
        }
        let by_sluid = owner("0::/system.slice/slurmstepd.scope/sEKNKTV3WPV500/step_0/user/task_0").slurm.unwrap();
        assert_eq!((by_sluid.job_id.as_str(), by_sluid.step.as_deref()), ("sEKNKTV3WPV500", Some("0")));
        for no_job in ["sEKNKTV3WPV50", "sEKNKTV3WPV5000", "sEKNKTV3WPV50o", "sEKNKTV3WPV50U", "SEKNKTV3WPV500", "job_"]
        {
            let path = format!("0::/system.slice/slurmstepd.scope/{no_job}/step_0");
            assert_eq!(owner(&path).slurm, None, "{no_job}");
        }
        assert_eq!(owner("0::/system.slice/slurmd.service").slurm, None);
        assert_eq!(owner("0::/system.slice/slurmd.service").unit.as_deref(), Some("slurmd.service"));
    }

    #[test]
    fn pods_of_both_cgroup_drivers() {
        let systemd = format!(
            "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod11111111_2222_3333_4444_555555555555.slice/cri-containerd-{ID}.scope"
        );
        let cgroupfs = format!("5:cpu:/kubepods/besteffort/pod11111111-2222-3333-4444-555555555555/{ID}");
        for (text, runtime) in [(systemd, ContainerRuntime::Containerd), (cgroupfs, ContainerRuntime::Unknown)] {
            let owner = owner(&text);
            assert_eq!(owner.pod.unwrap().uid, "11111111-2222-3333-4444-555555555555");
            assert_eq!(owner.container, Some(Container { runtime, id: ID.to_owned(), name: None }));
            assert_eq!(owner.unit, None);
        }
    }

    #[test]
    fn containers_by_their_runtime() {
        for (path, runtime) in [
            (format!("0::/system.slice/docker-{ID}.scope"), ContainerRuntime::Docker),
            (format!("3:cpu:/docker/{ID}"), ContainerRuntime::Docker),
            (format!("0::/machine.slice/libpod-{ID}.scope/container"), ContainerRuntime::Podman),
            (
                format!("0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{ID}.scope"),
                ContainerRuntime::Podman,
            ),
        ] {
            assert_eq!(owner(&path).container.unwrap().runtime, runtime, "{path}");
        }
        assert_eq!(owner("0::/docker/short").container, None);
    }

    #[test]
    fn the_innermost_unit_that_tells_something() {
        for (path, unit) in [
            ("0::/system.slice/ollama.service", Some("ollama.service")),
            ("0::/user.slice/user-1000.slice/session-3.scope", None),
            (
                r"0::/user.slice/user-1000.slice/user@1000.service/app.slice/app-org.kde.konsole\x2d123.scope",
                Some("app-org.kde.konsole-123.scope"),
            ),
            ("0::/init.scope", None),
            ("0::/", None),
            ("", None),
            ("nonsense", None),
        ] {
            assert_eq!(owner(path).unit.as_deref(), unit, "{path}");
        }
    }
}
