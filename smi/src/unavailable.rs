//! nvidia-smi's messages for a missing driver and for GPUs that cannot be opened.

use std::fs;

use gpumon_probe::{vendor::SourceError, vendor::nvml::query::Code};

use super::{Refusal, return_code};

/// Returns the message and exit code for a driver that cannot be opened.
pub(crate) fn make_driver_refusal(error: &SourceError) -> Refusal {
    let failed = |what: &str| format!("Failed to initialize NVML: {what}\n");
    match error {
        SourceError::NoLibrary(_) => Refusal::new(
            12,
            "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system. Please make sure \
             that the NVIDIA Display Driver is properly installed and present in your \
             system.\nPlease also try adding directory that contains libnvidia-ml.so to your \
             system PATH.\n",
        ),
        SourceError::NoDriver(_) => Refusal::new(
            9,
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make \
             sure that the latest NVIDIA driver is installed and running.\n\n",
        ),
        SourceError::NoDevice(_) => Refusal::new_no_devices(),
        SourceError::VersionMismatch(_) => {
            Refusal::new(18, failed("Driver/library version mismatch"))
        }
        SourceError::NoPermission(_) => Refusal::new(4, failed("Insufficient Permissions")),
        SourceError::Driver(_) => Refusal::new(255, failed("Unknown Error")),
        SourceError::NoThread { .. } | SourceError::BadScenario(_) => {
            Refusal::new(255, format!("{error}\n"))
        }
    }
}

/// Returns the warning about a GPU that cannot be opened while the other GPUs are shown.
pub(crate) fn format_lost_gpu_warning(gpu: u32, count: u32, code: Code) -> String {
    let bus_id = find_bus_id(gpu, count)
        .map(|id| format!(" {id}:"))
        .unwrap_or_default();
    let what = if code == Code::GPU_IS_LOST {
        "GPU is lost.  Reboot the system to recover this GPU".to_owned()
    } else {
        return_code::format_plain(code).to_owned()
    };
    format!("Unable to determine the device handle for GPU{gpu}:{bus_id} {what}\n")
}

/// Returns the bus ID of a GPU that cannot be opened. The kernel module lists such GPUs as well,
/// and NVML numbers all GPUs in the order of their bus IDs.
fn find_bus_id(gpu: u32, count: u32) -> Option<String> {
    let listed = fs::read_dir("/proc/driver/nvidia/gpus").ok()?;
    let mut ids: Vec<String> = listed
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    ids.sort();
    (ids.len() == count as usize).then(|| ids.swap_remove(gpu as usize).to_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_gpu_is_named_by_number() {
        let text = format_lost_gpu_warning(3, u32::MAX, Code::GPU_IS_LOST);
        let expected = "Unable to determine the device handle for GPU3: GPU is lost.  Reboot the \
                        system to recover this GPU\n";
        assert_eq!(text, expected);
    }
}
