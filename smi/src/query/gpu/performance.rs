//! Fields for the fan, the performance state, the clocks, and the reasons for reduced clocks.

use gpumon_probe::vendor::nvml::query::{Answer, Code, Query as Q};

use crate::query::{
    cell::{Absent, Cell, format_hexadecimal, read_number},
    table::{Row, Section, field, fields, number_field, row_field, with_title},
};

/// Defines the field for a clock event reason, which older releases call a throttle reason.
macro_rules! reason {
    ($name:literal, $bit:literal, $about:literal) => {
        row_field(
            concat!(
                "clocks_event_reasons.",
                $name,
                " or clocks_throttle_reasons.",
                $name
            ),
            format_event_reason::<$bit>,
            $about,
        )
    };
}

pub(super) const PERFORMANCE_SECTIONS: &[Section] = &[
    fields(&[
        number_field(
            "fan.speed [%]",
            Q::FanSpeed,
            "The target speed of the fan, in percent of the highest speed that the board's noise \
             limit allows. It can exceed 100. A blocked fan is slower than its target. Many boards \
             have no fan and are cooled by the fans of the chassis.",
        ),
        field(
            "pstate",
            Q::PerformanceState,
            format_performance_state,
            "The performance state, from P0 (fastest) to P12 (slowest).",
        ),
    ]),
    with_title(
        "clocks_event_reasons",
        "Reasons why the clocks are reduced. If all reasons are Not Active, the clocks are as \
         high as possible.",
        &[
            field(
                "clocks_event_reasons.supported or clocks_throttle_reasons.supported",
                Q::SupportedThrottleReasons,
                format_hexadecimal::<0, 16>,
                "A bit mask of the reasons that the board supports. The file nvml.h defines the \
                 bits.",
            ),
            field(
                "clocks_event_reasons.active or clocks_throttle_reasons.active",
                Q::ThrottleReasons,
                format_hexadecimal::<0, 16>,
                "A bit mask of the active reasons. The file nvml.h defines the bits.",
            ),
            reason!(
                "gpu_idle",
                0x1,
                "Nothing is running on the GPU, so the clocks are at their idle level. Newer \
                 drivers do not always report this reason."
            ),
            reason!(
                "applications_clocks_setting",
                0x2,
                "The clocks are limited by the application clocks, which nvidia-smi \
                 --applications-clocks= sets."
            ),
            reason!(
                "sw_power_cap",
                0x4,
                "The driver reduces the clocks to keep the GPU within its power limit, which \
                 nvidia-smi --power-limit= sets."
            ),
            reason!(
                "hw_slowdown",
                0x8,
                "The hardware reduces the clocks by half or more, for one of these reasons:\n The \
                 temperature is too high, which is also reported as HW Thermal Slowdown.\n An \
                 external signal requests it, for example from the power supply, which is also \
                 reported as HW Power Brake Slowdown.\n The power draw is so high that a fast \
                 protection is triggered.\n The performance state or the clocks are \
                 changing.\nLater drivers may report this reason differently."
            ),
            reason!(
                "hw_thermal_slowdown",
                0x40,
                "The hardware reduces the clocks by half or more because the temperature is too \
                 high."
            ),
            reason!(
                "hw_power_brake_slowdown",
                0x80,
                "The hardware reduces the clocks by half or more because an external signal \
                 requests it, for example from the power supply."
            ),
            reason!(
                "sw_thermal_slowdown",
                0x20,
                "The driver reduces the clocks because the GPU is hotter than its maximum \
                 operating temperature."
            ),
            reason!(
                "sync_boost",
                0x10,
                "The GPU belongs to a group that was created by nvidia-smi or DCGM. All GPUs of \
                 the group run at the clocks of the slowest one, for the best performance per \
                 watt. The other reasons reported for the slowest GPU show why it is slow."
            ),
        ],
    ),
    with_title(
        "clocks_event_reasons_counters",
        "The total time for which the clocks were reduced for each reason, in microseconds.",
        &[
            field(
                "clocks_event_reasons_counters.sw_power_cap [us]",
                Q::Field(74, 0),
                format_microseconds,
                "The time for which the driver reduced the clocks to keep within the power limit, \
                 in microseconds.",
            ),
            field(
                "clocks_event_reasons_counters.sync_boost [us]",
                Q::Field(76, 0),
                format_microseconds,
                "The time for which the clocks were limited to those of the slowest GPU of a \
                 group, in microseconds.",
            ),
            field(
                "clocks_event_reasons_counters.sw_thermal_slowdown [us]",
                Q::Field(269, 0),
                format_microseconds,
                "The time for which the driver reduced the clocks because of the temperature, in \
                 microseconds.",
            ),
            field(
                "clocks_event_reasons_counters.hw_thermal_slowdown [us]",
                Q::Field(270, 0),
                format_microseconds,
                "The time for which the hardware reduced the clocks by half or more because the \
                 temperature was too high, in microseconds.",
            ),
            field(
                "clocks_event_reasons_counters.hw_power_brake_slowdown [us]",
                Q::Field(271, 0),
                format_microseconds,
                "The time for which an external signal, for example from the power supply, \
                 reduced the clocks, in microseconds.",
            ),
        ],
    ),
];

