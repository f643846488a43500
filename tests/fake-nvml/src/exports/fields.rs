//! Field values: many numbers in one call, each with its own return code.

use std::ffi::{c_int, c_uint};

use gpumon_probe::{
    model::ThrottleReason,
    vendor::{
        nvml::query::Query,
        sim::{Architecture, NVLINK_MB_PER_SECOND, Totals, answer_query},
    },
};
use nvml_wrapper_sys::bindings::{
    field_id as id, nvmlDevice_t, nvmlFieldValue_t,
    nvmlNvlinkVersion_enum_NVML_NVLINK_VERSION_4_0 as VERSION_4_0, nvmlReturn_t, nvmlValue_t,
    nvmlValueType_enum_NVML_VALUE_TYPE_SIGNED_INT as SIGNED_INT,
    nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_INT as UNSIGNED_INT,
    nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_LONG_LONG as UNSIGNED_LONG_LONG, nvmlValueType_t,
};

use super::nvlink::find_link;
use crate::{
    answers::{self, first_number},
    call::{Gpu, device},
    code::Code,
    given, out,
};

/// The number of bytes on a link per byte of data. The difference is due to headers.
const HEADER_FACTOR: f64 = 1.125;
/// The values `NVML_NVLINK_POWER_STATE_HIGH_SPEED` and
/// `NVML_NVLINK_LOW_POWER_THRESHOLD_UNIT_100US`.
const FULL_SPEED: u32 = 0;
const STEPS_OF_100_US: u32 = 0;
/// The scope of all links together.
const ALL_LINKS: c_uint = c_uint::MAX;
/// The IDs of these four fields in drivers since 580.82. The bindings contain older IDs.
const SW_THERMAL_SLOWDOWN: u32 = 269;
const HW_THERMAL_SLOWDOWN: u32 = 270;
const HW_POWER_BRAKE_SLOWDOWN: u32 = 271;
const EDPP_MULTIPLIER: u32 = 274;

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetFieldValues(
    handle: nvmlDevice_t,
    count: c_int,
    values: *mut nvmlFieldValue_t,
) -> nvmlReturn_t {
    device("nvmlDeviceGetFieldValues", handle, |gpu| {
        let count = usize::try_from(count).map_err(|_| Code::INVALID_ARGUMENT)?;
        // SAFETY: by NVML's contract, the pointer is null or points to `count` values with
        // their IDs filled in.
        for value in unsafe { out::output_items_mut(values, count) }? {
            value.timestamp = gpu
                .machine()
                .driver_timestamp_us(gpu.index, gpu.elapsed_ms)
                .cast_signed();
            value.latencyUsec = 0;
            match read_field(gpu, value.fieldId, value.scopeId) {
                Ok(Number(kind, number)) => {
                    (value.valueType, value.value, value.nvmlReturn) = (kind, number, 0);
                }
                Err(code) => value.nvmlReturn = code.0,
            }
        }
        Ok(())
    })
}

/// A number with its type in NVML.
struct Number(nvmlValueType_t, nvmlValue_t);

fn from_u32(number: u32) -> Number {
    Number(UNSIGNED_INT, nvmlValue_t { uiVal: number })
}

fn from_i32(number: i32) -> Number {
    Number(SIGNED_INT, nvmlValue_t { siVal: number })
}

fn from_u64(number: u64) -> Number {
    Number(UNSIGNED_LONG_LONG, nvmlValue_t { ullVal: number })
}

