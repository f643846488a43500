//! Where in its rack the GPU is.

use gpumon_probe::{untrusted::printable, vendor::nvml::query::Query as Q};

use super::super::cell::{Cell, at, number, text, word};
use super::super::field::{Section, field, titled, untitled};
use super::super::row::Row;
use crate::release::Release;

pub(super) const SECTIONS: &[Section<()>] = &[
    titled(
        "platform",
        "Where in its rack the GPU is.",
        &[
            field("platform.chassis_serial_number", chassis)
                .about("The serial number of the chassis."),
            field("platform.slot_number", |row| {
                number(row.ask(Q::PlatformInfo), 4)
            })
            .about("The slot in the chassis, slots of switches counted."),
            field("platform.tray_index", |row| {
                number(row.ask(Q::PlatformInfo), 5)
            })
            .about("The tray among those that compute, switches not counted."),
            field("platform.host_id", |row| {
                number(row.ask(Q::PlatformInfo), 6)
            })
            .about("The number of the machine within the slot."),
            field("platform.peer_type", |row| {
                word(
                    row.ask(Q::PlatformInfo),
                    7,
                    &["Direct Connected", "Switch Connected"],
                )
            })
            .about("How the NVLinks reach other GPUs: directly or through a switch."),
            field("platform.module_id", |row| number(row.ask(Q::ModuleId), 0))
                .about("The number of the GPU within its machine."),
            field("platform.gpu_fabric_guid", |row| {
                Ok(format!(
                    "0x{:016X}",
                    at(row.ask(Q::PlatformInfo), 0)? as u64
                ))
            })
            .about("By what the fabric knows the GPU."),
        ],
    ),
    untitled(&[
        field("hostname", |row| text(row.ask(Q::Hostname)))
            .about("The name of the machine that was given to the GPU."),
        field("bbx.time_run [seconds]", |row| {
            number(row.ask(Q::TimeRun), 0)
        })
        .about("For how many seconds of its life the GPU has had a driver loaded.")
        .since(Release(610, 0)),
    ]),
];

/// Up to 16 letters, which come as two numbers.
fn chassis(row: &Row<'_, ()>) -> Cell {
    let half =
        |place| at(row.ask(Q::PlatformInfo), place).map(|number| (number as u64).to_be_bytes());
    let bytes = [half(2)?, half(3)?].concat();
    let letters = bytes
        .iter()
        .take_while(|byte| **byte != 0)
        .map(|byte| char::from(*byte));
    Ok(letters.map(printable).collect())
}
