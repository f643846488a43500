//! The board's name, modes, numbers and versions.

use gpumon_probe::vendor::nvml::query::{Code, Query as Q};
use jiff::Timestamp;

use super::{
    cursor::Cursor,
    format::{ABSENT, count, enabled, format_or_reason, microseconds, named, not_in_nvml, yes_no},
    item::{Item, SAME, declared, field, group, number, text, value},
    sections::Section,
};
use crate::release::Release;

/// The name, and the modes of display and driver.
pub(super) static NAMES: &[Item] = &[
    text("Product Name", SAME, Q::Name),
    number("Product Brand", SAME, Q::Brand, 0, brand),
    number(
        "Product Architecture",
        SAME,
        Q::Architecture,
        0,
        architecture,
    ),
    value("Display Mode", SAME, |_| {
        super::format::word(Code::DEPRECATED)
    }),
    number("Display Attached", SAME, Q::DisplayMode, 0, yes_no),
    number("Display Active", SAME, Q::DisplayActive, 0, enabled),
    number("Persistence Mode", SAME, Q::PersistenceMode, 0, enabled),
    number("Addressing Mode", SAME, Q::AddressingMode, 0, |mode| {
        named(mode, &["None", "HMM", "ATS"])
    }),
];

pub(super) static MODES: &[Item] = &[
    number("Accounting Mode", SAME, Q::AccountingMode, 0, enabled).of(Section::ACCOUNTING),
    number(
        "Accounting Mode Buffer Size",
        SAME,
        Q::AccountingBufferSize,
        0,
        count,
    )
    .of(Section::ACCOUNTING),
    group("Driver Model", SAME).holds(&[
        number("Current", "current_dm", Q::DriverModel, 0, driver_model),
        number("Pending", "pending_dm", Q::DriverModel, 1, driver_model),
    ]),
];

pub(super) static NUMBERS: &[Item] = &[
    text("Serial Number", "serial", Q::Serial),
    text("GPU UUID", "uuid", Q::Uuid),
    number("GPU PDI", "pdi", Q::Pdi, 0, |pdi| format!("0x{pdi:x}")),
    number("Minor Number", SAME, Q::MinorNumber, 0, count),
    text("VBIOS Version", SAME, Q::VbiosVersion),
    number("MultiGPU Board", SAME, Q::MultiGpuBoard, 0, yes_no),
    number("Board ID", SAME, Q::BoardId, 0, |id| format!("0x{id:x}")),
    text("Board Part Number", SAME, Q::BoardPartNumber),
    value("GPU Part Number", SAME, part_number),
    value("FRU Part Number", "gpu_fru_part_number", not_in_nvml),
    group("Platform Info", "platformInfo").holds(&[
        value("Chassis Serial Number", SAME, |at| {
            format_or_reason(platform(at, 2), |_| chassis(at))
        }),
        place("Slot Number", SAME, &[4]),
        place("Tray Index", SAME, &[5]),
        value("Host ID", SAME, |at| {
            format_or_reason(platform(at, 6), count)
        }),
        value("Peer Type", SAME, |at| {
            format_or_reason(platform(at, 7), |kind| {
                named(kind, &["Direct Connected", "Switch Connected"])
            })
        }),
        number("Module Id", SAME, Q::ModuleId, 0, count),
        value("GPU Fabric GUID", SAME, |at| {
            format_or_reason(platform(at, 0), |guid| format!("0x{guid:016x}"))
        }),
    ]),
    group("Inforom Version", SAME).holds(&[
        text("Image Version", "img_version", Q::InforomImageVersion),
        text("OEM Object", SAME, Q::InforomVersion(0)),
        text("ECC Object", SAME, Q::InforomVersion(1)),
        text(
            "Power Management Object",
            "pwr_object",
            Q::InforomVersion(2),
        ),
    ]),
    group("Inforom BBX Object Flush", "inforom_bbx_flush").holds(&[
        value("Latest Timestamp", SAME, |at| {
            format_or_reason(flush(at, 0), |us| moment(at, us))
        }),
        value("Latest Duration", SAME, |at| {
            format_or_reason(flush(at, 1), microseconds)
        }),
    ]),
    // The names of the elements are guessed.
    group("Inforom Time Data", SAME)
        .holds(&[number("Time Run", SAME, Q::TimeRun, 0, |seconds| {
            format!("{seconds} seconds")
        })])
        .since(Release(610, 0)),
    group("GPU Operation Mode", SAME).holds(&[
        number(
            "Current",
            "current_gom",
            Q::GpuOperationMode,
            0,
            operation_mode,
        ),
        number(
            "Pending",
            "pending_gom",
            Q::GpuOperationMode,
            1,
            operation_mode,
        ),
    ]),
    number("GPU C2C Mode", "c2c_mode", Q::C2cMode, 0, enabled),
    group("GPU Virtualization Mode", SAME).holds(&[
        number(
            "Virtualization Mode",
            SAME,
            Q::VirtualizationMode,
            0,
            |mode| {
                named(
                    mode,
                    &["None", "Pass-Through", "VGPU", "Host VGPU", "Host VSGA"],
                )
            },
        ),
        number("Host VGPU Mode", SAME, Q::HostVgpuMode, 0, |mode| {
            named(mode, &["Non SR-IOV", "SR-IOV"])
        }),
        number(
            "vGPU Heterogeneous Mode",
            SAME,
            Q::VgpuHeterogeneousMode,
            0,
            enabled,
        ),
    ]),
    declared(
        "vgpu_software_licensed_product",
        &[
            declared("licensed_product_name", &[]),
            declared("license_status", &[]),
        ],
    ),
    field("GPU Recovery Action", SAME, RECOVERY_ACTION, |action| {
        named(
            action,
            &["None", "Reset", "Reboot", "Drain P2P", "Drain and Reset"],
        )
    }),
    text("GSP Firmware Version", SAME, Q::GspFirmwareVersion).of(Section::GSP_FIRMWARE_VERSION),
    group("IBMNPU", SAME).holds(&[value("Relaxed Ordering Mode", SAME, not_in_nvml)]),
];

