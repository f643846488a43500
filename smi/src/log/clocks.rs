//! Items for current, allowed, and supported clocks.

use gpumon_probe::vendor::nvml::query::Query as Q;

use super::{
    cursor::Cursor,
    format::{format_absent, format_code, format_mhz, format_on_off},
    item::{
        Item, Layout, List, TITLE_AS_TAG, computed_item, group_item, list_item, number_item,
        row_items,
    },
    samples::samples_item,
    sections::Section,
    text::VALUE_COLUMN,
};

pub(super) static CLOCK_ITEMS: &[Item] = &[
    group_item("Clocks", TITLE_AS_TAG)
        .show_in_section(Section::CLOCK)
        .with_items(&[
            clock_item("Graphics", "graphics_clock", Q::Clock(GRAPHICS)),
            clock_item("SM", "sm_clock", Q::Clock(SM)),
            clock_item("Memory", "mem_clock", Q::Clock(MEMORY)),
            clock_item("Video", "video_clock", Q::Clock(VIDEO)),
        ]),
    group_item("Applications Clocks", TITLE_AS_TAG)
        .show_in_section(Section::CLOCK)
        .with_items(&[
            clock_item("Graphics", "graphics_clock", Q::ApplicationsClock(GRAPHICS)),
            clock_item("Memory", "mem_clock", Q::ApplicationsClock(MEMORY)),
        ]),
    group_item("Default Applications Clocks", TITLE_AS_TAG)
        .show_in_section(Section::CLOCK)
        .with_items(&[
            clock_item(
                "Graphics",
                "graphics_clock",
                Q::DefaultApplicationsClock(GRAPHICS),
            ),
            clock_item("Memory", "mem_clock", Q::DefaultApplicationsClock(MEMORY)),
        ]),
    group_item("Deferred Clocks", TITLE_AS_TAG)
        .show_in_section(Section::CLOCK)
        .with_items(&[computed_item("Memory", "mem_clock", format_absent)]),
    group_item("Max Clocks", TITLE_AS_TAG)
        .show_in_section(Section::CLOCK)
        .with_items(&[
            clock_item("Graphics", "graphics_clock", Q::MaxClock(GRAPHICS)),
            clock_item("SM", "sm_clock", Q::MaxClock(SM)),
            clock_item("Memory", "mem_clock", Q::MaxClock(MEMORY)),
            clock_item("Video", "video_clock", Q::MaxClock(VIDEO)),
        ]),
    group_item("Max Customer Boost Clocks", TITLE_AS_TAG)
        .show_in_section(Section::CLOCK)
        .with_items(&[clock_item(
            "Graphics",
            "graphics_clock",
            Q::CustomerBoostClock(GRAPHICS),
        )]),
    samples_item("SM Clock Samples", &[5]).show_only_in_section(Section::CLOCK),
    samples_item("Memory Clock Samples", &[6]).show_only_in_section(Section::CLOCK),
    group_item("Clock Policy", TITLE_AS_TAG)
        .show_in_section(Section::CLOCK)
        .with_items(&[
            number_item("Auto Boost", TITLE_AS_TAG, Q::AutoBoost, 0, format_on_off),
            number_item(
                "Auto Boost Default",
                TITLE_AS_TAG,
                Q::AutoBoost,
                1,
                format_on_off,
            ),
        ]),
];

/// The items for supported clocks. In text output, they are shown only with `-d`.
pub(super) static SUPPORTED: &[Item] =
    &[list_item("Supported Clocks", TITLE_AS_TAG, &MEMORY_CLOCKS)
        .show_only_in_section(Section::SUPPORTED_CLOCKS)];

/// The list of memory clocks, in which each row contains a list of graphics clocks.
static MEMORY_CLOCKS: List = List {
    rows: |at| read_rows(at, Q::SupportedMemoryClocks),
    tag: "supported_mem_clock",
    items: &[
        computed_item("Memory", "value", |at| format_mhz(at.number_at(0))),
        row_items(
            |at| read_rows(at, Q::SupportedGraphicsClocks(at.argument_at(0))),
            &[computed_item(
                "Graphics",
                "supported_graphics_clock",
                |at| format_mhz(at.number_at(1)),
            )],
        )
        .indent_deeper(),
    ],
    layout: Layout::Under(VALUE_COLUMN),
};

const fn clock_item(title: &'static str, tag: &'static str, query: Q) -> Item {
    number_item(title, tag, query, 0, format_mhz)
}

/// The `nvmlClockType_t` of the graphics clock, followed by those of the other clocks.
const GRAPHICS: u32 = 0;
const SM: u32 = 1;
const MEMORY: u32 = 2;
const VIDEO: u32 = 3;

fn read_rows(at: &Cursor<'_>, query: Q) -> Result<Vec<Vec<i128>>, String> {
    Ok(at
        .run_query(query)
        .map_err(format_code)?
        .numbers()
        .iter()
        .map(|clock| vec![*clock])
        .collect())
}
