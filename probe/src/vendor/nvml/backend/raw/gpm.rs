//! GPU Performance Monitoring (GPM): taking samples, and calculating metrics from two samples. The
//! caller must ensure that only one thread at a time uses this module.

use nvml_wrapper_sys::bindings::{
    NVML_GPM_METRICS_GET_VERSION, NVML_GPM_SUPPORT_VERSION, nvmlGpmMetricsGet_t, nvmlGpmSample_t,
    nvmlGpmSupport_t,
};

use super::{
    function as f,
    library::{Device, Library, Plain, check_code},
};
use crate::vendor::nvml::query::Code;

/// A GPM sample, which is freed when it is dropped.
pub(crate) struct GpmSample {
    library: &'static Library,
    sample: nvmlGpmSample_t,
}

// SAFETY: any thread can use NVML's samples, but only one thread at a time.
unsafe impl Send for GpmSample {}

impl Library {
    /// Returns `true` if the device supports GPM, according to `nvmlGpmQueryDeviceSupport`.
    pub(crate) fn counts_activity(&self, device: Device) -> Result<bool, Code> {
        let asked = nvmlGpmSupport_t {
            version: NVML_GPM_SUPPORT_VERSION,
            isSupportedDevice: 0,
        };
        Ok(self
            .fill(&f::nvmlGpmQueryDeviceSupport, device, asked)?
            .isSupportedDevice
            != 0)
    }
}

impl GpmSample {
    /// Takes a sample of a GPU with `nvmlGpmSampleGet`, or of a GPU instance with
    /// `nvmlGpmMigSampleGet`.
    pub(crate) fn take_sample(
        library: &'static Library,
        gpu: Device,
        instance: Option<u32>,
    ) -> Result<Self, Code> {
        // Without this function, samples could not be freed.
        library.find(&f::nvmlGpmSampleFree)?;
        let [sample] = library.get_system(&f::nvmlGpmSampleAlloc, &[])?;
        let taken = Self { library, sample };
        if let Some(instance) = instance {
            let call = library.find(&f::nvmlGpmMigSampleGet)?;
            // SAFETY: the handle is the library's, and the sample was allocated.
            check_code(unsafe { call(gpu.0, instance, sample) })?;
        } else {
            let call = library.find(&f::nvmlGpmSampleGet)?;
            // SAFETY: the handle is the library's, and the sample was allocated.
            check_code(unsafe { call(gpu.0, sample) })?;
        }
        Ok(taken)
    }

    /// Returns the metrics for the time between this sample and `later`, calculated by
    /// `nvmlGpmMetricsGet`.
    pub(crate) fn compute_metrics(
        &self,
        later: &Self,
        metrics: &[u32],
    ) -> Result<Vec<Result<f64, Code>>, Code> {
        let call = self.library.find(&f::nvmlGpmMetricsGet)?;
        let mut values = Vec::with_capacity(metrics.len());
        let mut request = Box::new(nvmlGpmMetricsGet_t::make_blank());
        for some in metrics.chunks(request.metrics.len()) {
            (request.version, request.numMetrics) =
                (NVML_GPM_METRICS_GET_VERSION, some.len() as u32);
            (request.sample1, request.sample2) = (self.sample, later.sample);
            for (asked, id) in request.metrics.iter_mut().zip(some) {
                asked.metricId = *id;
            }
            // SAFETY: both samples are allocated, and the request has `numMetrics` metrics.
            check_code(unsafe { call(&raw mut *request) })?;
            let answered = request.metrics.iter().take(some.len());
            values.extend(
                answered.map(|metric| check_code(metric.nvmlReturn).map(|()| metric.value)),
            );
        }
        Ok(values)
    }
}

impl Drop for GpmSample {
    fn drop(&mut self) {
        if let Ok(free) = self.library.find(&f::nvmlGpmSampleFree) {
            // SAFETY: the sample was allocated, and is not used again.
            unsafe { free(self.sample) };
        }
    }
}
