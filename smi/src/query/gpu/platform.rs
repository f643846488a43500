//! Where in its rack the GPU is.

use gpumon_probe::{untrusted::printable, vendor::nvml::query::Query as Q};

use super::super::cell::{Cell, at, number, text, word};
use super::super::field::{Section, field};
use super::super::row::Row;

/// The fields.
pub(super) const SECTIONS: &[Section<()>] = &[
    Section {
        title: Some(("platform", "Where in its rack the GPU is.")),
        fields: &[
            field("platform.chassis_serial_number", "The serial number of the chassis.", chassis),
            field("platform.slot_number", "The slot in the chassis, slots of switches counted.", |row| {
                number(row.ask(Q::PlatformInfo), 4)
            }),
            field("platform.tray_index", "The tray among those that compute, switches not counted.", |row| {
                number(row.ask(Q::PlatformInfo), 5)
            }),
            field("platform.host_id", "The number of the machine within the slot.", |row| {
                number(row.ask(Q::PlatformInfo), 6)
            }),
            field("platform.peer_type", "How the NVLinks reach other GPUs: directly or through a switch.", |row| {
                word(row.ask(Q::PlatformInfo), 7, &["Direct Connected", "Switch Connected"])
            }),
            field("platform.module_id", "The number of the GPU within its machine.", |row| {
                number(row.ask(Q::ModuleId), 0)
            }),
            field("platform.gpu_fabric_guid", "By what the fabric knows the GPU.", |row| {
                Ok(format!("0x{:016X}", at(row.ask(Q::PlatformInfo), 0)? as u64))
            }),
        ],
    },
    Section {
        title: None,
        fields: &[field("hostname", "The name of the machine that was given to the GPU.", |row| {
            text(row.ask(Q::Hostname))
        })],
    },
];

/// Up to 16 letters, which come as two numbers.
fn chassis(row: &Row<'_, ()>) -> Cell {
    let half = |place| at(row.ask(Q::PlatformInfo), place).map(|number| (number as u64).to_be_bytes());
    let bytes = [half(2)?, half(3)?].concat();
    let letters = bytes.iter().take_while(|byte| **byte != 0).map(|byte| char::from(*byte));
    Ok(letters.map(printable).collect())
}
