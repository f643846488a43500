//! Items for a GPU's MIG mode and MIG devices, and for the capabilities of a vGPU host.

use gpumon_probe::vendor::nvml::query::{Answer, Code, Query as Q, Subject, Value};

use super::{
    item::{
        Item, Layout, List, TITLE_AS_TAG, computed_item, group_item, list_item, mig_number_item,
        number_item,
    },
    value::{
        Cursor, OutputFormat, format_count, format_enabled, format_mib, format_mib_rounded_down,
        format_supported,
    },
};

/// The item for the MIG mode, and a block for each MIG device.
pub(super) static MIG_ITEMS: &[Item] = &[
    group_item(
        "MIG Mode",
        TITLE_AS_TAG,
        &[
            number_item("Current", "current_mig", Q::MigMode, 0, format_enabled),
            number_item("Pending", "pending_mig", Q::MigMode, 1, format_enabled),
        ],
    ),
    list_item("MIG Device", "mig_devices", &MIG_DEVICES),
];

/// The list of MIG devices. Each row contains the device's index.
static MIG_DEVICES: List = List {
    rows: |at| Ok(list_device_indices(at)),
    tag: "mig_device",
    items: MIG_DEVICE_ITEMS,
    layout: Layout::Headed,
};

static MIG_DEVICE_ITEMS: &[Item] = &[
    computed_item("Index", TITLE_AS_TAG, |at| format_count(at.number_at(0))),
    mig_number_item(
        "GPU Instance ID",
        TITLE_AS_TAG,
        Q::MigInstance,
        0,
        format_count,
    ),
    mig_number_item(
        "Compute Instance ID",
        TITLE_AS_TAG,
        Q::MigInstance,
        1,
        format_count,
    ),
    group_item(
        "Device Attributes",
        TITLE_AS_TAG,
        &[group_item(
            "Shared",
            TITLE_AS_TAG,
            &[
                mig_attribute_item("Multiprocessor count", TITLE_AS_TAG, 0),
                mig_attribute_item("Copy Engine count", TITLE_AS_TAG, 1),
                mig_attribute_item("Encoder count", TITLE_AS_TAG, 3),
                mig_attribute_item("Decoder count", TITLE_AS_TAG, 2),
                mig_attribute_item("OFA count", TITLE_AS_TAG, 5),
                mig_attribute_item("JPG count", TITLE_AS_TAG, 4),
            ],
        )],
    ),
    group_item(
        "ECC Errors",
        "ecc_error_count",
        &[group_item(
            "Volatile",
            "volatile_count",
            &[mig_number_item(
                "SRAM Uncorrectable",
                TITLE_AS_TAG,
                MIG_SRAM_ERRORS,
                0,
                format_count,
            )],
        )],
    )
    .show_when(has_error_counts),
    group_item(
        "Shared FB Memory Usage",
        "fb_memory_usage",
        &[
            mig_number_item("Total", TITLE_AS_TAG, Q::MemoryInfo, 0, format_mib),
            mig_number_item("Reserved", TITLE_AS_TAG, Q::MemoryInfo, 1, format_mib),
            mig_number_item("Used", TITLE_AS_TAG, Q::MemoryInfo, 3, format_mib),
            mig_number_item("Free", TITLE_AS_TAG, Q::MemoryInfo, 2, format_mib),
        ],
    ),
    group_item(
        "Shared BAR1 Memory",
        "bar1_memory_usage",
        &[
            mig_number_item("Total", TITLE_AS_TAG, Q::Bar1MemoryInfo, 0, format_mib),
            mig_number_item(
                "Used",
                TITLE_AS_TAG,
                Q::Bar1MemoryInfo,
                2,
                format_mib_rounded_down,
            ),
            mig_number_item(
                "Free",
                TITLE_AS_TAG,
                Q::Bar1MemoryInfo,
                1,
                format_mib_rounded_down,
            ),
        ],
    ),
];

/// The query for uncorrected SRAM errors since the driver was loaded.
const MIG_SRAM_ERRORS: Q = Q::MemoryErrors(1, 0, 7);

/// Returns the indices of the MIG devices, or an empty list if MIG mode is off or the GPU does not
/// respond.
fn list_device_indices(at: &Cursor<'_>) -> Vec<Vec<i128>> {
    if at.read_number(Q::MigMode, 0) != Ok(1) {
        return Vec::new();
    }
    at.run_query(Q::MigDevices)
        .iter()
        .flat_map(Value::numbers)
        .map(|index| vec![*index])
        .collect()
}

const fn mig_attribute_item(title: &'static str, tag: &'static str, place: usize) -> Item {
    mig_number_item(title, tag, Q::MigAttributes, place, format_count)
}

/// Returns `true` if error counters are shown. Text output omits them if the board has none; XML
/// output always contains them.
fn has_error_counts(at: &Cursor<'_>) -> bool {
    let part = Subject::from_mig(at.device.gpu, at.argument_at(0));
    at.form == OutputFormat::Xml
        || at.device.run_query(part, MIG_SRAM_ERRORS) != Err(Code::NOT_SUPPORTED)
}

/// The items for the board's vGPU capabilities, which are shown only on vGPU hosts.
pub(super) static VGPU_CAPABILITY_ITEMS: &[Item] = &[group_item(
    "vGPU Device Capability",
    TITLE_AS_TAG,
    &[
        number_item(
            "Fractional Multi-vGPU",
            "fractional_multiVgpu",
            Q::VgpuCapability(0),
            0,
            format_supported,
        ),
        number_item(
            "Heterogeneous Time-Slice Profiles",
            "heterogeneous_timeSlice_profile",
            Q::VgpuCapability(1),
            0,
            format_supported,
        ),
        number_item(
            "Heterogeneous Time-Slice Sizes",
            "heterogeneous_timeSlice_sizes",
            Q::VgpuCapability(2),
            0,
            format_supported,
        ),
        number_item(
            "Homogeneous Placements",
            TITLE_AS_TAG,
            Q::VgpuCapability(9),
            0,
            format_supported,
        ),
        number_item(
            "MIG Time-Slicing",
            "mig_timeSlicing",
            Q::VgpuCapability(10),
            0,
            format_supported,
        ),
        number_item(
            "MIG Time-Slicing Mode",
            "mig_timeSlicing_mode",
            Q::VgpuCapability(11),
            0,
            format_enabled,
        ),
    ],
)
.show_when(|at| is_vgpu_host(&at.run_query(Q::VirtualizationMode)))];

/// Returns `true` if `mode`, an answer to [`Q::VirtualizationMode`], is that of a vGPU host.
pub(super) fn is_vgpu_host(mode: &Answer) -> bool {
    matches!(
        mode.as_ref().ok().and_then(|mode| mode.number_at(0)),
        Some(3 | 4)
    )
}
