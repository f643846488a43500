//! Field values: readings that have a number instead of a function, all with one call.

use nvml_wrapper::{Device, error::NvmlError};
use nvml_wrapper_sys::bindings::field_id::{
    NVML_FI_DEV_MEMORY_TEMP, NVML_FI_DEV_POWER_AVERAGE, NVML_FI_DEV_POWER_INSTANT,
};

use super::{ask::Asker, error::absence, raw};
use crate::model::{Absence, Reading};

/// The fields that are read at every beat. Those that cost more have no place here: one of them delays all.
pub(super) struct FieldReadings {
    pub(super) memory_celsius: Reading<f64>,
    pub(super) instant_watts: Reading<f64>,
    pub(super) average_watts: Reading<f64>,
}

impl FieldReadings {
    /// About 1 us for all.
    pub(super) fn read(device: &Device<'_>, asker: &mut Asker) -> Self {
        const FIELDS: [raw::Field; 3] = [
            raw::Field { id: NVML_FI_DEV_MEMORY_TEMP, scope: 0 },
            raw::Field { id: NVML_FI_DEV_POWER_INSTANT, scope: 0 },
            raw::Field { id: NVML_FI_DEV_POWER_AVERAGE, scope: 0 },
        ];
        let fields = match asker.ask("field values", || raw::field_values(device, &FIELDS)) {
            Reading::Now(fields) | Reading::Earlier { value: fields, .. } => fields,
            Reading::Absent(reason) => {
                return Self {
                    memory_celsius: Reading::Absent(reason.clone()),
                    instant_watts: Reading::Absent(reason.clone()),
                    average_watts: Reading::Absent(reason),
                };
            }
        };
        let mut numbers = fields.into_iter().map(number);
        let mut next = || numbers.next().unwrap_or(Reading::Absent(Absence::Unknown));
        Self {
            // A 0 is a board without that sensor, not memory at the freezing point.
            memory_celsius: match next() {
                Reading::Now(0.0) => Reading::Absent(Absence::NotSupported),
                celsius => celsius,
            },
            instant_watts: next().map(|milliwatts| milliwatts / 1000.0),
            average_watts: next().map(|milliwatts| milliwatts / 1000.0),
        }
    }
}

fn number(value: Result<f64, NvmlError>) -> Reading<f64> {
    Reading::from(value.map_err(|error| absence(&error)))
}
