//! What the driver reports by itself.

use nvml_wrapper::{
    Device, Nvml,
    error::{NvmlError, nvml_sym, nvml_try},
};
use nvml_wrapper_sys::bindings::{
    nvmlEventData_t, nvmlEventMigConfigChange, nvmlEventSet_t, nvmlEventTypeDoubleBitEccError,
    nvmlEventTypePowerSourceChange, nvmlEventTypeSingleBitEccError, nvmlEventTypeXidCriticalError,
};

use crate::vendor::Notice;

/// The kinds of events that are asked for. Changes of clocks and P-states are left out: under a power limit there are
/// dozens a second, and the samples show them.
pub(in super::super::super) const REPORTED: u64 = (nvmlEventTypeXidCriticalError
    | nvmlEventTypeSingleBitEccError
    | nvmlEventTypeDoubleBitEccError
    | nvmlEventTypePowerSourceChange
    | nvmlEventMigConfigChange) as u64;

/// An event set. The wrapper frees a set when a registration with it fails, so that this is the raw one.
pub(in super::super::super) struct EventSet {
    nvml: &'static Nvml,
    set: nvmlEventSet_t,
    /// Whose events it gets: the driver's handle, as a number, and the index.
    members: Vec<(usize, u32)>,
}

// SAFETY: NVML's handles may be used by any thread; the pointer is an address that only NVML looks behind.
unsafe impl Send for EventSet {}

impl EventSet {
    /// `nvmlEventSetCreate`.
    pub(in super::super::super) fn create(nvml: &'static Nvml) -> Result<Self, NvmlError> {
        let lib = nvml.lib();
        // Without these, a set is of no use.
        nvml_sym(lib.nvmlDeviceRegisterEvents.as_ref())?;
        nvml_sym(lib.nvmlEventSetWait_v2.as_ref())?;
        nvml_sym(lib.nvmlEventSetFree.as_ref())?;
        let create = nvml_sym(lib.nvmlEventSetCreate.as_ref())?;
        let mut set = std::ptr::null_mut();
        // SAFETY: the pointer outlives the call.
        nvml_try(unsafe { create(&raw mut set) })?;
        Ok(Self { nvml, set, members: Vec::new() })
    }

    /// `nvmlDeviceRegisterEvents`, for what of `wanted` the device supports.
    pub(in super::super::super) fn add(
        &mut self,
        device: &Device<'static>,
        index: u32,
        wanted: u64,
    ) -> Result<(), NvmlError> {
        let lib = self.nvml.lib();
        let supported = nvml_sym(lib.nvmlDeviceGetSupportedEventTypes.as_ref())?;
        let register = nvml_sym(lib.nvmlDeviceRegisterEvents.as_ref())?;
        let mut types = 0;
        // SAFETY: the handle is valid while `device` lives; the number outlives the call.
        nvml_try(unsafe { supported(device.handle(), &raw mut types) })?;
        if types & wanted == 0 {
            return Err(NvmlError::NotSupported);
        }
        // SAFETY: the handle is valid while `device` lives, and the set until this is dropped.
        nvml_try(unsafe { register(device.handle(), types & wanted, self.set) })?;
        // SAFETY: only its address is taken, to know it again.
        let handle = unsafe { device.handle() }.addr();
        self.members.retain(|(_, member)| *member != index);
        self.members.push((handle, index));
        Ok(())
    }

    /// Whose events it gets, by index.
    pub(in super::super::super) fn members(&self) -> impl Iterator<Item = u32> + '_ {
        self.members.iter().map(|(_, index)| *index)
    }

    /// `nvmlEventSetWait_v2`: the next event and its GPU's index; `None` where none came in time, or one of a kind that
    /// nobody knows.
    pub(in super::super::super) fn wait(&mut self, timeout_ms: u32) -> Result<Option<(u32, Notice)>, NvmlError> {
        let call = nvml_sym(self.nvml.lib().nvmlEventSetWait_v2.as_ref())?;
        let mut event = nvmlEventData_t {
            device: std::ptr::null_mut(),
            eventType: 0,
            eventData: 0,
            gpuInstanceId: 0,
            computeInstanceId: 0,
        };
        // SAFETY: the set is valid until this is dropped; the structure outlives the call.
        match nvml_try(unsafe { call(self.set, &raw mut event, timeout_ms) }) {
            Ok(()) => {
                let from = event.device.addr();
                let member = self.members.iter().find(|(handle, _)| *handle == from);
                Ok(member.map(|(_, index)| *index).zip(notice(event.eventType, event.eventData)))
            }
            Err(NvmlError::Timeout) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Drop for EventSet {
    fn drop(&mut self) {
        if let Ok(free) = nvml_sym(self.nvml.lib().nvmlEventSetFree.as_ref()) {
            // SAFETY: the set was created and is not used any more.
            let _ = nvml_try(unsafe { free(self.set) });
        }
    }
}

fn notice(kind: u64, data: u64) -> Option<Notice> {
    let is = |bit: u32| kind == u64::from(bit);
    match () {
        () if is(nvmlEventTypeXidCriticalError) => Some(Notice::Error { code: data as u32 }),
        () if is(nvmlEventTypeSingleBitEccError) => Some(Notice::EccCorrected),
        () if is(nvmlEventTypeDoubleBitEccError) => Some(Notice::EccUncorrected),
        () if is(nvmlEventTypePowerSourceChange) => Some(Notice::PowerSource),
        () if is(nvmlEventMigConfigChange) => Some(Notice::Partitions),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_known_by_its_kind() {
        assert_eq!(notice(8, 79), Some(Notice::Error { code: 79 }));
        assert_eq!(notice(256, 1), Some(Notice::Partitions));
        assert_eq!(notice(16, 0), None, "a change of clocks");
    }
}
