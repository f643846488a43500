//! Who uses the GPU, and who did.

use std::collections::BTreeMap;

use gpumon_probe::vendor::nvml::query::{Code, Query, SystemQuery};

use super::{
    cursor::Cursor,
    format::{ABSENT, count, known, mib, milliseconds, percent, word},
    item::{Item, Layout, List, list, value},
    sections::Section,
    text::PROCESS_COLUMN,
};
use crate::return_code;

pub(super) static RUNNING: &[Item] = &[list("Processes", "processes", &PROCESSES).of(Section::PIDS)];

/// Processes that the accounting remembers; the text shows them by `-d` alone.
pub(super) static ACCOUNTED: &[Item] =
    &[list("Accounted Processes", "accounted_processes", &ACCOUNTS).only_of(Section::ACCOUNTING)];

/// A row is GPU instance, compute instance, PID, bits of [`COMPUTE`] and its neighbours, bytes; -1 for none.
static PROCESSES: List = List {
    rows: processes,
    tag: "process_info",
    items: &[
        value("GPU instance ID", "gpu_instance_id", |at| known(at.nth(0))),
        value("Compute instance ID", "compute_instance_id", |at| known(at.nth(1))),
        value("Process ID", "pid", |at| count(at.nth(2))),
        value("Type", "type", |at| kind(at.nth(3))).deeper(),
        value("Name", "process_name", name).deeper(),
        value("Used GPU Memory", "used_memory", |at| mib(at.nth(4))).deeper(),
    ],
    layout: Layout::Under(PROCESS_COLUMN),
};

/// A row is PID, GPU and memory utilisation, most bytes, milliseconds, start, whether it runs.
static ACCOUNTS: List = List {
    rows: accounts,
    tag: "accounted_process_info",
    items: &[
        value("Process ID", "pid", |at| count(at.nth(0))),
        value("GPU Utilization", "gpu_util", |at| share(at.nth(1))).deeper(),
        value("Memory Utilization", "memory_util", |at| share(at.nth(2))).deeper(),
        value("Max memory usage", "max_memory_usage", |at| mib(at.nth(3))).deeper(),
        value("Time", "time", |at| milliseconds(at.nth(4))).deeper(),
        value("Is Running", "is_running", |at| count(at.nth(6))).deeper(),
    ],
    layout: Layout::Under(PROCESS_COLUMN),
};

const COMPUTE: i128 = 1;
const GRAPHICS: i128 = 2;
/// It computes through the multi-process service.
const SHARED: i128 = 4;

/// The three lists as one, by instance and PID. A process that is in two of them is one row.
fn processes(at: &Cursor<'_>) -> Result<Vec<Vec<i128>>, String> {
    let lists =
        [(COMPUTE, Query::ComputeProcesses), (GRAPHICS, Query::GraphicsProcesses), (SHARED, Query::MpsProcesses)]
            .map(|(kind, query)| (kind, at.ask(query)));
    if let [(_, Err(code)), (_, Err(_)), (_, Err(_))] = &lists {
        return Err(word(*code));
    }
    let mut all: BTreeMap<[i128; 3], (i128, i128)> = BTreeMap::new();
    for (kind, list) in &lists {
        for [pid, memory, gi, ci] in list.iter().flat_map(|list| list.numbers().as_chunks().0) {
            let (kinds, bytes) = all.entry([*gi, *ci, *pid]).or_insert((0, *memory));
            *kinds |= kind;
            *bytes = (*bytes).max(*memory);
        }
    }
    Ok(all.into_iter().map(|([gi, ci, pid], (kinds, bytes))| vec![gi, ci, pid, kinds, bytes]).collect())
}

/// One that has been forgotten since its PID was read is left out.
fn accounts(at: &Cursor<'_>) -> Result<Vec<Vec<i128>>, String> {
    let pids = at.ask(Query::AccountingPids).map_err(word)?;
    let mut rows = Vec::new();
    for pid in pids.numbers() {
        match at.ask(Query::AccountingStats(*pid as u32)) {
            Ok(stats) => rows.push([&[*pid], stats.numbers()].concat()),
            Err(Code::NOT_FOUND) => {}
            Err(code) => return Err(word(code)),
        }
    }
    Ok(rows)
}

fn kind(kinds: i128) -> String {
    let computes = if kinds & SHARED != 0 { "M+C" } else { "C" };
    match (kinds & (COMPUTE | SHARED) != 0, kinds & GRAPHICS != 0) {
        (true, true) => format!("{computes}+G"),
        (true, false) => computes.to_owned(),
        (false, _) => "G".to_owned(),
    }
}

fn name(at: &Cursor<'_>) -> String {
    match at.device.context.system(SystemQuery::ProcessName(at.argument(2))) {
        Ok(name) => name.text().unwrap_or(ABSENT).to_owned(),
        Err(code) => return_code::bracketed(code),
    }
}

/// Utilisation that the driver may not know.
fn share(number: i128) -> String {
    if known(number) == ABSENT { ABSENT.to_owned() } else { percent(number) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_process_does_is_told_by_letters() {
        let kinds = [COMPUTE, GRAPHICS, COMPUTE | GRAPHICS, SHARED, SHARED | GRAPHICS];
        assert_eq!(kinds.map(kind), ["C", "G", "C+G", "M+C", "M+C+G"]);
    }
}
