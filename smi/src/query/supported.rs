//! `--query-supported-clocks`: all pairs of a memory clock and a graphics clock that a GPU
//! supports, the highest memory clock first.

use gpumon_probe::vendor::nvml::query::Query;

use super::common;
use super::field::{fields, row_field, with_title};
use super::row::{Gpu, Item, items, nth_number};
use super::table::Table;

pub(super) static TABLE: Table = Table {
    subjects: &[
        &[with_title(
            "Supported Clocks",
            "The pairs of memory and graphics clocks at which the GPU can run; what a \
             hardware slowdown makes of them is not counted. No other pair can be given to \
             --applications-clocks.",
            &[],
        )],
        common::SECTIONS,
        &[fields(&[
            row_field(
                "memory or mem [MHz]",
                nth_number::<0>,
                "The memory's clock.",
            ),
            row_field(
                "graphics or gr [MHz]",
                nth_number::<1>,
                "The clock of the graphics engine.",
            ),
        ])],
    ],
    items: list_pairs,
};

/// Returns the two clocks of each pair in MHz.
fn list_pairs(gpu: &Gpu<'_>) -> Vec<Item> {
    let with = |memory: &i128| {
        let graphics = gpu.ask(Query::SupportedGraphicsClocks(*memory as u32));
        items::<1>(&[*memory], graphics)
    };
    match gpu.ask(Query::SupportedMemoryClocks) {
        Ok(list) => list.numbers().iter().flat_map(with).collect(),
        failed => items::<1>(&[], failed),
    }
}
