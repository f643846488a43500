//! Fields for the usage of the GPU: the utilization of its engines, its memory, and its compute
//! mode.

use gpumon_probe::vendor::nvml::query::{Answer, Query as Q};

use crate::query::{
    cell::{Cell, format_mebibytes, format_number, format_word, read_number},
    table::{Section, field, fields, number_field, with_title},
};

pub(super) const UTILIZATION_SECTIONS: &[Section] = &[
    with_title(
        "utilization",
        "The recent utilization of the GPU, which shows how well programs use it.\nNot available \
         in MIG mode.",
        &[
            number_field(
                "utilization.gpu [%]",
                Q::UtilizationRates,
                "Share of the last sampling period in which at least one kernel ran, in \
                 percent.\nThe period lasts between 1/6 second and 1 second, depending on the \
                 product.",
            ),
            field(
                "utilization.memory [%]",
                Q::UtilizationRates,
                format_number::<1>,
                "Share of the last sampling period in which the device memory was read or \
                 written, in percent.\nThe period lasts between 1/6 second and 1 second, depending \
                 on the product.",
            ),
            number_field(
                "utilization.encoder [%]",
                Q::EncoderUtilization,
                "Share of the last sampling period in which the video encoder was active, in \
                 percent.",
            ),
            number_field(
                "utilization.decoder [%]",
                Q::DecoderUtilization,
                "Share of the last sampling period in which the video decoder was active, in \
                 percent.",
            ),
            number_field(
                "utilization.jpeg [%]",
                Q::JpgUtilization,
                "Share of the last sampling period in which the JPEG decoder was active, in \
                 percent.",
            ),
            number_field(
                "utilization.ofa [%]",
                Q::OfaUtilization,
                "Share of the last sampling period in which the optical flow accelerator was \
                 active, in percent.",
            ),
        ],
    ),
    with_title(
        "encoder.stats",
        "Statistics of the video encoder: the number of sessions, and their average frame rate \
         and latency.",
        &[
            number_field(
                "encoder.stats.sessionCount",
                Q::EncoderStats,
                "The number of encoder sessions on the GPU.",
            ),
            field(
                "encoder.stats.averageFps",
                Q::EncoderStats,
                format_number::<1>,
                "The average frame rate of the sessions, in frames per second.",
            ),
            field(
                "encoder.stats.averageLatency",
                Q::EncoderStats,
                format_number::<2>,
                "The average latency of the sessions, in microseconds.",
            ),
        ],
    ),
];

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
            format_compute_capability,
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

fn format_compute_capability(answer: &Answer) -> Cell {
    Ok(format!(
        "{}.{}",
        read_number(answer, 0)?,
        read_number(answer, 1)?
    ))
}
