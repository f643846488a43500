//! How busy the GPU's engines are.

use gpumon_probe::vendor::nvml::query::Query as Q;

use super::super::cell::number;
use super::super::field::{Section, field};

/// The fields.
pub(super) const SECTIONS: &[Section<()>] = &[
    Section {
        title: Some((
            "utilization",
            "How busy the GPU was of late, from which one sees how much a program makes of it.
With MIG turned on none of these can be told.",
        )),
        fields: &[
            field(
                "utilization.gpu",
                "Percent of the last sampling period in which at least one kernel ran.
The period is between a second and a sixth of one, depending on the product.",
                |row| number(row.ask(Q::UtilizationRates), 0),
            )
            .unit("%"),
            field(
                "utilization.memory",
                "Percent of the last sampling period in which the board's memory was read or written.
The period is between a second and a sixth of one, depending on the product.",
                |row| number(row.ask(Q::UtilizationRates), 1),
            )
            .unit("%"),
            field(
                "utilization.encoder",
                "Percent of the last sampling period in which the video encoder worked.",
                |row| number(row.ask(Q::EncoderUtilization), 0),
            )
            .unit("%"),
            field(
                "utilization.decoder",
                "Percent of the last sampling period in which the video decoder worked.",
                |row| number(row.ask(Q::DecoderUtilization), 0),
            )
            .unit("%"),
            field("utilization.jpeg", "Percent of the last sampling period in which the JPEG decoder worked.", |row| {
                number(row.ask(Q::JpgUtilization), 0)
            })
            .unit("%"),
            field(
                "utilization.ofa",
                "Percent of the last sampling period in which the optical flow accelerator worked.",
                |row| number(row.ask(Q::OfaUtilization), 0),
            )
            .unit("%"),
        ],
    },
    Section {
        title: Some((
            "encoder.stats",
            "What the video encoder does: sessions, and their frames per second and latency on average.",
        )),
        fields: &[
            field("encoder.stats.sessionCount", "How many sessions encode on the GPU.", |row| {
                number(row.ask(Q::EncoderStats), 0)
            }),
            field("encoder.stats.averageFps", "Their frames per second, on average.", |row| {
                number(row.ask(Q::EncoderStats), 1)
            }),
            field("encoder.stats.averageLatency", "Their latency in microseconds, on average.", |row| {
                number(row.ask(Q::EncoderStats), 2)
            }),
        ],
    },
];
