//! GPU Performance Monitoring (GPM): samples, and the metrics between two samples.
//!
//! The library crashes if two threads use GPM at the same time, even for different GPUs. Driver 580
//! also does this, but not every time.

use std::{
    ffi::c_uint,
    process,
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    thread,
    time::Duration,
};

use nvml_wrapper_sys::bindings::{
    nvmlDevice_t, nvmlGpmMetric_t, nvmlGpmMetricId_t_NVML_GPM_METRIC_ANY_TENSOR_UTIL as ANY_TENSOR,
    nvmlGpmMetricId_t_NVML_GPM_METRIC_DFMA_TENSOR_UTIL as DFMA_TENSOR,
    nvmlGpmMetricId_t_NVML_GPM_METRIC_DRAM_BW_UTIL as DRAM_BANDWIDTH,
    nvmlGpmMetricId_t_NVML_GPM_METRIC_FP16_UTIL as FP16,
    nvmlGpmMetricId_t_NVML_GPM_METRIC_FP32_UTIL as FP32,
    nvmlGpmMetricId_t_NVML_GPM_METRIC_FP64_UTIL as FP64,
    nvmlGpmMetricId_t_NVML_GPM_METRIC_GRAPHICS_UTIL as GRAPHICS,
    nvmlGpmMetricId_t_NVML_GPM_METRIC_HMMA_TENSOR_UTIL as HMMA_TENSOR,
    nvmlGpmMetricId_t_NVML_GPM_METRIC_IMMA_TENSOR_UTIL as IMMA_TENSOR,
    nvmlGpmMetricId_t_NVML_GPM_METRIC_INTEGER_UTIL as INTEGER,
    nvmlGpmMetricId_t_NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC as NVLINK_RX,
    nvmlGpmMetricId_t_NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC as NVLINK_TX,
    nvmlGpmMetricId_t_NVML_GPM_METRIC_PCIE_RX_PER_SEC as PCIE_RX,
    nvmlGpmMetricId_t_NVML_GPM_METRIC_PCIE_TX_PER_SEC as PCIE_TX,
    nvmlGpmMetricId_t_NVML_GPM_METRIC_SM_OCCUPANCY as OCCUPANCY,
    nvmlGpmMetricId_t_NVML_GPM_METRIC_SM_UTIL as SM, nvmlGpmMetricsGet_t, nvmlGpmSample_t,
    nvmlGpmSupport_t, nvmlReturn_t,
};

use crate::{
    call::{Gpu, device, system},
    code::{Code, Outcome},
    done::{ActivityRates, TotalActivity},
    out::{output_items_mut, write_output_value},
    session::Session,
};

/// The minimum time between two samples.
const MIN_WINDOW_MS: u64 = 100;
/// The driver's unit for link rates.
const MIB: f64 = (1 << 20) as f64;

/// The minimum duration of a call. It is long enough for calls to overlap if the caller does not
/// synchronize them.
const MIN_CALL_TIME: Duration = Duration::from_micros(300);

/// Whether a thread is inside a GPM function.
static IS_OCCUPIED: AtomicBool = AtomicBool::new(false);

/// A guard that exists while a thread is inside a GPM function.
struct GpmGuard;

impl GpmGuard {
    fn enter() -> Self {
        if IS_OCCUPIED.swap(true, SeqCst) {
            eprintln!(
                "fake NVML: two threads called GPM functions at the same time, which crashes real \
                 drivers; use a lock"
            );
            process::abort();
        }
        thread::sleep(MIN_CALL_TIME);
        Self
    }
}

impl Drop for GpmGuard {
    fn drop(&mut self) {
        IS_OCCUPIED.store(false, SeqCst);
    }
}

/// The content of a sample that was taken.
#[derive(Clone)]
struct TakenSample {
    gpu: u32,
    /// The GPU instance of the sample; `None` for the whole GPU.
    instance: Option<c_uint>,
    elapsed_ms: u64,
    /// The activity of real processes; `None` if there is no state folder.
    moment: Option<TotalActivity>,
}

