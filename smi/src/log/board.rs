//! Items for the board's name, modes, numbers, and versions.

use gpumon_probe::vendor::nvml::query::{Code, Query as Q};

use super::{
    item::{
        Item, Section, TITLE_AS_TAG, computed_item, dtd_only_item, field_item, group_item,
        number_item, text_item,
    },
    value::{
        ABSENT, Cursor, format_absent, format_code, format_count, format_enabled,
        format_microseconds, format_named_number, format_or_reason, format_yes_no,
    },
};
use crate::{formats, release::Release};

/// The items for the product name, and the display and driver modes.
pub(super) static NAME_ITEMS: &[Item] = &[
    text_item("Product Name", TITLE_AS_TAG, Q::Name),
    number_item("Product Brand", TITLE_AS_TAG, Q::Brand, 0, format_brand),
    number_item(
        "Product Architecture",
        TITLE_AS_TAG,
        Q::Architecture,
        0,
        format_architecture,
    ),
    computed_item("Display Mode", TITLE_AS_TAG, |_| {
        format_code(Code::DEPRECATED)
    }),
    number_item(
        "Display Attached",
        TITLE_AS_TAG,
        Q::DisplayMode,
        0,
        format_yes_no,
    ),
    number_item(
        "Display Active",
        TITLE_AS_TAG,
        Q::DisplayActive,
        0,
        format_enabled,
    ),
    number_item(
        "Persistence Mode",
        TITLE_AS_TAG,
        Q::PersistenceMode,
        0,
        format_enabled,
    ),
    number_item(
        "Addressing Mode",
        TITLE_AS_TAG,
        Q::AddressingMode,
        0,
        |mode| format_named_number(mode, &["None", "HMM", "ATS"]),
    ),
];

pub(super) static MODE_ITEMS: &[Item] = &[
    number_item(
        "Accounting Mode",
        TITLE_AS_TAG,
        Q::AccountingMode,
        0,
        format_enabled,
    )
    .show_in_section(Section::ACCOUNTING),
    number_item(
        "Accounting Mode Buffer Size",
        TITLE_AS_TAG,
        Q::AccountingBufferSize,
        0,
        format_count,
    )
    .show_in_section(Section::ACCOUNTING),
    group_item(
        "Driver Model",
        TITLE_AS_TAG,
        &[
            number_item(
                "Current",
                "current_dm",
                Q::DriverModel,
                0,
                format_driver_model,
            ),
            number_item(
                "Pending",
                "pending_dm",
                Q::DriverModel,
                1,
                format_driver_model,
            ),
        ],
    ),
];

