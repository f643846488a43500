//! Calls to functions that have unusual signatures or return lists.
//!
//! All handles in this module come from the library, and all memory that a call fills in outlives
//! the call.

use std::ffi::{OsStr, c_uint, c_ulong};

use super::{
    function::{self, PLACES, nvmlInit_v2},
    library::{Device, Function, Library, Plain, check_code},
    lists::read_counted,
    shapes::Out,
};
use crate::vendor::nvml::query::Code;

/// The number of words in a set of CPUs or NUMA nodes. `nvidia-smi` has the same limit of 1280
/// CPUs.
const SET_WORDS: usize = 20;

impl Library {
    pub(crate) fn open(path: &OsStr) -> Result<Self, libloading::Error> {
        // SAFETY: NVML's library has no initializers that could affect this process.
        let opened = unsafe { libloading::Library::new(path) }?;
        Ok(Self::with_functions(opened, PLACES))
    }

    pub(crate) fn can_initialize(&self) -> bool {
        self.find(&nvmlInit_v2).is_ok()
    }

    /// Calls `nvmlInit_v2` directly, because the `nvml-wrapper` crate would look up every NVML
    /// function first.
    pub(crate) fn initialize(&self) -> Result<(), Code> {
        let call = self.find(&nvmlInit_v2)?;
        // SAFETY: the function has no parameters.
        check_code(unsafe { call() })
    }

    /// Calls a function about a device with `value` as the argument, and returns the value as
    /// changed by the function.
    pub(crate) fn fill<T: Plain>(
        &self,
        function: &Function<Out<T>>,
        device: Device,
        mut value: T,
    ) -> Result<T, Code> {
        // SAFETY: the handle is the library's, and the value outlives the call.
        check_code(unsafe { self.find(function)?(device.0, &raw mut value) })?;
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
        let call = self.find(&function::nvmlDeviceGetTopologyNearestGpus)?;
        // SAFETY: the handle is the library's, and the buffer has room for `count` items.
        let gpus = read_counted(|count, items| unsafe { call(device.0, level, count, items) })?;
        Ok(gpus.into_iter().map(Device).collect())
    }

    /// Returns the GPUs that `nvmlSystemGetTopologyGpuSet` lists.
    pub(crate) fn gpus_near_cpu(&self, cpu: u32) -> Result<Vec<Device>, Code> {
        let call = self.find(&function::nvmlSystemGetTopologyGpuSet)?;
        // SAFETY: the buffer has room for `count` items.
        let gpus = read_counted(|count, items| unsafe { call(cpu, count, items) })?;
        Ok(gpus.into_iter().map(Device).collect())
    }

    /// Returns the level from `nvmlDeviceGetTopologyCommonAncestor`.
    pub(crate) fn common_ancestor(&self, one: Device, two: Device) -> Result<u32, Code> {
        // SAFETY: both handles are the library's, and the value outlives the call.
        self.fill_with(
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
        // SAFETY: both handles are the library's, and the value outlives the call.
        self.fill_with(&function::nvmlDeviceGetP2PStatus, |call, status| unsafe {
            call(one.0, two.0, capability, status)
        })
    }

    /// Returns the words from `nvmlDeviceGetCpuAffinity`, without trailing empty words.
    pub(crate) fn cpu_affinity(&self, device: Device) -> Result<Vec<u64>, Code> {
        // SAFETY: the handle is the library's, and the length of the buffer is passed.
        let set: [c_ulong; SET_WORDS] = self.fill_with(
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
        // SAFETY: the handle is the library's, and the length of the buffer is passed.
        let set: [c_ulong; SET_WORDS] = self.fill_with(
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trailing_zero_words_are_removed() {
        assert_eq!(trim_words(&[0, 0, 0]), [0]);
        assert_eq!(trim_words(&[1, 0, 8, 0]), [1, 0, 8]);
    }
}
