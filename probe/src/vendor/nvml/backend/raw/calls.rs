//! The calls that have a shape of their own, and lists.
//!
//! Every handle here is one that the library gave, and whatever a call fills in outlives it.

use std::ffi::{OsStr, c_uint, c_ulong};

use super::{
    function::{self, PLACES, nvmlInit_v2},
    library::{Device, Function, Library, Plain, done},
    lists::counted,
    shapes::Out,
};
use crate::vendor::nvml::query::Code;

/// A set of CPUs or NUMA nodes in words: as much room as `nvidia-smi` gives, for 1280 of them.
const SET: usize = 20;

impl Library {
    pub(crate) fn open(path: &OsStr) -> Result<Self, libloading::Error> {
        // SAFETY: NVML's library has no initializers that anything here could disturb.
        let opened = unsafe { libloading::Library::new(path) }?;
        Ok(Self::with_functions(opened, PLACES))
    }

    pub(crate) fn can_initialize(&self) -> bool {
        self.find(&nvmlInit_v2).is_ok()
    }

    /// `nvmlInit_v2`. The wrapper's own way to this looks every function of NVML up first.
    pub(crate) fn initialize(&self) -> Result<(), Code> {
        let call = self.find(&nvmlInit_v2)?;
        // SAFETY: it takes nothing.
        done(unsafe { call() })
    }

    /// Calls a function about a device with this value, which the call changes.
    pub(crate) fn fill<T: Plain>(
        &self,
        function: &Function<Out<T>>,
        device: Device,
        mut value: T,
    ) -> Result<T, Code> {
        // SAFETY: as above.
        done(unsafe { self.find(function)?(device.0, &raw mut value) })?;
        Ok(value)
    }

    /// `nvmlDeviceGetHandleByIndex_v2`.
    pub(crate) fn device(&self, index: u32) -> Result<Device, Code> {
        let [device] = self.get_system(&function::nvmlDeviceGetHandleByIndex_v2, &[index])?;
        Ok(Device(device))
    }

    /// `nvmlDeviceGetMigDeviceHandleByIndex`.
    pub(crate) fn mig_device(&self, gpu: Device, index: u32) -> Result<Device, Code> {
        self.get_one(
            &function::nvmlDeviceGetMigDeviceHandleByIndex,
            gpu,
            &[index],
        )
        .map(Device)
    }

    /// `nvmlDeviceGetTopologyNearestGpus`.
    pub(crate) fn nearest_gpus(&self, device: Device, level: u32) -> Result<Vec<Device>, Code> {
        let call = self.find(&function::nvmlDeviceGetTopologyNearestGpus)?;
        // SAFETY: as above; there is as much room as is told.
        let gpus = counted(|count, items| unsafe { call(device.0, level, count, items) })?;
        Ok(gpus.into_iter().map(Device).collect())
    }

    /// `nvmlSystemGetTopologyGpuSet`.
    pub(crate) fn gpus_near_cpu(&self, cpu: u32) -> Result<Vec<Device>, Code> {
        let call = self.find(&function::nvmlSystemGetTopologyGpuSet)?;
        // SAFETY: there is as much room as is told.
        let gpus = counted(|count, items| unsafe { call(cpu, count, items) })?;
        Ok(gpus.into_iter().map(Device).collect())
    }

    /// `nvmlDeviceGetTopologyCommonAncestor`.
    pub(crate) fn common_ancestor(&self, one: Device, two: Device) -> Result<u32, Code> {
        // SAFETY: as above.
        self.fill_with(
            &function::nvmlDeviceGetTopologyCommonAncestor,
            |call, level| unsafe { call(one.0, two.0, level) },
        )
    }

    /// `nvmlDeviceGetP2PStatus`.
    pub(crate) fn p2p_status(
        &self,
        one: Device,
        two: Device,
        capability: u32,
    ) -> Result<u32, Code> {
        // SAFETY: as above.
        self.fill_with(&function::nvmlDeviceGetP2PStatus, |call, status| unsafe {
            call(one.0, two.0, capability, status)
        })
    }

    /// `nvmlDeviceGetCpuAffinity`, without the empty words at the end.
    pub(crate) fn cpu_affinity(&self, device: Device) -> Result<Vec<u64>, Code> {
        // SAFETY: as above; there are as many words as is told.
        let set: [c_ulong; SET] = self.fill_with(
            &function::nvmlDeviceGetCpuAffinity,
            |call, words: &mut [_; SET]| unsafe {
                call(device.0, SET as c_uint, words.as_mut_ptr())
            },
        )?;
        Ok(trimmed(&set))
    }

    /// `nvmlDeviceGetMemoryAffinity` in the scope of the node, without the empty words at the end.
    pub(crate) fn memory_affinity(&self, device: Device) -> Result<Vec<u64>, Code> {
        const NODE: c_uint = 0;
        // SAFETY: as above; there are as many words as is told.
        let set: [c_ulong; SET] = self.fill_with(
            &function::nvmlDeviceGetMemoryAffinity,
            |call, words: &mut [_; SET]| unsafe {
                call(device.0, SET as c_uint, words.as_mut_ptr(), NODE)
            },
        )?;
        Ok(trimmed(&set))
    }
}

fn trimmed(words: &[c_ulong]) -> Vec<u64> {
    let used = words
        .iter()
        .rposition(|word| *word != 0)
        .map_or(1, |last| last.saturating_add(1));
    words[..used].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_keeps_the_words_that_are_used() {
        assert_eq!(trimmed(&[0, 0, 0]), [0]);
        assert_eq!(trimmed(&[1, 0, 8, 0]), [1, 0, 8]);
    }
}
