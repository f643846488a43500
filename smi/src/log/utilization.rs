//! How busy the GPU and its engines are.

use gpumon_probe::vendor::nvml::query::Query;

use super::{
    format::{count, named, percent},
    item::{Item, group, value},
    samples::samples,
    sections::Sections,
};

/// Compute mode, utilisation and its samples, encoder and frame buffer sessions.
pub(super) static ITEMS: &[Item] = &[
    value("Compute Mode", "compute_mode", |at| {
        at.format(Query::ComputeMode, 0, |mode| {
            named(mode, &["Default", "Exclusive_Thread", "Prohibited", "Exclusive_Process"])
        })
    })
    .of(Sections::COMPUTE),
    group(
        "Utilization",
        "utilization",
        &[
            value("GPU", "gpu_util", |at| at.format(Query::UtilizationRates, 0, percent)),
            value("Memory", "memory_util", |at| at.format(Query::UtilizationRates, 1, percent)),
            value("Encoder", "encoder_util", |at| at.format(Query::EncoderUtilization, 0, percent)),
            value("Decoder", "decoder_util", |at| at.format(Query::DecoderUtilization, 0, percent)),
            value("JPEG", "jpeg_util", |at| at.format(Query::JpgUtilization, 0, percent)),
            value("OFA", "ofa_util", |at| at.format(Query::OfaUtilization, 0, percent)),
        ],
    )
    .of(Sections::UTILIZATION),
    samples("GPU Utilization Samples", &[1]).only_of(Sections::UTILIZATION),
    samples("Memory Utilization Samples", &[2]).only_of(Sections::UTILIZATION),
    samples("ENC Utilization Samples", &[3]).only_of(Sections::UTILIZATION),
    samples("DEC Utilization Samples", &[4]).only_of(Sections::UTILIZATION),
    samples("JPG Utilization Samples", &[8]).only_of(Sections::UTILIZATION),
    samples("OFA Utilization Samples", &[9]).only_of(Sections::UTILIZATION),
    group(
        "Encoder Stats",
        "encoder_stats",
        &[
            value("Active Sessions", "session_count", |at| at.format(Query::EncoderStats, 0, count)),
            value("Average FPS", "average_fps", |at| at.format(Query::EncoderStats, 1, count)),
            value("Average Latency", "average_latency", |at| at.format(Query::EncoderStats, 2, count)),
        ],
    )
    .of(Sections::ENCODER_STATS),
    group(
        "FBC Stats",
        "fbc_stats",
        &[
            value("Active Sessions", "session_count", |at| at.format(Query::FbcStats, 0, count)),
            value("Average FPS", "average_fps", |at| at.format(Query::FbcStats, 1, count)),
            value("Average Latency", "average_latency", |at| at.format(Query::FbcStats, 2, count)),
        ],
    )
    .of(Sections::FBC_STATS),
];
