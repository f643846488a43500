//! Fields for temperatures, and for the power of the board and the module.

use gpumon_probe::vendor::nvml::query::{Answer, Code, Query as Q};

use crate::{
    query::{
        cell::{Absent, Cell, format_decimal, format_enabled, format_number, format_watts},
        table::{Field, Row, Section, field, fields, number_field, row_field},
    },
    release::Release,
};

/// The scope of fields that describe the GPU.
const GPU_SCOPE: u32 = 0;

/// The scope of fields that describe the whole module.
const MODULE_SCOPE: u32 = 1;

/// The scope of fields that describe the GPU's base power.
const BASE_SCOPE: u32 = 3;

// The IDs of the fields `NVML_FI_DEV_MEMORY_TEMP`, `NVML_FI_DEV_POWER_*` and
// `NVML_FI_DEV_EDPP_MULTIPLIER`.
const MEMORY_TEMPERATURE: u32 = 82;
const AVERAGE: u32 = 185;
const INSTANT: u32 = 186;
const MIN_LIMIT: u32 = 187;
const MAX_LIMIT: u32 = 188;
const DEFAULT: u32 = 189;
const CURRENT: u32 = 190;
const REQUESTED: u32 = 192;
const EDPP_MULTIPLIER: u32 = 274;

pub(super) const POWER_AND_TEMPERATURE_SECTIONS: &[Section] = &[fields(&[
    number_field(
        "temperature.gpu",
        Q::Temperature,
        "The temperature of the chip, in degrees Celsius.",
    ),
    number_field(
        "temperature.gpu.tlimit",
        Q::MarginTemperature,
        "The thermal margin: the number of degrees Celsius until the GPU slows down.",
    ),
    field(
        "temperature.memory",
        Q::Field(MEMORY_TEMPERATURE, GPU_SCOPE),
        format_memory_temperature,
        "The temperature of the high-bandwidth memory (HBM), in degrees Celsius.",
    ),
    row_field(
        "power.management",
        format_management,
        "Whether the driver manages the power: Enabled or Disabled. Requires a Kepler or later \
         GPU, or version 3.0 of the infoROM object for power.",
    ),
    watts_field(
        "power.draw [W]",
        Q::PowerUsage,
        "The power draw of the whole board, in watts: the average over one second on Ampere and \
         later, otherwise the power at this moment. It is accurate to ±5 W, and requires power \
         management.",
    ),
    watts_field(
        "power.draw.average or gpu.power.draw.average [W]",
        Q::Field(AVERAGE, GPU_SCOPE),
        "The average power draw of the whole board over one second, in watts. It is accurate to \
         ±5 W, and requires power management and Ampere or later, except GA100.",
    ),
    watts_field(
        "power.draw.instant or gpu.power.draw.instant [W]",
        Q::Field(INSTANT, GPU_SCOPE),
        "The power draw of the whole board at this moment, in watts. It is accurate to ±5 W, and \
         requires power management.",
    ),
    watts_field(
        "power.limit or gpu.power.requested_limit [W]",
        Q::PowerLimit,
        "The requested power limit, in watts. The option [-pl | --power-limit=] of nvidia-smi \
         requests one.",
    ),
    watts_field(
        "enforced.power.limit or gpu.power.current_limit [W]",
        Q::EnforcedPowerLimit,
        "The power limit in effect, in watts, which is the lowest of several limits. The driver \
         keeps the power draw of the board below it.",
    ),
    watts_field(
        "power.default_limit or gpu.power.default_limit [W]",
        Q::DefaultPowerLimit,
        "The default power limit, in watts. It takes effect again after the driver is unloaded.",
    ),
    watts_field(
        "power.min_limit or gpu.power.min_limit [W]",
        Q::PowerLimitConstraints,
        "The lowest power limit that can be requested, in watts.",
    ),
    field(
        "power.max_limit or gpu.power.max_limit [W]",
        Q::PowerLimitConstraints,
        format_watts::<1>,
        "The highest power limit that can be requested, in watts.",
    ),
    watts_field(
        "module.power.draw.average [W]",
        Q::Field(AVERAGE, MODULE_SCOPE),
        "The average power draw of the whole module, in watts. It is accurate to ±5 W.",
    ),
    watts_field(
        "module.power.draw.instant [W]",
        Q::Field(INSTANT, MODULE_SCOPE),
        "The power draw of the whole module at this moment, in watts. It is accurate to ±5 W.",
    ),
    watts_field(
        "module.power.limit or module.power.requested_limit [W]",
        Q::Field(REQUESTED, MODULE_SCOPE),
        "The requested power limit of the whole module, in watts.",
    ),
    watts_field(
        "module.enforced.power.limit or module.power.current_limit [W]",
        Q::Field(CURRENT, MODULE_SCOPE),
        "The power limit in effect for the whole module, in watts, which is the lowest of \
         several limits.",
    ),
    watts_field(
        "module.power.default_limit [W]",
        Q::Field(DEFAULT, MODULE_SCOPE),
        "The default power limit of the whole module, in watts. It takes effect again after the \
         driver is unloaded.",
    ),
    watts_field(
        "module.power.min_limit [W]",
        Q::Field(MIN_LIMIT, MODULE_SCOPE),
        "The lowest power limit that can be requested for the whole module, in watts.",
    ),
    watts_field(
        "module.power.max_limit [W]",
        Q::Field(MAX_LIMIT, MODULE_SCOPE),
        "The highest power limit that can be requested for the whole module, in watts.",
    ),
    watts_field(
        "gpu.base.current [W]",
        Q::Field(CURRENT, BASE_SCOPE),
        "The base power in effect for the GPU, in watts.",
    )
    .since(Release(610, 0)),
    watts_field(
        "gpu.base.requested [W]",
        Q::Field(REQUESTED, BASE_SCOPE),
        "The requested base power of the GPU, in watts.",
    )
    .since(Release(610, 0)),
    watts_field(
        "gpu.base.default [W]",
        Q::Field(DEFAULT, BASE_SCOPE),
        "The default base power of the GPU, in watts.",
    )
    .since(Release(610, 0)),
    watts_field(
        "gpu.base.min [W]",
        Q::Field(MIN_LIMIT, BASE_SCOPE),
        "The lowest base power that can be requested, in watts.",
    )
    .since(Release(610, 0)),
    watts_field(
        "gpu.base.max [W]",
        Q::Field(MAX_LIMIT, BASE_SCOPE),
        "The highest base power that can be requested, in watts.",
    )
    .since(Release(610, 0)),
])];

pub(super) const EDPP_SECTIONS: &[Section] = &[fields(&[field(
    "edpp_multiplier [%]",
    Q::Field(EDPP_MULTIPLIER, GPU_SCOPE),
    format_decimal,
    "The limit for peaks in the electric current (EDPp), in percent of the usual limit.",
)
.since(Release(590, 0))])];

/// Creates a field that shows the first number of the answer to one query, in watts.
const fn watts_field(spec: &'static str, query: Q, about: &'static str) -> Field {
    field(spec, query, format_watts::<0>, about)
}

/// Formats the power management mode. Since release 590, nvidia-smi shows it as deprecated,
/// although NVML still reports it.
fn format_management(row: &Row<'_>) -> Cell {
    if row.gpu.context.release() >= Release(590, 0) {
        return Err(Code::DEPRECATED.into());
    }
    format_enabled::<0>(&row.run_query(Q::PowerManagementMode))
}

/// Formats the memory temperature. For boards without a memory temperature sensor, nvidia-smi
/// prints `N/A` without brackets.
fn format_memory_temperature(answer: &Answer) -> Cell {
    match answer {
        Err(Code::NOT_SUPPORTED) => Err(Absent::new("N/A")),
        answer => format_number::<0>(answer),
    }
}
