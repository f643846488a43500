//! Where in its rack the GPU is.

use gpumon_probe::{
    untrusted::printable,
    vendor::nvml::query::{Answer, Query as Q},
};

use super::super::cell::{Cell, at, number, text, word};
use super::super::field::{Section, field, titled, untitled};
use crate::release::Release;

pub(super) const SECTIONS: &[Section] = &[
    titled(
        "platform",
        "Where in its rack the GPU is.",
        &[
            field(
                "platform.chassis_serial_number",
                Q::PlatformInfo,
                chassis,
                "The serial number of the chassis.",
            ),
            field(
                "platform.slot_number",
                Q::PlatformInfo,
                number::<4>,
                "The slot in the chassis, slots of switches counted.",
            ),
            field(
                "platform.tray_index",
                Q::PlatformInfo,
                number::<5>,
                "The tray among those that compute, switches not counted.",
            ),
            field(
                "platform.host_id",
                Q::PlatformInfo,
                number::<6>,
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
                number::<0>,
                "The number of the GPU within its machine.",
            ),
            field(
                "platform.gpu_fabric_guid",
                Q::PlatformInfo,
                guid,
                "By what the fabric knows the GPU.",
            ),
        ],
    ),
    untitled(&[
        field(
            "hostname",
            Q::Hostname,
            text,
            "The name of the machine that was given to the GPU.",
        ),
        field(
            "bbx.time_run [seconds]",
            Q::TimeRun,
            number::<0>,
            "For how many seconds of its life the GPU has had a driver loaded.",
        )
        .since(Release(610, 0)),
    ]),
];

/// Up to 16 letters, which come as two numbers.
fn chassis(answer: &Answer) -> Cell {
    let half = |place| at(answer, place).map(|number| (number as u64).to_be_bytes());
    let bytes = [half(2)?, half(3)?].concat();
    let letters = bytes
        .iter()
        .take_while(|byte| **byte != 0)
        .map(|byte| char::from(*byte));
    Ok(letters.map(printable).collect())
}

fn peer_type(answer: &Answer) -> Cell {
    word(answer, 7, &["Direct Connected", "Switch Connected"])
}

fn guid(answer: &Answer) -> Cell {
    Ok(format!("0x{:016X}", at(answer, 0)? as u64))
}
