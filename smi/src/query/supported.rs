//! `--query-supported-clocks`: every pair of a memory and a graphics clock that a GPU can be set to, the fastest memory
//! first.

use gpumon_probe::vendor::nvml::query::{Code, Query};

use super::cell::Cell;
use super::common::Common;
use super::field::{computed, titled, untitled};
use super::row::{Gpu, Row};
use super::table::Table;

pub(super) static TABLE: Table<Clocks> = Table {
    subjects: &[
        &[titled(
            "Supported Clocks",
            "The pairs of memory and graphics clocks at which the GPU can run; what a \
             hardware slowdown makes of them is not counted. No other pair can be given to \
             --applications-clocks.",
            &[],
        )],
        Common::<Clocks>::SECTIONS,
        &[untitled(&[
            computed("memory or mem [MHz]", memory, "The memory's clock."),
            computed(
                "graphics or gr [MHz]",
                graphics,
                "The clock of the graphics engine.",
            ),
        ])],
    ],
    items: clocks,
};

/// A pair, or why there is none.
type Clocks = Result<Pair, Code>;

/// Both in MHz.
#[derive(Clone, Copy)]
pub(super) struct Pair {
    memory: u32,
    graphics: Result<i128, Code>,
}

fn clocks(gpu: &Gpu<'_>) -> Vec<Clocks> {
    match gpu.ask(Query::SupportedMemoryClocks) {
        Ok(list) => list
            .numbers()
            .iter()
            .flat_map(|memory| {
                u32::try_from(*memory)
                    .map_or(vec![Err(Code::UNKNOWN)], |memory| with_memory(gpu, memory))
            })
            .collect(),
        Err(code) => vec![Err(code)],
    }
}

fn with_memory(gpu: &Gpu<'_>, memory: u32) -> Vec<Clocks> {
    match gpu.ask(Query::SupportedGraphicsClocks(memory)) {
        Ok(list) => list
            .numbers()
            .iter()
            .map(|graphics| {
                Ok(Pair {
                    memory,
                    graphics: Ok(*graphics),
                })
            })
            .collect(),
        Err(code) => vec![Ok(Pair {
            memory,
            graphics: Err(code),
        })],
    }
}

fn memory(row: &Row<'_, Clocks>) -> Cell {
    Ok((*row.item)?.memory.to_string())
}

fn graphics(row: &Row<'_, Clocks>) -> Cell {
    Ok((*row.item)?.graphics?.to_string())
}
