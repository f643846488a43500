//! The processes that use the GPU, and those that accounting has recorded.

use gpumon_probe::vendor::nvml::query::{Code, Query, SystemQuery};

use super::{
    cursor::Cursor,
    format::{ABSENT, count, known, mib, milliseconds, percent, word},
    item::{Item, Layout, List, SAME, list, value},
    sections::Section,
    text::PROCESS_COLUMN,
};
use crate::{
    return_code,
    running::{kind, running},
};

pub(super) static RUNNING: &[Item] = &[list("Processes", SAME, &PROCESSES).of(Section::PIDS)];

/// The processes that accounting has recorded, which the text shows only with `-d`.
pub(super) static ACCOUNTED: &[Item] =
    &[list("Accounted Processes", SAME, &ACCOUNTS).only_of(Section::ACCOUNTING)];

/// The list of running processes. A row has the numbers that [`running`] returns.
static PROCESSES: List = List {
    rows: processes,
    tag: "process_info",
    items: &[
        value("GPU instance ID", SAME, |at| known(at.nth(0))),
        value("Compute instance ID", SAME, |at| known(at.nth(1))),
        value("Process ID", "pid", |at| count(at.nth(2))),
        value("Type", SAME, |at| kind(at.nth(3)).to_owned()).deeper(),
        value("Name", "process_name", name).deeper(),
        value("Used GPU Memory", "used_memory", |at| mib(at.nth(4))).deeper(),
    ],
    layout: Layout::Under(PROCESS_COLUMN),
};

/// The list of accounted processes. A row has the PID, the GPU and memory utilization, the maximum
/// bytes, the milliseconds, the start, and whether the process is running.
static ACCOUNTS: List = List {
    rows: accounts,
    tag: "accounted_process_info",
    items: &[
        value("Process ID", "pid", |at| count(at.nth(0))),
        value("GPU Utilization", "gpu_util", |at| share(at.nth(1))).deeper(),
        value("Memory Utilization", "memory_util", |at| share(at.nth(2))).deeper(),
        value("Max memory usage", SAME, |at| mib(at.nth(3))).deeper(),
        value("Time", SAME, |at| milliseconds(at.nth(4))).deeper(),
        value("Is Running", SAME, |at| count(at.nth(6))).deeper(),
    ],
    layout: Layout::Under(PROCESS_COLUMN),
};

fn processes(at: &Cursor<'_>) -> Result<Vec<Vec<i128>>, String> {
    Ok(running(|query| at.ask(query))
        .map_err(word)?
        .into_iter()
        .map(Vec::from)
        .collect())
}

/// Returns the accounted processes. A process that was forgotten after its PID was read is left
/// out.
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

fn name(at: &Cursor<'_>) -> String {
    match at
        .device
        .context
        .system(SystemQuery::ProcessName(at.argument(2)))
    {
        Ok(name) => name.text().unwrap_or(ABSENT).to_owned(),
        Err(code) => return_code::bracketed(code),
    }
}

/// Formats a utilization; `N/A` if the driver does not know it.
fn share(number: i128) -> String {
    if known(number) == ABSENT {
        ABSENT.to_owned()
    } else {
        percent(number)
    }
}
