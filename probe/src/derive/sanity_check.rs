//! Removal of impossible readings. Drivers have reported a utilization of 4,000,000 %, and more
//! used memory than total memory.
//!
//! Impossible readings are marked as unknown before they are used, so that they are neither shown
//! nor averaged.

use crate::model::{
    Absence, EccCounts, GpuDetails, GpuSample, MemorySample, NvLink, Process, Reading,
    fields::{Field, GPU_FIELDS, MAX_BYTES_PER_SECOND, MAX_FAN_PERCENT, Unit},
};

/// The tolerance for hardware counters, which may report slightly more than 100 % because of
/// rounding.
const ROUNDING_PERCENT: f64 = 0.5;

/// The largest plausible counter. Larger values are markers or garbage: even one error per
/// nanosecond would need centuries to exceed this value.
const MAX_COUNT: u64 = u64::MAX / 2;

/// The longest plausible time since the driver was loaded: a century.
const MAX_SECONDS: f64 = 3.2e9;

/// Marks impossible readings in a sample as unknown.
pub fn discard_impossible_readings(sample: &mut GpuSample) {
    for field in GPU_FIELDS {
        let clamp = |value| clamp_to_range(field, value);
        (field.access.amend)(sample, &clamp);
        if let Some(access) = field.mig {
            sample
                .mig_devices
                .value_mut()
                .into_iter()
                .flatten()
                .for_each(|mig| (access.amend)(mig, &clamp));
        }
    }
    discard_impossible_memory(&mut sample.memory);
    sample
        .mig_devices
        .value_mut()
        .into_iter()
        .flatten()
        .for_each(|mig| discard_impossible_memory(&mut mig.memory));
    let total = sample.memory.total_bytes.value().copied();
    for process in sample.processes.value_mut().into_iter().flatten() {
        discard_impossible_process_readings(process, total);
    }
}

/// Returns the value, limited to the field's range, or `None` if the value is impossible.
fn clamp_to_range(field: &Field, value: f64) -> Option<f64> {
    let (least, largest) = field.range;
    let rounding = if field.unit == Unit::Percent {
        ROUNDING_PERCENT
    } else {
        0.0
    };
    // This check also rejects NaN, which is in no range.
    (least..=largest + rounding)
        .contains(&value)
        .then(|| value.min(largest))
}

/// Marks impossible readings in the details as unknown.
pub fn discard_impossible_details(details: &mut GpuDetails) {
    let EccCounts {
        corrected_total,
        uncorrected_total,
    } = &mut details.ecc.volatile;
    let aggregate = &mut details.ecc.aggregate;
    let errors = [
        corrected_total,
        uncorrected_total,
        &mut aggregate.corrected_total,
        &mut aggregate.uncorrected_total,
    ];
    for counter in errors.into_iter().chain([&mut details.pcie_replays_total]) {
        discard_unless(counter, |total| *total <= MAX_COUNT);
    }
    let throttled = &mut details.throttled;
    for seconds in [
        &mut throttled.power_seconds_total,
        &mut throttled.thermal_seconds_total,
        &mut throttled.sync_boost_seconds_total,
        &mut throttled.board_limit_seconds_total,
        &mut throttled.low_utilization_seconds_total,
        &mut throttled.reliability_seconds_total,
    ] {
        discard_unless(seconds, |seconds| (0.0..=MAX_SECONDS).contains(seconds));
    }
    discard_unless(&mut details.bar1, |bar1| {
        bar1.used_bytes <= bar1.total_bytes
    });
    for link in details.nvlinks.value_mut().into_iter().flatten() {
        let NvLink {
            tx_bytes_total,
            rx_bytes_total,
            errors_total,
            bytes_per_second,
            ..
        } = link;
        let by_kind = [
            &mut link.replays_total,
            &mut link.recoveries_total,
            &mut link.crc_errors_total,
        ];
        for counter in [tx_bytes_total, rx_bytes_total, errors_total]
            .into_iter()
            .chain(by_kind)
        {
            discard_unless(counter, |total| *total <= MAX_COUNT);
        }
        discard_unless(bytes_per_second, |rate| {
            (0.0..=MAX_BYTES_PER_SECOND).contains(rate)
        });
    }
    for fan in details.fans.value_mut().into_iter().flatten() {
        discard_unless(&mut fan.speed_percent, |percent| {
            (0.0..=MAX_FAN_PERCENT).contains(percent)
        });
        discard_unless(&mut fan.rpm, |rpm| *rpm <= 100_000);
    }
    for process in details.accounting.value_mut().into_iter().flatten() {
        discard_impossible_percent(&mut process.gpu_percent);
        discard_impossible_percent(&mut process.memory_percent);
        discard_unless(&mut process.max_memory_bytes, |bytes| *bytes <= MAX_COUNT);
    }
}

