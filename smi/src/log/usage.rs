//! Items for the usage of the GPU: its compute mode, the utilization of its engines, and its
//! memory.

use gpumon_probe::vendor::nvml::query::Query as Q;

use super::{
    item::{Item, Section, TITLE_AS_TAG, group_item, number_item, samples_item},
    value::{
        format_count, format_mib, format_mib_rounded_down, format_named_number, format_percent,
    },
};

/// The items for the compute mode, for utilization including samples, and for encoder and frame
/// buffer capture sessions.
pub(super) static UTILIZATION_ITEMS: &[Item] = &[
    number_item("Compute Mode", TITLE_AS_TAG, Q::ComputeMode, 0, |mode| {
        format_named_number(
            mode,
            &[
                "Default",
                "Exclusive_Thread",
                "Prohibited",
                "Exclusive_Process",
            ],
        )
    })
    .show_in_section(Section::COMPUTE),
    group_item(
        "Utilization",
        TITLE_AS_TAG,
        &[
            number_item("GPU", "gpu_util", Q::UtilizationRates, 0, format_percent),
            number_item(
                "Memory",
                "memory_util",
                Q::UtilizationRates,
                1,
                format_percent,
            ),
            number_item(
                "Encoder",
                "encoder_util",
                Q::EncoderUtilization,
                0,
                format_percent,
            ),
            number_item(
                "Decoder",
                "decoder_util",
                Q::DecoderUtilization,
                0,
                format_percent,
            ),
            number_item("JPEG", "jpeg_util", Q::JpgUtilization, 0, format_percent),
            number_item("OFA", "ofa_util", Q::OfaUtilization, 0, format_percent),
        ],
    )
    .show_in_section(Section::UTILIZATION),
    samples_item("GPU Utilization Samples", &[1]).show_only_in_section(Section::UTILIZATION),
    samples_item("Memory Utilization Samples", &[2]).show_only_in_section(Section::UTILIZATION),
    samples_item("ENC Utilization Samples", &[3]).show_only_in_section(Section::UTILIZATION),
    samples_item("DEC Utilization Samples", &[4]).show_only_in_section(Section::UTILIZATION),
    samples_item("JPG Utilization Samples", &[8]).show_only_in_section(Section::UTILIZATION),
    samples_item("OFA Utilization Samples", &[9]).show_only_in_section(Section::UTILIZATION),
    group_item(
        "Encoder Stats",
        TITLE_AS_TAG,
        &[
            number_item(
                "Active Sessions",
                "session_count",
                Q::EncoderStats,
                0,
                format_count,
            ),
            number_item(
                "Average FPS",
                TITLE_AS_TAG,
                Q::EncoderStats,
                1,
                format_count,
            ),
            number_item(
                "Average Latency",
                TITLE_AS_TAG,
                Q::EncoderStats,
                2,
                format_count,
            ),
        ],
    )
    .show_in_section(Section::ENCODER_STATS),
    group_item(
        "FBC Stats",
        TITLE_AS_TAG,
        &[
            number_item(
                "Active Sessions",
                "session_count",
                Q::FbcStats,
                0,
                format_count,
            ),
            number_item("Average FPS", TITLE_AS_TAG, Q::FbcStats, 1, format_count),
            number_item(
                "Average Latency",
                TITLE_AS_TAG,
                Q::FbcStats,
                2,
                format_count,
            ),
        ],
    )
    .show_in_section(Section::FBC_STATS),
];

/// The items for the GPU's memory, the BAR1 window, and the protected memory, in MiB.
pub(super) static MEMORY_ITEMS: &[Item] = &[
    group_item(
        "FB Memory Usage",
        TITLE_AS_TAG,
        &[
            number_item("Total", TITLE_AS_TAG, Q::MemoryInfo, 0, format_mib),
            number_item("Reserved", TITLE_AS_TAG, Q::MemoryInfo, 1, format_mib),
            number_item("Used", TITLE_AS_TAG, Q::MemoryInfo, 3, format_mib),
            number_item("Free", TITLE_AS_TAG, Q::MemoryInfo, 2, format_mib),
        ],
    )
    .show_in_section(Section::MEMORY),
    group_item(
        "BAR1 Memory Usage",
        TITLE_AS_TAG,
        &[
            number_item("Total", TITLE_AS_TAG, Q::Bar1MemoryInfo, 0, format_mib),
            number_item(
                "Used",
                TITLE_AS_TAG,
                Q::Bar1MemoryInfo,
                2,
                format_mib_rounded_down,
            ),
            number_item("Free", TITLE_AS_TAG, Q::Bar1MemoryInfo, 1, format_mib),
        ],
    )
    .show_in_section(Section::MEMORY),
    group_item(
        "Conf Compute Protected Memory Usage",
        "cc_protected_memory_usage",
        &[
            number_item("Total", TITLE_AS_TAG, Q::ProtectedMemory, 0, format_mib),
            number_item("Used", TITLE_AS_TAG, Q::ProtectedMemory, 2, format_mib),
            number_item("Free", TITLE_AS_TAG, Q::ProtectedMemory, 1, format_mib),
        ],
    )
    .show_in_section(Section::MEMORY),
];
