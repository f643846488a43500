//! What the board is: name, modes that are set for good, numbers and versions.

use gpumon_probe::vendor::nvml::query::{Code, Query};
use jiff::Timestamp;

use super::{
    at::At,
    format::{ABSENT, count, enabled, format_or_reason, microseconds, named, not_in_nvml, yes_no},
    item::{Item, declared, group, value},
    sections::Sections,
};

/// Name, display and driver modes.
pub(super) static NAMES: &[Item] = &[
    value("Product Name", "product_name", |at| at.text(Query::Name)),
    value("Product Brand", "product_brand", |at| at.format(Query::Brand, 0, brand)),
    value("Product Architecture", "product_architecture", |at| at.format(Query::Architecture, 0, architecture)),
    value("Display Mode", "display_mode", |_| super::format::word(Code::DEPRECATED)),
    value("Display Attached", "display_attached", |at| at.format(Query::DisplayMode, 0, yes_no)),
    value("Display Active", "display_active", |at| at.format(Query::DisplayActive, 0, enabled)),
    value("Persistence Mode", "persistence_mode", |at| at.format(Query::PersistenceMode, 0, enabled)),
    value("Addressing Mode", "addressing_mode", |at| {
        at.format(Query::AddressingMode, 0, |mode| named(mode, &["None", "HMM", "ATS"]))
    }),
];

/// Accounting and driver model.
pub(super) static MODES: &[Item] = &[
    value("Accounting Mode", "accounting_mode", |at| at.format(Query::AccountingMode, 0, enabled))
        .of(Sections::ACCOUNTING),
    value("Accounting Mode Buffer Size", "accounting_mode_buffer_size", |at| {
        at.format(Query::AccountingBufferSize, 0, count)
    })
    .of(Sections::ACCOUNTING),
    group(
        "Driver Model",
        "driver_model",
        &[
            value("Current", "current_dm", |at| at.format(Query::DriverModel, 0, driver_model)),
            value("Pending", "pending_dm", |at| at.format(Query::DriverModel, 1, driver_model)),
        ],
    ),
];

/// Numbers and versions.
pub(super) static NUMBERS: &[Item] = &[
    value("Serial Number", "serial", |at| at.text(Query::Serial)),
    value("GPU UUID", "uuid", |at| at.text(Query::Uuid)),
    value("GPU PDI", "pdi", |at| at.format(Query::Pdi, 0, |pdi| format!("0x{pdi:x}"))),
    value("Minor Number", "minor_number", |at| at.format(Query::MinorNumber, 0, count)),
    value("VBIOS Version", "vbios_version", |at| at.text(Query::VbiosVersion)),
    value("MultiGPU Board", "multigpu_board", |at| at.format(Query::MultiGpuBoard, 0, yes_no)),
    value("Board ID", "board_id", |at| at.format(Query::BoardId, 0, |id| format!("0x{id:x}"))),
    value("Board Part Number", "board_part_number", |at| at.text(Query::BoardPartNumber)),
    value("GPU Part Number", "gpu_part_number", part_number),
    value("FRU Part Number", "gpu_fru_part_number", not_in_nvml),
    group(
        "Platform Info",
        "platformInfo",
        &[
            value("Chassis Serial Number", "chassis_serial_number", |at| {
                format_or_reason(platform(at, 2), |_| chassis(at))
            }),
            value("Slot Number", "slot_number", |at| format_or_reason(platform(at, 4), in_chassis)),
            value("Tray Index", "tray_index", |at| format_or_reason(platform(at, 5), in_chassis)),
            value("Host ID", "host_id", |at| format_or_reason(platform(at, 6), count)),
            value("Peer Type", "peer_type", |at| {
                format_or_reason(platform(at, 7), |kind| named(kind, &["Direct Connected", "Switch Connected"]))
            }),
            value("Module Id", "module_id", |at| at.format(Query::ModuleId, 0, count)),
            value("GPU Fabric GUID", "gpu_fabric_guid", |at| {
                format_or_reason(platform(at, 0), |guid| format!("0x{guid:016x}"))
            }),
        ],
    ),
    group(
        "Inforom Version",
        "inforom_version",
        &[
            value("Image Version", "img_version", |at| at.text(Query::InforomImageVersion)),
            value("OEM Object", "oem_object", |at| at.text(Query::InforomVersion(0))),
            value("ECC Object", "ecc_object", |at| at.text(Query::InforomVersion(1))),
            value("Power Management Object", "pwr_object", |at| at.text(Query::InforomVersion(2))),
        ],
    ),
    group(
        "Inforom BBX Object Flush",
        "inforom_bbx_flush",
        &[
            value("Latest Timestamp", "latest_timestamp", |at| format_or_reason(flush(at, 0), |us| moment(at, us))),
            value("Latest Duration", "latest_duration", |at| format_or_reason(flush(at, 1), microseconds)),
        ],
    ),
    group(
        "GPU Operation Mode",
        "gpu_operation_mode",
        &[
            value("Current", "current_gom", |at| at.format(Query::GpuOperationMode, 0, operation_mode)),
            value("Pending", "pending_gom", |at| at.format(Query::GpuOperationMode, 1, operation_mode)),
        ],
    ),
    value("GPU C2C Mode", "c2c_mode", |at| at.format(Query::C2cMode, 0, enabled)),
    group(
        "GPU Virtualization Mode",
        "gpu_virtualization_mode",
        &[
            value("Virtualization Mode", "virtualization_mode", |at| {
                at.format(Query::VirtualizationMode, 0, |mode| {
                    named(mode, &["None", "Pass-Through", "VGPU", "Host VGPU", "Host VSGA"])
                })
            }),
            value("Host VGPU Mode", "host_vgpu_mode", |at| {
                at.format(Query::HostVgpuMode, 0, |mode| named(mode, &["Non SR-IOV", "SR-IOV"]))
            }),
            value("vGPU Heterogeneous Mode", "vgpu_heterogeneous_mode", |at| {
                at.format(Query::VgpuHeterogeneousMode, 0, enabled)
            }),
        ],
    ),
    declared(
        "vgpu_software_licensed_product",
        &[declared("licensed_product_name", &[]), declared("license_status", &[])],
    ),
    value("GPU Recovery Action", "gpu_recovery_action", |at| {
        at.format_field(RECOVERY_ACTION, 0, |action| {
            named(action, &["None", "Reset", "Reboot", "Drain P2P", "Drain and Reset"])
        })
    }),
    value("GSP Firmware Version", "gsp_firmware_version", |at| at.text(Query::GspFirmwareVersion))
        .of(Sections::GSP_FIRMWARE_VERSION),
    group("IBMNPU", "ibmnpu", &[value("Relaxed Ordering Mode", "relaxed_ordering_mode", not_in_nvml)]),
];

