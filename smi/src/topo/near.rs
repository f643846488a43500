//! Sentences about neighboring devices.

use gpumon_probe::vendor::nvml::query::{Query, QueryBackend, Subject};

use super::{Topology, level, listed, near_cpu};
use crate::Refusal;

pub(super) fn gpus_of_cpu(driver: &dyn QueryBackend, cpu: i64) -> String {
    let gpus = near_cpu(driver, cpu);
    if gpus.is_empty() {
        return format!("No GPUs were found to have an affinity with CPU {cpu}.\n\n");
    }
    format!(
        "The GPUs that have an affinity with CPU {cpu} are:\n{}\n\n",
        listed(&gpus)
    )
}

/// Describes the GPUs that are at most a given level away from a GPU.
pub(super) fn gpus_of_gpu(
    driver: &dyn QueryBackend,
    gpu: u32,
    level: i64,
) -> Result<String, Refusal> {
    let failed = || Refusal::new(255, "Failed to display the nearest GPUs\n\n");
    let (path, number) = level::typed(level).ok_or_else(failed)?;
    let answer = driver
        .about(Subject::gpu(gpu), Query::NearestGpus(number))
        .map_err(|_| failed())?;
    let between = level::way_between(path);
    if answer.numbers().is_empty() {
        return Ok(format!(
            "Device {gpu} is not connected to other devices {between}.\n\n"
        ));
    }
    Ok(format!(
        "Device {gpu} is connected {between} to device(s): {}\n\n",
        listed(answer.numbers())
    ))
}

/// Describes the path between the two selected GPUs.
pub(super) fn path(topology: &Topology<'_>, selected: Option<&[u32]>) -> Result<String, Refusal> {
    let Some([one, other]) = selected else {
        let text = "Path command line flag must be used in conjection with the -i argument which must be two GPU identifiers.\n\n";
        return Err(Refusal::new(2, text));
    };
    let path = topology
        .path(*one, *other)
        .ok_or_else(|| Refusal::new(255, "Failed to display the path between the GPUs\n\n"))?;
    Ok(format!(
        "Device {one} is connected to device {other} by way of {}.\n\n",
        level::way(path)
    ))
}
