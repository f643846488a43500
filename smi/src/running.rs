//! Merges a GPU's three lists of processes into one.

use std::collections::BTreeMap;

use gpumon_probe::vendor::nvml::query::{Answer, Code, Query};

pub(crate) const COMPUTE: i128 = 1;
pub(crate) const GRAPHICS: i128 = 2;
/// The process computes through the Multi-Process Service (MPS). It is also in the list of compute
/// processes.
pub(crate) const SHARED: i128 = 4;

/// Returns GPU instance, compute instance, PID, [kinds](kind) and bytes of each process. The rows
/// are sorted by instance and PID as in nvidia-smi, and missing numbers are -1. A process in
/// several lists has one row.
///
/// # Errors
/// Returns the error code of the first list if none of the lists is available.
pub(crate) fn running(ask: impl Fn(Query) -> Answer) -> Result<Vec<[i128; 5]>, Code> {
    let lists = [
        (COMPUTE, Query::ComputeProcesses),
        (GRAPHICS, Query::GraphicsProcesses),
        (SHARED, Query::MpsProcesses),
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

/// Returns nvidia-smi's letters for the kinds of a process.
pub(crate) fn kind(kinds: i128) -> &'static str {
    match (
        kinds & SHARED != 0,
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
    fn what_a_process_does_is_told_by_letters() {
        let kinds = [
            COMPUTE,
            GRAPHICS,
            COMPUTE | GRAPHICS,
            SHARED | COMPUTE,
            SHARED | GRAPHICS,
        ];
        assert_eq!(kinds.map(kind), ["C", "G", "C+G", "M+C", "M+C+G"]);
    }

    #[test]
    fn a_process_of_several_lists_is_one_row_by_instance_and_pid() {
        let rows = running(|query| match query {
            Query::ComputeProcesses => Ok(Value::Numbers(vec![
                30, 5, 13, 0, 20, 6, 2, 0, 10, 7, 13, 0,
            ])),
            Query::MpsProcesses => Ok(Value::Numbers(vec![20, 6, 2, 0])),
            _ => Err(Code::NOT_SUPPORTED),
        });
        assert_eq!(
            rows,
            Ok(vec![
                [2, 0, 20, COMPUTE | SHARED, 6],
                [13, 0, 10, COMPUTE, 7],
                [13, 0, 30, COMPUTE, 5]
            ])
        );
        assert_eq!(running(|_| Err(Code::UNKNOWN)), Err(Code::UNKNOWN));
    }
}