fn read_field(gpu: &Gpu, field: u32, scope: c_uint) -> Result<Number, Code> {
    if let Some(answer) = given::device("nvmlDeviceGetFieldValues", gpu.handle(), &[field, scope]) {
        return answer.number().map(|number| match i32::try_from(number) {
            Ok(negative @ ..0) => from_i32(negative),
            _ => from_u64(number as u64),
        });
    }
    if let Some(answer) = answer_query(gpu, Query::Field(field, scope)) {
        let answer = answer.map_err(|own| Code(own.0))?;
        return Ok(to_number(
            field,
            answer.number_at(0).ok_or(Code::NOT_SUPPORTED)?,
        ));
    }
    let own = |query| first_number(gpu, query);
    let held_down = |reason| from_u64(sum_ns(&gpu.totals(), &[reason]));
    Ok(match field {
        id::NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION => {
            from_u64(own(Query::TotalEnergyConsumption)? as u64)
        }
        // The power of the memory is reported from Hopper on.
        id::NVML_FI_DEV_POWER_AVERAGE
            if scope == MEMORY_POWER_SCOPE
                && gpu.identity().architecture >= Architecture::Hopper =>
        {
            from_u32((gpu.state().power_watts * MEMORY_SHARE * 1000.0).round() as u32)
        }
        id::NVML_FI_DEV_POWER_AVERAGE => return Err(Code::NOT_SUPPORTED),
        id::NVML_FI_DEV_POWER_INSTANT
        | id::NVML_FI_DEV_POWER_MIN_LIMIT
        | id::NVML_FI_DEV_POWER_MAX_LIMIT
        | id::NVML_FI_DEV_POWER_DEFAULT_LIMIT
        | id::NVML_FI_DEV_POWER_CURRENT_LIMIT
        | id::NVML_FI_DEV_POWER_REQUESTED_LIMIT
            if scope != GPU_POWER_SCOPE =>
        {
            return Err(Code::NOT_SUPPORTED);
        }
        id::NVML_FI_DEV_POWER_MIN_LIMIT => from_u32(own(Query::PowerLimitConstraints)? as u32),
        id::NVML_FI_DEV_POWER_MAX_LIMIT | id::NVML_FI_DEV_POWER_DEFAULT_LIMIT => {
            from_u32(own(Query::DefaultPowerLimit)? as u32)
        }
        id::NVML_FI_DEV_POWER_CURRENT_LIMIT | id::NVML_FI_DEV_POWER_REQUESTED_LIMIT => {
            from_u32(own(Query::PowerLimit)? as u32)
        }
        id::NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT
        | id::NVML_FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT
        | id::NVML_FI_DEV_TEMPERATURE_MEM_MAX_TLIMIT
        | id::NVML_FI_DEV_TEMPERATURE_GPU_MAX_TLIMIT
            if !gpu.identity().reports_temperature_margin() =>
        {
            return Err(Code::NOT_SUPPORTED);
        }
        // The temperature limits, as differences from the highest temperature. The values are those
        // of an H200.
        id::NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT => from_i32(-8),
        id::NVML_FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT => from_i32(-2),
        id::NVML_FI_DEV_TEMPERATURE_MEM_MAX_TLIMIT | id::NVML_FI_DEV_TEMPERATURE_GPU_MAX_TLIMIT => {
            from_i32(0)
        }
        // These counters have 32 bits and wrap around.
        id::NVML_FI_DEV_PCIE_COUNT_TX_BYTES => from_u32(gpu.totals().pcie_tx_bytes as u64 as u32),
        id::NVML_FI_DEV_PCIE_COUNT_RX_BYTES => from_u32(gpu.totals().pcie_rx_bytes as u64 as u32),
        // These values are 0, because the counter of replays has never wrapped around, and the slot
        // supports no atomic operations.
        id::NVML_FI_DEV_PCIE_REPLAY_ROLLOVER_COUNTER
        | id::NVML_FI_DEV_PCIE_OUTBOUND_ATOMICS_MASK
        | id::NVML_FI_DEV_PCIE_INBOUND_ATOMICS_MASK => from_u32(0),
        id::NVML_FI_DEV_PCIE_REPLAY_COUNTER => from_u32(own(Query::PcieReplays)? as u32),
        // The first of these fields also count the time for two throttle reasons: power cap and
        // sync boost.
        id::NVML_FI_DEV_PERF_POLICY_POWER..=id::NVML_FI_DEV_PERF_POLICY_RELIABILITY => from_u64(
            throttled_ns(gpu, field - id::NVML_FI_DEV_PERF_POLICY_POWER)?,
        ),
        SW_THERMAL_SLOWDOWN => held_down(ThrottleReason::SwThermalSlowdown),
        HW_THERMAL_SLOWDOWN => held_down(ThrottleReason::HwThermalSlowdown),
        HW_POWER_BRAKE_SLOWDOWN => held_down(ThrottleReason::HwPowerBrakeSlowdown),
        EDPP_MULTIPLIER if gpu.identity().architecture >= Architecture::Hopper => from_u32(100),
        _ => return read_nvlink_field(gpu, field, scope),
    })
}

