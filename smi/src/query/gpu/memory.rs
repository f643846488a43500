//! Fields for the board's memory and the compute mode.

use gpumon_probe::vendor::nvml::query::{Answer, Query as Q};

use super::super::cell::{Cell, as_word, mebibytes, number_at};
use super::super::field::{Section, field, fields, with_title};

pub(super) const SECTIONS: &[Section] = &[
    with_title(
        "memory",
        "The memory on the board. With ECC there is some percent less of it, which holds \
         the check bits. The driver keeps a little for itself even while nothing runs.",
        &[
            field(
                "memory.total [MiB]",
                Q::MemoryInfo,
                mebibytes::<0>,
                "All of the GPU's memory.",
            ),
            field(
                "memory.reserved [MiB]",
                Q::MemoryInfo,
                mebibytes::<1>,
                "What driver and firmware keep for themselves.",
            ),
            field(
                "memory.used [MiB]",
                Q::MemoryInfo,
                mebibytes::<3>,
                "What programs have taken.",
            ),
            field(
                "memory.free [MiB]",
                Q::MemoryInfo,
                mebibytes::<2>,
                "What is left.",
            ),
        ],
    ),
    fields(&[
        field(
            "compute_mode",
            Q::ComputeMode,
            compute_mode,
            "How many programs may compute on the GPU at once.
\"0: Default\" means that any number of them may.
\"1: Exclusive_Thread\" is old; Exclusive_Process took its place.
\"2: Prohibited\" means that none may.
\"3: Exclusive_Process\" means that one may, with all its threads.",
        ),
        field(
            "compute_cap",
            Q::ComputeCapability,
            capability,
            "The CUDA compute capability, as major.minor.",
        ),
    ]),
];

/// Returns the word for an `nvmlComputeMode_t`.
fn compute_mode(answer: &Answer) -> Cell {
    as_word(
        answer,
        0,
        &[
            "Default",
            "Exclusive_Thread",
            "Prohibited",
            "Exclusive_Process",
        ],
    )
}

fn capability(answer: &Answer) -> Cell {
    Ok(format!(
        "{}.{}",
        number_at(answer, 0)?,
        number_at(answer, 1)?
    ))
}
