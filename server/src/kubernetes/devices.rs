//! The GPUs and MIG devices in the resources of pods.

use gpumon_probe::{allocation::AllocatedDevice, model::Allocation, owner::clean_name};

use super::pod_resources::{
    ClaimResource, ContainerDevices, ContainerResources, ListPodResourcesResponse,
};

/// The name of NVIDIA's driver for dynamic resource allocation.
const DRA_DRIVER: &str = "gpu.nvidia.com";

pub(super) fn allocated(answer: ListPodResourcesResponse) -> Vec<AllocatedDevice> {
    let mut all = Vec::new();
    for pod in answer.pod_resources {
        for container in pod.containers {
            for device in of_container(&container) {
                let [namespace, pod, container] =
                    [&pod.namespace, &pod.name, &container.name].map(|name| clean_name(name));
                let to = Allocation::Kubernetes {
                    namespace,
                    pod,
                    container,
                };
                let device = AllocatedDevice { device, to };
                if all.len() < MOST && !all.contains(&device) {
                    all.push(device);
                }
            }
        }
    }
    all
}

/// The maximum length of a device ID in bytes. A UUID with its prefix has 40.
const LONGEST_ID: usize = 128;

/// The maximum number of devices, including all shares. No real machine has more.
const MOST: usize = 4096;

fn of_container(container: &ContainerResources) -> impl Iterator<Item = String> {
    let by_plugin = container.devices.iter().flat_map(of_plugin);
    let claims = container
        .dynamic_resources
        .iter()
        .flat_map(|resource| &resource.claim_resources);
    by_plugin.chain(claims.filter_map(of_claim))
}

/// Returns the devices of a device plugin. NVIDIA's plugin uses UUIDs, with `::N` appended for
/// shared devices; Google's uses device files, such as `nvidia0`, or `nvidia0/vgpu1` for a shared
/// one.
fn of_plugin(devices: &ContainerDevices) -> impl Iterator<Item = String> {
    let is_nvidia = devices.resource_name.starts_with("nvidia.com/");
    let ids = devices
        .device_ids
        .iter()
        .filter(move |id| is_nvidia && id.len() <= LONGEST_ID);
    ids.filter_map(|id| {
        let device = id
            .split_once("::")
            .map_or(id.as_str(), |(device, _)| device);
        if device.starts_with("GPU-") || device.starts_with("MIG-") {
            return Some(device.to_owned());
        }
        let number = device
            .split_once("/vgpu")
            .map_or(device, |(device, _)| device)
            .strip_prefix("nvidia")?;
        by_minor(number)
    })
}

/// Returns the device of a claim. GPUs are named `gpu-N`. MIG devices are named by their position
/// on the GPU, which cannot be resolved here.
fn of_claim(claim: &ClaimResource) -> Option<String> {
    by_minor(
        claim
            .device_name
            .strip_prefix("gpu-")
            .filter(|_| claim.driver_name == DRA_DRIVER)?,
    )
}

fn by_minor(number: &str) -> Option<String> {
    number
        .parse::<u16>()
        .ok()
        .map(|minor| format!("gpu-{minor}"))
}