/// The scopes of power readings: the GPU, and its memory.
const GPU_POWER_SCOPE: c_uint = 0;
const MEMORY_POWER_SCOPE: c_uint = 2;
/// The memory's share of an H200's power.
const MEMORY_SHARE: f64 = 0.12;

/// Returns the time for which a policy has reduced the clocks.
pub(super) fn throttled_ns(gpu: &Gpu, policy: u32) -> Result<u64, Code> {
    let times = answers::answer_gpu_or_mig(gpu, Query::ViolationStatus(policy))
        .map_err(|own| Code(own.0))?;
    Ok(times.number_at(1).unwrap_or(0) as u64)
}

/// Returns the time for which these reasons have reduced the clocks.
fn sum_ns(totals: &Totals, reasons: &[ThrottleReason]) -> u64 {
    (reasons
        .iter()
        .map(|reason| totals.throttled_s(*reason))
        .sum::<f64>()
        * 1e9) as u64
}

/// Returns a number of the simulation as a field value. Link counters have 64 bits, and all other
/// numbers have 32 bits.
fn to_number(field: u32, number: i128) -> Number {
    match field {
        id::NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX
        | id::NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX
        | id::NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY
        | id::NVML_FI_DEV_NVLINK_ERROR_DL_RECOVERY
        | id::NVML_FI_DEV_NVLINK_ERROR_DL_CRC => from_u64(number as u64),
        _ => from_u32(number as u32),
    }
}

/// Returns a field about one link or about all links.
fn read_nvlink_field(gpu: &Gpu, field: u32, scope: c_uint) -> Result<Number, Code> {
    if gpu.identity().nvlinks.is_empty() {
        return Err(Code::NOT_SUPPORTED);
    }
    let carried = |bytes: f64| {
        if scope == ALL_LINKS {
            return Ok(from_u64((bytes / 1024.0) as u64));
        }
        let number = find_link(gpu, scope)?.link;
        Ok(from_u64(gpu.identity().link_traffic_kib(bytes, number)))
    };
    match field {
        id::NVML_FI_DEV_NVLINK_LINK_COUNT => Ok(from_u32(gpu.identity().nvlinks.len() as u32)),
        // A link that is down is not connected to a switch.
        id::NVML_FI_DEV_NVSWITCH_CONNECTED_LINK_COUNT => Ok(from_u32(
            gpu.identity()
                .nvlinks
                .iter()
                .filter(|link| link.active)
                .count() as u32,
        )),
        id::NVML_FI_DEV_NVLINK_THROUGHPUT_RAW_TX => {
            carried(gpu.totals().nvlink_tx_bytes * HEADER_FACTOR)
        }
        id::NVML_FI_DEV_NVLINK_THROUGHPUT_RAW_RX => {
            carried(gpu.totals().nvlink_rx_bytes * HEADER_FACTOR)
        }
        // The switch has its own number for this link, but does not report it. So the value is
        // always 0.
        id::NVML_FI_DEV_NVLINK_REMOTE_NVLINK_ID => find_link(gpu, scope).map(|_| from_u32(0)),
        id::NVML_FI_DEV_NVLINK_GET_POWER_STATE => {
            find_link(gpu, scope).map(|_| from_u32(FULL_SPEED))
        }
        id::NVML_FI_DEV_NVLINK_GET_POWER_THRESHOLD => find_link(gpu, scope).map(|_| from_u32(500)),
        id::NVML_FI_DEV_NVLINK_GET_POWER_THRESHOLD_MIN => Ok(from_u32(1)),
        id::NVML_FI_DEV_NVLINK_GET_POWER_THRESHOLD_MAX => Ok(from_u32(8_191)),
        id::NVML_FI_DEV_NVLINK_GET_POWER_THRESHOLD_UNITS => Ok(from_u32(STEPS_OF_100_US)),
        id::NVML_FI_DEV_NVLINK_ECC_DATA_ERROR_COUNT_TOTAL => Ok(from_u64(0)),
        id::NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON => Ok(from_u32(NVLINK_MB_PER_SECOND)),
        id::NVML_FI_DEV_NVLINK_GET_STATE => {
            find_link(gpu, scope).map(|link| from_u32(link.active.into()))
        }
        id::NVML_FI_DEV_NVLINK_GET_VERSION => find_link(gpu, scope).map(|_| from_u32(VERSION_4_0)),
        _ => Err(Code::NOT_SUPPORTED),
    }
}