pub(super) static NUMBER_ITEMS: &[Item] = &[
    text_item("Serial Number", "serial", Q::Serial),
    text_item("GPU UUID", "uuid", Q::Uuid),
    number_item("GPU PDI", "pdi", Q::Pdi, 0, |pdi| format!("0x{pdi:x}")),
    number_item(
        "Minor Number",
        TITLE_AS_TAG,
        Q::MinorNumber,
        0,
        format_count,
    ),
    text_item("VBIOS Version", TITLE_AS_TAG, Q::VbiosVersion),
    number_item(
        "MultiGPU Board",
        TITLE_AS_TAG,
        Q::MultiGpuBoard,
        0,
        format_yes_no,
    ),
    number_item("Board ID", TITLE_AS_TAG, Q::BoardId, 0, |id| {
        format!("0x{id:x}")
    }),
    text_item("Board Part Number", TITLE_AS_TAG, Q::BoardPartNumber),
    computed_item("GPU Part Number", TITLE_AS_TAG, format_part_number),
    computed_item("FRU Part Number", "gpu_fru_part_number", format_absent),
    group_item(
        "Platform Info",
        "platformInfo",
        &[
            computed_item("Chassis Serial Number", TITLE_AS_TAG, |at| {
                format_or_reason(read_platform_number(at, 2), |_| format_chassis_serial(at))
            }),
            position_item("Slot Number", TITLE_AS_TAG, &[4]),
            position_item("Tray Index", TITLE_AS_TAG, &[5]),
            computed_item("Host ID", TITLE_AS_TAG, |at| {
                format_or_reason(read_platform_number(at, 6), format_count)
            }),
            computed_item("Peer Type", TITLE_AS_TAG, |at| {
                format_or_reason(read_platform_number(at, 7), |kind| {
                    format_named_number(kind, &["Direct Connected", "Switch Connected"])
                })
            }),
            number_item("Module Id", TITLE_AS_TAG, Q::ModuleId, 0, format_count),
            computed_item("GPU Fabric GUID", TITLE_AS_TAG, |at| {
                format_or_reason(read_platform_number(at, 0), |guid| format!("0x{guid:016x}"))
            }),
        ],
    ),
    group_item(
        "Inforom Version",
        TITLE_AS_TAG,
        &[
            text_item("Image Version", "img_version", Q::InforomImageVersion),
            text_item("OEM Object", TITLE_AS_TAG, Q::InforomVersion(0)),
            text_item("ECC Object", TITLE_AS_TAG, Q::InforomVersion(1)),
            text_item(
                "Power Management Object",
                "pwr_object",
                Q::InforomVersion(2),
            ),
        ],
    ),
    group_item(
        "Inforom BBX Object Flush",
        "inforom_bbx_flush",
        &[
            computed_item("Latest Timestamp", TITLE_AS_TAG, |at| {
                format_or_reason(read_flush_number(at, 0), |us| format_time(at, us))
            }),
            computed_item("Latest Duration", TITLE_AS_TAG, |at| {
                format_or_reason(read_flush_number(at, 1), format_microseconds)
            }),
        ],
    ),
    // The XML element names are guesses.
    group_item(
        "Inforom Time Data",
        TITLE_AS_TAG,
        &[number_item(
            "Time Run",
            TITLE_AS_TAG,
            Q::TimeRun,
            0,
            |seconds| format!("{seconds} seconds"),
        )],
    )
    .show_since_release(Release(610, 0)),
    group_item(
        "GPU Operation Mode",
        TITLE_AS_TAG,
        &[
            number_item(
                "Current",
                "current_gom",
                Q::GpuOperationMode,
                0,
                format_operation_mode,
            ),
            number_item(
                "Pending",
                "pending_gom",
                Q::GpuOperationMode,
                1,
                format_operation_mode,
            ),
        ],
    ),
    number_item("GPU C2C Mode", "c2c_mode", Q::C2cMode, 0, format_enabled),
    group_item(
        "GPU Virtualization Mode",
        TITLE_AS_TAG,
        &[
            number_item(
                "Virtualization Mode",
                TITLE_AS_TAG,
                Q::VirtualizationMode,
                0,
                |mode| {
                    format_named_number(
                        mode,
                        &["None", "Pass-Through", "VGPU", "Host VGPU", "Host VSGA"],
                    )
                },
            ),
            number_item("Host VGPU Mode", TITLE_AS_TAG, Q::HostVgpuMode, 0, |mode| {
                format_named_number(mode, &["Non SR-IOV", "SR-IOV"])
            }),
            number_item(
                "vGPU Heterogeneous Mode",
                TITLE_AS_TAG,
                Q::VgpuHeterogeneousMode,
                0,
                format_enabled,
            ),
        ],
    ),
    dtd_only_item(
        "vgpu_software_licensed_product",
        &[
            dtd_only_item("licensed_product_name", &[]),
            dtd_only_item("license_status", &[]),
        ],
    ),
    field_item(
        "GPU Recovery Action",
        TITLE_AS_TAG,
        RECOVERY_ACTION,
        |action| {
            format_named_number(
                action,
                &["None", "Reset", "Reboot", "Drain P2P", "Drain and Reset"],
            )
        },
    ),
    text_item("GSP Firmware Version", TITLE_AS_TAG, Q::GspFirmwareVersion)
        .show_in_section(Section::GSP_FIRMWARE_VERSION),
    group_item(
        "IBMNPU",
        TITLE_AS_TAG,
        &[computed_item(
            "Relaxed Ordering Mode",
            TITLE_AS_TAG,
            format_absent,
        )],
    ),
];

