//! Merging of a GPU's three process lists into one list.

use std::collections::BTreeMap;

use gpumon_probe::vendor::nvml::query::{Answer, Code, Query};

pub(crate) const COMPUTE: i128 = 1;
pub(crate) const GRAPHICS: i128 = 2;
/// The kind of a process that computes through the Multi-Process Service (MPS). Such a process is
/// also in the list of compute processes.
pub(crate) const MPS_CLIENT: i128 = 4;

/// Returns the GPU instance, compute instance, PID, kinds, and memory in bytes of each process.
/// Like nvidia-smi, sorts the rows by instance and PID. Missing numbers are -1. A process that is
/// in several lists has a single row.
///
/// # Errors
/// Returns the error code of the first list if all three lists are unavailable.
pub(crate) fn read_running_processes(
    ask: impl Fn(Query) -> Answer,
) -> Result<Vec<[i128; 5]>, Code> {
    let lists = [
        (COMPUTE, Query::ComputeProcesses),
        (GRAPHICS, Query::GraphicsProcesses),
        (MPS_CLIENT, Query::MpsProcesses),
    ]
    .map(|(kind, query)| (kind, ask(query)));
    if let [(_, Err(code)), (_, Err(_)), (_, Err(_))] = &lists {
        return Err(*code);
    }
    let mut all: BTreeMap<[i128; 3], (i128, i128)> = BTreeMap::new();
    for (kind, list) in &lists {
        for [pid, memory, gi, ci] in list.iter().flat_map(|list| list.numbers().as_chunks().0) {
            let (kinds, bytes) = all.entry([*gi, *ci, *pid]).or_insert((0, *memory));
            *kinds |= kind;
            *bytes = (*bytes).max(*memory);
        }
    }
    Ok(all
        .into_iter()
        .map(|([gi, ci, pid], (kinds, bytes))| [gi, ci, pid, kinds, bytes])
        .collect())
}

/// Returns nvidia-smi's letters for a process's kinds.
pub(crate) fn kind_letters(kinds: i128) -> &'static str {
    match (
        kinds & MPS_CLIENT != 0,
        kinds & COMPUTE != 0,
        kinds & GRAPHICS != 0,
    ) {
        (true, _, true) => "M+C+G",
        (true, _, false) => "M+C",
        (false, true, true) => "C+G",
        (false, true, false) => "C",
        (false, false, _) => "G",
    }
}

#[cfg(test)]
mod tests {
    use gpumon_probe::vendor::nvml::query::Value;

    use super::*;

    #[test]
    fn process_kinds_have_letters() {
        let kinds = [
            COMPUTE,
            GRAPHICS,
            COMPUTE | GRAPHICS,
            MPS_CLIENT | COMPUTE,
            MPS_CLIENT | GRAPHICS,
        ];
        assert_eq!(kinds.map(kind_letters), ["C", "G", "C+G", "M+C", "M+C+G"]);
    }

    #[test]
    fn process_in_several_lists_has_one_row() {
        let rows = read_running_processes(|query| match query {
            Query::ComputeProcesses => Ok(Value::Numbers(vec![
                30, 5, 13, 0, 20, 6, 2, 0, 10, 7, 13, 0,
            ])),
            Query::MpsProcesses => Ok(Value::Numbers(vec![20, 6, 2, 0])),
            _ => Err(Code::NOT_SUPPORTED),
        });
        assert_eq!(
            rows,
            Ok(vec![
                [2, 0, 20, COMPUTE | MPS_CLIENT, 6],
                [13, 0, 10, COMPUTE, 7],
                [13, 0, 30, COMPUTE, 5]
            ])
        );
        assert_eq!(
            read_running_processes(|_| Err(Code::UNKNOWN)),
            Err(Code::UNKNOWN)
        );
    }
}
