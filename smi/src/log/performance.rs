//! Items for the fan, the performance state, the clocks, and the reasons for reduced clocks.

use gpumon_probe::vendor::nvml::query::Query as Q;

use super::{
    board::HOPPER,
    item::{
        Item, Layout, List, Section, TITLE_AS_TAG, computed_item, field_item, group_item,
        list_item, number_item, replaceable_group_item, row_items, samples_item,
    },
    text::VALUE_COLUMN,
    value::{
        ABSENT, Cursor, format_absent, format_code, format_enabled, format_mhz, format_nanoseconds,
        format_on_off, format_or_reason, format_percent,
    },
};

pub(super) static PERFORMANCE_ITEMS: &[Item] = &[
    number_item("Fan Speed", TITLE_AS_TAG, Q::FanSpeed, 0, format_percent),
    computed_item("Performance State", TITLE_AS_TAG, format_performance_state)
        .show_in_section(Section::PERFORMANCE),
    replaceable_group_item(
        "Clocks Event Reasons",
        TITLE_AS_TAG,
        |at| at.read_number(Q::ThrottleReasons, 0).err(),
        EVENT_REASON_ITEMS,
    )
    .show_in_section(Section::PERFORMANCE),
    group_item(
        "Clocks Event Reasons Counters",
        TITLE_AS_TAG,
        &[
            reason_counter_item(
                "SW Power Capping",
                "clocks_event_reasons_counters_sw_power_cap",
                74,
            ),
            reason_counter_item("Sync Boost", "clocks_event_reasons_counters_sync_boost", 76),
            reason_counter_item(
                "SW Thermal Slowdown",
                "clocks_event_reasons_counters_sw_therm_slowdown",
                269,
            ),
            reason_counter_item(
                "HW Thermal Slowdown",
                "clocks_event_reasons_counters_hw_therm_slowdown",
                270,
            ),
            reason_counter_item(
                "HW Power Braking",
                "clocks_event_reasons_counters_hw_power_brake",
                271,
            ),
        ],
    )
    .show_in_section(Section::PERFORMANCE),
    computed_item("Sparse Operation Mode", TITLE_AS_TAG, format_sparse_mode)
        .show_in_section(Section::PERFORMANCE),
];

static EVENT_REASON_ITEMS: &[Item] = &[
    event_reason_item("Idle", "clocks_event_reason_gpu_idle", &[0x1]),
    event_reason_item(
        "Applications Clocks Setting",
        "clocks_event_reason_applications_clocks_setting",
        &[0x2],
    ),
    event_reason_item("SW Power Cap", "clocks_event_reason_sw_power_cap", &[0x4]),
    event_reason_item("HW Slowdown", "clocks_event_reason_hw_slowdown", &[0x8]),
    event_reason_item(
        "HW Thermal Slowdown",
        "clocks_event_reason_hw_thermal_slowdown",
        &[0x40],
    )
    .indent_deeper(),
    event_reason_item(
        "HW Power Brake Slowdown",
        "clocks_event_reason_hw_power_brake_slowdown",
        &[0x80],
    )
    .indent_deeper(),
    event_reason_item("Sync Boost", "clocks_event_reason_sync_boost", &[0x10]),
    event_reason_item(
        "SW Thermal Slowdown",
        "clocks_event_reason_sw_thermal_slowdown",
        &[0x20],
    ),
    event_reason_item(
        "Display Clock Setting",
        "clocks_event_reason_display_clocks_setting",
        &[0x100],
    ),
    computed_item("Unknown", "clocks_event_reason_unknown", |_| {
        "Active".to_owned()
    })
    .show_when(|at| {
        at.read_number(Q::ThrottleReasons, 0)
            .is_ok_and(|active| active & !0x1FF != 0)
    }),
];

pub(super) fn format_performance_state(at: &Cursor<'_>) -> String {
    at.read_formatted(Q::PerformanceState, 0, |state| {
        if state > 15 {
            "Unknown".to_owned()
        } else {
            format!("P{state}")
        }
    })
}

/// Defines a line that shows whether a reason currently reduces the clocks. `bit` is the reason's
/// bit in the mask.
const fn event_reason_item(title: &'static str, tag: &'static str, bit: &'static [i128]) -> Item {
    computed_item(title, tag, format_reason_activity).with_position_numbers(bit)
}

/// Returns `Active` or `Not Active`, or `N/A` if the board does not support the reason.
fn format_reason_activity(at: &Cursor<'_>) -> String {
    let bit = at.number_at(0);
    if at
        .read_number(Q::SupportedThrottleReasons, 0)
        .is_ok_and(|known| known & bit == 0)
    {
        return ABSENT.to_owned();
    }
    format_or_reason(at.read_number(Q::ThrottleReasons, 0), |active| {
        if active & bit == 0 {
            "Not Active"
        } else {
            "Active"
        }
        .to_owned()
    })
}

