//! How busy the GPU's engines are.

use gpumon_probe::vendor::nvml::query::Query as Q;

use super::super::cell::number;
use super::super::field::{Section, field};

pub(super) const SECTIONS: &[Section<()>] = &[
    Section {
        title: Some((
            "utilization",
            "How busy the GPU was of late, from which one sees how much a program makes of it.
With MIG turned on none of these can be told.",
        )),
        fields: &[
            field("utilization.gpu", |row| number(row.ask(Q::UtilizationRates), 0))
                .about(
                    "Percent of the last sampling period in which at least one kernel ran.
The period is between a second and a sixth of one, depending on the product.",
                )
                .unit("%"),
            field("utilization.memory", |row| number(row.ask(Q::UtilizationRates), 1))
                .about(
                    "Percent of the last sampling period in which the board's memory was read or written.
The period is between a second and a sixth of one, depending on the product.",
                )
                .unit("%"),
            field("utilization.encoder", |row| number(row.ask(Q::EncoderUtilization), 0))
                .about("Percent of the last sampling period in which the video encoder worked.")
                .unit("%"),
            field("utilization.decoder", |row| number(row.ask(Q::DecoderUtilization), 0))
                .about("Percent of the last sampling period in which the video decoder worked.")
                .unit("%"),
            field("utilization.jpeg", |row| number(row.ask(Q::JpgUtilization), 0))
                .about("Percent of the last sampling period in which the JPEG decoder worked.")
                .unit("%"),
            field("utilization.ofa", |row| number(row.ask(Q::OfaUtilization), 0))
                .about("Percent of the last sampling period in which the optical flow accelerator worked.")
                .unit("%"),
        ],
    },
    Section {
        title: Some((
            "encoder.stats",
            "What the video encoder does: sessions, and their frames per second and latency on average.",
        )),
        fields: &[
            field("encoder.stats.sessionCount", |row| number(row.ask(Q::EncoderStats), 0))
                .about("How many sessions encode on the GPU."),
            field("encoder.stats.averageFps", |row| number(row.ask(Q::EncoderStats), 1))
                .about("Their frames per second, on average."),
            field("encoder.stats.averageLatency", |row| number(row.ask(Q::EncoderStats), 2))
                .about("Their latency in microseconds, on average."),
        ],
    },
];
