//! Field values with a scope, which the wrapper always leaves at 0.

use nvml_wrapper::{
    Device,
    error::{NvmlError, nvml_sym, nvml_try},
};
use nvml_wrapper_sys::bindings::{
    nvmlFieldValue_t, nvmlValue_t, nvmlValueType_enum_NVML_VALUE_TYPE_DOUBLE as DOUBLE,
    nvmlValueType_enum_NVML_VALUE_TYPE_SIGNED_INT as SIGNED_INT,
    nvmlValueType_enum_NVML_VALUE_TYPE_SIGNED_LONG_LONG as SIGNED_LONG_LONG,
    nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_INT as UNSIGNED_INT,
    nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_LONG as UNSIGNED_LONG,
    nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_LONG_LONG as UNSIGNED_LONG_LONG,
    nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_SHORT as UNSIGNED_SHORT, nvmlValueType_t,
};

/// A field by its number (`NVML_FI_...`, below 251: those above were renumbered at driver 580.82), and what it is asked
/// of: an `NVLink`'s number, or 0 where there is no choice.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Field {
    pub(in super::super) id: u32,
    pub(in super::super) scope: u32,
}

/// `nvmlDeviceGetFieldValues`: each field's value as a number, or why there is none, in the order of the question.
pub(in super::super) fn field_values(
    device: &Device<'_>,
    fields: &[Field],
) -> Result<Vec<Result<f64, NvmlError>>, NvmlError> {
    let call = nvml_sym(device.nvml().lib().nvmlDeviceGetFieldValues.as_ref())?;
    let asked = |field: &Field| nvmlFieldValue_t {
        fieldId: field.id,
        scopeId: field.scope,
        timestamp: 0,
        latencyUsec: 0,
        valueType: UNSIGNED_INT,
        nvmlReturn: 0,
        value: nvmlValue_t { ullVal: 0 },
    };
    let mut values: Vec<_> = fields.iter().map(asked).collect();
    let count = i32::try_from(values.len()).map_err(|_| NvmlError::InvalidArg)?;
    // SAFETY: the handle is valid while `device` lives, and the driver writes as many values as it is told there are.
    nvml_try(unsafe { call(device.handle(), count, values.as_mut_ptr()) })?;
    Ok(values
        .iter()
        .map(|value| nvml_try(value.nvmlReturn).and_then(|()| number(value.valueType, value.value)))
        .collect())
}

/// A value of NVML's union. Every number that NVML gives is small enough for a double.
pub(super) fn number(kind: nvmlValueType_t, value: nvmlValue_t) -> Result<f64, NvmlError> {
    // SAFETY: every member of the union is plain bits, and all of it was written: zeros before the call, the member
    // that `kind` names by the driver.
    unsafe {
        match kind {
            DOUBLE => Ok(value.dVal),
            UNSIGNED_INT => Ok(f64::from(value.uiVal)),
            UNSIGNED_LONG => Ok(value.ulVal as f64),
            UNSIGNED_LONG_LONG => Ok(value.ullVal as f64),
            SIGNED_LONG_LONG => Ok(value.sllVal as f64),
            SIGNED_INT => Ok(f64::from(value.siVal)),
            UNSIGNED_SHORT => Ok(f64::from(value.usVal)),
            _ => Err(NvmlError::Unknown),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_read_as_what_it_is() {
        assert_eq!(number(UNSIGNED_INT, nvmlValue_t { uiVal: u32::MAX }).ok(), Some(4_294_967_295.0));
        assert_eq!(number(SIGNED_INT, nvmlValue_t { siVal: -8 }).ok(), Some(-8.0));
        assert_eq!(number(DOUBLE, nvmlValue_t { dVal: 0.5 }).ok(), Some(0.5));
        assert!(number(77, nvmlValue_t { ullVal: 1 }).is_err());
    }
}
