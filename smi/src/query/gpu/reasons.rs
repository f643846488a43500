//! Fields for the fan, the performance state and the reasons for reduced clocks.

use gpumon_probe::vendor::nvml::query::{Answer, Code, Query as Q};

use super::super::cell::{Absent, Cell, as_number, hexadecimal, number_at};
use super::super::field::{Section, field, fields, row_field, with_title};
use super::super::row::Row;

/// Defines the field of a clock event reason, which older releases called a throttle reason.
macro_rules! reason {
    ($name:literal, $bit:literal, $about:literal) => {
        row_field(
            concat!(
                "clocks_event_reasons.",
                $name,
                " or clocks_throttle_reasons.",
                $name
            ),
            event_reason::<$bit>,
            $about,
        )
    };
}

pub(super) const SECTIONS: &[Section] = &[
    fields(&[
        field(
            "fan.speed [%]",
            Q::FanSpeed,
            as_number::<0>,
            "How fast the fan is meant to turn, in percent of the speed at which it is as \
             loud as the board may be; it can be more than 100. A fan that is stuck turns \
             slower than this. Many boards have none and are cooled by the machine around \
             them.",
        ),
        field(
            "pstate",
            Q::PerformanceState,
            state,
            "The performance state, from P0 (fastest) to P12 (slowest).",
        ),
    ]),
    with_title(
        "clocks_event_reasons",
        "What holds the clocks down. Where every reason is Not Active they run as fast \
         as they can.",
        &[
            field(
                "clocks_event_reasons.supported or clocks_throttle_reasons.supported",
                Q::SupportedThrottleReasons,
                hexadecimal::<0, 16>,
                "Bits of the reasons that the board tells. nvml.h says which is which.",
            ),
            field(
                "clocks_event_reasons.active or clocks_throttle_reasons.active",
                Q::ThrottleReasons,
                hexadecimal::<0, 16>,
                "Bits of the reasons that hold now. nvml.h says which is which.",
            ),
            reason!(
                "gpu_idle",
                0x1,
                "Nothing runs, and the clocks go down to their idle state. A later driver may \
                 not tell it any more."
            ),
            reason!(
                "applications_clocks_setting",
                0x2,
                "The applications clocks are the limit, which nvidia-smi --applications-clocks= \
                 sets."
            ),
            reason!(
                "sw_power_cap",
                0x4,
                "The driver lowers the clocks to keep the GPU within its power limit, which \
                 nvidia-smi --power-limit= sets."
            ),
            reason!(
                "hw_slowdown",
                0x8,
                "The hardware halves the clocks, or lowers them further. Why can be one of these:
 It is too hot, which is told as HW Thermal Slowdown.
 Something outside, such as the power supply, asks to brake, which is told as \
                 HW Power Brake Slowdown.
 So much power is drawn that a fast protection steps in.
 The performance state or the clocks are just changing.
A later driver may tell this otherwise."
            ),
            reason!(
                "hw_thermal_slowdown",
                0x40,
                "The hardware halves the clocks, or lowers them further, because it is too hot."
            ),
            reason!(
                "hw_power_brake_slowdown",
                0x80,
                "The hardware halves the clocks, or lowers them further, because something \
                 outside, such as the power supply, asks to brake."
            ),
            reason!(
                "sw_thermal_slowdown",
                0x20,
                "The driver lowers the clocks because the GPU is hotter than it should be while \
                 it works."
            ),
            reason!(
                "sync_boost",
                0x10,
                "The GPU belongs to a group that nvidia-smi or DCGM made, in which all run at \
                 the clocks of the slowest, for the most work per watt. What holds the slowest \
                 down is told by its own reasons."
            ),
        ],
    ),
    with_title(
        "clocks_event_reasons_counters",
        "For how long something has held the clocks down, in microseconds.",
        &[
            field(
                "clocks_event_reasons_counters.sw_power_cap [us]",
                Q::Field(74, 0),
                microseconds,
                "How long the driver has lowered the clocks to keep within the power limit.",
            ),
            field(
                "clocks_event_reasons_counters.sync_boost [us]",
                Q::Field(76, 0),
                microseconds,
                "How long the clocks have been those of the slowest GPU of a group.",
            ),
            field(
                "clocks_event_reasons_counters.sw_thermal_slowdown [us]",
                Q::Field(269, 0),
                microseconds,
                "How long the driver has lowered the clocks because of the temperature.",
            ),
            field(
                "clocks_event_reasons_counters.hw_thermal_slowdown [us]",
                Q::Field(270, 0),
                microseconds,
                "How long the hardware has halved the clocks, or more, because it was too hot.",
            ),
            field(
                "clocks_event_reasons_counters.hw_power_brake_slowdown [us]",
                Q::Field(271, 0),
                microseconds,
                "How long something outside, such as the power supply, has asked to brake.",
            ),
        ],
    ),
];

/// Formats an `nvmlPstates_t`. The value 32 means that the driver does not know the state.
fn state(answer: &Answer) -> Cell {
    match number_at(answer, 0)? {
        known @ 0..=15 => Ok(format!("P{known}")),
        _ => Err(Code::UNKNOWN.into()),
    }
}

/// Formats whether the clock event reason with this bit is active. A reason that the board does not
/// support is not reported as inactive.
fn event_reason<const BIT: i128>(row: &Row<'_>) -> Cell {
    let supported = number_at(&row.ask(Q::SupportedThrottleReasons), 0)?;
    if supported & BIT == 0 {
        return Err(Absent::not_available());
    }
    let active = number_at(&row.ask(Q::ThrottleReasons), 0)?;
    Ok(if active & BIT == 0 {
        "Not Active"
    } else {
        "Active"
    }
    .to_owned())
}

/// Converts nanoseconds to microseconds.
fn microseconds(answer: &Answer) -> Cell {
    Ok((number_at(answer, 0)? / 1000).to_string())
}
