//! Calls to functions that return lists, and to functions that have unusual signatures, such as
//! those for GPU Performance Monitoring (GPM).
//!
//! All handles in this module come from the library, and all memory that a call fills in outlives
//! the call.

use std::ffi::{OsStr, c_int, c_uint, c_ulong};

use nvml_wrapper_sys::bindings::{
    NVML_GPM_METRICS_GET_VERSION, NVML_GPM_SUPPORT_VERSION, nvmlFieldValue_t, nvmlGpmMetricsGet_t,
    nvmlGpmSample_t, nvmlGpmSupport_t, nvmlProcessUtilizationInfo_v1_t,
    nvmlProcessUtilizationSample_t, nvmlProcessesUtilizationInfo_v1_t, nvmlSample_t, nvmlValue_t,
    nvmlValueType_enum_NVML_VALUE_TYPE_DOUBLE as DOUBLE,
    nvmlValueType_enum_NVML_VALUE_TYPE_SIGNED_INT as SIGNED_INT,
    nvmlValueType_enum_NVML_VALUE_TYPE_SIGNED_LONG_LONG as SIGNED_LONG_LONG,
    nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_INT as UNSIGNED_INT,
    nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_LONG as UNSIGNED_LONG,
    nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_LONG_LONG as UNSIGNED_LONG_LONG,
    nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_SHORT as UNSIGNED_SHORT, nvmlValueType_t,
};

use super::{
    function as f,
    function::{self, PLACES, nvmlInit_v2},
    library::{Device, Function, Library, Plain, check_code, version_of},
    lists::{read_list_of_exact_size, read_with_growing_buffer},
    shapes::Out,
};
use crate::vendor::nvml::query::Code;

/// The length of a set of CPUs or NUMA nodes, in 64-bit words. It is enough for 1280 CPUs, which is
/// also the limit of `nvidia-smi`.
const SET_WORDS: usize = 20;

impl Library {
    pub(crate) fn open(path: &OsStr) -> Result<Self, libloading::Error> {
        // SAFETY: NVML's library has no initializers that could affect this process.
        let opened = unsafe { libloading::Library::new(path) }?;
        Ok(Self::with_functions(opened, PLACES))
    }

    pub(crate) fn can_initialize(&self) -> bool {
        self.find_function(&nvmlInit_v2).is_ok()
    }

    /// Calls `nvmlInit_v2` directly, because the `nvml-wrapper` crate would look up every NVML
    /// function first.
    pub(crate) fn initialize(&self) -> Result<(), Code> {
        let call = self.find_function(&nvmlInit_v2)?;
        // SAFETY: the function has no parameters.
        check_code(unsafe { call() })
    }

    /// Calls a function about a device with a pointer to `value`, and returns the value after the
    /// function has changed it.
    pub(crate) fn call_with_value<T: Plain>(
        &self,
        function: &Function<Out<T>>,
        device: Device,
        mut value: T,
    ) -> Result<T, Code> {
        // SAFETY: the handle comes from the library, and the value outlives the call.
        check_code(unsafe { self.find_function(function)?(device.0, &raw mut value) })?;
        Ok(value)
    }

    /// Returns the handle from `nvmlDeviceGetHandleByIndex_v2`.
    pub(crate) fn find_device(&self, index: u32) -> Result<Device, Code> {
        let [device] = self.get_system(&function::nvmlDeviceGetHandleByIndex_v2, &[index])?;
        Ok(Device(device))
    }

    /// Returns the handle from `nvmlDeviceGetMigDeviceHandleByIndex`.
    pub(crate) fn find_mig_device(&self, gpu: Device, index: u32) -> Result<Device, Code> {
        self.get_one(
            &function::nvmlDeviceGetMigDeviceHandleByIndex,
            gpu,
            &[index],
        )
        .map(Device)
    }

    /// Returns the GPUs that `nvmlDeviceGetTopologyNearestGpus` lists.
    pub(crate) fn nearest_gpus(&self, device: Device, level: u32) -> Result<Vec<Device>, Code> {
        let call = self.find_function(&function::nvmlDeviceGetTopologyNearestGpus)?;
        // SAFETY: the handle comes from the library, and the buffer has room for `count` items.
        let gpus =
            read_list_of_exact_size(|count, items| unsafe { call(device.0, level, count, items) })?;
        Ok(gpus.into_iter().map(Device).collect())
    }

