//! Who holds a GPU, and how much each of them uses it.

use super::{
    numbers::Numbers,
    raw::{
        Entry, Function, Held,
        function::{self as f, Processes},
    },
    subject::Target,
};
use crate::vendor::nvml::query::{Answer, Code, Value};

/// A list of processes, by the newest of its names that the library has.
pub(super) type Names = [(Function<Processes>, Entry); 3];

pub(super) const COMPUTE: Names = [
    (f::COMPUTE_PROCESSES, Entry::Known),
    (f::COMPUTE_PROCESSES_V2, Entry::Known),
    (f::COMPUTE_PROCESSES_V1, Entry::Short),
];
pub(super) const GRAPHICS: Names = [
    (f::GRAPHICS_PROCESSES, Entry::Known),
    (f::GRAPHICS_PROCESSES_V2, Entry::Known),
    (f::GRAPHICS_PROCESSES_V1, Entry::Short),
];
pub(super) const MPS: Names =
    [(f::MPS_PROCESSES, Entry::Known), (f::MPS_PROCESSES_V2, Entry::Known), (f::MPS_PROCESSES_V1, Entry::Short)];

/// PID, memory, GPU instance and compute instance of each; -1 for what there is not.
pub(super) fn running(target: Target<'_>, names: &Names) -> Answer {
    for (function, entry) in names {
        match target.library().processes(function, target.device, *entry) {
            Err(Code::FUNCTION_NOT_FOUND) => {}
            list => return Ok(Value::Numbers(list?.iter().flat_map(numbers).collect())),
        }
    }
    Err(Code::FUNCTION_NOT_FOUND)
}

fn numbers(held: &Held) -> [i128; 4] {
    let (gpu, compute) = held.instance.map_or((-1, -1), |(gpu, compute)| (gpu.into(), compute.into()));
    [held.pid.into(), held.memory_bytes.map_or(-1, i128::from), gpu, compute]
}

/// The newer function knows JPEG and OFA.
pub(super) fn utilization(target: Target<'_>, since_us: u64) -> Answer {
    match target.library().processes_utilization(target.device, since_us) {
        Err(Code::FUNCTION_NOT_FOUND) => {
            let samples = target.library().process_utilization(target.device, since_us)?;
            Ok(Value::Numbers(samples.iter().flat_map(Numbers::numbers).collect()))
        }
        samples => Ok(Value::Numbers(samples?.iter().flat_map(Numbers::numbers).collect())),
    }
}
