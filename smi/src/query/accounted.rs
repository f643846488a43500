//! `--query-accounted-apps`: the resources that processes have used since accounting was enabled.
//! There are no rows if accounting is disabled.

use gpumon_probe::vendor::nvml::query::Query;

use super::cell::{Absent, Cell, number_at, whole_mebibytes};
use super::common;
use super::field::{fields, row_field, with_title};
use super::row::{Row, items, nth_number};
use super::table::Table;

pub(super) static TABLE: Table = Table {
    subjects: &[
        &[with_title(
            "Accounted Graphics/Compute Processes",
            "The processes of which the driver kept accounts: they have, or had, a graphics \
             or compute context on the GPU.

This switch takes one field or several, parted by commas, and a format.
For example:
nvidia-smi \
             --query-accounted-apps=gpu_name,pid,time,gpu_util,mem_util,max_memory_usage \
             --format=csv

These are the fields:",
            &[],
        )],
        common::SECTIONS,
        &[fields(&[
            // Only guests of virtual GPUs have a number here, and the driver accounts for their
            // processes separately.
            row_field(
                "vgpu_instance",
                |_| Err(Absent::not_available()),
                "The number of the virtual GPU that the process ran on.",
            ),
            row_field("pid", nth_number::<0>, "The number of the process."),
            row_field(
                "gpu_utilization or gpu_util [%]",
                stat_cell::<0>,
                "Percent of its time in which the process ran something on the GPU.",
            ),
            row_field(
                "mem_utilization or mem_util [%]",
                stat_cell::<1>,
                "Percent of its time in which the process read or wrote the GPU's memory.",
            ),
            row_field(
                "max_memory_usage [MiB]",
                |row| Ok(whole_mebibytes(known_stat(row, 2)?)),
                "The most of the GPU's memory that the process ever had.",
            ),
            row_field(
                "time [ms]",
                stat_cell::<3>,
                "For how long the process had its context, in ms; 0 while it still has it.",
            ),
        ])],
    ],
    items: |gpu| items::<1>(&[], gpu.ask(Query::AccountingPids)),
};

/// Returns one of the numbers of [`Query::AccountingStats`].
fn known_stat(row: &Row<'_>, place: usize) -> Result<i128, Absent> {
    match number_at(&row.ask(Query::AccountingStats(row.pid()?)), place)? {
        -1 => Err(Absent::not_available()),
        known => Ok(known),
    }
}

fn stat_cell<const PLACE: usize>(row: &Row<'_>) -> Cell {
    Ok(known_stat(row, PLACE)?.to_string())
}