/// Formats an `nvmlPstates_t`. 32 means that the driver does not know the state.
fn format_performance_state(answer: &Answer) -> Cell {
    match read_number(answer, 0)? {
        known @ 0..=15 => Ok(format!("P{known}")),
        _ => Err(Code::UNKNOWN.into()),
    }
}

/// Formats whether a clock event reason is active. `BIT` is the reason's bit in the mask. A reason
/// that the board does not support is absent rather than inactive.
fn format_event_reason<const BIT: i128>(row: &Row<'_>) -> Cell {
    let supported = read_number(&row.run_query(Q::SupportedThrottleReasons), 0)?;
    if supported & BIT == 0 {
        return Err(Absent::new_not_available());
    }
    let active = read_number(&row.run_query(Q::ThrottleReasons), 0)?;
    Ok(if active & BIT == 0 {
        "Not Active"
    } else {
        "Active"
    }
    .to_owned())
}

/// Formats a time in nanoseconds as microseconds.
fn format_microseconds(answer: &Answer) -> Cell {
    Ok((read_number(answer, 0)? / 1000).to_string())
}

// The clocks that can be queried (`nvmlClockType_t`).
const GRAPHICS_CLOCK: u32 = 0;
const SM_CLOCK: u32 = 1;
const MEMORY_CLOCK: u32 = 2;
const VIDEO_CLOCK: u32 = 3;

pub(super) const CLOCK_SECTIONS: &[Section] = &[
    fields(&[
        number_field(
            "clocks.current.graphics or clocks.gr [MHz]",
            Q::Clock(GRAPHICS_CLOCK),
            "The current clock of the graphics engine, in MHz.",
        ),
        number_field(
            "clocks.current.sm or clocks.sm [MHz]",
            Q::Clock(SM_CLOCK),
            "The current clock of the streaming multiprocessors (SM), in MHz.",
        ),
        number_field(
            "clocks.current.memory or clocks.mem [MHz]",
            Q::Clock(MEMORY_CLOCK),
            "The current clock of the memory, in MHz.",
        ),
        number_field(
            "clocks.current.video or clocks.video [MHz]",
            Q::Clock(VIDEO_CLOCK),
            "The current clock of the video encoder and decoder, in MHz.",
        ),
    ]),
    with_title(
        "clocks.applications",
        "The requested clocks for programs, which the option [-ac | --applications-clocks] sets.",
        &[
            number_field(
                "clocks.applications.graphics or clocks.applications.gr [MHz]",
                Q::ApplicationsClock(GRAPHICS_CLOCK),
                "The requested clock of the graphics engine, in MHz.",
            ),
            number_field(
                "clocks.applications.memory or clocks.applications.mem [MHz]",
                Q::ApplicationsClock(MEMORY_CLOCK),
                "The requested clock of the memory, in MHz.",
            ),
        ],
    ),
    with_title(
        "clocks.default_applications",
        "The clocks for programs when no other clocks were requested. The option [-ac | \
         --applications-clocks] requests other clocks, and [-rac | \
         --reset-applications-clocks] restores the defaults.",
        &[
            number_field(
                "clocks.default_applications.graphics or clocks.default_applications.gr [MHz]",
                Q::DefaultApplicationsClock(GRAPHICS_CLOCK),
                "The default clock of the graphics engine, in MHz.",
            ),
            number_field(
                "clocks.default_applications.memory or clocks.default_applications.mem [MHz]",
                Q::DefaultApplicationsClock(MEMORY_CLOCK),
                "The default clock of the memory, in MHz.",
            ),
        ],
    ),
    with_title(
        "clocks.max",
        "The maximum clocks of the GPU.",
        &[
            number_field(
                "clocks.max.graphics or clocks.max.gr [MHz]",
                Q::MaxClock(GRAPHICS_CLOCK),
                "The maximum clock of the graphics engine, in MHz.",
            ),
            // nvidia-smi's help also lists this name twice.
            number_field(
                "clocks.max.sm or clocks.max.sm [MHz]",
                Q::MaxClock(SM_CLOCK),
                "The maximum clock of the streaming multiprocessors (SM), in MHz.",
            ),
            number_field(
                "clocks.max.memory or clocks.max.mem [MHz]",
                Q::MaxClock(MEMORY_CLOCK),
                "The maximum clock of the memory, in MHz.",
            ),
        ],
    ),
];