/// Marks amounts of memory as unknown if they exceed the total. The total is trusted, because it is
/// the same in every sample.
fn discard_impossible_memory(memory: &mut MemorySample) {
    let Some(total) = memory.total_bytes.value().copied() else {
        return;
    };
    for bytes in [
        &mut memory.used_bytes,
        &mut memory.reserved_bytes,
        &mut memory.free_bytes,
    ] {
        discard_unless(bytes, |bytes| *bytes <= total);
    }
    // Used and free memory are computed from each other, so both are wrong.
    if memory.used_bytes == Reading::Absent(Absence::Unknown) {
        discard_unless(&mut memory.free_bytes, |_| false);
    }
}

fn discard_impossible_process_readings(process: &mut Process, total_bytes: Option<u64>) {
    let Process {
        sm_percent,
        memory_percent,
        encoder_percent,
        decoder_percent,
        ..
    } = process;
    [sm_percent, memory_percent, encoder_percent, decoder_percent]
        .into_iter()
        .for_each(discard_impossible_percent);
    discard_unless(&mut process.memory_bytes, |bytes| {
        total_bytes.is_none_or(|total| *bytes <= total)
    });
}

/// Marks an impossible percentage as unknown. Values slightly above 100 become 100.
fn discard_impossible_percent(reading: &mut Reading<f64>) {
    discard_unless(reading, |percent| {
        (0.0..=100.0 + ROUNDING_PERCENT).contains(percent)
    });
    if let Some(percent) = reading.value_mut() {
        *percent = percent.min(100.0);
    }
}

