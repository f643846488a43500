//! Description of GPUs that schedulers have allocated.

use gpumon_probe::model::{Allocation, Gpu, GpuSample, MigInstance};

use super::mig;

/// Returns the labels of allocated GPUs and MIG devices that have no processes, each with the names
/// of its jobs or pods.
pub(crate) fn list_unused_allocations(
    gpu: &GpuSample,
    known: Option<&Gpu>,
) -> Vec<(String, String)> {
    let is_whole = gpu.processes_omitted == 0 && gpu.unlisted_memory_bytes.is_none();
    let Some(processes) = gpu.processes.value().filter(|_| is_whole) else {
        return Vec::new();
    };
    let is_free = |part: Option<MigInstance>| {
        !processes
            .iter()
            .any(|process| part.is_none() || process.mig == part)
    };
    let parts = gpu.mig_devices.value().into_iter().flatten().map(|part| {
        let device = known.and_then(|known| mig::find_mig_device(known, part.instance));
        let name = device.map_or_else(
            || gpu.index.to_string(),
            |device| mig::format_mig_label(gpu.index, device),
        );
        (name, Some(part.instance), &part.allocated_to)
    });
    let all = [(gpu.index.to_string(), None, &gpu.allocated_to)]
        .into_iter()
        .chain(parts);
    let unused = all.filter(|(_, part, holders)| is_free(*part) && !holders.is_empty());
    unused
        .map(|(name, _, holders)| (name, join_holder_names(holders)))
        .collect()
}

/// Joins the names of the jobs and pods, without duplicates.
fn join_holder_names(holders: &[Allocation]) -> String {
    let mut names: Vec<String> = Vec::new();
    for holder in holders {
        let user = match holder {
            Allocation::Slurm {
                user: Some(user), ..
            } => format!(" ({user})"),
            _ => String::new(),
        };
        let name = holder.label() + &user;
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join(", ")
}