/// Defines a line that shows how long a reason has been active. The field `id` counts this time in
/// nanoseconds.
const fn reason_counter_item(title: &'static str, tag: &'static str, id: u32) -> Item {
    field_item(title, tag, id, format_nanoseconds)
}

/// Returns the sparse operation mode, which NVML cannot query. nvidia-smi shows it as disabled on
/// Hopper boards and as absent on all others.
fn format_sparse_mode(at: &Cursor<'_>) -> String {
    match at.read_number(Q::Architecture, 0) {
        Ok(HOPPER) => format_enabled(0),
        Ok(_) => ABSENT.to_owned(),
        Err(word) => word,
    }
}

// Current, allowed, and supported clocks.

pub(super) static CLOCK_ITEMS: &[Item] = &[
    group_item(
        "Clocks",
        TITLE_AS_TAG,
        &[
            clock_item("Graphics", "graphics_clock", Q::Clock(GRAPHICS_CLOCK)),
            clock_item("SM", "sm_clock", Q::Clock(SM_CLOCK)),
            clock_item("Memory", "mem_clock", Q::Clock(MEMORY_CLOCK)),
            clock_item("Video", "video_clock", Q::Clock(VIDEO_CLOCK)),
        ],
    )
    .show_in_section(Section::CLOCK),
    group_item(
        "Applications Clocks",
        TITLE_AS_TAG,
        &[
            clock_item(
                "Graphics",
                "graphics_clock",
                Q::ApplicationsClock(GRAPHICS_CLOCK),
            ),
            clock_item("Memory", "mem_clock", Q::ApplicationsClock(MEMORY_CLOCK)),
        ],
    )
    .show_in_section(Section::CLOCK),
    group_item(
        "Default Applications Clocks",
        TITLE_AS_TAG,
        &[
            clock_item(
                "Graphics",
                "graphics_clock",
                Q::DefaultApplicationsClock(GRAPHICS_CLOCK),
            ),
            clock_item(
                "Memory",
                "mem_clock",
                Q::DefaultApplicationsClock(MEMORY_CLOCK),
            ),
        ],
    )
    .show_in_section(Section::CLOCK),
    group_item(
        "Deferred Clocks",
        TITLE_AS_TAG,
        &[computed_item("Memory", "mem_clock", format_absent)],
    )
    .show_in_section(Section::CLOCK),
    group_item(
        "Max Clocks",
        TITLE_AS_TAG,
        &[
            clock_item("Graphics", "graphics_clock", Q::MaxClock(GRAPHICS_CLOCK)),
            clock_item("SM", "sm_clock", Q::MaxClock(SM_CLOCK)),
            clock_item("Memory", "mem_clock", Q::MaxClock(MEMORY_CLOCK)),
            clock_item("Video", "video_clock", Q::MaxClock(VIDEO_CLOCK)),
        ],
    )
    .show_in_section(Section::CLOCK),
    group_item(
        "Max Customer Boost Clocks",
        TITLE_AS_TAG,
        &[clock_item(
            "Graphics",
            "graphics_clock",
            Q::CustomerBoostClock(GRAPHICS_CLOCK),
        )],
    )
    .show_in_section(Section::CLOCK),
    samples_item("SM Clock Samples", &[5]).show_only_in_section(Section::CLOCK),
    samples_item("Memory Clock Samples", &[6]).show_only_in_section(Section::CLOCK),
    group_item(
        "Clock Policy",
        TITLE_AS_TAG,
        &[
            number_item("Auto Boost", TITLE_AS_TAG, Q::AutoBoost, 0, format_on_off),
            number_item(
                "Auto Boost Default",
                TITLE_AS_TAG,
                Q::AutoBoost,
                1,
                format_on_off,
            ),
        ],
    )
    .show_in_section(Section::CLOCK),
];

/// The items for supported clocks. In text output, they are shown only with `-d`.
pub(super) static SUPPORTED_CLOCK_ITEMS: &[Item] =
    &[
        list_item("Supported Clocks", TITLE_AS_TAG, &SUPPORTED_MEMORY_CLOCKS)
            .show_only_in_section(Section::SUPPORTED_CLOCKS),
    ];

/// The list of memory clocks, in which each row contains a list of graphics clocks.
static SUPPORTED_MEMORY_CLOCKS: List = List {
    rows: |at| read_clock_rows(at, Q::SupportedMemoryClocks),
    tag: "supported_mem_clock",
    items: &[
        computed_item("Memory", "value", |at| format_mhz(at.number_at(0))),
        row_items(
            |at| read_clock_rows(at, Q::SupportedGraphicsClocks(at.argument_at(0))),
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
const GRAPHICS_CLOCK: u32 = 0;
const SM_CLOCK: u32 = 1;
const MEMORY_CLOCK: u32 = 2;
const VIDEO_CLOCK: u32 = 3;

fn read_clock_rows(at: &Cursor<'_>, query: Q) -> Result<Vec<Vec<i128>>, String> {
    Ok(at
        .run_query(query)
        .map_err(format_code)?
        .numbers()
        .iter()
        .map(|clock| vec![*clock])
        .collect())
}
