//! Fields for the board's memory and the compute mode.

use gpumon_probe::vendor::nvml::query::{Answer, Query as Q};

use super::super::cell::{Cell, format_mebibytes, format_word, read_number};
use super::super::field::{Section, field, fields, with_title};

pub(super) const MEMORY_SECTIONS: &[Section] = &[
    with_title(
        "memory",
        "The memory on the board. With ECC enabled, check bits use a few percent of it. The \
         driver reserves a small amount even if no program runs.",
        &[
            field(
                "memory.total [MiB]",
                Q::MemoryInfo,
                format_mebibytes::<0>,
                "The total memory of the GPU, in MiB.",
            ),
            field(
                "memory.reserved [MiB]",
                Q::MemoryInfo,
                format_mebibytes::<1>,
                "The memory reserved by the driver and the firmware, in MiB.",
            ),
            field(
                "memory.used [MiB]",
                Q::MemoryInfo,
                format_mebibytes::<3>,
                "The memory used by programs, in MiB.",
            ),
            field(
                "memory.free [MiB]",
                Q::MemoryInfo,
                format_mebibytes::<2>,
                "The free memory, in MiB.",
            ),
        ],
    ),
    fields(&[
        field(
            "compute_mode",
            Q::ComputeMode,
            format_compute_mode,
            "The number of programs that may compute on the GPU at the same time.\n\"0: Default\" \
             means any number of programs.\n\"1: Exclusive_Thread\" is deprecated. \
             Exclusive_Process replaces it.\n\"2: Prohibited\" means none.\n\"3: \
             Exclusive_Process\" means one process, with any number of threads.",
        ),
        field(
            "compute_cap",
            Q::ComputeCapability,
            format_capability,
            "The CUDA compute capability, as major.minor.",
        ),
    ]),
];

/// Returns the word for an `nvmlComputeMode_t`.
fn format_compute_mode(answer: &Answer) -> Cell {
    format_word(
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

fn format_capability(answer: &Answer) -> Cell {
    Ok(format!(
        "{}.{}",
        read_number(answer, 0)?,
        read_number(answer, 1)?
    ))
}