/// The field ID `NVML_FI_DEV_GET_GPU_RECOVERY_ACTION`.
const RECOVERY_ACTION: u32 = 230;
/// The value of `NVML_DEVICE_ARCH_HOPPER`.
pub(super) const HOPPER: i128 = 9;

fn format_brand(number: i128) -> String {
    format_named_number(
        number,
        &[
            "Unknown",
            "Quadro",
            "Tesla",
            "NVS",
            "Grid",
            "GeForce",
            "Titan",
            "NVIDIA Virtual Applications",
            "NVIDIA Virtual PC",
            "NVIDIA Virtual Compute Server",
            "NVIDIA RTX Virtual Workstation",
            "NVIDIA Cloud Gaming",
            "Quadro RTX",
            "NVIDIA RTX",
            "NVIDIA",
            "GeForce RTX",
            "Titan RTX",
        ],
    )
}

fn format_architecture(number: i128) -> String {
    format_named_number(
        number,
        &[
            "Unknown",
            "Unknown",
            "Kepler",
            "Maxwell",
            "Pascal",
            "Volta",
            "Turing",
            "Ampere",
            "Ada Lovelace",
            "Hopper",
            "Blackwell",
        ],
    )
}

fn format_driver_model(number: i128) -> String {
    format_named_number(number, &["WDDM", "WDM", "MCDM"])
}

fn format_operation_mode(number: i128) -> String {
    format_named_number(number, &["All On", "Compute", "Low Double Precision"])
}

/// Returns the part number of the GPU itself, or `N/A` if the library has no such query.
fn format_part_number(at: &Cursor<'_>) -> String {
    match at.run_query(Q::GpuPartNumber) {
        Err(Code::FUNCTION_NOT_FOUND) => ABSENT.to_owned(),
        _ => at.read_text(Q::GpuPartNumber),
    }
}

/// Returns a number from the platform information. Boards before Blackwell have no platform
/// information, so they are not queried.
fn read_platform_number(at: &Cursor<'_>, place: usize) -> Result<i128, String> {
    match at.read_number(Q::Architecture, 0) {
        Ok(architecture) if architecture <= HOPPER => Err(ABSENT.to_owned()),
        _ => at.read_number(Q::PlatformInfo, place),
    }
}

/// Returns the chassis serial number. It is ASCII text in two halves that ends at the first zero
/// byte.
fn format_chassis_serial(at: &Cursor<'_>) -> String {
    (2..4)
        .filter_map(|half| read_platform_number(at, half).ok())
        .flat_map(|half| (half as u64).to_be_bytes())
        .take_while(|byte| *byte != 0)
        .map(char::from)
        .collect()
}

/// Defines an item for the board's position in a chassis. A board that is not in a chassis reports
/// 255.
const fn position_item(title: &'static str, tag: &'static str, number: &'static [i128]) -> Item {
    computed_item(title, tag, |at| {
        match read_platform_number(at, at.number_at(0) as usize) {
            Ok(255) => ABSENT.to_owned(),
            place => format_or_reason(place, format_count),
        }
    })
    .with_position_numbers(number)
}

/// Returns one of the numbers about the last flush of the inforom's black box (BBX). It is absent
/// if there has been no flush since the driver was loaded.
fn read_flush_number(at: &Cursor<'_>, place: usize) -> Result<i128, String> {
    match at.run_query(Q::LastBbxFlush) {
        Err(Code::NOT_READY) => Err(ABSENT.to_owned()),
        _ => at.read_number(Q::LastBbxFlush, place),
    }
}

/// Formats a time in microseconds since 1970 as local time.
fn format_time(at: &Cursor<'_>, microseconds: i128) -> String {
    formats::convert_to_local_time(microseconds, &at.device.context.now).map_or_else(
        || ABSENT.to_owned(),
        |time| time.strftime("%Y/%m/%d %H:%M:%S%.3f").to_string(),
    )
}
