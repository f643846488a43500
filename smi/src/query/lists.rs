//! The options that print several rows for each GPU: for its compute processes, the processes in
//! the driver's accounting, its retired memory pages, and its supported clocks.

use gpumon_probe::vendor::nvml::query::{Code, Query, SystemQuery};

use super::{
    cell::{Absent, Cell, format_text, read_number},
    table::{
        self, Gpu, Item, Row, Table, fields, format_nth_number, row_field, split_items, with_title,
    },
};
use crate::formats::{DATE_AND_TIME, convert_to_local_time, round_up_to_mib};

/// The option `--query-compute-apps`, which lists a GPU's compute processes in the driver's order.
pub(super) static COMPUTE_PROCESSES: Table = Table {
    subjects: &[
        &[with_title(
            "Active Compute Processes",
            "Processes that have a compute context on the GPU.",
            &[],
        )],
        table::COMMON_SECTIONS,
        &[fields(&[
            row_field("pid", format_nth_number::<0>, "The process ID."),
            row_field(
                "process_name or name",
                format_process_name,
                "The name of the process.",
            ),
            row_field(
                "used_gpu_memory or used_memory [MiB]",
                format_process_memory,
                "The GPU memory that the context uses, in MiB. It is not available on Windows in \
                 WDDM mode, because Windows manages the memory.",
            ),
        ])],
    ],
    // Each process in the answer consists of four numbers: PID, memory, GPU instance, and compute
    // instance.
    items: |gpu| split_items::<4>(&[], gpu.run_query(Query::ComputeProcesses)),
};

fn format_process_name(row: &Row<'_>) -> Cell {
    format_text(&row.run_system_query(SystemQuery::ProcessName(row.pid()?)))
}

fn format_process_memory(row: &Row<'_>) -> Cell {
    match row.number_at(1)? {
        -1 => Err(Absent::new_not_available()),
        bytes => Ok(round_up_to_mib(bytes).to_string()),
    }
}

/// The option `--query-accounted-apps`: the resources that processes have used since accounting was
/// enabled. If accounting is disabled, there are no rows.
pub(super) static ACCOUNTED_PROCESSES: Table = Table {
    subjects: &[
        &[with_title(
            "Accounted Graphics/Compute Processes",
            "Processes that the driver keeps accounting data for: those that have, or had, a \
             graphics or compute context on the GPU.\n\nThis option takes one or more fields, \
             separated by commas, and a format.\nFor example:\nnvidia-smi \
             --query-accounted-apps=gpu_name,pid,time,gpu_util,mem_util,max_memory_usage \
             --format=csv\n\nThe fields are:",
            &[],
        )],
        table::COMMON_SECTIONS,
        &[fields(&[
            // Only vGPU guests have an instance number. The driver accounts for their processes
            // separately, so this field is never available.
            row_field(
                "vgpu_instance",
                |_| Err(Absent::new_not_available()),
                "The number of the virtual GPU on which the process ran.",
            ),
            row_field("pid", format_nth_number::<0>, "The process ID."),
            row_field(
                "gpu_utilization or gpu_util [%]",
                format_accounting_stat::<0>,
                "Share of the process's lifetime in which at least one of its kernels ran on the \
                 GPU, in percent.",
            ),
            row_field(
                "mem_utilization or mem_util [%]",
                format_accounting_stat::<1>,
                "Share of the process's lifetime in which it read or wrote the GPU's memory, in \
                 percent.",
            ),
            row_field(
                "max_memory_usage [MiB]",
                |row| Ok(round_up_to_mib(read_accounting_stat(row, 2)?).to_string()),
                "The peak GPU memory of the process, in MiB.",
            ),
            row_field(
                "time [ms]",
                format_accounting_stat::<3>,
                "The time for which the process had its context, in milliseconds. It is 0 until \
                 the process ends.",
            ),
        ])],
    ],
    items: |gpu| split_items::<1>(&[], gpu.run_query(Query::AccountingPids)),
};

