//! Fields for the utilization of the GPU's engines.

use gpumon_probe::vendor::nvml::query::Query as Q;

use super::super::cell::as_number;
use super::super::field::{Section, field, with_title};

pub(super) const UTILIZATION_SECTIONS: &[Section] = &[
    with_title(
        "utilization",
        "The recent utilization of the GPU, which shows how well programs use it.\nNot available \
         in MIG mode.",
        &[
            field(
                "utilization.gpu [%]",
                Q::UtilizationRates,
                as_number::<0>,
                "Share of the last sampling period in which at least one kernel ran, in \
                 percent.\nThe period lasts between 1/6 second and 1 second, depending on the \
                 product.",
            ),
            field(
                "utilization.memory [%]",
                Q::UtilizationRates,
                as_number::<1>,
                "Share of the last sampling period in which the device memory was read or \
                 written, in percent.\nThe period lasts between 1/6 second and 1 second, depending \
                 on the product.",
            ),
            field(
                "utilization.encoder [%]",
                Q::EncoderUtilization,
                as_number::<0>,
                "Share of the last sampling period in which the video encoder was active, in \
                 percent.",
            ),
            field(
                "utilization.decoder [%]",
                Q::DecoderUtilization,
                as_number::<0>,
                "Share of the last sampling period in which the video decoder was active, in \
                 percent.",
            ),
            field(
                "utilization.jpeg [%]",
                Q::JpgUtilization,
                as_number::<0>,
                "Share of the last sampling period in which the JPEG decoder was active, in \
                 percent.",
            ),
            field(
                "utilization.ofa [%]",
                Q::OfaUtilization,
                as_number::<0>,
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
            field(
                "encoder.stats.sessionCount",
                Q::EncoderStats,
                as_number::<0>,
                "The number of encoder sessions on the GPU.",
            ),
            field(
                "encoder.stats.averageFps",
                Q::EncoderStats,
                as_number::<1>,
                "The average frame rate of the sessions, in frames per second.",
            ),
            field(
                "encoder.stats.averageLatency",
                Q::EncoderStats,
                as_number::<2>,
                "The average latency of the sessions, in microseconds.",
            ),
        ],
    ),
];
