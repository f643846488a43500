//! The fan, the performance state, and the reasons for reduced clocks.

use gpumon_probe::vendor::nvml::query::Query as Q;

use super::{
    board::HOPPER,
    cursor::Cursor,
    format::{ABSENT, enabled, format_or_reason, nanoseconds, percent},
    item::{Item, SAME, field, group, number, unless, value},
    sections::Section,
};

pub(super) static ITEMS: &[Item] = &[
    number("Fan Speed", SAME, Q::FanSpeed, 0, percent),
    value("Performance State", SAME, state).of(Section::PERFORMANCE),
    unless("Clocks Event Reasons", SAME, |at| {
        at.number(Q::ThrottleReasons, 0).err()
    })
    .of(Section::PERFORMANCE)
    .holds(REASONS),
    group("Clocks Event Reasons Counters", SAME)
        .of(Section::PERFORMANCE)
        .holds(&[
            reason_counter(
                "SW Power Capping",
                "clocks_event_reasons_counters_sw_power_cap",
                74,
            ),
            reason_counter("Sync Boost", "clocks_event_reasons_counters_sync_boost", 76),
            reason_counter(
                "SW Thermal Slowdown",
                "clocks_event_reasons_counters_sw_therm_slowdown",
                269,
            ),
            reason_counter(
                "HW Thermal Slowdown",
                "clocks_event_reasons_counters_hw_therm_slowdown",
                270,
            ),
            reason_counter(
                "HW Power Braking",
                "clocks_event_reasons_counters_hw_power_brake",
                271,
            ),
        ]),
    value("Sparse Operation Mode", SAME, sparse).of(Section::PERFORMANCE),
];

static REASONS: &[Item] = &[
    event_reason("Idle", "clocks_event_reason_gpu_idle", &[0x1]),
    event_reason(
        "Applications Clocks Setting",
        "clocks_event_reason_applications_clocks_setting",
        &[0x2],
    ),
    event_reason("SW Power Cap", "clocks_event_reason_sw_power_cap", &[0x4]),
    event_reason("HW Slowdown", "clocks_event_reason_hw_slowdown", &[0x8]),
    event_reason(
        "HW Thermal Slowdown",
        "clocks_event_reason_hw_thermal_slowdown",
        &[0x40],
    )
    .deeper(),
    event_reason(
        "HW Power Brake Slowdown",
        "clocks_event_reason_hw_power_brake_slowdown",
        &[0x80],
    )
    .deeper(),
    event_reason("Sync Boost", "clocks_event_reason_sync_boost", &[0x10]),
    event_reason(
        "SW Thermal Slowdown",
        "clocks_event_reason_sw_thermal_slowdown",
        &[0x20],
    ),
    event_reason(
        "Display Clock Setting",
        "clocks_event_reason_display_clocks_setting",
        &[0x100],
    ),
    value("Unknown", "clocks_event_reason_unknown", |_| {
        "Active".to_owned()
    })
    .when(|at| {
        at.number(Q::ThrottleReasons, 0)
            .is_ok_and(|active| active & !0x1FF != 0)
    }),
];

pub(super) fn state(at: &Cursor<'_>) -> String {
    at.format(Q::PerformanceState, 0, |state| {
        if state > 15 {
            "Unknown".to_owned()
        } else {
            format!("P{state}")
        }
    })
}

/// Defines a line that shows whether a reason, given by its bit, reduces the clocks.
const fn event_reason(title: &'static str, tag: &'static str, bit: &'static [i128]) -> Item {
    value(title, tag, is_active).about(bit)
}

/// Returns `Active` or `Not Active`; `N/A` if the board does not support the reason.
fn is_active(at: &Cursor<'_>) -> String {
    let bit = at.nth(0);
    if at
        .number(Q::SupportedThrottleReasons, 0)
        .is_ok_and(|known| known & bit == 0)
    {
        return ABSENT.to_owned();
    }
    format_or_reason(at.number(Q::ThrottleReasons, 0), |active| {
        if active & bit == 0 {
            "Not Active"
        } else {
            "Active"
        }
        .to_owned()
    })
}

/// Defines a line with the time for which a reason was active, from a field that counts
/// nanoseconds.
const fn reason_counter(title: &'static str, tag: &'static str, id: u32) -> Item {
    field(title, tag, id, nanoseconds)
}

/// Returns the sparse operation mode, for which NVML has no query. nvidia-smi shows it as disabled
/// on Hopper boards and as absent on others.
fn sparse(at: &Cursor<'_>) -> String {
    match at.number(Q::Architecture, 0) {
        Ok(HOPPER) => enabled(0),
        Ok(_) => ABSENT.to_owned(),
        Err(word) => word,
    }
}
