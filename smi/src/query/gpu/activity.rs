//! How busy the GPU's engines are.

use gpumon_probe::vendor::nvml::query::Query as Q;

use super::super::cell::number;
use super::super::field::{Section, field, titled};

pub(super) const SECTIONS: &[Section<()>] = &[
    titled(
        "utilization",
        "How busy the GPU was of late, from which one sees how much a program makes of it.
With MIG turned on none of these can be told.",
        &[
            field("utilization.gpu [%]", |row| number(row.ask(Q::UtilizationRates), 0)).about(
                "Percent of the last sampling period in which at least one kernel ran.
The period is between a second and a sixth of one, depending on the product.",
            ),
            field("utilization.memory [%]", |row| number(row.ask(Q::UtilizationRates), 1)).about(
                "Percent of the last sampling period in which the board's memory was read or written.
The period is between a second and a sixth of one, depending on the product.",
            ),
            field("utilization.encoder [%]", |row| number(row.ask(Q::EncoderUtilization), 0))
                .about("Percent of the last sampling period in which the video encoder worked."),
            field("utilization.decoder [%]", |row| number(row.ask(Q::DecoderUtilization), 0))
                .about("Percent of the last sampling period in which the video decoder worked."),
            field("utilization.jpeg [%]", |row| number(row.ask(Q::JpgUtilization), 0))
                .about("Percent of the last sampling period in which the JPEG decoder worked."),
            field("utilization.ofa [%]", |row| number(row.ask(Q::OfaUtilization), 0))
                .about("Percent of the last sampling period in which the optical flow accelerator worked."),
        ],
    ),
    titled(
        "encoder.stats",
        "What the video encoder does: sessions, and their frames per second and latency on average.",
        &[
            field("encoder.stats.sessionCount", |row| number(row.ask(Q::EncoderStats), 0))
                .about("How many sessions encode on the GPU."),
            field("encoder.stats.averageFps", |row| number(row.ask(Q::EncoderStats), 1))
                .about("Their frames per second, on average."),
            field("encoder.stats.averageLatency", |row| number(row.ask(Q::EncoderStats), 2))
                .about("Their latency in microseconds, on average."),
        ],
    ),
];