/// The target of an `nvmlGpmSample_t`.
type SampleSlot = Option<TakenSample>;

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlGpmQueryDeviceSupport(
    handle: nvmlDevice_t,
    support: *mut nvmlGpmSupport_t,
) -> nvmlReturn_t {
    device("nvmlGpmQueryDeviceSupport", handle, |gpu| {
        // SAFETY: by NVML's contract, the pointer is null or points to one structure.
        let [support] = unsafe { output_items_mut(support, 1) }? else {
            return Err(Code::INVALID_ARGUMENT);
        };
        support.isSupportedDevice = gpu.identity().counts_activity.into();
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlGpmSampleAlloc(sample: *mut nvmlGpmSample_t) -> nvmlReturn_t {
    system("nvmlGpmSampleAlloc", |_| {
        if sample.is_null() {
            return Err(Code::INVALID_ARGUMENT);
        }
        let slot: Box<SampleSlot> = Box::new(None);
        // SAFETY: by NVML's contract, the pointer, which is not null, may be written.
        unsafe { write_output_value(sample, Box::into_raw(slot).cast()) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlGpmSampleFree(sample: nvmlGpmSample_t) -> nvmlReturn_t {
    system("nvmlGpmSampleFree", |_| {
        if sample.is_null() {
            return Err(Code::INVALID_ARGUMENT);
        }
        // SAFETY: by NVML's contract, the sample comes from nvmlGpmSampleAlloc and is freed once.
        drop(unsafe { Box::from_raw(sample.cast::<SampleSlot>()) });
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlGpmSampleGet(
    handle: nvmlDevice_t,
    sample: nvmlGpmSample_t,
) -> nvmlReturn_t {
    device("nvmlGpmSampleGet", handle, |gpu| {
        // SAFETY: by NVML's contract, the sample is null or comes from nvmlGpmSampleAlloc.
        unsafe { take_sample(gpu, None, sample) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlGpmMigSampleGet(
    handle: nvmlDevice_t,
    instance: c_uint,
    sample: nvmlGpmSample_t,
) -> nvmlReturn_t {
    device("nvmlGpmMigSampleGet", handle, |gpu| {
        if !gpu
            .state()
            .mig
            .iter()
            .any(|own| own.instance.gpu_instance == instance)
        {
            return Err(Code::INVALID_ARGUMENT);
        }
        // SAFETY: by NVML's contract, the sample is null or comes from nvmlGpmSampleAlloc.
        unsafe { take_sample(gpu, Some(instance), sample) }
    })
}

/// Takes a sample of a GPU or of a GPU instance.
///
/// # Safety
/// `sample` is null or comes from `nvmlGpmSampleAlloc` and has not been freed.
unsafe fn take_sample(gpu: &Gpu, instance: Option<c_uint>, sample: nvmlGpmSample_t) -> Outcome {
    if !gpu.identity().counts_activity {
        return Err(Code::NOT_SUPPORTED);
    }
    let _alone = GpmGuard::enter();
    // Real processes only use whole GPUs, so a MIG instance has none of their activity.
    let moment = if instance.is_none() {
        gpu.total_activity()
    } else {
        None
    };
    let taken = TakenSample {
        gpu: gpu.index,
        instance,
        elapsed_ms: gpu.elapsed_ms,
        moment,
    };
    // SAFETY: by this function's contract, the sample is null or points to a slot.
    unsafe { write_output_value(sample.cast::<SampleSlot>(), Some(taken)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlGpmMetricsGet(request: *mut nvmlGpmMetricsGet_t) -> nvmlReturn_t {
    system("nvmlGpmMetricsGet", |session| {
        let _alone = GpmGuard::enter();
        // SAFETY: by NVML's contract, the pointer is null or points to one structure.
        let [request] = unsafe { output_items_mut(request, 1) }? else {
            return Err(Code::INVALID_ARGUMENT);
        };
        // SAFETY: by NVML's contract, each sample is null or comes from nvmlGpmSampleAlloc.
        let (first, second) =
            unsafe { (read_sample(request.sample1)?, read_sample(request.sample2)?) };
        compute_metrics(session, &first, &second, request)
    })
}

/// Returns the content of a sample that was taken.
///
/// # Safety
/// `sample` is null or comes from `nvmlGpmSampleAlloc` and has not been freed.
unsafe fn read_sample(sample: nvmlGpmSample_t) -> Result<TakenSample, Code> {
    // SAFETY: by this function's contract, the sample is null or points to a slot.
    unsafe { sample.cast::<SampleSlot>().as_ref() }
        .cloned()
        .flatten()
        .ok_or(Code::INVALID_ARGUMENT)
}

fn compute_metrics(
    session: &Session,
    first: &TakenSample,
    second: &TakenSample,
    request: &mut nvmlGpmMetricsGet_t,
) -> Outcome {
    let window_ms = second.elapsed_ms.saturating_sub(first.elapsed_ms);
    if (first.gpu, first.instance) != (second.gpu, second.instance) || window_ms < MIN_WINDOW_MS {
        return Err(Code::INVALID_ARGUMENT);
    }
    let count = request.numMetrics as usize;
    let state = session.machine.state(second.gpu, second.elapsed_ms);
    let counters = match second.instance {
        None => state.counters,
        Some(instance) => {
            let mut devices = state.mig.iter();
            let own = devices
                .find(|own| own.instance.gpu_instance == instance)
                .ok_or(Code::INVALID_ARGUMENT)?;
            own.counters
        }
    };
    let done = first
        .moment
        .as_ref()
        .and_then(|before| second.moment.as_ref()?.activity_since(before));
    let between = done.unwrap_or_else(|| ActivityRates::from_counters(counters));
    for metric in request
        .metrics
        .get_mut(..count)
        .ok_or(Code::INVALID_ARGUMENT)?
    {
        fill_metric(metric, &between);
    }
    Ok(())
}

fn fill_metric(metric: &mut nvmlGpmMetric_t, between: &ActivityRates) {
    let ActivityRates {
        tensor_integer_percent,
        tensor_double_percent,
        counters,
        ..
    } = between;
    let value = match metric.metricId {
        GRAPHICS => Some(counters.graphics_percent),
        SM => Some(counters.sm_percent),
        OCCUPANCY => Some(counters.occupancy_percent),
        ANY_TENSOR => {
            Some(counters.tensor_percent + tensor_integer_percent + tensor_double_percent)
        }
        HMMA_TENSOR => Some(counters.tensor_percent),
        IMMA_TENSOR => Some(*tensor_integer_percent),
        DFMA_TENSOR => Some(*tensor_double_percent),
        FP16 | FP64 => Some(0.0),
        FP32 => Some(counters.fp32_percent),
        INTEGER => Some(counters.integer_percent),
        DRAM_BANDWIDTH => Some(counters.dram_bandwidth_percent),
        PCIE_TX => Some(counters.pcie_tx_bytes_per_second / MIB),
        PCIE_RX => Some(counters.pcie_rx_bytes_per_second / MIB),
        NVLINK_TX => Some(counters.nvlink_tx_bytes_per_second / MIB),
        NVLINK_RX => Some(counters.nvlink_rx_bytes_per_second / MIB),
        _ => None,
    };
    (metric.value, metric.nvmlReturn) =
        value.map_or((0.0, Code::NOT_SUPPORTED.0), |value| (value, 0));
}
