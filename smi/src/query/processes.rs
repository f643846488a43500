//! `--query-compute-apps`: the processes that compute on a GPU, in the driver's order.

use gpumon_probe::vendor::nvml::query::{Code, Query, SystemQuery};

use super::cell::{Absent, Cell, text, whole_mebibytes};
use super::common::Common;
use super::field::{computed, titled, untitled};
use super::row::{Gpu, Row};
use super::table::Table;

pub(super) static TABLE: Table<Process> = Table {
    subjects: &[
        &[titled(
            "Active Compute Processes",
            "The processes that have a compute context on the GPU.",
            &[],
        )],
        Common::<Process>::SECTIONS,
        &[untitled(&[
            computed(
                "pid",
                |row: &Row<'_, Process>| Ok((*row.item)?.pid.to_string()),
                "The number of the process that computes.",
            ),
            computed("process_name or name", name, "The name of the process."),
            computed(
                "used_gpu_memory or used_memory [MiB]",
                memory,
                "How much of the GPU's memory the context takes. The driver of Windows does not \
                 know it in WDDM mode, where Windows itself gives out the memory.",
            ),
        ])],
    ],
    items: processes,
};

/// One of them, or why they are not known.
type Process = Result<Known, Code>;

#[derive(Clone, Copy)]
pub(super) struct Known {
    pid: i128,
    /// In bytes; -1 where the driver does not know it.
    memory: i128,
}

fn processes(gpu: &Gpu<'_>) -> Vec<Process> {
    match gpu.ask(Query::ComputeProcesses) {
        // PID, memory, GPU instance, compute instance.
        Ok(list) => {
            let known = |[pid, memory, ..]: &[i128; 4]| {
                Ok(Known {
                    pid: *pid,
                    memory: *memory,
                })
            };
            list.numbers().as_chunks().0.iter().map(known).collect()
        }
        Err(code) => vec![Err(code)],
    }
}

fn name(row: &Row<'_, Process>) -> Cell {
    let pid = u32::try_from((*row.item)?.pid).map_err(|_| Code::UNKNOWN)?;
    text(&row.system(SystemQuery::ProcessName(pid)))
}

fn memory(row: &Row<'_, Process>) -> Cell {
    match (*row.item)?.memory {
        -1 => Err(Absent::not_available()),
        bytes => Ok(whole_mebibytes(bytes)),
    }
}