/// The ID of the NVML field `NVML_FI_DEV_GET_GPU_RECOVERY_ACTION`.
const RECOVERY_ACTION: u32 = 230;
/// The value of NVML's `NVML_DEVICE_ARCH_HOPPER`.
pub(super) const HOPPER: i128 = 9;

fn brand(number: i128) -> String {
    named(
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

fn architecture(number: i128) -> String {
    named(
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

fn driver_model(number: i128) -> String {
    named(number, &["WDDM", "WDM", "MCDM"])
}

fn operation_mode(number: i128) -> String {
    named(number, &["All On", "Compute", "Low Double Precision"])
}

/// Returns the GPU's own part number; `N/A` if the library has no such query.
fn part_number(at: &Cursor<'_>) -> String {
    match at.ask(Q::GpuPartNumber) {
        Err(Code::FUNCTION_NOT_FOUND) => ABSENT.to_owned(),
        _ => at.text(Q::GpuPartNumber),
    }
}

/// Returns a number of the platform information. Boards before Blackwell have none and are not
/// asked.
fn platform(at: &Cursor<'_>, place: usize) -> Result<i128, String> {
    match at.number(Q::Architecture, 0) {
        Ok(architecture) if architecture <= HOPPER => Err(ABSENT.to_owned()),
        _ => at.number(Q::PlatformInfo, place),
    }
}

/// Returns the serial number of the chassis, which is ASCII in two halves and ends at the first
/// zero.
fn chassis(at: &Cursor<'_>) -> String {
    (2..4)
        .filter_map(|half| platform(at, half).ok())
        .flat_map(|half| (half as u64).to_be_bytes())
        .take_while(|byte| *byte != 0)
        .map(char::from)
        .collect()
}

/// Defines a position in a chassis. A board outside a chassis reports 255.
const fn place(title: &'static str, tag: &'static str, number: &'static [i128]) -> Item {
    value(title, tag, |at| match platform(at, at.nth(0) as usize) {
        Ok(255) => ABSENT.to_owned(),
        place => format_or_reason(place, count),
    })
    .about(number)
}

/// Returns a number of the last flush. If there was none since the driver was loaded, the value is
/// absent.
fn flush(at: &Cursor<'_>, place: usize) -> Result<i128, String> {
    match at.ask(Q::LastBbxFlush) {
        Err(Code::NOT_READY) => Err(ABSENT.to_owned()),
        _ => at.number(Q::LastBbxFlush, place),
    }
}

/// Formats a time in microseconds since 1970 as local time.
fn moment(at: &Cursor<'_>, microseconds: i128) -> String {
    let Some(time) = i64::try_from(microseconds)
        .ok()
        .and_then(|us| Timestamp::from_microsecond(us).ok())
    else {
        return ABSENT.to_owned();
    };
    time.to_zoned(at.device.context.now.time_zone().clone())
        .strftime("%Y/%m/%d %H:%M:%S%.3f")
        .to_string()
}
