//! Detection of containers and WSL, which provide NVIDIA's driver in different ways and need
//! different remedies if the driver is missing.

use std::path::Path;

use crate::bounded;

/// The environment in which a process runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Surroundings {
    /// A machine with its own driver.
    Machine,
    /// A container run by Apptainer or Singularity.
    Apptainer,
    /// A container run by Enroot, which Slurm's Pyxis uses.
    Enroot,
    /// A pod run by Kubernetes.
    Kubernetes,
    /// A container run by Docker.
    Docker,
    /// A container run by Podman.
    Podman,
    /// A container run by LXC, LXD or Incus.
    Lxc,
    /// The Windows Subsystem for Linux.
    Wsl,
}

/// Files that identify a kind of container. The first file that exists decides, because an image
/// can also contain the marker file of the program that built it.
const MARKER_FILES: [(&str, Surroundings); 6] = [
    ("/.singularity.d", Surroundings::Apptainer),
    ("/.enroot", Surroundings::Enroot),
    ("/.lock", Surroundings::Enroot),
    ("/var/run/secrets/kubernetes.io", Surroundings::Kubernetes),
    ("/.dockerenv", Surroundings::Docker),
    ("/run/.containerenv", Surroundings::Podman),
];

/// The environment variable that the kubelet sets in every container of a pod. It is needed because
/// a pod without a service account token has no file that identifies it.
const POD_VARIABLE: &str = "KUBERNETES_SERVICE_HOST=";

/// Parts of cgroup names that identify a kind of container. They are not visible in a container
/// with its own cgroup namespace.
const CGROUP_NAMES: [(&str, Surroundings); 4] = [
    ("kubepods", Surroundings::Kubernetes),
    ("docker", Surroundings::Docker),
    ("libpod", Surroundings::Podman),
    ("lxc", Surroundings::Lxc),
];

impl Surroundings {
    /// Returns the surroundings of this process.
    pub fn detect_current() -> Self {
        Self::detect_below("/".as_ref())
    }

    /// Returns the surroundings of a process whose root file system is `root`.
    pub fn detect_below(root: &Path) -> Self {
        let path = |path: &str| root.join(path.trim_start_matches('/'));
        let cgroup = bounded::read_text(path("/proc/self/cgroup"), bounded::CGROUP_LIMIT)
            .unwrap_or_default();
        let environment =
            bounded::read_text(path("/proc/self/environ"), bounded::ENVIRONMENT_LIMIT)
                .unwrap_or_default();
        let is_pod = environment
            .split('\0')
            .any(|entry| entry.starts_with(POD_VARIABLE));
        let is_marked = |mark: &str, container| {
            path(mark).exists() || (container == Self::Kubernetes && is_pod)
        };
        let by_file = MARKER_FILES
            .into_iter()
            .find(|(mark, container)| is_marked(mark, *container));
        let container = by_file.or_else(|| {
            CGROUP_NAMES
                .into_iter()
                .find(|(name, _)| cgroup.contains(name))
        });
        match container {
            Some((_, container)) => container,
            None if is_wsl(root) => Self::Wsl,
            None => Self::Machine,
        }
    }

    /// Returns the name of the kind of container, or `None` outside containers.
    pub fn container_name(self) -> Option<&'static str> {
        match self {
            Self::Machine | Self::Wsl => None,
            Self::Apptainer => Some("Apptainer"),
            Self::Enroot => Some("Enroot"),
            Self::Kubernetes => Some("Kubernetes"),
            Self::Docker => Some("Docker"),
            Self::Podman => Some("Podman"),
            Self::Lxc => Some("LXC"),
        }
    }

    /// Returns the remedy for a missing GPU on a machine whose driver works.
    pub fn missing_gpu_cure(self) -> &'static str {
        match self {
            Self::Machine => {
                "check `lspci | grep -i nvidia`; in a Slurm job, check that it requested GPUs; in \
                 a container, check that it was started with GPUs (docker run --gpus all)"
            }
            surroundings => surroundings.missing_driver_cure(),
        }
    }

    /// Returns the remedy if the driver library is missing.
    pub fn missing_driver_cure(self) -> &'static str {
        match self {
            Self::Machine => "install the NVIDIA driver's utilities",
            Self::Apptainer => {
                "start the container with --nv, as in `apptainer exec --nv IMAGE gpumon`"
            }
            Self::Enroot => {
                "start the container with NVIDIA_VISIBLE_DEVICES=all and \
                 NVIDIA_DRIVER_CAPABILITIES=compute,utility in its environment; Enroot's hook \
                 98-nvidia.sh needs nvidia-container-cli on the host"
            }
            Self::Kubernetes => {
                "request a GPU for the pod (`nvidia.com/gpu: 1` in its limits); to monitor all \
                 GPUs, give it the runtimeClassName nvidia, NVIDIA_VISIBLE_DEVICES=all and \
                 NVIDIA_DRIVER_CAPABILITIES=utility"
            }
            Self::Docker => {
                "start the container with GPUs (`docker run --gpus all`), for which the host \
                 needs the NVIDIA Container Toolkit; if NVIDIA_DRIVER_CAPABILITIES is set, it must \
                 contain utility"
            }
            Self::Podman => {
                "start the container with GPUs (`podman run --device nvidia.com/gpu=all`), for \
                 which the host needs a CDI specification (`nvidia-ctk cdi generate \
                 --output=/etc/cdi/nvidia.yaml`)"
            }
            Self::Lxc => {
                "give the container a device of type gpu, and nvidia.runtime=true in its \
                 configuration"
            }
            Self::Wsl => {
                "update the NVIDIA driver for Windows, then update WSL (`wsl --update`); WSL \
                 provides the driver's library in /usr/lib/wsl/lib; never install a Linux \
                 driver in WSL, because it would replace that library"
            }
        }
    }
}

