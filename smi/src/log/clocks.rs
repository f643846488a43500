//! Clocks: current, allowed and selectable ones.

use gpumon_probe::vendor::nvml::query::Query as Q;

use super::{
    cursor::Cursor,
    format::{mhz, not_in_nvml, on_off, word},
    item::{Item, Layout, List, SAME, each, group, list, number, value},
    samples::samples,
    sections::Section,
    text::COLUMN,
};

pub(super) static ITEMS: &[Item] = &[
    group("Clocks", SAME).of(Section::CLOCK).holds(&[
        clock_in_mhz("Graphics", "graphics_clock", Q::Clock(GRAPHICS)),
        clock_in_mhz("SM", "sm_clock", Q::Clock(SM)),
        clock_in_mhz("Memory", "mem_clock", Q::Clock(MEMORY)),
        clock_in_mhz("Video", "video_clock", Q::Clock(VIDEO)),
    ]),
    group("Applications Clocks", SAME)
        .of(Section::CLOCK)
        .holds(&[
            clock_in_mhz("Graphics", "graphics_clock", Q::ApplicationsClock(GRAPHICS)),
            clock_in_mhz("Memory", "mem_clock", Q::ApplicationsClock(MEMORY)),
        ]),
    group("Default Applications Clocks", SAME)
        .of(Section::CLOCK)
        .holds(&[
            clock_in_mhz(
                "Graphics",
                "graphics_clock",
                Q::DefaultApplicationsClock(GRAPHICS),
            ),
            clock_in_mhz("Memory", "mem_clock", Q::DefaultApplicationsClock(MEMORY)),
        ]),
    group("Deferred Clocks", SAME)
        .of(Section::CLOCK)
        .holds(&[value("Memory", "mem_clock", not_in_nvml)]),
    group("Max Clocks", SAME).of(Section::CLOCK).holds(&[
        clock_in_mhz("Graphics", "graphics_clock", Q::MaxClock(GRAPHICS)),
        clock_in_mhz("SM", "sm_clock", Q::MaxClock(SM)),
        clock_in_mhz("Memory", "mem_clock", Q::MaxClock(MEMORY)),
        clock_in_mhz("Video", "video_clock", Q::MaxClock(VIDEO)),
    ]),
    group("Max Customer Boost Clocks", SAME)
        .of(Section::CLOCK)
        .holds(&[clock_in_mhz(
            "Graphics",
            "graphics_clock",
            Q::CustomerBoostClock(GRAPHICS),
        )]),
    samples("SM Clock Samples", &[5]).only_of(Section::CLOCK),
    samples("Memory Clock Samples", &[6]).only_of(Section::CLOCK),
    group("Clock Policy", SAME).of(Section::CLOCK).holds(&[
        number("Auto Boost", SAME, Q::AutoBoost, 0, on_off),
        number("Auto Boost Default", SAME, Q::AutoBoost, 1, on_off),
    ]),
];

/// The selectable clocks, which the text shows only with `-d`.
pub(super) static SUPPORTED: &[Item] =
    &[list("Supported Clocks", SAME, &MEMORY_CLOCKS).only_of(Section::SUPPORTED_CLOCKS)];

/// The rows of memory clocks. Each row contains rows of graphics clocks.
static MEMORY_CLOCKS: List = List {
    rows: |at| rows(at, Q::SupportedMemoryClocks),
    tag: "supported_mem_clock",
    items: &[
        value("Memory", "value", |at| mhz(at.nth(0))),
        each(
            |at| rows(at, Q::SupportedGraphicsClocks(at.argument(0))),
            &[value("Graphics", "supported_graphics_clock", |at| {
                mhz(at.nth(1))
            })],
        )
        .deeper(),
    ],
    layout: Layout::Under(COLUMN),
};

const fn clock_in_mhz(title: &'static str, tag: &'static str, query: Q) -> Item {
    number(title, tag, query, 0, mhz)
}

/// The values of `nvmlClockType_t`.
const GRAPHICS: u32 = 0;
const SM: u32 = 1;
const MEMORY: u32 = 2;
const VIDEO: u32 = 3;

fn rows(at: &Cursor<'_>, query: Q) -> Result<Vec<Vec<i128>>, String> {
    Ok(at
        .ask(query)
        .map_err(word)?
        .numbers()
        .iter()
        .map(|clock| vec![*clock])
        .collect())
}
