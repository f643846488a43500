//! Fan, performance state, and what holds the clocks down.

use gpumon_probe::vendor::nvml::query::{Code, Query as Q};

use super::super::cell::{Absent, Cell, at, hexadecimal, number};
use super::super::field::{Section, field};
use super::super::row::Row;

/// The fields.
pub(super) const SECTIONS: &[Section<()>] = &[
    Section {
        title: None,
        fields: &[
            field(
                "fan.speed",
                "How fast the fan is meant to turn, in percent of the speed at which it is as loud as the \
                 board may be; it can be more than 100. A fan that is stuck turns slower than this. Many \
                 boards have none and are cooled by the machine around them.",
                |row| number(row.ask(Q::FanSpeed), 0),
            )
            .unit("%"),
            field("pstate", "The performance state, from P0 (fastest) to P12 (slowest).", state),
        ],
    },
    Section {
        title: Some((
            "clocks_event_reasons",
            "What holds the clocks down. Where every reason is Not Active they run as fast as they can.",
        )),
        fields: &[
            field(
                "clocks_event_reasons.supported",
                "Bits of the reasons that the board tells. nvml.h says which is which.",
                |row| hexadecimal(row.ask(Q::SupportedThrottleReasons), 0, 16),
            )
            .or("clocks_throttle_reasons.supported"),
            field(
                "clocks_event_reasons.active",
                "Bits of the reasons that hold now. nvml.h says which is which.",
                |row| hexadecimal(row.ask(Q::ThrottleReasons), 0, 16),
            )
            .or("clocks_throttle_reasons.active"),
            field(
                "clocks_event_reasons.gpu_idle",
                "Nothing runs, and the clocks go down to their idle state. A later driver may not tell it any \
                 more.",
                reason::<0x1>,
            )
            .or("clocks_throttle_reasons.gpu_idle"),
            field(
                "clocks_event_reasons.applications_clocks_setting",
                "The applications clocks are the limit, which nvidia-smi --applications-clocks= sets.",
                reason::<0x2>,
            )
            .or("clocks_throttle_reasons.applications_clocks_setting"),
            field(
                "clocks_event_reasons.sw_power_cap",
                "The driver lowers the clocks to keep the GPU within its power limit, which nvidia-smi \
                 --power-limit= sets.",
                reason::<0x4>,
            )
            .or("clocks_throttle_reasons.sw_power_cap"),
            field(
                "clocks_event_reasons.hw_slowdown",
                "The hardware halves the clocks, or lowers them further. Why can be one of these:
 It is too hot, which is told as HW Thermal Slowdown.
 Something outside, such as the power supply, asks to brake, which is told as HW Power Brake \
                 Slowdown.
 So much power is drawn that a fast protection steps in.
 The performance state or the clocks are just changing.
A later driver may tell this otherwise.",
                reason::<0x8>,
            )
            .or("clocks_throttle_reasons.hw_slowdown"),
            field(
                "clocks_event_reasons.hw_thermal_slowdown",
                "The hardware halves the clocks, or lowers them further, because it is too hot.",
                reason::<0x40>,
            )
            .or("clocks_throttle_reasons.hw_thermal_slowdown"),
            field(
                "clocks_event_reasons.hw_power_brake_slowdown",
                "The hardware halves the clocks, or lowers them further, because something outside, such as \
                 the power supply, asks to brake.",
                reason::<0x80>,
            )
            .or("clocks_throttle_reasons.hw_power_brake_slowdown"),
            field(
                "clocks_event_reasons.sw_thermal_slowdown",
                "The driver lowers the clocks because the GPU is hotter than it should be while it works.",
                reason::<0x20>,
            )
            .or("clocks_throttle_reasons.sw_thermal_slowdown"),
            field(
                "clocks_event_reasons.sync_boost",
                "The GPU belongs to a group that nvidia-smi or DCGM made, in which all run at the clocks of \
                 the slowest, for the most work per watt. What holds the slowest down is told by its own \
                 reasons.",
                reason::<0x10>,
            )
            .or("clocks_throttle_reasons.sync_boost"),
        ],
    },
    Section {
        title: Some((
            "clocks_event_reasons_counters",
            "For how long something has held the clocks down, in microseconds.",
        )),
        fields: &[
            field(
                "clocks_event_reasons_counters.sw_power_cap",
                "How long the driver has lowered the clocks to keep within the power limit.",
                counter::<74>,
            )
            .unit("us"),
            field(
                "clocks_event_reasons_counters.sync_boost",
                "How long the clocks have been those of the slowest GPU of a group.",
                counter::<76>,
            )
            .unit("us"),
            field(
                "clocks_event_reasons_counters.sw_thermal_slowdown",
                "How long the driver has lowered the clocks because of the temperature.",
                counter::<269>,
            )
            .unit("us"),
            field(
                "clocks_event_reasons_counters.hw_thermal_slowdown",
                "How long the hardware has halved the clocks, or more, because it was too hot.",
                counter::<270>,
            )
            .unit("us"),
            field(
                "clocks_event_reasons_counters.hw_power_brake_slowdown",
                "How long something outside, such as the power supply, has asked to brake.",
                counter::<271>,
            )
            .unit("us"),
        ],
    },
];

/// `nvmlPstates_t`, in which 32 is a state that the driver does not know.
fn state(row: &Row<'_, ()>) -> Cell {
    match at(row.ask(Q::PerformanceState), 0)? {
        known @ 0..=15 => Ok(format!("P{known}")),
        _ => Err(Code::UNKNOWN.into()),
    }
}

/// Whether the reason of this bit holds. One that the board does not tell is not inactive.
fn reason<const BIT: i128>(row: &Row<'_, ()>) -> Cell {
    let supported = at(row.ask(Q::SupportedThrottleReasons), 0)?;
    if supported & BIT == 0 {
        return Err(Absent::not_available());
    }
    let active = at(row.ask(Q::ThrottleReasons), 0)?;
    Ok(if active & BIT == 0 { "Not Active" } else { "Active" }.to_owned())
}

/// A field that counts nanoseconds, in microseconds.
fn counter<const FIELD: u32>(row: &Row<'_, ()>) -> Cell {
    Ok((at(row.ask(Q::Field(FIELD, 0)), 0)? / 1000).to_string())
}
