//! Events that the driver reports without a request.

use nvml_wrapper_sys::bindings::{
    nvmlEventData_t, nvmlEventMigConfigChange, nvmlEventSet_t, nvmlEventTypeDoubleBitEccError,
    nvmlEventTypePowerSourceChange, nvmlEventTypeSingleBitEccError, nvmlEventTypeXidCriticalError,
};

use super::{
    function as f,
    function::WaitCall,
    library::{Device, Library, check_code},
};
use crate::vendor::{Notice, nvml::query::Code};

/// The types of events to receive. Clock and P-state changes are excluded, because a power limit
/// causes dozens of them per second, and samples show them anyway.
const REPORTED_EVENTS: u64 = (nvmlEventTypeXidCriticalError
    | nvmlEventTypeSingleBitEccError
    | nvmlEventTypeDoubleBitEccError
    | nvmlEventTypePowerSourceChange
    | nvmlEventMigConfigChange) as u64;

pub(crate) struct EventSet {
    library: &'static Library,
    set: nvmlEventSet_t,
    /// The registered GPUs, as pairs of a handle and an index.
    members: Vec<(Device, u32)>,
}

// SAFETY: any thread can use NVML's handles. Only NVML dereferences the pointer.
unsafe impl Send for EventSet {}

impl EventSet {
    /// Creates an event set with `nvmlEventSetCreate`.
    pub(crate) fn create(library: &'static Library) -> Result<Self, Code> {
        // An event set is useless if the driver lacks these functions.
        library.find_function(&f::nvmlDeviceRegisterEvents)?;
        library.find_function(&f::nvmlEventSetWait_v2)?;
        library.find_function(&f::nvmlEventSetFree)?;
        let [set] = library.get_system(&f::nvmlEventSetCreate, &[])?;
        Ok(Self {
            library,
            set,
            members: Vec::new(),
        })
    }

    /// Registers the GPU `index` with `nvmlDeviceRegisterEvents`, for those of the wanted event
    /// types that the GPU supports. The GPU's handle is looked up again.
    pub(crate) fn register_gpu(&mut self, index: u32) -> Result<(), Code> {
        let device = self.library.find_device(index)?;
        let [supported] = self
            .library
            .get(&f::nvmlDeviceGetSupportedEventTypes, device, &[])?;
        let types = supported & REPORTED_EVENTS;
        if types == 0 {
            return Err(Code::NOT_SUPPORTED);
        }
        let register = self.library.find_function(&f::nvmlDeviceRegisterEvents)?;
        // SAFETY: the handle comes from the library, and the set is valid until it is dropped.
        check_code(unsafe { register(device.0, types, self.set) })?;
        self.members.retain(|(_, member)| *member != index);
        self.members.push((device, index));
        Ok(())
    }

    pub(crate) fn gpu_indices(&self) -> impl Iterator<Item = u32> + '_ {
        self.members.iter().map(|(_, index)| *index)
    }

    /// Waits for the next event with `nvmlEventSetWait_v2`. Returns the GPU's index and the event.
    /// Returns `None` if no event arrived in time, or if the event's type is unknown.
    pub(crate) fn wait_for_event(
        &mut self,
        timeout_ms: u32,
    ) -> Result<Option<(u32, Notice)>, Code> {
        let wait = |call: WaitCall, event: &mut nvmlEventData_t| {
            // SAFETY: the set is valid until it is dropped, and the structure outlives the call.
            unsafe { call(self.set, event, timeout_ms) }
        };
        match self
            .library
            .call_with_blank_value(&f::nvmlEventSetWait_v2, wait)
        {
            Ok(event) => {
                let member = self
                    .members
                    .iter()
                    .find(|(handle, _)| handle.0 == event.device);
                Ok(member
                    .map(|(_, index)| *index)
                    .zip(to_notice(event.eventType, event.eventData)))
            }
            Err(Code::TIMEOUT) => Ok(None),
            Err(code) => Err(code),
        }
    }
}

impl Drop for EventSet {
    fn drop(&mut self) {
        if let Ok(free) = self.library.find_function(&f::nvmlEventSetFree) {
            // SAFETY: `nvmlEventSetCreate` returned this set, and it is not used again.
            unsafe { free(self.set) };
        }
    }
}

// The constants have the names that NVML gives them.
#[expect(non_upper_case_globals)]
fn to_notice(kind: u64, data: u64) -> Option<Notice> {
    match u32::try_from(kind).ok()? {
        nvmlEventTypeXidCriticalError => Some(Notice::Error { code: data as u32 }),
        nvmlEventTypeSingleBitEccError => Some(Notice::EccCorrected),
        nvmlEventTypeDoubleBitEccError => Some(Notice::EccUncorrected),
        nvmlEventTypePowerSourceChange => Some(Notice::PowerSource),
        nvmlEventMigConfigChange => Some(Notice::Partitions),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nvml_event_types_are_converted_to_notices() {
        assert_eq!(to_notice(8, 79), Some(Notice::Error { code: 79 }));
        assert_eq!(to_notice(256, 1), Some(Notice::Partitions));
        assert_eq!(to_notice(16, 0), None, "a change of clocks");
    }
}
