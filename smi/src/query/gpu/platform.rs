//! Fields for the GPU's position in its rack.

use gpumon_probe::{
    untrusted::printable,
    vendor::nvml::query::{Answer, Query as Q},
};

use super::super::cell::{Cell, as_number, as_word, number_at, text};
use super::super::field::{Section, field, fields, with_title};
use crate::release::Release;

pub(super) const SECTIONS: &[Section] = &[
    with_title(
        "platform",
        "Where in its rack the GPU is.",
        &[
            field(
                "platform.chassis_serial_number",
                Q::PlatformInfo,
                chassis_serial,
                "The serial number of the chassis.",
            ),
            field(
                "platform.slot_number",
                Q::PlatformInfo,
                as_number::<4>,
                "The slot in the chassis, slots of switches counted.",
            ),
            field(
                "platform.tray_index",
                Q::PlatformInfo,
                as_number::<5>,
                "The tray among those that compute, switches not counted.",
            ),
            field(
                "platform.host_id",
                Q::PlatformInfo,
                as_number::<6>,
                "The number of the machine within the slot.",
            ),
            field(
                "platform.peer_type",
                Q::PlatformInfo,
                peer_type,
                "How the NVLinks reach other GPUs: directly or through a switch.",
            ),
            field(
                "platform.module_id",
                Q::ModuleId,
                as_number::<0>,
                "The number of the GPU within its machine.",
            ),
            field(
                "platform.gpu_fabric_guid",
                Q::PlatformInfo,
                fabric_guid,
                "By what the fabric knows the GPU.",
            ),
        ],
    ),
    fields(&[
        field(
            "hostname",
            Q::Hostname,
            text,
            "The name of the machine that was given to the GPU.",
        ),
        field(
            "bbx.time_run [seconds]",
            Q::TimeRun,
            as_number::<0>,
            "For how many seconds of its life the GPU has had a driver loaded.",
        )
        .since(Release(610, 0)),
    ]),
];

/// Formats a chassis serial number: up to 16 characters that NVML returns as two numbers.
fn chassis_serial(answer: &Answer) -> Cell {
    let half = |place| number_at(answer, place).map(|number| (number as u64).to_be_bytes());
    let bytes = [half(2)?, half(3)?].concat();
    let letters = bytes
        .iter()
        .take_while(|byte| **byte != 0)
        .map(|byte| char::from(*byte));
    Ok(letters.map(printable).collect())
}

fn peer_type(answer: &Answer) -> Cell {
    as_word(answer, 7, &["Direct Connected", "Switch Connected"])
}

fn fabric_guid(answer: &Answer) -> Cell {
    Ok(format!("0x{:016X}", number_at(answer, 0)? as u64))
}
