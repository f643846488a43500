//! Parsing of owners from a process's cgroup path: batch systems, Kubernetes, containers and
//! systemd.

use crate::model::{BatchJob, Container, ContainerRuntime, Owner, Pod};

/// Services that start containers on behalf of others. They do not own these containers.
const RUNTIME_SERVICES: [&str; 9] = [
    "containerd.service",
    "crio.service",
    "docker.service",
    "k3s-agent.service",
    "k3s.service",
    "kubelet.service",
    "podman.service",
    "rke2-agent.service",
    "rke2-server.service",
];

/// Fills in the owners found in `/proc/PID/cgroup` (cgroups(7)), which has one line per hierarchy:
/// `id:controllers:path`.
///
/// Pods or containers can be nested, as with kind or Docker in Docker. The innermost is used,
/// because the outer container is like a machine: it contains the programs of all its users.
pub(super) fn fill_owner_from_cgroup(text: &str, owner: &mut Owner) {
    let paths: Vec<Vec<&str>> = text
        .lines()
        .filter_map(|line| line.splitn(3, ':').nth(2))
        .map(split_path)
        .filter(|path| !path.is_empty())
        .collect();
    owner.slurm = paths.iter().find_map(|path| find_slurm_job(path));
    owner.pbs = paths.iter().find_map(|path| find_pbs_job(path));
    owner.lsf = paths.iter().find_map(|path| find_lsf_job(path));
    owner.pod = paths
        .iter()
        .find_map(|path| path.iter().rev().find_map(|component| parse_pod(component)));
    owner.container = paths.iter().find_map(|path| Some(find_container(path)?.1));
    // If a path contains a container, this path is used. In other hierarchies, the process may
    // still be in the cgroup of the program that started the container.
    let contained = paths.iter().find(|path| is_in_container(path));
    owner.unit = match contained {
        Some(path) => find_contained_unit(path, owner.pod.is_some()),
        None => paths.iter().find_map(|path| find_unit(path)),
    };
}

/// Splits a path into its components at slashes and colons. A kubelet with the systemd driver
/// passes a cgroup name such as `slice:prefix:name`, which a container runtime with the cgroupfs
/// driver uses as the name of a single directory.
fn split_path(path: &str) -> Vec<&str> {
    path.split(['/', ':'])
        .filter(|component| !component.is_empty())
        .collect()
}

/// Finds a Slurm job in `/system.slice/slurmstepd.scope/job_42/step_0/user/task_0` (v2) or
/// `/slurm/uid_1000/job_42/step_batch` (v1). In v2, Slurm 26.05 writes the job's SLUID instead of
/// `job_42`, unless cgroup.conf(5) contains `CgroupJobIdPaths=yes`.
fn find_slurm_job(path: &[&str]) -> Option<BatchJob> {
    let below = path
        .iter()
        .position(|part| part.ends_with("slurmstepd.scope") || part.starts_with("slurm"))?;
    let named = |prefix: &str| {
        path[below..]
            .iter()
            .find_map(|part| part.strip_prefix(prefix))
            .map(str::to_owned)
    };
    let job_id = named("job_").filter(|id| is_number(id));
    let sluid = || {
        path.get(below + 1)
            .filter(|part| is_sluid(part))
            .map(|part| (*part).to_owned())
    };
    let job_id = job_id.or_else(sluid)?;
    Some(BatchJob {
        step: named("step_"),
        ..BatchJob::new(job_id)
    })
}

/// Returns `true` for a job's SLUID: `s` and 13 digits of Crockford's base 32.
pub(crate) fn is_sluid(id: &str) -> bool {
    let is_digit =
        |byte: u8| byte.is_ascii_digit() || (byte.is_ascii_uppercase() && !b"ILOU".contains(&byte));
    id.len() == 14
        && id
            .strip_prefix('s')
            .is_some_and(|digits| digits.bytes().all(is_digit))
}

