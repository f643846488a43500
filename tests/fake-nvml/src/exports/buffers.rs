//! The buffers of readings that the driver records on its own.

use std::ffi::{c_uint, c_ulonglong};

use gpumon_probe::{model::TraceMetric, vendor::sim::RecordedValue};
use nvml_wrapper_sys::bindings::{
    nvmlDevice_t, nvmlReturn_t, nvmlSample_t,
    nvmlSamplingType_enum_NVML_GPU_UTILIZATION_SAMPLES as GPU_UTILIZATION,
    nvmlSamplingType_enum_NVML_MEMORY_UTILIZATION_SAMPLES as MEMORY_UTILIZATION,
    nvmlSamplingType_enum_NVML_SAMPLINGTYPE_COUNT as KINDS,
    nvmlSamplingType_enum_NVML_TOTAL_POWER_SAMPLES as POWER, nvmlSamplingType_t, nvmlValue_t,
    nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_INT as UNSIGNED_INT, nvmlValueType_t,
};

use super::mig::refuse_mig_gpu;
use crate::{
    call::{Gpu, device},
    code::Code,
    notes::PeriodActivity,
    out::{put_list, write_output_value},
};

/// Writes the samples that are newer than `last_seen_us`, the oldest first, until the list is full.
/// Without a list, it only writes the number of samples.
#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetSamples(
    handle: nvmlDevice_t,
    kind: nvmlSamplingType_t,
    last_seen_us: c_ulonglong,
    value_type: *mut nvmlValueType_t,
    count: *mut c_uint,
    samples: *mut nvmlSample_t,
) -> nvmlReturn_t {
    device("nvmlDeviceGetSamples", handle, |gpu| {
        let metric = match kind {
            POWER => TraceMetric::PowerWatts,
            GPU_UTILIZATION => TraceMetric::GpuPercent,
            MEMORY_UTILIZATION => TraceMetric::MemoryPercent,
            // The other buffers are always empty.
            3..KINDS => return Err(Code::NOT_FOUND),
            _ => return Err(Code::INVALID_ARGUMENT),
        };
        if kind != POWER {
            refuse_mig_gpu(gpu)?;
        }
        let mut recorded = list_recorded_values(gpu, metric, last_seen_us);
        if recorded.is_empty() {
            return Err(Code::NOT_FOUND);
        }
        // SAFETY: by NVML's contract, the pointer is null or may be written.
        unsafe { write_output_value(value_type, UNSIGNED_INT) }?;
        if samples.is_null() {
            // SAFETY: by NVML's contract, the pointer is null or may be written.
            return unsafe { write_output_value(count, recorded.len() as c_uint) };
        }
        // SAFETY: by NVML's contract, the pointer is null or may be read.
        let room = unsafe { count.as_ref() }.copied().unwrap_or(0);
        if room == 0 {
            return Err(Code::INVALID_ARGUMENT);
        }
        recorded.truncate(room as usize);
        let sample = |recorded: &RecordedValue| {
            let value = if kind == POWER {
                (recorded.value * 1000.0).round() as c_uint
            } else {
                recorded.value as c_uint
            };
            nvmlSample_t {
                timeStamp: recorded.at_us,
                sampleValue: nvmlValue_t { uiVal: value },
            }
        };
        // SAFETY: by NVML's contract, `count` may be read and written, and `samples` has room for
        // `*count` items.
        unsafe { put_list(samples, count, recorded.iter().map(sample).collect()) }
    })
}

/// Returns the values after a moment, the oldest first: recorded activity of real processes, or
/// values of the scenario.
fn list_recorded_values(
    gpu: &Gpu,
    metric: TraceMetric,
    last_seen_us: c_ulonglong,
) -> Vec<RecordedValue> {
    let value = |note: &PeriodActivity| match metric {
        TraceMetric::PowerWatts => None,
        TraceMetric::GpuPercent => Some(note.gpu_percent),
        TraceMetric::MemoryPercent => Some(note.memory_percent),
    };
    let at_us = |note: &PeriodActivity| gpu.machine().driver_timestamp_us(gpu.index, note.at_ms);
    let taken = gpu.period_activities();
    let of_note = |note| {
        Some(RecordedValue {
            at_us: at_us(note),
            value: f64::from(value(note)?),
        })
    };
    let noted: Vec<_> = taken.iter().filter_map(of_note).collect();
    if noted.is_empty() {
        return gpu
            .machine()
            .read_buffer(gpu.index, metric, gpu.elapsed_ms, last_seen_us);
    }
    noted
        .into_iter()
        .filter(|recorded| recorded.at_us > last_seen_us)
        .collect()
}
