//! Field values: readings that have a number instead of a function, all with one call.

use nvml_wrapper::{Device, enums::device::SampleValue, error::NvmlError, structs::device::FieldId};
use nvml_wrapper_sys::bindings::field_id::{NVML_FI_DEV_MEMORY_TEMP, NVML_FI_DEV_POWER_INSTANT};

use super::{ask::Asker, error::absence};
use crate::model::{Absence, Reading};

/// The fields that are read at every beat. Those that cost more have no place here: one of them delays all.
pub(super) struct FieldReadings {
    pub(super) memory_celsius: Reading<f64>,
    pub(super) instant_watts: Reading<f64>,
}

impl FieldReadings {
    /// About 0.6 us for both.
    pub(super) fn read(device: &Device<'_>, asker: &mut Asker) -> Self {
        const FIELDS: [FieldId; 2] = [FieldId(NVML_FI_DEV_MEMORY_TEMP), FieldId(NVML_FI_DEV_POWER_INSTANT)];
        let fields = match asker.ask("field values", || device.field_values_for(&FIELDS)) {
            Reading::Now(fields) | Reading::Earlier { value: fields, .. } => fields,
            Reading::Absent(reason) => {
                return Self {
                    memory_celsius: Reading::Absent(reason.clone()),
                    instant_watts: Reading::Absent(reason),
                };
            }
        };
        let mut numbers = fields.into_iter().map(|field| number(field.and_then(|field| field.value)));
        let mut next = || numbers.next().unwrap_or(Reading::Absent(Absence::Unknown));
        Self {
            // A 0 is a board without that sensor, not memory at the freezing point.
            memory_celsius: match next() {
                Reading::Now(0) => Reading::Absent(Absence::NotSupported),
                celsius => celsius.map(f64::from),
            },
            instant_watts: next().map(|milliwatts| f64::from(milliwatts) / 1000.0),
        }
    }
}

fn number(value: Result<SampleValue, NvmlError>) -> Reading<u32> {
    match value {
        Ok(SampleValue::U32(number)) => Reading::Now(number),
        Ok(_) => Reading::Absent(Absence::Unknown),
        Err(error) => Reading::Absent(absence(&error)),
    }
}