/// Returns a number from the answer to [`Query::AccountingStats`].
fn read_accounting_stat(row: &Row<'_>, place: usize) -> Result<i128, Absent> {
    match read_number(&row.run_query(Query::AccountingStats(row.pid()?)), place)? {
        -1 => Err(Absent::new_not_available()),
        known => Ok(known),
    }
}

fn format_accounting_stat<const PLACE: usize>(row: &Row<'_>) -> Cell {
    Ok(read_accounting_stat(row, PLACE)?.to_string())
}

/// The option `--query-retired-pages`, which lists retired memory pages. Pages with single-bit
/// errors come first. A board without retired pages has one row for each cause.
pub(super) static RETIRED_PAGES: Table = Table {
    subjects: &[
        table::COMMON_SECTIONS,
        &[fields(&[
            row_field(
                "retired_pages.address",
                |row| Ok(format!("0x{:016x}", row.number_at(2)?)),
                "The address of the page. It can change when ECC is enabled or disabled.",
            ),
            row_field(
                "retired_pages.timestamp",
                format_retirement_time,
                "The time at which the page was retired.",
            ),
            row_field(
                "retired_pages.cause",
                format_retirement_cause,
                "The reason why the page was retired:\n - Double Bit ECC - one double-bit error, \
                 which cannot be corrected.\n - Single Bit ECC - several single-bit errors.",
            ),
        ])],
    ],
    items: list_retired_pages,
};

/// Returns three numbers for each page: the `nvmlPageRetirementCause_t`, the time in µs (0 if
/// unknown), and the address.
fn list_retired_pages(gpu: &Gpu<'_>) -> Vec<Item> {
    let of_cause =
        |cause: u32| split_items::<2>(&[cause.into()], gpu.run_query(Query::RetiredPages(cause)));
    [0, 1].into_iter().flat_map(of_cause).collect()
}

fn format_retirement_cause(row: &Row<'_>) -> Cell {
    let causes = ["Single Bit ECC", "Double Bit ECC"];
    Ok(causes[row.number_at(0)? as usize].to_owned())
}

fn format_retirement_time(row: &Row<'_>) -> Cell {
    let microseconds = row.number_at(1)?;
    if microseconds == 0 {
        return Err(Absent::new_not_available());
    }
    let time = convert_to_local_time(microseconds, &row.gpu.context.now).ok_or(Code::UNKNOWN)?;
    Ok(time.strftime(DATE_AND_TIME).to_string())
}

/// The option `--query-supported-clocks`, which lists all combinations of a memory clock and a
/// graphics clock that a GPU supports. The highest memory clock comes first.
pub(super) static SUPPORTED_CLOCKS: Table = Table {
    subjects: &[
        &[with_title(
            "Supported Clocks",
            "The supported pairs of memory clock and graphics clock, regardless of reductions by \
             the hardware. The option --applications-clocks accepts only these pairs.",
            &[],
        )],
        table::COMMON_SECTIONS,
        &[fields(&[
            row_field(
                "memory or mem [MHz]",
                format_nth_number::<0>,
                "The memory clock, in MHz.",
            ),
            row_field(
                "graphics or gr [MHz]",
                format_nth_number::<1>,
                "The graphics clock, in MHz.",
            ),
        ])],
    ],
    items: list_clock_pairs,
};

/// Returns all combinations of clocks, as pairs of numbers in MHz.
fn list_clock_pairs(gpu: &Gpu<'_>) -> Vec<Item> {
    let with = |memory: &i128| {
        let graphics = gpu.run_query(Query::SupportedGraphicsClocks(*memory as u32));
        split_items::<1>(&[*memory], graphics)
    };
    match gpu.run_query(Query::SupportedMemoryClocks) {
        Ok(list) => list.numbers().iter().flat_map(with).collect(),
        failed => split_items::<1>(&[], failed),
    }
}
