//! The option `--query-supported-clocks`, which lists all combinations of a memory clock and a
//! graphics clock that a GPU supports. The highest memory clock comes first.

use gpumon_probe::vendor::nvml::query::Query;

use super::common;
use super::field::{fields, row_field, with_title};
use super::row::{Gpu, Item, format_nth_number, split_items};
use super::table::Table;

pub(super) static SUPPORTED_CLOCKS: Table = Table {
    subjects: &[
        &[with_title(
            "Supported Clocks",
            "The supported pairs of memory clock and graphics clock, regardless of reductions by \
             the hardware. The option --applications-clocks accepts only these pairs.",
            &[],
        )],
        common::COMMON_SECTIONS,
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
    items: list_pairs,
};

/// Returns all combinations of clocks, as pairs of numbers in MHz.
fn list_pairs(gpu: &Gpu<'_>) -> Vec<Item> {
    let with = |memory: &i128| {
        let graphics = gpu.run_query(Query::SupportedGraphicsClocks(*memory as u32));
        split_items::<1>(&[*memory], graphics)
    };
    match gpu.run_query(Query::SupportedMemoryClocks) {
        Ok(list) => list.numbers().iter().flat_map(with).collect(),
        failed => split_items::<1>(&[], failed),
    }
}