/// Marks a reading as unknown if `is_possible` returns `false`. NaN is removed too, because no
/// range contains NaN.
fn discard_unless<T>(reading: &mut Reading<T>, is_possible: impl Fn(&T) -> bool) {
    if reading.value().is_some_and(|value| !is_possible(value)) {
        *reading = Reading::Absent(Absence::Unknown);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        derive::examples::{self, GIB},
        model::{Bar1, Fan, MigInstance, MigSample},
    };

    const UNKNOWN: Reading<f64> = Reading::Absent(Absence::Unknown);

    #[test]
    fn sanity_check_keeps_possible_values() {
        let mut sample = examples::make_sample(1);
        sample.processes = Reading::Now(vec![examples::make_process(1, GIB)]);
        sample.power.draw_watts = Reading::Now(700.0);
        sample.temperature.margin_celsius = Reading::Now(-3.0);
        sample.clocks.sm_mhz = Reading::Now(1980);
        sample.fan_percent = Reading::Now(110.0);
        let before = sample.clone();
        discard_impossible_readings(&mut sample);
        assert_eq!(sample, before);
        let mut details = examples::make_details(1);
        details.ecc.volatile.corrected_total = Reading::Now(3);
        details.throttled.power_seconds_total = Reading::Now(86_400.0);
        let before = details.clone();
        discard_impossible_details(&mut details);
        assert_eq!(details, before);
    }

    #[test]
    fn sanity_check_makes_impossible_values_unknown() {
        let mut sample = examples::make_sample(1);
        sample.utilization.gpu_percent = Reading::Now(4_000_000.0);
        sample.utilization.encoder_percent = Reading::Earlier {
            value: -1.0,
            at_ms: 1,
        };
        sample.activity = Reading::Now(examples::make_activity(f64::NAN, 101.0));
        sample.power.draw_watts = Reading::Now(4_294_967.0);
        sample.power.energy_joules_total = Reading::Now(-1.0);
        sample.temperature.gpu_celsius = Reading::Now(-300.0);
        sample.temperature.memory_celsius = Reading::Now(201.0);
        sample.clocks.sm_mhz = Reading::Now(u32::MAX);
        sample.performance_state = Reading::Now(32);
        sample.pcie.width = Reading::Now(255);
        sample.pcie.rx_bytes_per_second = Reading::Now(f64::INFINITY);
        sample.nvlink.tx_bytes_per_second = Reading::Now(-5.0);
        sample.fan_percent = Reading::Now(4_000.0);
        discard_impossible_readings(&mut sample);
        assert_eq!(sample.utilization.gpu_percent, UNKNOWN);
        assert_eq!(sample.utilization.encoder_percent, UNKNOWN);
        assert_eq!(sample.activity.value().unwrap().sm_percent, UNKNOWN);
        assert_eq!(sample.activity.value().unwrap().tensor_percent, UNKNOWN);
        assert_eq!(
            [sample.power.draw_watts, sample.power.energy_joules_total],
            [UNKNOWN, UNKNOWN]
        );
        assert_eq!(
            [
                sample.temperature.gpu_celsius,
                sample.temperature.memory_celsius
            ],
            [UNKNOWN, UNKNOWN]
        );
        assert_eq!(sample.clocks.sm_mhz, Reading::Absent(Absence::Unknown));
        assert_eq!(sample.performance_state, Reading::Absent(Absence::Unknown));
        assert_eq!(sample.pcie.width, Reading::Absent(Absence::Unknown));
        assert_eq!(
            [
                sample.pcie.rx_bytes_per_second,
                sample.nvlink.tx_bytes_per_second
            ],
            [UNKNOWN, UNKNOWN]
        );
        assert_eq!(sample.fan_percent, UNKNOWN);
    }

    #[test]
    fn rounded_percentage_is_limited_to_100() {
        let mut sample = examples::make_sample(1);
        sample.activity = Reading::Now(examples::make_activity(100.3, 100.0));
        discard_impossible_readings(&mut sample);
        assert_eq!(
            sample.activity.value().unwrap().sm_percent,
            Reading::Now(100.0)
        );
    }

    #[test]
    fn memory_beyond_total_becomes_unknown() {
        let mut sample = examples::make_sample(1);
        sample.memory.used_bytes = Reading::Now(81 * GIB);
        sample.processes = Reading::Now(vec![
            examples::make_process(1, u64::MAX),
            examples::make_process(2, GIB),
        ]);
        let mut mig_memory = sample.memory.clone();
        mig_memory.total_bytes = Reading::Now(GIB);
        sample.mig_devices = Reading::Now(vec![MigSample {
            uuid: "MIG-0".into(),
            instance: MigInstance {
                gpu_instance: 1,
                compute_instance: 0,
            },
            memory: mig_memory,
            activity: Reading::Now(examples::make_activity(170.0, 0.0)),
            allocated_to: Vec::new(),
        }]);
        discard_impossible_readings(&mut sample);
        assert_eq!(sample.memory.used_bytes, Reading::Absent(Absence::Unknown));
        assert_eq!(
            sample.memory.free_bytes,
            Reading::Absent(Absence::Unknown),
            "nor is that left"
        );
        let processes = sample.processes.value().unwrap();
        assert_eq!(processes[0].memory_bytes, Reading::Absent(Absence::Unknown));
        assert_eq!(processes[1].memory_bytes, Reading::Now(GIB));
        let mig = &sample.mig_devices.value().unwrap()[0];
        assert_eq!(mig.memory.used_bytes, Reading::Absent(Absence::Unknown));
        assert_eq!(mig.activity.value().unwrap().sm_percent, UNKNOWN);
    }

    #[test]
    fn invalid_value_markers_in_details_become_unknown() {
        let mut details = examples::make_details(1);
        details.ecc.volatile.uncorrected_total = Reading::Now(u64::MAX);
        details.pcie_replays_total = Reading::Now(u64::MAX);
        details.throttled.thermal_seconds_total = Reading::Now(-1.0);
        details.bar1 = Reading::Now(Bar1 {
            total_bytes: 1,
            used_bytes: 2,
        });
        details.fans = Reading::Now(vec![Fan {
            speed_percent: Reading::Now(999.0),
            rpm: Reading::Now(u32::MAX),
        }]);
        discard_impossible_details(&mut details);
        assert_eq!(
            details.ecc.volatile.uncorrected_total,
            Reading::Absent(Absence::Unknown)
        );
        assert_eq!(
            details.pcie_replays_total,
            Reading::Absent(Absence::Unknown)
        );
        assert_eq!(details.throttled.thermal_seconds_total, UNKNOWN);
        assert_eq!(details.bar1, Reading::Absent(Absence::Unknown));
        let fan = &details.fans.value().unwrap()[0];
        assert_eq!(fan.speed_percent, UNKNOWN);
        assert_eq!(fan.rpm, Reading::Absent(Absence::Unknown));
    }
}
