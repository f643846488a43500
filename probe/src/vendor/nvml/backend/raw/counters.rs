//! Calls to functions that return values of varying types, or several values per item.

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
    library::{Device, Library, check_code, version_of},
    lists::read_with_growing_buffer,
};
use crate::vendor::nvml::query::Code;

/// The initial capacity of the buffer, in samples. No known driver has more samples; a driver that
/// does reports the required capacity.
const INITIAL_SAMPLES: usize = 256;

/// The initial capacity of the buffer, in process samples. An idle H200's driver keeps this many
/// samples.
const INITIAL_PROCESS_SAMPLES: usize = 1024;

/// An NVML field: its ID (`NVML_FI_...`) and its scope, which is an `NVLink` number, or 0 if the
/// field has no scope. The names of the constants refer only to IDs below 251, because driver
/// 580.82 renumbered the higher ones.
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

/// The time at which the driver read a field, in microseconds since 1970, and the field's value, or
/// the error code.
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
        let call = self.find(&function::nvmlDeviceGetFieldValues)?;
        let mut values = add_guard(fields);
        let count = c_int::try_from(fields.len()).map_err(|_| Code::INVALID_ARGUMENT)?;
        // SAFETY: the handle is the library's, and the buffer has `count` values and one more.
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

    /// Returns the samples that `nvmlDeviceGetSamples` lists for the type `kind` after `since_us`,
    /// each with its time. All times are in microseconds since 1970.
    pub(crate) fn read_samples(
        &self,
        device: Device,
        kind: u32,
        since_us: u64,
    ) -> Result<Vec<(u64, Number)>, Code> {
        let call = self.find(&function::nvmlDeviceGetSamples)?;
        let mut value_type = 0;
        let samples: Vec<nvmlSample_t> =
            read_with_growing_buffer(INITIAL_SAMPLES, |count, items| {
                // SAFETY: the handle is the library's, and the buffer has room for `count` items.
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
        let call = self.find(&function::nvmlDeviceGetProcessesUtilizationInfo)?;
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
        let call = self.find(&function::nvmlDeviceGetProcessUtilization)?;
        // SAFETY: the handle is the library's, and the buffer has room for `count` items.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_keeps_its_type_and_range() {
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
