//! The board's memory, and who may compute on it.

use gpumon_probe::vendor::nvml::query::Query as Q;

use super::super::cell::{Cell, at, mebibytes, word};
use super::super::field::{Section, field, titled, untitled};
use super::super::row::Row;

/// `nvmlComputeMode_t`.
const COMPUTE_MODES: [&str; 4] = [
    "Default",
    "Exclusive_Thread",
    "Prohibited",
    "Exclusive_Process",
];

pub(super) const SECTIONS: &[Section<()>] = &[
    titled(
        "memory",
        "The memory on the board. With ECC there is some percent less of it, which holds the check bits. The driver \
         keeps a little for itself even while nothing runs.",
        &[
            field("memory.total [MiB]", |row| {
                mebibytes(row.ask(Q::MemoryInfo), 0)
            })
            .about("All of the GPU's memory."),
            field("memory.reserved [MiB]", |row| {
                mebibytes(row.ask(Q::MemoryInfo), 1)
            })
            .about("What driver and firmware keep for themselves."),
            field("memory.used [MiB]", |row| {
                mebibytes(row.ask(Q::MemoryInfo), 3)
            })
            .about("What programs have taken."),
            field("memory.free [MiB]", |row| {
                mebibytes(row.ask(Q::MemoryInfo), 2)
            })
            .about("What is left."),
        ],
    ),
    untitled(&[
        field("compute_mode", |row| {
            word(row.ask(Q::ComputeMode), 0, &COMPUTE_MODES)
        })
        .about(
            "How many programs may compute on the GPU at once.
\"0: Default\" means that any number of them may.
\"1: Exclusive_Thread\" is old; Exclusive_Process took its place.
\"2: Prohibited\" means that none may.
\"3: Exclusive_Process\" means that one may, with all its threads.",
        ),
        field("compute_cap", capability).about("The CUDA compute capability, as major.minor."),
    ]),
];

fn capability(row: &Row<'_, ()>) -> Cell {
    let answer = row.ask(Q::ComputeCapability);
    Ok(format!("{}.{}", at(answer.clone(), 0)?, at(answer, 1)?))
}
