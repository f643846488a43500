//! Who holds a GPU, and how much each of them uses it.

use super::{
    raw::{
        Entry, Function,
        function::{self as f, Processes},
        numbers,
    },
    subject::Target,
};
use crate::vendor::nvml::query::{Answer, Code};

/// A list of processes, by the newest of its names that the library has; the oldest has short entries.
pub(super) type Names = [Function<Processes>; 3];

pub(super) const COMPUTE: Names = [
    f::COMPUTE_PROCESSES,
    f::COMPUTE_PROCESSES_V2,
    f::COMPUTE_PROCESSES_V1,
];
pub(super) const GRAPHICS: Names = [
    f::GRAPHICS_PROCESSES,
    f::GRAPHICS_PROCESSES_V2,
    f::GRAPHICS_PROCESSES_V1,
];
pub(super) const MPS: Names = [f::MPS_PROCESSES, f::MPS_PROCESSES_V2, f::MPS_PROCESSES_V1];

/// PID, memory, GPU instance and compute instance of each; -1 for what there is not.
pub(super) fn running(target: Target<'_>, names: &Names) -> Answer {
    for (function, entry) in names.iter().zip([Entry::Known, Entry::Known, Entry::Short]) {
        match target.library().processes(function, target.device, entry) {
            Err(Code::FUNCTION_NOT_FOUND) => {}
            list => return list.map(numbers),
        }
    }
    Err(Code::FUNCTION_NOT_FOUND)
}

/// The newer function knows JPEG and OFA.
pub(super) fn utilization(target: Target<'_>, since_us: u64) -> Answer {
    match target
        .library()
        .processes_utilization(target.device, since_us)
    {
        Err(Code::FUNCTION_NOT_FOUND) => target
            .library()
            .process_utilization(target.device, since_us)
            .map(numbers),
        samples => samples.map(numbers),
    }
}