    /// Returns the GPUs that `nvmlSystemGetTopologyGpuSet` lists.
    pub(crate) fn gpus_near_cpu(&self, cpu: u32) -> Result<Vec<Device>, Code> {
        let call = self.find_function(&function::nvmlSystemGetTopologyGpuSet)?;
        // SAFETY: the buffer has room for `count` items.
        let gpus = read_list_of_exact_size(|count, items| unsafe { call(cpu, count, items) })?;
        Ok(gpus.into_iter().map(Device).collect())
    }

    /// Returns the level from `nvmlDeviceGetTopologyCommonAncestor`.
    pub(crate) fn common_ancestor(&self, one: Device, two: Device) -> Result<u32, Code> {
        // SAFETY: both handles come from the library, and the value outlives the call.
        self.call_with_blank_value(
            &function::nvmlDeviceGetTopologyCommonAncestor,
            |call, level| unsafe { call(one.0, two.0, level) },
        )
    }

    /// Returns the status from `nvmlDeviceGetP2PStatus`.
    pub(crate) fn p2p_status(
        &self,
        one: Device,
        two: Device,
        capability: u32,
    ) -> Result<u32, Code> {
        // SAFETY: both handles come from the library, and the value outlives the call.
        self.call_with_blank_value(&function::nvmlDeviceGetP2PStatus, |call, status| unsafe {
            call(one.0, two.0, capability, status)
        })
    }

    /// Returns the words from `nvmlDeviceGetCpuAffinity`, without trailing empty words.
    pub(crate) fn cpu_affinity(&self, device: Device) -> Result<Vec<u64>, Code> {
        // SAFETY: the handle comes from the library, and the length of the buffer is passed.
        let set: [c_ulong; SET_WORDS] = self.call_with_blank_value(
            &function::nvmlDeviceGetCpuAffinity,
            |call, words: &mut [_; SET_WORDS]| unsafe {
                call(device.0, SET_WORDS as c_uint, words.as_mut_ptr())
            },
        )?;
        Ok(trim_words(&set))
    }

    /// Returns the words from `nvmlDeviceGetMemoryAffinity` for NUMA nodes, without trailing empty
    /// words.
    pub(crate) fn memory_affinity(&self, device: Device) -> Result<Vec<u64>, Code> {
        const NODE: c_uint = 0;
        // SAFETY: the handle comes from the library, and the length of the buffer is passed.
        let set: [c_ulong; SET_WORDS] = self.call_with_blank_value(
            &function::nvmlDeviceGetMemoryAffinity,
            |call, words: &mut [_; SET_WORDS]| unsafe {
                call(device.0, SET_WORDS as c_uint, words.as_mut_ptr(), NODE)
            },
        )?;
        Ok(trim_words(&set))
    }
}

fn trim_words(words: &[c_ulong]) -> Vec<u64> {
    let used = words
        .iter()
        .rposition(|word| *word != 0)
        .map_or(1, |last| last.saturating_add(1));
    words[..used].to_vec()
}

/// The initial capacity of the buffer for `nvmlDeviceGetSamples`, in samples. All known drivers
/// have at most this many samples. If a driver has more, it reports the required capacity.
const INITIAL_SAMPLES: usize = 256;

/// The initial capacity of the buffer for lists of process samples, in samples. An idle H200's
/// driver keeps this many samples.
const INITIAL_PROCESS_SAMPLES: usize = 1024;

/// An NVML field, identified by its ID (`NVML_FI_...`) and its scope. The scope is an `NVLink`
/// number, or 0 if the field has no scope. The bindings have named constants for the IDs. Only the
/// constants for IDs below 251 may be used, because driver 580.82 renumbered the higher IDs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field {
    pub(crate) id: u32,
    pub(crate) scope: u32,
}

/// A number, in the type that the driver returned.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Number {
    Whole(i128),
    Real(f64),
}

/// The time at which the driver read a field, in microseconds since 1970, and the field's value; or
/// the error code if the field could not be read.
type FieldValue = Result<(i64, Number), Code>;

