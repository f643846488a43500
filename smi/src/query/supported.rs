//! `--query-supported-clocks`: every pair of a memory and a graphics clock that a GPU can be set to, the fastest memory
//! first.

use gpumon_probe::vendor::nvml::query::Query;

use super::common;
use super::field::{computed, titled, untitled};
use super::row::{Gpu, Item, items, nth};
use super::table::Table;

pub(super) static TABLE: Table = Table {
    subjects: &[
        &[titled(
            "Supported Clocks",
            "The pairs of memory and graphics clocks at which the GPU can run; what a \
             hardware slowdown makes of them is not counted. No other pair can be given to \
             --applications-clocks.",
            &[],
        )],
        common::SECTIONS,
        &[untitled(&[
            computed("memory or mem [MHz]", nth::<0>, "The memory's clock."),
            computed(
                "graphics or gr [MHz]",
                nth::<1>,
                "The clock of the graphics engine.",
            ),
        ])],
    ],
    items: clocks,
};

/// Both clocks of each pair, in MHz.
fn clocks(gpu: &Gpu<'_>) -> Vec<Item> {
    let with = |memory: &i128| {
        let graphics = gpu.ask(Query::SupportedGraphicsClocks(*memory as u32));
        items::<1>(&[*memory], graphics)
    };
    match gpu.ask(Query::SupportedMemoryClocks) {
        Ok(list) => list.numbers().iter().flat_map(with).collect(),
        failed => items::<1>(&[], failed),
    }
}
