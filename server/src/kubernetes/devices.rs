//! The GPUs and MIG devices among a pod's resources.

use gpumon_probe::{allocation::AllocatedDevice, model::Allocation, owner::clean_name};

use super::pod_resources::{
    ClaimResource, ContainerDevices, ContainerResources, ListPodResourcesResponse,
};

/// The name of NVIDIA's driver for dynamic resource allocation.
const DRA_DRIVER: &str = "gpu.nvidia.com";

pub(super) fn list_allocated_devices(answer: ListPodResourcesResponse) -> Vec<AllocatedDevice> {
    let mut all = Vec::new();
    for pod in answer.pod_resources {
        for container in pod.containers {
            for device in container_devices(&container) {
                let [namespace, pod, container] =
                    [&pod.namespace, &pod.name, &container.name].map(|name| clean_name(name));
                let to = Allocation::Kubernetes {
                    namespace,
                    pod,
                    container,
                };
                let device = AllocatedDevice { device, to };
                if all.len() < MAX_DEVICES && !all.contains(&device) {
                    all.push(device);
                }
            }
        }
    }
    all
}

/// The maximum length of a device ID in bytes. A UUID with its prefix has 40 bytes.
const MAX_ID_BYTES: usize = 128;

/// The maximum number of devices in a response. Each share of a shared device counts.
const MAX_DEVICES: usize = 4096;

fn container_devices(container: &ContainerResources) -> impl Iterator<Item = String> {
    let by_plugin = container.devices.iter().flat_map(plugin_devices);
    let claims = container
        .dynamic_resources
        .iter()
        .flat_map(|resource| &resource.claim_resources);
    by_plugin.chain(claims.filter_map(device_of_claim))
}

/// Returns the devices allocated by a device plugin. NVIDIA's plugin uses UUIDs, with `::N`
/// appended for shared devices. Google's plugin uses device files, such as `nvidia0`, or
/// `nvidia0/vgpu1` for a shared device.
fn plugin_devices(devices: &ContainerDevices) -> impl Iterator<Item = String> {
    let is_nvidia = devices.resource_name.starts_with("nvidia.com/");
    let ids = devices
        .device_ids
        .iter()
        .filter(move |id| is_nvidia && id.len() <= MAX_ID_BYTES);
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
        device_by_minor(number)
    })
}

/// Returns the device of a resource claim. GPUs are named `gpu-N`. MIG devices are named by their
/// position on the GPU, which cannot be resolved to a device here, so they are ignored.
fn device_of_claim(claim: &ClaimResource) -> Option<String> {
    device_by_minor(
        claim
            .device_name
            .strip_prefix("gpu-")
            .filter(|_| claim.driver_name == DRA_DRIVER)?,
    )
}

fn device_by_minor(number: &str) -> Option<String> {
    number
        .parse::<u16>()
        .ok()
        .map(|minor| format!("gpu-{minor}"))
}