/// `NVML_FI_DEV_GET_GPU_RECOVERY_ACTION`.
const RECOVERY_ACTION: u32 = 230;
/// `NVML_DEVICE_ARCH_HOPPER`.
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

/// The GPU's own part number, which not every library tells.
fn part_number(at: &At<'_>) -> String {
    match at.ask(Query::GpuPartNumber) {
        Err(Code::FUNCTION_NOT_FOUND) => ABSENT.to_owned(),
        _ => at.text(Query::GpuPartNumber),
    }
}

/// A number of the platform information, which boards before Blackwell do not have and are not asked for.
fn platform(at: &At<'_>, place: usize) -> Result<i128, String> {
    match at.number(Query::Architecture, 0) {
        Ok(architecture) if architecture <= HOPPER => Err(ABSENT.to_owned()),
        _ => at.number(Query::PlatformInfo, place),
    }
}

/// The chassis' serial number: ASCII in both halves, up to the first zero.
fn chassis(at: &At<'_>) -> String {
    (2..4)
        .filter_map(|half| platform(at, half).ok())
        .flat_map(|half| (half as u64).to_be_bytes())
        .take_while(|byte| *byte != 0)
        .map(char::from)
        .collect()
}

/// A place in a chassis; a board that is in none says 255.
fn in_chassis(number: i128) -> String {
    if number == 255 { ABSENT.to_owned() } else { count(number) }
}

/// A number of the last flush. Before the first one since the driver was loaded there is nothing to tell.
fn flush(at: &At<'_>, place: usize) -> Result<i128, String> {
    match at.ask(Query::LastBbxFlush) {
        Err(Code::NOT_READY) => Err(ABSENT.to_owned()),
        _ => at.number(Query::LastBbxFlush, place),
    }
}

/// A time in microseconds since the epoch, as the clock on the wall showed it.
fn moment(at: &At<'_>, microseconds: i128) -> String {
    let Some(time) = i64::try_from(microseconds).ok().and_then(|us| Timestamp::from_microsecond(us).ok()) else {
        return ABSENT.to_owned();
    };
    time.to_zoned(at.device.context.now.time_zone().clone()).strftime("%Y/%m/%d %H:%M:%S%.3f").to_string()
}
