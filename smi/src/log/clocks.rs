//! Clocks: as they are, as they may be, and as they can be asked for.

use gpumon_probe::vendor::nvml::query::Query;

use super::{
    at::At,
    format::{mhz, not_in_nvml, on_off, word},
    item::{Item, Layout, List, each, group, list, value},
    samples::samples,
    sections::Sections,
    text::COLUMN,
};

/// Clocks and their samples.
pub(super) static ITEMS: &[Item] = &[
    group(
        "Clocks",
        "clocks",
        &[
            value("Graphics", "graphics_clock", |at| at.format(Query::Clock(GRAPHICS), 0, mhz)),
            value("SM", "sm_clock", |at| at.format(Query::Clock(SM), 0, mhz)),
            value("Memory", "mem_clock", |at| at.format(Query::Clock(MEMORY), 0, mhz)),
            value("Video", "video_clock", |at| at.format(Query::Clock(VIDEO), 0, mhz)),
        ],
    )
    .of(Sections::CLOCK),
    group(
        "Applications Clocks",
        "applications_clocks",
        &[
            value("Graphics", "graphics_clock", |at| at.format(Query::ApplicationsClock(GRAPHICS), 0, mhz)),
            value("Memory", "mem_clock", |at| at.format(Query::ApplicationsClock(MEMORY), 0, mhz)),
        ],
    )
    .of(Sections::CLOCK),
    group(
        "Default Applications Clocks",
        "default_applications_clocks",
        &[
            value("Graphics", "graphics_clock", |at| at.format(Query::DefaultApplicationsClock(GRAPHICS), 0, mhz)),
            value("Memory", "mem_clock", |at| at.format(Query::DefaultApplicationsClock(MEMORY), 0, mhz)),
        ],
    )
    .of(Sections::CLOCK),
    group("Deferred Clocks", "deferred_clocks", &[value("Memory", "mem_clock", not_in_nvml)]).of(Sections::CLOCK),
    group(
        "Max Clocks",
        "max_clocks",
        &[
            value("Graphics", "graphics_clock", |at| at.format(Query::MaxClock(GRAPHICS), 0, mhz)),
            value("SM", "sm_clock", |at| at.format(Query::MaxClock(SM), 0, mhz)),
            value("Memory", "mem_clock", |at| at.format(Query::MaxClock(MEMORY), 0, mhz)),
            value("Video", "video_clock", |at| at.format(Query::MaxClock(VIDEO), 0, mhz)),
        ],
    )
    .of(Sections::CLOCK),
    group(
        "Max Customer Boost Clocks",
        "max_customer_boost_clocks",
        &[value("Graphics", "graphics_clock", |at| at.format(Query::CustomerBoostClock(GRAPHICS), 0, mhz))],
    )
    .of(Sections::CLOCK),
    samples("SM Clock Samples", &[5]).only_of(Sections::CLOCK),
    samples("Memory Clock Samples", &[6]).only_of(Sections::CLOCK),
    group(
        "Clock Policy",
        "clock_policy",
        &[
            value("Auto Boost", "auto_boost", |at| at.format(Query::AutoBoost, 0, on_off)),
            value("Auto Boost Default", "auto_boost_default", |at| at.format(Query::AutoBoost, 1, on_off)),
        ],
    )
    .of(Sections::CLOCK),
];

/// Which clocks can be asked for; the text shows them by `-d` alone.
pub(super) static SUPPORTED: &[Item] =
    &[list("Supported Clocks", "supported_clocks", &MEMORY_CLOCKS).only_of(Sections::SUPPORTED_CLOCKS)];

/// A row is a memory clock; in it, a row is a graphics clock.
static MEMORY_CLOCKS: List = List {
    rows: |at| rows(at, Query::SupportedMemoryClocks),
    tag: "supported_mem_clock",
    items: &[
        value("Memory", "value", |at| mhz(at.nth(0))),
        each(
            |at| rows(at, Query::SupportedGraphicsClocks(at.argument(0))),
            &[value("Graphics", "supported_graphics_clock", |at| mhz(at.nth(1)))],
        )
        .deeper(),
    ],
    layout: Layout::Under(COLUMN),
};

/// The `nvmlClockType_t`s.
const GRAPHICS: u32 = 0;
const SM: u32 = 1;
const MEMORY: u32 = 2;
const VIDEO: u32 = 3;

fn rows(at: &At<'_>, query: Query) -> Result<Vec<Vec<i128>>, String> {
    Ok(at.ask(query).map_err(word)?.numbers().iter().map(|clock| vec![*clock]).collect())
}