/// Finds a PBS or TORQUE job.
///
/// - The cgroups hook of PBS writes `/pbs_jobs.service/jobid/88123.server`.
/// - With cgroup v2, the hook writes `/pbs_jobs.service/jobs/…`.
/// - Older versions write `/pbs_jobs.slice/pbs_jobs-88123.server.slice` or
///   `/pbs_jobs/88123.server`.
/// - TORQUE writes `/torque/88123.server`.
///
/// The name `pbs_jobs` is the default of `cgroup_prefix` in PBS's configuration.
fn find_pbs_job(path: &[&str]) -> Option<BatchJob> {
    let job_id = path.windows(2).enumerate().find_map(|(at, pair)| {
        let parent = pair[0].strip_suffix(".slice").unwrap_or(pair[0]);
        let is_service = |name: &&str| name.ends_with(".service");
        let is_jobs_of_service =
            matches!(parent, "jobid" | "jobs") && path[..at].last().is_some_and(is_service);
        let is_prefix = parent == "torque" || (parent.starts_with("pbs") && !is_service(&parent));
        let name = pair[1].strip_suffix(".slice").unwrap_or(pair[1]);
        let id = name
            .strip_prefix(parent)
            .and_then(|rest| rest.strip_prefix('-'))
            .unwrap_or(name);
        (is_jobs_of_service || is_prefix)
            .then(|| unescape_unit(id))
            .filter(|id| is_pbs_id(id))
    });
    job_id.map(BatchJob::new)
}

/// Returns `true` for IDs such as `88123`, `88123.server` and `88123[7].server`.
fn is_pbs_id(id: &str) -> bool {
    let sequence = id.split_once('.').map_or(id, |(sequence, _)| sequence);
    match sequence.split_once('[') {
        Some((number, index)) => {
            is_number(number) && index.strip_suffix(']').is_some_and(is_number)
        }
        None => is_number(sequence),
    }
}

/// Finds an LSF job in `/lsf/CLUSTER/job.88123.4711.1700000000`, which contains the job ID, the PID
/// and the start time in seconds. For an element of a job array, the index can follow the job ID:
/// `job.88123[7].…`.
fn find_lsf_job(path: &[&str]) -> Option<BatchJob> {
    let below = path
        .iter()
        .position(|part| matches!(*part, "lsf" | "lsf.slice" | "lsf.service"))?;
    let job_id = path[below..].iter().find_map(|part| {
        let id = part.strip_prefix("job.")?.split('.').next()?;
        is_pbs_id(id).then(|| id.to_owned())
    });
    job_id.map(BatchJob::new)
}

/// Returns `true` if the text consists of decimal digits.
pub(super) fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Parses `kubepods-burstable-pod0a1b_….slice` (systemd driver, with underscores instead of dashes)
/// or `pod0a1b-…` (cgroupfs driver). The kubelet's `--cgroup-root` can precede the name:
/// `kubelet-kubepods-pod0a1b_….slice`.
fn parse_pod(component: &str) -> Option<Pod> {
    let name = component.strip_suffix(".slice").unwrap_or(component);
    let (before, uid) = name.rsplit_once("pod")?;
    let uid = uid.replace('_', "-");
    // A static pod's UID is a hash without dashes.
    let digits = uid.bytes().filter(|byte| *byte != b'-');
    let is_uid =
        digits.clone().count() == 32 && digits.clone().all(|byte| byte.is_ascii_hexdigit());
    (is_uid && (before.is_empty() || before.ends_with('-'))).then_some(Pod {
        uid,
        namespace: None,
        name: None,
    })
}

/// Finds the innermost container, and its position in the path.
fn find_container(path: &[&str]) -> Option<(usize, Container)> {
    path.iter().enumerate().rev().find_map(|(at, component)| {
        let name = component.strip_suffix(".scope").unwrap_or(component);
        let (prefix, id) = name.rsplit_once('-').unwrap_or(("", name));
        let is_id = id.len() == 64 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        let parent = at.checked_sub(1).map_or("", |above| path[above]);
        let named_by = if prefix.is_empty() { parent } else { prefix };
        let runtime = match named_by {
            "docker" => ContainerRuntime::Docker,
            "cri-containerd" | "nerdctl" => ContainerRuntime::Containerd,
            "crio" => ContainerRuntime::Crio,
            podman if podman.starts_with("libpod") => ContainerRuntime::Podman,
            _ => ContainerRuntime::Unknown,
        };
        is_id.then(|| {
            (
                at,
                Container {
                    runtime,
                    id: id.to_owned(),
                    name: None,
                },
            )
        })
    })
}

fn is_in_container(path: &[&str]) -> bool {
    find_container(path).is_some() || path.iter().any(|component| parse_pod(component).is_some())
}

/// Returns the unit inside the container. If there is none, returns the unit that started the
/// container, unless that unit is the service of a container runtime. For a pod, units outside the
/// pod are ignored, because Kubernetes starts all pods.
fn find_contained_unit(path: &[&str], is_pod: bool) -> Option<String> {
    let (outside, inside) = path.split_at(find_container(path).map_or(path.len(), |(at, _)| at));
    let started_by =
        || find_unit(outside).filter(|unit| !is_pod && !RUNTIME_SERVICES.contains(&unit.as_str()));
    find_unit(inside).or_else(started_by)
}

