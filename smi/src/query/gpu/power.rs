//! Temperatures, and the power of the board and of the module it is part of.

use gpumon_probe::vendor::nvml::query::{Code, Query as Q};

use super::super::cell::{Absent, Cell, enabled, milliwatts, number, two_places};
use super::super::field::{Section, field, untitled};
use super::super::row::Row;
use crate::release::Release;

/// The scope of fields that are about the GPU.
const GPU: u32 = 0;

/// The scope of those about the whole module.
const MODULE: u32 = 1;

/// The scope of those about the GPU's base power.
const BASE: u32 = 3;

// `NVML_FI_DEV_MEMORY_TEMP`, the `NVML_FI_DEV_POWER_*` and `NVML_FI_DEV_EDPP_MULTIPLIER`.
const MEMORY_TEMPERATURE: u32 = 82;
const AVERAGE: u32 = 185;
const INSTANT: u32 = 186;
const LEAST: u32 = 187;
const MOST: u32 = 188;
const DEFAULT: u32 = 189;
const CURRENT: u32 = 190;
const REQUESTED: u32 = 192;
const EDPP_MULTIPLIER: u32 = 274;

pub(super) const SECTIONS: &[Section<()>] = &[untitled(&[
    field("temperature.gpu", |row| number(row.ask(Q::Temperature), 0))
        .about("The temperature of the chip, in degrees Celsius."),
    field("temperature.gpu.tlimit", |row| number(row.ask(Q::MarginTemperature), 0))
        .about("How many degrees Celsius are left until the GPU slows down."),
    field("temperature.memory", memory_temperature).about("The temperature of the HBM, in degrees Celsius."),
    field("power.management", management).about(
        "Whether the driver manages the power. It takes version 3.0 of the infoROM's object for it, or a Kepler or \
         newer.",
    ),
    field("power.draw [W]", |row| milliwatts(row.ask(Q::PowerUsage), 0)).about(
        "What the whole board draws, in watts: since Ampere on average over a second, before that at this moment. It \
         is right within 5 watts, and only there where power is managed.",
    ),
    field("power.draw.average or gpu.power.draw.average [W]", watts::<AVERAGE, GPU>).about(
        "What the whole board draws, in watts, on average over a second. It is right within 5 watts, and only there \
         where power is managed, since Ampere but for GA100.",
    ),
    field("power.draw.instant or gpu.power.draw.instant [W]", watts::<INSTANT, GPU>).about(
        "What the whole board draws at this moment, in watts. It is right within 5 watts, and only there where power \
         is managed.",
    ),
    field("power.limit or gpu.power.requested_limit [W]", |row| milliwatts(row.ask(Q::PowerLimit), 0))
        .about("The requested limit, in watts, for example by nvidia-smi with the switches [-pl | --power-limit=]."),
    field("enforced.power.limit or gpu.power.current_limit [W]", |row| milliwatts(row.ask(Q::EnforcedPowerLimit), 0))
        .about(
            "The limit that holds, in watts: the lowest of several. The driver keeps what the board draws below it.",
        ),
    field("power.default_limit or gpu.power.default_limit [W]", |row| milliwatts(row.ask(Q::DefaultPowerLimit), 0))
        .about("The default limit, in watts; it also applies after the driver was unloaded."),
    field("power.min_limit or gpu.power.min_limit [W]", |row| milliwatts(row.ask(Q::PowerLimitConstraints), 0))
        .about("The lowest limit that can be set, in watts."),
    field("power.max_limit or gpu.power.max_limit [W]", |row| milliwatts(row.ask(Q::PowerLimitConstraints), 1))
        .about("The highest limit that can be set, in watts."),
    field("module.power.draw.average [W]", watts::<AVERAGE, MODULE>)
        .about("What the whole module draws, in watts, on average. It is right within 5 watts."),
    field("module.power.draw.instant [W]", watts::<INSTANT, MODULE>)
        .about("What the whole module draws at this moment, in watts. It is right within 5 watts."),
    field("module.power.limit or module.power.requested_limit [W]", watts::<REQUESTED, MODULE>)
        .about("The requested limit, in watts, for the whole module."),
    field("module.enforced.power.limit or module.power.current_limit [W]", watts::<CURRENT, MODULE>)
        .about("The limit that holds for the whole module, in watts: the lowest of several."),
    field("module.power.default_limit [W]", watts::<DEFAULT, MODULE>).about(
        "The limit that holds for the whole module where none was asked for, in watts; also after the driver was \
         unloaded.",
    ),
    field("module.power.min_limit [W]", watts::<LEAST, MODULE>)
        .about("The lowest limit that can be set, in watts, for the whole module."),
    field("module.power.max_limit [W]", watts::<MOST, MODULE>)
        .about("The highest limit that can be set, in watts, for the whole module."),
    field("gpu.base.current [W]", watts::<CURRENT, BASE>)
        .about("The base power of the GPU that holds, in watts.")
        .since(Release(610, 0)),
    field("gpu.base.requested [W]", watts::<REQUESTED, BASE>)
        .about("The base power of the GPU that was asked for, in watts.")
        .since(Release(610, 0)),
    field("gpu.base.default [W]", watts::<DEFAULT, BASE>)
        .about("The base power of the GPU where none was asked for, in watts.")
        .since(Release(610, 0)),
    field("gpu.base.min [W]", watts::<LEAST, BASE>)
        .about("The lowest base power that can be set, in watts.")
        .since(Release(610, 0)),
    field("gpu.base.max [W]", watts::<MOST, BASE>)
        .about("The highest base power that can be set, in watts.")
        .since(Release(610, 0)),
])];

pub(super) const EDPP: &[Section<()>] = &[untitled(&[field("edpp_multiplier [%]", |row| {
    two_places(row.ask(Q::Field(EDPP_MULTIPLIER, GPU)))
})
.about(
    "By how many percent of their usual height peaks of the electric current (EDPp) are limited.",
)
.since(Release(590, 0))])];

fn watts<const FIELD: u32, const SCOPE: u32>(row: &Row<'_, ()>) -> Cell {
    milliwatts(row.ask(Q::Field(FIELD, SCOPE)), 0)
}

/// Drivers from 590 on no longer tell it, though NVML still does.
fn management(row: &Row<'_, ()>) -> Cell {
    if row.gpu.context.release() >= Release(590, 0) {
        return Err(Code::DEPRECATED.into());
    }
    enabled(row.ask(Q::PowerManagementMode), 0)
}

/// Boards whose memory has no thermometer say so without brackets.
fn memory_temperature(row: &Row<'_, ()>) -> Cell {
    match row.ask(Q::Field(MEMORY_TEMPERATURE, GPU)) {
        Err(Code::NOT_SUPPORTED) => Err(Absent::word("N/A")),
        answer => number(answer, 0),
    }
}