/// Returns the argument for `nvmlDeviceGetFieldValues`: the fields, followed by an extra element
/// that is not included in the count.
///
/// For `NVLink` error and throughput counters (138 to 141, 161 to 163), driver 580.159 accesses one
/// element past the end. If the memory there happens to look like another such counter with return
/// code 0, the driver overwrites it. The extra element prevents this.
fn add_guard(fields: &[Field]) -> Vec<nvmlFieldValue_t> {
    let value = |id, scope, code| nvmlFieldValue_t {
        fieldId: id,
        scopeId: scope,
        timestamp: 0,
        latencyUsec: 0,
        valueType: UNSIGNED_INT,
        nvmlReturn: code,
        value: nvmlValue_t { ullVal: 0 },
    };
    let guard = value(0, 0, Code::INVALID_ARGUMENT.0);
    fields
        .iter()
        .map(|field| value(field.id, field.scope, 0))
        .chain([guard])
        .collect()
}

impl Library {
    /// Reads several fields with one call to `nvmlDeviceGetFieldValues`, and returns their values
    /// in the same order.
    pub(crate) fn read_fields(
        &self,
        device: Device,
        fields: &[Field],
    ) -> Result<Vec<FieldValue>, Code> {
        let call = self.find_function(&function::nvmlDeviceGetFieldValues)?;
        let mut values = add_guard(fields);
        let count = c_int::try_from(fields.len()).map_err(|_| Code::INVALID_ARGUMENT)?;
        // SAFETY: the handle comes from the library, and the buffer has `count` values and one
        // more.
        check_code(unsafe { call(device.0, count, values.as_mut_ptr()) })?;
        let answer = |value: &nvmlFieldValue_t| {
            check_code(value.nvmlReturn)?;
            Ok((
                value.timestamp,
                convert_number(value.valueType, value.value)?,
            ))
        };
        Ok(values.iter().take(fields.len()).map(answer).collect())
    }

    /// Returns the samples of the type `kind` that `nvmlDeviceGetSamples` lists, each with its
    /// time. Only samples after `since_us` are listed. All times are in microseconds since 1970.
    pub(crate) fn read_samples(
        &self,
        device: Device,
        kind: u32,
        since_us: u64,
    ) -> Result<Vec<(u64, Number)>, Code> {
        let call = self.find_function(&function::nvmlDeviceGetSamples)?;
        let mut value_type = 0;
        let samples: Vec<nvmlSample_t> =
            read_with_growing_buffer(INITIAL_SAMPLES, |count, items| {
                // SAFETY: the handle comes from the library, and the buffer has room for `count`
                // items.
                unsafe { call(device.0, kind, since_us, &raw mut value_type, count, items) }
            })?;
        samples
            .iter()
            .map(|sample| {
                Ok((
                    sample.timeStamp,
                    convert_number(value_type, sample.sampleValue)?,
                ))
            })
            .collect()
    }

    /// Returns the samples that `nvmlDeviceGetProcessesUtilizationInfo` lists.
    pub(crate) fn processes_utilization(
        &self,
        device: Device,
        since_us: u64,
    ) -> Result<Vec<nvmlProcessUtilizationInfo_v1_t>, Code> {
        let call = self.find_function(&function::nvmlDeviceGetProcessesUtilizationInfo)?;
        read_with_growing_buffer(INITIAL_PROCESS_SAMPLES, |count, items| {
            let mut request = nvmlProcessesUtilizationInfo_v1_t {
                version: version_of::<nvmlProcessesUtilizationInfo_v1_t>(1),
                // SAFETY: the function that calls this closure has written the number.
                processSamplesCount: unsafe { count.read() },
                lastSeenTimeStamp: since_us,
                procUtilArray: items,
            };
            // SAFETY: the handle comes from the library, and the buffer has room for
            // `processSamplesCount` items.
            let code = unsafe { call(device.0, &raw mut request) };
            // SAFETY: the function that calls this closure passes a pointer that is valid for
            // writes.
            unsafe { count.write(request.processSamplesCount) };
            code
        })
    }

    /// Returns the samples that `nvmlDeviceGetProcessUtilization` lists.
    pub(crate) fn process_utilization(
        &self,
        device: Device,
        since_us: u64,
    ) -> Result<Vec<nvmlProcessUtilizationSample_t>, Code> {
        let call = self.find_function(&function::nvmlDeviceGetProcessUtilization)?;
        // SAFETY: the handle comes from the library, and the buffer has room for `count` items.
        read_with_growing_buffer(INITIAL_PROCESS_SAMPLES, |count, items| unsafe {
            call(device.0, items, count, since_us)
        })
    }
}

