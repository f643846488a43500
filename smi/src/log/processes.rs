//! Items for the processes on the GPU, and for the processes in the driver's accounting.

use gpumon_probe::vendor::nvml::query::{Code, Query, SystemQuery};

use super::{
    item::{Item, Layout, List, Section, TITLE_AS_TAG, computed_item, list_item},
    text::PROCESS_COLUMN,
    value::{
        ABSENT, Cursor, format_code, format_count, format_mib, format_milliseconds,
        format_number_if_valid, format_percent,
    },
};
use crate::{
    error_messages,
    running_processes::{kind_letters, read_running_processes},
};

pub(super) static RUNNING_PROCESS_ITEMS: &[Item] =
    &[list_item("Processes", TITLE_AS_TAG, &PROCESSES).show_in_section(Section::PIDS)];

/// The items for accounted processes. Text output contains them only with `-d ACCOUNTING`.
pub(super) static ACCOUNTED_PROCESS_ITEMS: &[Item] =
    &[list_item("Accounted Processes", TITLE_AS_TAG, &ACCOUNTS)
        .show_only_in_section(Section::ACCOUNTING)];

/// The list of running processes.
static PROCESSES: List = List {
    rows: read_processes,
    tag: "process_info",
    items: &[
        computed_item("GPU instance ID", TITLE_AS_TAG, |at| {
            format_number_if_valid(at.number_at(0))
        }),
        computed_item("Compute instance ID", TITLE_AS_TAG, |at| {
            format_number_if_valid(at.number_at(1))
        }),
        computed_item("Process ID", "pid", |at| format_count(at.number_at(2))),
        computed_item("Type", TITLE_AS_TAG, |at| {
            kind_letters(at.number_at(3)).to_owned()
        })
        .indent_deeper(),
        computed_item("Name", "process_name", format_process_name).indent_deeper(),
        computed_item("Used GPU Memory", "used_memory", |at| {
            format_mib(at.number_at(4))
        })
        .indent_deeper(),
    ],
    layout: Layout::Under(PROCESS_COLUMN),
};

/// The list of accounted processes. Each row contains the PID, the GPU and memory utilization, the
/// maximum memory in bytes, the run time in milliseconds, the start time, and whether the process
/// is running.
static ACCOUNTS: List = List {
    rows: read_accounts,
    tag: "accounted_process_info",
    items: &[
        computed_item("Process ID", "pid", |at| format_count(at.number_at(0))),
        computed_item("GPU Utilization", "gpu_util", |at| {
            format_utilization(at.number_at(1))
        })
        .indent_deeper(),
        computed_item("Memory Utilization", "memory_util", |at| {
            format_utilization(at.number_at(2))
        })
        .indent_deeper(),
        computed_item("Max memory usage", TITLE_AS_TAG, |at| {
            format_mib(at.number_at(3))
        })
        .indent_deeper(),
        computed_item("Time", TITLE_AS_TAG, |at| {
            format_milliseconds(at.number_at(4))
        })
        .indent_deeper(),
        computed_item("Is Running", TITLE_AS_TAG, |at| {
            format_count(at.number_at(6))
        })
        .indent_deeper(),
    ],
    layout: Layout::Under(PROCESS_COLUMN),
};

fn read_processes(at: &Cursor<'_>) -> Result<Vec<Vec<i128>>, String> {
    Ok(read_running_processes(|query| at.run_query(query))
        .map_err(format_code)?
        .into_iter()
        .map(Vec::from)
        .collect())
}

/// Returns the accounted processes. A process is left out if the driver drops its account after
/// listing its PID.
fn read_accounts(at: &Cursor<'_>) -> Result<Vec<Vec<i128>>, String> {
    let pids = at.run_query(Query::AccountingPids).map_err(format_code)?;
    let mut rows = Vec::new();
    for pid in pids.numbers() {
        match at.run_query(Query::AccountingStats(*pid as u32)) {
            Ok(stats) => rows.push([&[*pid], stats.numbers()].concat()),
            Err(Code::NOT_FOUND) => {}
            Err(code) => return Err(format_code(code)),
        }
    }
    Ok(rows)
}

fn format_process_name(at: &Cursor<'_>) -> String {
    match at
        .device
        .context
        .run_system_query(SystemQuery::ProcessName(at.argument_at(2)))
    {
        Ok(name) => name.text().unwrap_or(ABSENT).to_owned(),
        Err(code) => error_messages::describe_code_in_brackets(code),
    }
}

/// Formats a utilization, or returns `N/A` if the driver does not know it.
fn format_utilization(number: i128) -> String {
    if format_number_if_valid(number) == ABSENT {
        ABSENT.to_owned()
    } else {
        format_percent(number)
    }
}
