//! The calls that have a shape of their own, and lists.
//!
//! Every handle here is one that the library gave, and whatever a call fills in outlives it.

use std::{
    ffi::{c_char, c_uint, c_ulong},
    ptr,
};

use nvml_wrapper_sys::bindings::{nvmlPciInfo_t, nvmlReturn_t};

use super::{
    function,
    library::{Device, Function, Library, Plain, done},
    shapes::Out,
};
use crate::vendor::nvml::query::Code;

/// A set of CPUs or NUMA nodes in words: as much room as `nvidia-smi` gives, for 1280 of them.
const SET: usize = 20;

/// `NVML_ERROR_INSUFFICIENT_SIZE`.
pub(super) const INSUFFICIENT_SIZE: Code = Code(7);

/// A list can grow while it is asked for; after so many tries it is growing for ever.
pub(super) const TRIES: u32 = 4;

impl Library {
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

    /// `nvmlDeviceQueryDrainState` of the device at this domain, bus and device.
    pub(crate) fn drain_state(&self, domain: u32, bus: u32, device: u32) -> Result<u32, Code> {
        let mut place = nvmlPciInfo_t::blank();
        (place.domain, place.bus, place.device) = (domain, bus, device);
        write(
            &mut place.busId,
            &format!("{domain:08X}:{bus:02X}:{device:02X}.0"),
        );
        write(
            &mut place.busIdLegacy,
            &format!("{domain:04X}:{bus:02X}:{device:02X}.0"),
        );
        // SAFETY: as above.
        self.fill_with(&function::nvmlDeviceQueryDrainState, |call, state| unsafe {
            call(&raw mut place, state)
        })
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

/// The most items in a list. A driver that reports more is faulty, and allocating that many would
/// exhaust the memory.
const MOST_ITEMS: c_uint = 1 << 20;

/// Asks for a list with more room until there is enough.
pub(super) fn grow<T: Plain>(
    room: usize,
    mut call: impl FnMut(*mut c_uint, *mut T) -> nvmlReturn_t,
) -> Result<Vec<T>, Code> {
    let mut items = vec![T::blank(); room];
    for _ in 0..TRIES {
        let mut count = items.len() as c_uint;
        match done(call(&raw mut count, items.as_mut_ptr())) {
            Ok(()) => {
                items.truncate(count as usize);
                return Ok(items);
            }
            // Some more than it has now, since others may come meanwhile.
            Err(INSUFFICIENT_SIZE) if count <= MOST_ITEMS => {
                items.resize(
                    items.len().max(count as usize).saturating_add(room),
                    T::blank(),
                );
            }
            Err(code) => return Err(code),
        }
    }
    Err(INSUFFICIENT_SIZE)
}

/// Asks for a list whose number is asked for first: these functions are not asked with too much room.
pub(super) fn counted<T: Plain>(
    call: impl Fn(*mut c_uint, *mut T) -> nvmlReturn_t,
) -> Result<Vec<T>, Code> {
    let mut count = 0;
    done(call(&raw mut count, ptr::null_mut()))?;
    if count > MOST_ITEMS {
        return Err(INSUFFICIENT_SIZE);
    }
    let mut items = vec![T::blank(); count as usize];
    if count > 0 {
        done(call(&raw mut count, items.as_mut_ptr()))?;
        items.truncate(count as usize);
    }
    Ok(items)
}

/// Writes a text into a C array, which keeps a NUL at its end.
fn write(array: &mut [c_char], text: &str) {
    let room = array.len().saturating_sub(1);
    for (to, byte) in array[..room].iter_mut().zip(text.bytes()) {
        // A C character may be signed or not; bus ids are ASCII.
        *to = c_char::try_from(byte).unwrap_or(0);
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
    fn a_list_gets_as_much_room_as_it_needs_and_no_endless_tries() {
        let listed = |has: u32| {
            move |count: *mut c_uint, items: *mut u32| {
                // SAFETY: both pointers come from `grow`, with so much room.
                unsafe {
                    let room = count.replace(has);
                    if room < has {
                        return INSUFFICIENT_SIZE.0;
                    }
                    (0..has).for_each(|at| items.add(at as usize).write(at));
                }
                0
            }
        };
        assert_eq!(grow(2, listed(0)), Ok(vec![]));
        assert_eq!(grow(2, listed(5)), Ok(vec![0, 1, 2, 3, 4]));
        let mut tries = 0;
        let endless = grow::<u32>(1, |_, _| {
            tries += 1;
            7
        });
        assert_eq!((endless, tries), (Err(INSUFFICIENT_SIZE), TRIES));
        assert_eq!(grow::<u32>(1, |_, _| 3), Err(Code::NOT_SUPPORTED));
    }

    #[test]
    fn a_set_keeps_the_words_that_are_used() {
        assert_eq!(trimmed(&[0, 0, 0]), [0]);
        assert_eq!(trimmed(&[1, 0, 8, 0]), [1, 0, 8]);
    }
}
