//! The utilization of the GPU and its engines.

use gpumon_probe::vendor::nvml::query::Query as Q;

use super::{
    format::{count, named, percent},
    item::{Item, SAME, group, number},
    samples::samples,
    sections::Section,
};

/// The compute mode, utilization with samples, and encoder and frame buffer sessions.
pub(super) static ITEMS: &[Item] = &[
    number("Compute Mode", SAME, Q::ComputeMode, 0, |mode| {
        named(
            mode,
            &[
                "Default",
                "Exclusive_Thread",
                "Prohibited",
                "Exclusive_Process",
            ],
        )
    })
    .of(Section::COMPUTE),
    group("Utilization", SAME).of(Section::UTILIZATION).holds(&[
        number("GPU", "gpu_util", Q::UtilizationRates, 0, percent),
        number("Memory", "memory_util", Q::UtilizationRates, 1, percent),
        number("Encoder", "encoder_util", Q::EncoderUtilization, 0, percent),
        number("Decoder", "decoder_util", Q::DecoderUtilization, 0, percent),
        number("JPEG", "jpeg_util", Q::JpgUtilization, 0, percent),
        number("OFA", "ofa_util", Q::OfaUtilization, 0, percent),
    ]),
    samples("GPU Utilization Samples", &[1]).only_of(Section::UTILIZATION),
    samples("Memory Utilization Samples", &[2]).only_of(Section::UTILIZATION),
    samples("ENC Utilization Samples", &[3]).only_of(Section::UTILIZATION),
    samples("DEC Utilization Samples", &[4]).only_of(Section::UTILIZATION),
    samples("JPG Utilization Samples", &[8]).only_of(Section::UTILIZATION),
    samples("OFA Utilization Samples", &[9]).only_of(Section::UTILIZATION),
    group("Encoder Stats", SAME)
        .of(Section::ENCODER_STATS)
        .holds(&[
            number(
                "Active Sessions",
                "session_count",
                Q::EncoderStats,
                0,
                count,
            ),
            number("Average FPS", SAME, Q::EncoderStats, 1, count),
            number("Average Latency", SAME, Q::EncoderStats, 2, count),
        ]),
    group("FBC Stats", SAME).of(Section::FBC_STATS).holds(&[
        number("Active Sessions", "session_count", Q::FbcStats, 0, count),
        number("Average FPS", SAME, Q::FbcStats, 1, count),
        number("Average Latency", SAME, Q::FbcStats, 2, count),
    ]),
];
