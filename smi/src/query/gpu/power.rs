//! Fields for temperatures, and for the power of the board and of its module.

use gpumon_probe::vendor::nvml::query::{Answer, Code, Query as Q};

use super::super::cell::{Absent, Cell, as_enabled, as_number, milliwatts, two_places};
use super::super::field::{Section, field, fields, row_field};
use super::super::row::Row;
use crate::release::Release;

/// The scope of NVML fields about the GPU.
const GPU: u32 = 0;

/// The scope of NVML fields about the whole module.
const MODULE: u32 = 1;

/// The scope of NVML fields about the GPU's base power.
const BASE: u32 = 3;

// The field IDs `NVML_FI_DEV_MEMORY_TEMP`, `NVML_FI_DEV_POWER_*` and `NVML_FI_DEV_EDPP_MULTIPLIER`.
const MEMORY_TEMPERATURE: u32 = 82;
const AVERAGE: u32 = 185;
const INSTANT: u32 = 186;
const LEAST: u32 = 187;
const MOST: u32 = 188;
const DEFAULT: u32 = 189;
const CURRENT: u32 = 190;
const REQUESTED: u32 = 192;
const EDPP_MULTIPLIER: u32 = 274;

pub(super) const SECTIONS: &[Section] = &[fields(&[
    field(
        "temperature.gpu",
        Q::Temperature,
        as_number::<0>,
        "The temperature of the chip, in degrees Celsius.",
    ),
    field(
        "temperature.gpu.tlimit",
        Q::MarginTemperature,
        as_number::<0>,
        "How many degrees Celsius are left until the GPU slows down.",
    ),
    field(
        "temperature.memory",
        Q::Field(MEMORY_TEMPERATURE, GPU),
        memory_temperature,
        "The temperature of the HBM, in degrees Celsius.",
    ),
    row_field(
        "power.management",
        management,
        "Whether the driver manages the power. It takes version 3.0 of the infoROM's \
         object for it, or a Kepler or newer.",
    ),
    field(
        "power.draw [W]",
        Q::PowerUsage,
        milliwatts::<0>,
        "What the whole board draws, in watts: since Ampere on average over a second, \
         before that at this moment. It is right within 5 watts, and only there where \
         power is managed.",
    ),
    field(
        "power.draw.average or gpu.power.draw.average [W]",
        Q::Field(AVERAGE, GPU),
        milliwatts::<0>,
        "What the whole board draws, in watts, on average over a second. It is right \
         within 5 watts, and only there where power is managed, since Ampere but for \
         GA100.",
    ),
    field(
        "power.draw.instant or gpu.power.draw.instant [W]",
        Q::Field(INSTANT, GPU),
        milliwatts::<0>,
        "What the whole board draws at this moment, in watts. It is right within 5 \
         watts, and only there where power is managed.",
    ),
    field(
        "power.limit or gpu.power.requested_limit [W]",
        Q::PowerLimit,
        milliwatts::<0>,
        "The requested limit, in watts, for example by nvidia-smi with the switches [-pl \
         | --power-limit=].",
    ),
    field(
        "enforced.power.limit or gpu.power.current_limit [W]",
        Q::EnforcedPowerLimit,
        milliwatts::<0>,
        "The limit that holds, in watts: the lowest of several. The driver keeps what \
         the board draws below it.",
    ),
    field(
        "power.default_limit or gpu.power.default_limit [W]",
        Q::DefaultPowerLimit,
        milliwatts::<0>,
        "The default limit, in watts; it also applies after the driver was unloaded.",
    ),
    field(
        "power.min_limit or gpu.power.min_limit [W]",
        Q::PowerLimitConstraints,
        milliwatts::<0>,
        "The lowest limit that can be set, in watts.",
    ),
    field(
        "power.max_limit or gpu.power.max_limit [W]",
        Q::PowerLimitConstraints,
        milliwatts::<1>,
        "The highest limit that can be set, in watts.",
    ),
    field(
        "module.power.draw.average [W]",
        Q::Field(AVERAGE, MODULE),
        milliwatts::<0>,
        "What the whole module draws, in watts, on average. It is right within 5 watts.",
    ),
    field(
        "module.power.draw.instant [W]",
        Q::Field(INSTANT, MODULE),
        milliwatts::<0>,
        "What the whole module draws at this moment, in watts. It is right within 5 \
         watts.",
    ),
    field(
        "module.power.limit or module.power.requested_limit [W]",
        Q::Field(REQUESTED, MODULE),
        milliwatts::<0>,
        "The requested limit, in watts, for the whole module.",
    ),
    field(
        "module.enforced.power.limit or module.power.current_limit [W]",
        Q::Field(CURRENT, MODULE),
        milliwatts::<0>,
        "The limit that holds for the whole module, in watts: the lowest of several.",
    ),
    field(
        "module.power.default_limit [W]",
        Q::Field(DEFAULT, MODULE),
        milliwatts::<0>,
        "The limit that holds for the whole module where none was asked for, in watts; \
         also after the driver was unloaded.",
    ),
    field(
        "module.power.min_limit [W]",
        Q::Field(LEAST, MODULE),
        milliwatts::<0>,
        "The lowest limit that can be set, in watts, for the whole module.",
    ),
    field(
        "module.power.max_limit [W]",
        Q::Field(MOST, MODULE),
        milliwatts::<0>,
        "The highest limit that can be set, in watts, for the whole module.",
    ),
    field(
        "gpu.base.current [W]",
        Q::Field(CURRENT, BASE),
        milliwatts::<0>,
        "The base power of the GPU that holds, in watts.",
    )
    .since(Release(610, 0)),
    field(
        "gpu.base.requested [W]",
        Q::Field(REQUESTED, BASE),
        milliwatts::<0>,
        "The base power of the GPU that was asked for, in watts.",
    )
    .since(Release(610, 0)),
    field(
        "gpu.base.default [W]",
        Q::Field(DEFAULT, BASE),
        milliwatts::<0>,
        "The base power of the GPU where none was asked for, in watts.",
    )
    .since(Release(610, 0)),
    field(
        "gpu.base.min [W]",
        Q::Field(LEAST, BASE),
        milliwatts::<0>,
        "The lowest base power that can be set, in watts.",
    )
    .since(Release(610, 0)),
    field(
        "gpu.base.max [W]",
        Q::Field(MOST, BASE),
        milliwatts::<0>,
        "The highest base power that can be set, in watts.",
    )
    .since(Release(610, 0)),
])];

pub(super) const EDPP: &[Section] = &[fields(&[field(
    "edpp_multiplier [%]",
    Q::Field(EDPP_MULTIPLIER, GPU),
    two_places,
    "By how many percent of their usual height peaks of the electric current (EDPp) \
     are limited.",
)
.since(Release(590, 0))])];

/// Formats the power management mode. From release 590 on, nvidia-smi reports it as deprecated,
/// although NVML still has it.
fn management(row: &Row<'_>) -> Cell {
    if row.gpu.context.release() >= Release(590, 0) {
        return Err(Code::DEPRECATED.into());
    }
    as_enabled::<0>(&row.ask(Q::PowerManagementMode))
}

/// Formats the temperature of the memory. nvidia-smi prints `N/A` without brackets for boards
/// without a memory thermometer.
fn memory_temperature(answer: &Answer) -> Cell {
    match answer {
        Err(Code::NOT_SUPPORTED) => Err(Absent::word("N/A")),
        answer => as_number::<0>(answer),
    }
}