fn convert_number(kind: nvmlValueType_t, value: nvmlValue_t) -> Result<Number, Code> {
    // SAFETY: all members of the union are plain bits, and all bits are initialized: first with
    // zeros, and then by the driver in the member that `kind` selects.
    let whole = unsafe {
        match kind {
            DOUBLE => return Ok(Number::Real(value.dVal)),
            UNSIGNED_INT => i128::from(value.uiVal),
            UNSIGNED_LONG => i128::from(value.ulVal),
            UNSIGNED_LONG_LONG => i128::from(value.ullVal),
            SIGNED_LONG_LONG => i128::from(value.sllVal),
            SIGNED_INT => i128::from(value.siVal),
            UNSIGNED_SHORT => i128::from(value.usVal),
            _ => return Err(Code::UNKNOWN),
        }
    };
    Ok(Number::Whole(whole))
}

/// A GPM sample, which is freed when it is dropped. The caller must ensure that only one thread at
/// a time calls GPM.
pub(crate) struct GpmSample {
    library: &'static Library,
    sample: nvmlGpmSample_t,
}

// SAFETY: any thread can use NVML's samples, but only one thread at a time.
unsafe impl Send for GpmSample {}

impl Library {
    /// Returns `true` if the device supports GPM, according to `nvmlGpmQueryDeviceSupport`.
    pub(crate) fn supports_gpm(&self, device: Device) -> Result<bool, Code> {
        let asked = nvmlGpmSupport_t {
            version: NVML_GPM_SUPPORT_VERSION,
            isSupportedDevice: 0,
        };
        Ok(self
            .call_with_value(&f::nvmlGpmQueryDeviceSupport, device, asked)?
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
        // Without this function, a sample could not be freed, so none is allocated.
        library.find_function(&f::nvmlGpmSampleFree)?;
        let [sample] = library.get_system(&f::nvmlGpmSampleAlloc, &[])?;
        let taken = Self { library, sample };
        if let Some(instance) = instance {
            let call = library.find_function(&f::nvmlGpmMigSampleGet)?;
            // SAFETY: the handle comes from the library, and the sample was allocated.
            check_code(unsafe { call(gpu.0, instance, sample) })?;
        } else {
            let call = library.find_function(&f::nvmlGpmSampleGet)?;
            // SAFETY: the handle comes from the library, and the sample was allocated.
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
        let call = self.library.find_function(&f::nvmlGpmMetricsGet)?;
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
        if let Ok(free) = self.library.find_function(&f::nvmlGpmSampleFree) {
            // SAFETY: the sample was allocated, and is not used again.
            unsafe { free(self.sample) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trailing_zero_words_of_mask_are_removed() {
        assert_eq!(trim_words(&[0, 0, 0]), [0]);
        assert_eq!(trim_words(&[1, 0, 8, 0]), [1, 0, 8]);
    }
}

#[cfg(test)]
mod counters_tests {
    use super::*;

    #[test]
    fn nvml_value_keeps_its_type_and_range() {
        assert_eq!(
            convert_number(UNSIGNED_LONG_LONG, nvmlValue_t { ullVal: u64::MAX }),
            Ok(Number::Whole(u64::MAX.into()))
        );
        assert_eq!(
            convert_number(SIGNED_INT, nvmlValue_t { siVal: -8 }),
            Ok(Number::Whole(-8))
        );
        assert_eq!(
            convert_number(DOUBLE, nvmlValue_t { dVal: 0.5 }),
            Ok(Number::Real(0.5))
        );
        assert_eq!(
            convert_number(77, nvmlValue_t { ullVal: 1 }),
            Err(Code::UNKNOWN)
        );
    }

    #[test]
    fn guard_field_is_not_read_as_counter() {
        let values = add_guard(&[Field { id: 138, scope: 3 }, Field { id: 162, scope: 0 }]);
        let read: Vec<_> = values
            .iter()
            .map(|value| (value.fieldId, value.scopeId, value.nvmlReturn == 0))
            .collect();
        assert_eq!(read, [(138, 3, true), (162, 0, true), (0, 0, false)]);
    }
}
