//! Fields for the utilization of the GPU's engines.

use gpumon_probe::vendor::nvml::query::Query as Q;

use super::super::cell::as_number;
use super::super::field::{Section, field, with_title};

pub(super) const SECTIONS: &[Section] = &[
    with_title(
        "utilization",
        "How busy the GPU was of late, from which one sees how much a program makes of \
         it.
With MIG turned on none of these can be told.",
        &[
            field(
                "utilization.gpu [%]",
                Q::UtilizationRates,
                as_number::<0>,
                "Percent of the last sampling period in which at least one kernel ran.
The period is between a second and a sixth of one, depending on the product.",
            ),
            field(
                "utilization.memory [%]",
                Q::UtilizationRates,
                as_number::<1>,
                "Percent of the last sampling period in which the board's memory was read or \
                 written.
The period is between a second and a sixth of one, depending on the product.",
            ),
            field(
                "utilization.encoder [%]",
                Q::EncoderUtilization,
                as_number::<0>,
                "Percent of the last sampling period in which the video encoder worked.",
            ),
            field(
                "utilization.decoder [%]",
                Q::DecoderUtilization,
                as_number::<0>,
                "Percent of the last sampling period in which the video decoder worked.",
            ),
            field(
                "utilization.jpeg [%]",
                Q::JpgUtilization,
                as_number::<0>,
                "Percent of the last sampling period in which the JPEG decoder worked.",
            ),
            field(
                "utilization.ofa [%]",
                Q::OfaUtilization,
                as_number::<0>,
                "Percent of the last sampling period in which the optical flow accelerator \
                 worked.",
            ),
        ],
    ),
    with_title(
        "encoder.stats",
        "What the video encoder does: sessions, and their frames per second and latency \
         on average.",
        &[
            field(
                "encoder.stats.sessionCount",
                Q::EncoderStats,
                as_number::<0>,
                "How many sessions encode on the GPU.",
            ),
            field(
                "encoder.stats.averageFps",
                Q::EncoderStats,
                as_number::<1>,
                "Their frames per second, on average.",
            ),
            field(
                "encoder.stats.averageLatency",
                Q::EncoderStats,
                as_number::<2>,
                "Their latency in microseconds, on average.",
            ),
        ],
    ),
];