/// Returns the innermost unit. Scopes of containers and sessions, and cgroups of batch systems are
/// skipped, because other fields describe them.
fn find_unit(path: &[&str]) -> Option<String> {
    path.iter().enumerate().rev().find_map(|(at, component)| {
        let is_unit = component
            .rsplit_once('.')
            .is_some_and(|(_, kind)| kind == "service" || kind == "scope");
        let is_of_batch_system =
            component.ends_with("slurmstepd.scope") || find_pbs_job(&path[at..]).is_some();
        let is_meaningful = find_container(&[component]).is_none()
            && !is_of_batch_system
            && !component.starts_with("session-")
            && *component != "init.scope";
        (is_unit && is_meaningful).then(|| unescape_unit(component))
    })
}

/// Decodes escape sequences of systemd such as `\x2d` (systemd.unit(5), "String Escaping for
/// Inclusion in Unit Names").
fn unescape_unit(name: &str) -> String {
    let mut plain = String::new();
    let mut rest = name;
    while let Some((before, after)) = rest.split_once("\\x") {
        plain += before;
        match after
            .get(..2)
            .and_then(|digits| u8::from_str_radix(digits, 16).ok())
        {
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
    use crate::model::JobKind;

    const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    fn parse_owner(text: &str) -> Owner {
        let mut owner = Owner::default();
        fill_owner_from_cgroup(text, &mut owner);
        owner
    }

    #[test]
    fn slurm_job_is_found_in_both_cgroup_versions() {
        for (path, step) in [
            (
                "0::/system.slice/slurmstepd.scope/job_42/step_0/user/task_0",
                "0",
            ),
            (
                "0::/system.slice/node1_slurmstepd.scope/job_42/step_batch/user",
                "batch",
            ),
            (
                "4:memory:/slurm/uid_1000/job_42/step_interactive",
                "interactive",
            ),
            (
                "4:memory:/slurm_node1/uid_1000/job_42/step_extern",
                "extern",
            ),
        ] {
            let job = parse_owner(path).slurm.unwrap();
            assert_eq!(
                (job.job_id.as_str(), job.step.as_deref()),
                ("42", Some(step)),
                "{path}"
            );
        }
        let by_sluid =
            parse_owner("0::/system.slice/slurmstepd.scope/sEKNKTV3WPV500/step_0/user/task_0")
                .slurm
                .unwrap();
        assert_eq!(
            (by_sluid.job_id.as_str(), by_sluid.step.as_deref()),
            ("sEKNKTV3WPV500", Some("0"))
        );
        for no_job in [
            "sEKNKTV3WPV50",
            "sEKNKTV3WPV5000",
            "sEKNKTV3WPV50o",
            "sEKNKTV3WPV50U",
            "SEKNKTV3WPV500",
            "job_",
        ] {
            let path = format!("0::/system.slice/slurmstepd.scope/{no_job}/step_0");
            assert_eq!(parse_owner(&path).slurm, None, "{no_job}");
        }
        assert_eq!(parse_owner("0::/system.slice/slurmd.service").slurm, None);
        assert_eq!(
            parse_owner("0::/system.slice/slurmd.service")
                .unit
                .as_deref(),
            Some("slurmd.service")
        );
    }

    #[test]
    fn pod_is_found_with_both_cgroup_drivers() {
        let systemd = format!(
            "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod11111111_2222_3333_4444_555555555555.slice/cri-containerd-{ID}.scope"
        );
        let cgroupfs =
            format!("5:cpu:/kubepods/besteffort/pod11111111-2222-3333-4444-555555555555/{ID}");
        for (text, runtime) in [
            (systemd, ContainerRuntime::Containerd),
            (cgroupfs, ContainerRuntime::Unknown),
        ] {
            let owner = parse_owner(&text);
            assert_eq!(
                owner.pod.unwrap().uid,
                "11111111-2222-3333-4444-555555555555"
            );
            assert_eq!(
                owner.container,
                Some(Container {
                    runtime,
                    id: ID.to_owned(),
                    name: None
                })
            );
            assert_eq!(owner.unit, None);
        }
    }

    #[test]
    fn pbs_job_is_found_in_all_layouts() {
        for (path, id) in [
            ("0::/pbs_jobs.service/jobid/88123.server", "88123.server"),
            (
                "4:memory:/pbspro.service/jobid/88123[7].gadi-pbs/child",
                "88123[7].gadi-pbs",
            ),
            ("4:memory:/site.service/jobid/88123.server", "88123.server"),
            ("0::/pbs_jobs.service/jobs/88123.server", "88123.server"),
            (
                "0::/system.slice/pbs_jobs.service/jobid/88123.server",
                "88123.server",
            ),
            (
                r"4:memory:/pbspro.slice/pbspro-88123\x5b7\x5d.a\x2db.slice",
                "88123[7].a-b",
            ),
            ("3:cpuset:/pbs_jobs/88123.server", "88123.server"),
            (
                "3:cpuset:/torque/88123.server\n1:name=systemd:/system.slice/ssh.service",
                "88123.server",
            ),
        ] {
            let owner = parse_owner(path);
            let job = owner
                .pbs
                .as_ref()
                .map(|job| (job.job_id.as_str(), job.private));
            assert_eq!(job, Some((id, false)), "{path}");
            assert_eq!(owner.job().unwrap().kind, JobKind::Pbs, "{path}");
            assert!(
                owner.unit.is_none_or(|unit| unit == "ssh.service"),
                "{path}"
            );
        }
        for none in [
            "pbs.service",
            "pbs_jobs.service/jobid",
            "a.service/jobid/x1.server",
            "a/jobid/1",
            "pbs/7x",
            "pbs/[7]",
        ] {
            assert_eq!(parse_owner(&format!("0::/{none}")).pbs, None, "{none}");
        }
        assert_eq!(
            parse_owner("0::/system.slice/pbs.service").unit.as_deref(),
            Some("pbs.service")
        );
    }

    #[test]
    fn lsf_job_is_found_below_cluster_name() {
        for (path, id) in [
            ("9:freezer:/lsf/cluster1/job.88123.4711.1700000000", "88123"),
            (
                "0::/lsf/cluster1/job.88123[7].4711.1700000000/task",
                "88123[7]",
            ),
            ("0::/lsf.slice/cluster1/job.88123.4711.1700000000", "88123"),
        ] {
            let job = parse_owner(path).lsf.map(|job| (job.job_id, job.private));
            assert_eq!(job, Some((id.to_owned(), false)), "{path}");
        }
        for none in [
            "lsf/cluster1",
            "lsf/cluster1/job.x.1",
            "job.7.8.9",
            "lsf/cluster1/job.",
        ] {
            assert_eq!(parse_owner(&format!("0::/{none}")).lsf, None, "{none}");
        }
    }

    #[test]
    fn innermost_of_nested_containers_is_found() {
        const INNER: &str = "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210";
        const OUTER_UID: &str = "99999999_2222_3333_4444_555555555555";
        for (path, has_pod) in [
            // This path is from Docker in Docker.
            (format!("/docker/{ID}/docker/{INNER}"), false),
            // This path is from kind, with a kubelet in a Docker container.
            (
                format!(
                    "/system.slice/docker-{ID}.scope/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod{SLICE_UID}.slice/cri-containerd-{INNER}.scope"
                ),
                true,
            ),
            // This path is from kind in a pod.
            (
                format!(
                    "/kubepods.slice/kubepods-pod{OUTER_UID}.slice/cri-containerd-{ID}.scope/kubelet/kubepods/pod{UID}/{INNER}"
                ),
                true,
            ),
            // This path is from Docker in a pod.
            (format!("/kubepods/pod{UID}/{ID}/docker/{INNER}"), true),
        ] {
            let owner = parse_owner(&format!("0::{path}"));
            assert_eq!(owner.container.unwrap().id, INNER, "{path}");
            assert_eq!(
                owner.pod.map(|pod| pod.uid),
                has_pod.then(|| UID.to_owned()),
                "{path}"
            );
            assert_eq!(owner.unit, None, "{path}");
        }
    }

    #[test]
    fn systemd_unit_that_started_container_is_found() {
        for (path, unit) in [
            // This path is from Podman with `--cgroups=split`, which Quadlet uses.
            (
                format!("/system.slice/ollama.service/libpod-payload-{ID}"),
                Some("ollama.service"),
            ),
            (format!("/system.slice/docker.service/docker/{ID}"), None),
            (
                format!("/system.slice/podman-ollama.service/libpod-payload-{ID}"),
                Some("podman-ollama.service"),
            ),
            (
                format!("/system.slice/docker-{ID}.scope/system.slice/ollama.service"),
                Some("ollama.service"),
            ),
            (format!("/system.slice:docker:{ID}"), None),
        ] {
            let owner = parse_owner(&format!("0::{path}"));
            assert_eq!(owner.unit.as_deref(), unit, "{path}");
            assert!(owner.container.is_some(), "{path}");
        }
    }

    const UID: &str = "11111111-2222-3333-4444-555555555555";
    const SLICE_UID: &str = "11111111_2222_3333_4444_555555555555";

    #[test]
    fn pod_is_found_below_service_and_cgroup_root() {
        use ContainerRuntime::{Containerd, Crio, Docker, Unknown};
        for (text, runtime) in [
            // This path is from containerd or CRI-O with the cgroupfs driver under a kubelet with
            // the systemd driver.
            (
                format!(
                    "0::/system.slice/containerd.service/kubepods-besteffort-pod{SLICE_UID}.slice:cri-containerd:{ID}"
                ),
                Containerd,
            ),
            (
                format!(
                    "0::/system.slice/crio.service/kubepods-pod{SLICE_UID}.slice:crio:{ID}/child"
                ),
                Crio,
            ),
            // This path is from a kubelet with `--cgroup-root=/kubelet`, as in kind.
            (
                format!(
                    "0::/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/kubelet-kubepods-burstable-pod{SLICE_UID}.slice/cri-containerd-{ID}.scope"
                ),
                Containerd,
            ),
            (
                format!("0::/kubelet/kubepods/burstable/pod{UID}/{ID}"),
                Unknown,
            ),
            (
                format!(
                    "0::/my-root.slice/my-root-kubepods.slice/my-root-kubepods-pod{SLICE_UID}.slice/crio-{ID}.scope"
                ),
                Crio,
            ),
            (
                format!("0::/kubepods.slice/kubepods-pod{SLICE_UID}.slice/docker-{ID}.scope"),
                Docker,
            ),
            // This path is as seen within a container, where paths are relative to the container's
            // own cgroup.
            (
                format!(
                    "0::/../../kubepods-burstable-pod{SLICE_UID}.slice/cri-containerd-{ID}.scope"
                ),
                Containerd,
            ),
            // These lines are from cgroup v1, where not every hierarchy has the pod.
            (
                format!(
                    "13:misc:/\n12:pids:/system.slice/containerd.service\n4:memory:/system.slice/containerd.service/kubepods-besteffort-pod{SLICE_UID}.slice:cri-containerd:{ID}\n1:name=systemd:/system.slice/containerd.service\n0::/system.slice/containerd.service"
                ),
                Containerd,
            ),
        ] {
            let owner = parse_owner(&text);
            assert_eq!(owner.pod.map(|pod| pod.uid).as_deref(), Some(UID), "{text}");
            assert_eq!(
                owner.container,
                Some(Container {
                    runtime,
                    id: ID.to_owned(),
                    name: None
                }),
                "{text}"
            );
            assert_eq!(owner.unit, None, "{text}");
        }
        let static_pod =
            parse_owner("0::/kubepods.slice/kubepods-pod0123456789abcdef0123456789abcdef.slice");
        assert_eq!(
            static_pod.pod.unwrap().uid,
            "0123456789abcdef0123456789abcdef"
        );
        let podman_pod =
            format!("0::/machine.slice/machine-libpod_pod_{ID}.slice/libpod-{ID}.scope");
        assert_eq!(parse_owner(&podman_pod).pod, None);
    }

    #[test]
    fn container_runtime_is_recognized() {
        for (path, runtime) in [
            (
                format!("0::/system.slice/docker-{ID}.scope"),
                ContainerRuntime::Docker,
            ),
            (format!("3:cpu:/docker/{ID}"), ContainerRuntime::Docker),
            (
                format!("0::/machine.slice/libpod-{ID}.scope/container"),
                ContainerRuntime::Podman,
            ),
            (
                format!(
                    "0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{ID}.scope"
                ),
                ContainerRuntime::Podman,
            ),
            (
                format!("3:cpu:/libpod_parent/libpod-{ID}"),
                ContainerRuntime::Podman,
            ),
            (
                format!("0::/a.service/libpod-payload-{ID}"),
                ContainerRuntime::Podman,
            ),
            (
                format!("0::/system.slice:docker:{ID}"),
                ContainerRuntime::Docker,
            ),
            (
                format!("0::/system.slice/nerdctl-{ID}.scope"),
                ContainerRuntime::Containerd,
            ),
            (format!("0::/default/{ID}"), ContainerRuntime::Unknown),
        ] {
            assert_eq!(
                parse_owner(&path).container.unwrap().runtime,
                runtime,
                "{path}"
            );
        }
        assert_eq!(parse_owner("0::/docker/short").container, None);
    }

    #[test]
    fn innermost_meaningful_unit_is_found() {
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
            assert_eq!(parse_owner(path).unit.as_deref(), unit, "{path}");
        }
    }
}