/// Returns `true` if the kernel is that of the Windows Subsystem for Linux. This includes
/// containers in WSL.
pub fn is_wsl(root: &Path) -> bool {
    let release = bounded::read_text(root.join("proc/sys/kernel/osrelease"), bounded::VALUE_LIMIT)
        .unwrap_or_default();
    release.to_ascii_lowercase().contains("microsoft")
}

/// Returns `true` if `/proc` is mounted with `hidepid`, or if `mountinfo` has no entry for `/proc`.
/// `mountinfo` is the content of `/proc/self/mountinfo`. The fifth field of each line is the mount
/// point. If several lines have the same mount point, the last one is in effect.
pub fn hides_processes(mountinfo: &str) -> bool {
    let of_proc = mountinfo
        .lines()
        .rfind(|line| line.split(' ').nth(4) == Some("/proc"));
    let Some(line) = of_proc else { return true };
    let options = line.split([' ', ',']);
    let hidepid = options
        .filter_map(|option| option.strip_prefix("hidepid="))
        .next_back();
    hidepid.is_some_and(|value| !matches!(value, "0" | "off"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn container_is_recognized_by_files_or_cgroup() {
        for (files, cgroup, expected) in [
            (
                &[][..],
                "0::/user.slice/session-1.scope\n",
                Surroundings::Machine,
            ),
            (
                &[],
                "0::/kubepods.slice/kubepods-pod1.slice/x.scope\n",
                Surroundings::Kubernetes,
            ),
            (&[], "11:devices:/docker/0123\n", Surroundings::Docker),
            (
                &[],
                "0::/machine.slice/libpod-0123.scope\n",
                Surroundings::Podman,
            ),
            (&[], "0::/lxc.payload.web\n", Surroundings::Lxc),
            (&[".dockerenv"], "0::/\n", Surroundings::Docker),
            (&["run/.containerenv"], "0::/\n", Surroundings::Podman),
            (
                &["var/run/secrets/kubernetes.io", ".dockerenv"],
                "0::/\n",
                Surroundings::Kubernetes,
            ),
            // A Slurm job in a container may use a Docker image, which contains `.dockerenv`.
            (
                &[".singularity.d", ".dockerenv"],
                "0::/system.slice/slurmstepd.scope/job_7\n",
                Surroundings::Apptainer,
            ),
            (
                &[".lock", ".dockerenv"],
                "0::/system.slice/slurmstepd.scope/job_7\n",
                Surroundings::Enroot,
            ),
        ] {
            let root = tempfile::tempdir().unwrap();
            for file in files {
                let file = root.path().join(file);
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(file, "").unwrap();
            }
            let write = |path: &str, text: &str| {
                let path = root.path().join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            };
            write("proc/self/cgroup", cgroup);
            assert_eq!(
                Surroundings::detect_below(root.path()),
                expected,
                "{files:?} {cgroup}"
            );
            assert_eq!(
                expected.container_name().is_none(),
                expected == Surroundings::Machine
            );
            // In a container of Docker or Podman, the variable means that the container belongs to
            // a pod. A container of Apptainer or Enroot can run within a pod and inherit the
            // variable, so the variable is ignored there.
            write(
                "proc/self/environ",
                "HOME=/\0KUBERNETES_SERVICE_HOST=10.0.0.1\0",
            );
            let in_pod = match expected {
                Surroundings::Apptainer | Surroundings::Enroot => expected,
                _ => Surroundings::Kubernetes,
            };
            assert_eq!(
                Surroundings::detect_below(root.path()),
                in_pod,
                "{files:?} {cgroup}"
            );
            write("proc/self/environ", "HOME=/\0");
            // In WSL, a container still needs the remedy for the container.
            write(
                "proc/sys/kernel/osrelease",
                "5.15.90.1-microsoft-standard-WSL2\n",
            );
            let in_wsl = if expected == Surroundings::Machine {
                Surroundings::Wsl
            } else {
                expected
            };
            assert_eq!(
                Surroundings::detect_below(root.path()),
                in_wsl,
                "{files:?} {cgroup}"
            );
        }
    }

    #[test]
    fn hidepid_is_read_from_proc_mount_options() {
        let proc = "22 27 0:21 / /proc rw,relatime shared:5 - proc proc rw";
        assert!(!hides_processes(proc));
        assert!(
            !hides_processes(&format!("{proc},hidepid=0\n"))
                && !hides_processes(&format!("{proc},hidepid=off"))
        );
        for value in ["1", "2", "4", "noaccess", "invisible", "ptraceable"] {
            assert!(hides_processes(&format!(
                "{proc},gid=5,hidepid={value}\n23 27 0:22 / /sys rw - sysfs sysfs rw"
            )));
        }
        assert!(
            hides_processes(&format!("{proc}\n{proc},hidepid=2")),
            "the last one covers the first"
        );
        assert!(hides_processes(""));
    }
}
