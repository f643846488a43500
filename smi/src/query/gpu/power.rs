//! Temperatures, and the power of the board and of the module it is part of.

use gpumon_probe::vendor::nvml::query::{Code, Query as Q};

use super::super::cell::{Absent, Cell, enabled, milliwatts, number};
use super::super::field::{Section, field};
use super::super::row::Row;

/// The scope of fields that are about the GPU.
const GPU: u32 = 0;

/// The scope of those about the whole module.
const MODULE: u32 = 1;

// `NVML_FI_DEV_MEMORY_TEMP` and the `NVML_FI_DEV_POWER_*`.
const MEMORY_TEMPERATURE: u32 = 82;
const AVERAGE: u32 = 185;
const INSTANT: u32 = 186;
const LEAST: u32 = 187;
const MOST: u32 = 188;
const DEFAULT: u32 = 189;
const CURRENT: u32 = 190;
const REQUESTED: u32 = 192;

/// The fields.
pub(super) const SECTIONS: &[Section<()>] = &[Section {
    title: None,
    fields: &[
        field("temperature.gpu", "The temperature of the chip, in degrees Celsius.", |row| {
            number(row.ask(Q::Temperature), 0)
        }),
        field("temperature.gpu.tlimit", "How many degrees Celsius are left until the GPU slows down.", |row| {
            number(row.ask(Q::MarginTemperature), 0)
        }),
        field("temperature.memory", "The temperature of the HBM, in degrees Celsius.", memory_temperature),
        field(
            "power.management",
            "Whether the driver manages the power. It takes version 3.0 of the infoROM's object for it, \
             or a Kepler or newer.",
            |row| enabled(row.ask(Q::PowerManagementMode), 0),
        ),
        field(
            "power.draw",
            "What the whole board draws, in watts: since Ampere on average over a second, before that at \
             this moment. It is right within 5 watts, and only there where power is managed.",
            |row| milliwatts(row.ask(Q::PowerUsage), 0),
        )
        .unit("W"),
        field(
            "power.draw.average",
            "What the whole board draws, in watts, on average over a second. It is right within 5 watts, \
             and only there where power is managed, since Ampere but for GA100.",
            watts::<AVERAGE, GPU>,
        )
        .or("gpu.power.draw.average")
        .unit("W"),
        field(
            "power.draw.instant",
            "What the whole board draws at this moment, in watts. It is right within 5 watts, and only \
             there where power is managed.",
            watts::<INSTANT, GPU>,
        )
        .or("gpu.power.draw.instant")
        .unit("W"),
        field(
            "power.limit",
            "The limit that was asked for, in watts, for example by nvidia-smi with the switches [-pl | \
             --power-limit=].",
            |row| milliwatts(row.ask(Q::PowerLimit), 0),
        )
        .or("gpu.power.requested_limit")
        .unit("W"),
        field(
            "enforced.power.limit",
            "The limit that holds, in watts: the lowest of several. The driver keeps what the board draws \
             below it.",
            |row| milliwatts(row.ask(Q::EnforcedPowerLimit), 0),
        )
        .or("gpu.power.current_limit")
        .unit("W"),
        field(
            "power.default_limit",
            "The limit that holds where none was asked for, in watts; also after the driver was unloaded.",
            |row| milliwatts(row.ask(Q::DefaultPowerLimit), 0),
        )
        .or("gpu.power.default_limit")
        .unit("W"),
        field("power.min_limit", "The lowest limit that can be asked for, in watts.", |row| {
            milliwatts(row.ask(Q::PowerLimitConstraints), 0)
        })
        .or("gpu.power.min_limit")
        .unit("W"),
        field("power.max_limit", "The highest limit that can be asked for, in watts.", |row| {
            milliwatts(row.ask(Q::PowerLimitConstraints), 1)
        })
        .or("gpu.power.max_limit")
        .unit("W"),
        field(
            "module.power.draw.average",
            "What the whole module draws, in watts, on average. It is right within 5 watts.",
            watts::<AVERAGE, MODULE>,
        )
        .unit("W"),
        field(
            "module.power.draw.instant",
            "What the whole module draws at this moment, in watts. It is right within 5 watts.",
            watts::<INSTANT, MODULE>,
        )
        .unit("W"),
        field(
            "module.power.limit",
            "The limit that was asked for, in watts, for the whole module.",
            watts::<REQUESTED, MODULE>,
        )
        .or("module.power.requested_limit")
        .unit("W"),
        field(
            "module.enforced.power.limit",
            "The limit that holds for the whole module, in watts: the lowest of several.",
            watts::<CURRENT, MODULE>,
        )
        .or("module.power.current_limit")
        .unit("W"),
        field(
            "module.power.default_limit",
            "The limit that holds for the whole module where none was asked for, in watts; also after the \
             driver was unloaded.",
            watts::<DEFAULT, MODULE>,
        )
        .unit("W"),
        field(
            "module.power.min_limit",
            "The lowest limit that can be asked for, in watts, for the whole module.",
            watts::<LEAST, MODULE>,
        )
        .unit("W"),
        field(
            "module.power.max_limit",
            "The highest limit that can be asked for, in watts, for the whole module.",
            watts::<MOST, MODULE>,
        )
        .unit("W"),
    ],
}];

/// A field that is counted in milliwatts.
fn watts<const FIELD: u32, const SCOPE: u32>(row: &Row<'_, ()>) -> Cell {
    milliwatts(row.ask(Q::Field(FIELD, SCOPE)), 0)
}

/// Boards whose memory has no thermometer say so without brackets.
fn memory_temperature(row: &Row<'_, ()>) -> Cell {
    match row.ask(Q::Field(MEMORY_TEMPERATURE, GPU)) {
        Err(Code::NOT_SUPPORTED) => Err(Absent::word("N/A")),
        answer => number(answer, 0),
    }
}
