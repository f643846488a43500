//! Calls that return values of variable type, and calls that return several values per item.

use std::ffi::c_int;

use nvml_wrapper_sys::bindings::{
    nvmlFieldValue_t, nvmlProcessUtilizationInfo_v1_t, nvmlProcessUtilizationSample_t,
    nvmlProcessesUtilizationInfo_v1_t, nvmlSample_t, nvmlValue_t,
    nvmlValueType_enum_NVML_VALUE_TYPE_DOUBLE as DOUBLE,
    nvmlValueType_enum_NVML_VALUE_TYPE_SIGNED_INT as SIGNED_INT,
    nvmlValueType_enum_NVML_VALUE_TYPE_SIGNED_LONG_LONG as SIGNED_LONG_LONG,
    nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_INT as UNSIGNED_INT,
    nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_LONG as UNSIGNED_LONG,
    nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_LONG_LONG as UNSIGNED_LONG_LONG,
    nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_SHORT as UNSIGNED_SHORT, nvmlValueType_t,
};

use super::{
    function,
    library::{Device, Library, done, version_of},
    lists::grow,
};
use crate::vendor::nvml::query::Code;

/// The initial number of samples in the buffer. No known driver has more. If one does, it reports
/// how many.
const SAMPLES: usize = 256;

/// The initial number of process samples in the buffer, which is the number that the driver keeps
/// on an idle H200.
const UTILIZATION_SAMPLES: usize = 1024;

/// A field: its ID (`NVML_FI_...`) and its scope, which is the number of an `NVLink`, or 0 if the
/// field has no choices. The names refer to IDs below 251, because higher ones were renumbered in
/// driver 580.82.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field {
    pub(crate) id: u32,
    pub(crate) scope: u32,
}

/// A number of the type that the driver returned.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Number {
    Whole(i128),
    Real(f64),
}

/// The time when the driver read a field, in microseconds since 1970, and its value, or the error
/// code.
type FieldValue = Result<(i64, Number), Code>;

/// Returns the argument of `nvmlDeviceGetFieldValues`: the fields, followed by an extra element
/// that is not counted.
///
/// If a field is an `NVLink` error or throughput counter (138 to 141, 161 to 163), driver 580.159
/// accesses one element too many. If the memory there happens to look like another such counter
/// with return code 0, the driver overwrites it. The extra element looks different.
fn guarded(fields: &[Field]) -> Vec<nvmlFieldValue_t> {
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
    /// Reads several fields with one call of `nvmlDeviceGetFieldValues`, and returns the values in
    /// their order.
    pub(crate) fn fields(&self, device: Device, fields: &[Field]) -> Result<Vec<FieldValue>, Code> {
        let call = self.find(&function::nvmlDeviceGetFieldValues)?;
        let mut values = guarded(fields);
        let count = c_int::try_from(fields.len()).map_err(|_| Code::INVALID_ARGUMENT)?;
        // SAFETY: the handle is the library's, and the buffer has `count` values and one more.
        done(unsafe { call(device.0, count, values.as_mut_ptr()) })?;
        let answer = |value: &nvmlFieldValue_t| {
            done(value.nvmlReturn)?;
            Ok((value.timestamp, number(value.valueType, value.value)?))
        };
        Ok(values.iter().take(fields.len()).map(answer).collect())
    }

    /// Returns the samples of this `nvmlSamplingType_t` after `since_us` from
    /// `nvmlDeviceGetSamples`, each with its time. All times are in microseconds since 1970.
    pub(crate) fn samples(
        &self,
        device: Device,
        kind: u32,
        since_us: u64,
    ) -> Result<Vec<(u64, Number)>, Code> {
        let call = self.find(&function::nvmlDeviceGetSamples)?;
        let mut value_type = 0;
        let samples: Vec<nvmlSample_t> = grow(SAMPLES, |count, items| {
            // SAFETY: the handle is the library's, and the buffer has room for `count` items.
            unsafe { call(device.0, kind, since_us, &raw mut value_type, count, items) }
        })?;
        samples
            .iter()
            .map(|sample| Ok((sample.timeStamp, number(value_type, sample.sampleValue)?)))
            .collect()
    }

    /// Returns the samples from `nvmlDeviceGetProcessesUtilizationInfo`.
    pub(crate) fn processes_utilization(
        &self,
        device: Device,
        since_us: u64,
    ) -> Result<Vec<nvmlProcessUtilizationInfo_v1_t>, Code> {
        let call = self.find(&function::nvmlDeviceGetProcessesUtilizationInfo)?;
        grow(UTILIZATION_SAMPLES, |count, items| {
            let mut request = nvmlProcessesUtilizationInfo_v1_t {
                version: version_of::<nvmlProcessesUtilizationInfo_v1_t>(1),
                // SAFETY: `grow` has written the number.
                processSamplesCount: unsafe { count.read() },
                lastSeenTimeStamp: since_us,
                procUtilArray: items,
            };
            // SAFETY: the handle is the library's, and the buffer has room for
            // `processSamplesCount` items.
            let code = unsafe { call(device.0, &raw mut request) };
            // SAFETY: the pointer is to a number of `grow`.
            unsafe { count.write(request.processSamplesCount) };
            code
        })
    }

    /// Returns the samples from `nvmlDeviceGetProcessUtilization`.
    pub(crate) fn process_utilization(
        &self,
        device: Device,
        since_us: u64,
    ) -> Result<Vec<nvmlProcessUtilizationSample_t>, Code> {
        let call = self.find(&function::nvmlDeviceGetProcessUtilization)?;
        // SAFETY: the handle is the library's, and the buffer has room for `count` items.
        grow(UTILIZATION_SAMPLES, |count, items| unsafe {
            call(device.0, items, count, since_us)
        })
    }
}

fn number(kind: nvmlValueType_t, value: nvmlValue_t) -> Result<Number, Code> {
    // SAFETY: all members of the union are plain bits, and all bits are initialized: with zeros
    // before the call, and then by the driver in the member that `kind` names.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_keeps_its_type_and_its_whole_range() {
        assert_eq!(
            number(UNSIGNED_LONG_LONG, nvmlValue_t { ullVal: u64::MAX }),
            Ok(Number::Whole(u64::MAX.into()))
        );
        assert_eq!(
            number(SIGNED_INT, nvmlValue_t { siVal: -8 }),
            Ok(Number::Whole(-8))
        );
        assert_eq!(
            number(DOUBLE, nvmlValue_t { dVal: 0.5 }),
            Ok(Number::Real(0.5))
        );
        assert_eq!(number(77, nvmlValue_t { ullVal: 1 }), Err(Code::UNKNOWN));
    }

    #[test]
    fn what_lies_behind_the_fields_reads_as_none_that_the_driver_would_fill_in() {
        let values = guarded(&[Field { id: 138, scope: 3 }, Field { id: 162, scope: 0 }]);
        let read: Vec<_> = values
            .iter()
            .map(|value| (value.fieldId, value.scopeId, value.nvmlReturn == 0))
            .collect();
        assert_eq!(read, [(138, 3, true), (162, 0, true), (0, 0, false)]);
    }
}
