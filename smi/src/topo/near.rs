//! Sentences about devices that are close to each other.

use gpumon_probe::vendor::nvml::query::{Query, QueryBackend, Subject};

use super::{Topology, find_gpus_near_cpu, format_list, level};
use crate::Refusal;

pub(super) fn describe_gpus_near_cpu(driver: &dyn QueryBackend, cpu: i64) -> String {
    let gpus = find_gpus_near_cpu(driver, cpu);
    if gpus.is_empty() {
        return format!("No GPUs were found to have an affinity with CPU {cpu}.\n\n");
    }
    format!(
        "The GPUs that have an affinity with CPU {cpu} are:\n{}\n\n",
        format_list(&gpus)
    )
}

/// Describes which GPUs are close to `gpu`: those whose path to it is within `level`.
pub(super) fn describe_gpus_near_gpu(
    driver: &dyn QueryBackend,
    gpu: u32,
    level: i64,
) -> Result<String, Refusal> {
    let failed = || Refusal::new(255, "Failed to display the nearest GPUs\n\n");
    let (path, number) = level::find_path_of_level(level).ok_or_else(failed)?;
    let answer = driver
        .answer_query(Subject::from_gpu(gpu), Query::NearestGpus(number))
        .map_err(|_| failed())?;
    let between = level::describe_longest_path(path);
    if answer.numbers().is_empty() {
        return Ok(format!(
            "Device {gpu} is not connected to other devices {between}.\n\n"
        ));
    }
    Ok(format!(
        "Device {gpu} is connected {between} to device(s): {}\n\n",
        format_list(answer.numbers())
    ))
}

/// Describes the path between the two GPUs that are selected with `-i`.
pub(super) fn describe_path(
    topology: &Topology<'_>,
    selected: Option<&[u32]>,
) -> Result<String, Refusal> {
    let Some([one, other]) = selected else {
        let text = "Path command line flag must be used in conjection with the -i argument which \
                    must be two GPU identifiers.\n\n";
        return Err(Refusal::new(2, text));
    };
    let path = topology
        .find_path(*one, *other)
        .ok_or_else(|| Refusal::new(255, "Failed to display the path between the GPUs\n\n"))?;
    Ok(format!(
        "Device {one} is connected to device {other} by way of {}.\n\n",
        level::describe_path(path)
    ))
}
