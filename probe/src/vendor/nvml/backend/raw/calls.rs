//! The shapes that NVML's calls have, each made once.
//!
//! Every handle here is one that the library gave, and whatever a call fills in outlives it.

use std::{
    ffi::{c_char, c_uint, c_ulong},
    ptr,
};

use nvml_wrapper_sys::bindings::{nvmlPciInfo_t, nvmlReturn_t};

use super::{
    function::{
        self, Between, BetweenOf, Check, List, ListOf, Of, Of2, Of3, Out, Out2, Out3, Out4, System,
        SystemOf, SystemText, Text, TextOf,
    },
    library::{Device, Function, Library, Plain, done, text},
};
use crate::vendor::nvml::query::Code;

/// The longest text that any function gives, but for the name of a process.
const TEXT: usize = 256;

/// As much of a process's command line as `nvidia-smi` asks for.
const PROCESS_NAME: usize = 2048;

/// A set of CPUs or NUMA nodes in words: as much room as `nvidia-smi` gives, for 1280 of them.
const SET: usize = 20;

/// `NVML_ERROR_INSUFFICIENT_SIZE`.
pub(super) const INSUFFICIENT_SIZE: Code = Code(7);

/// A list can grow while it is asked for; after so many tries it is growing for ever.
pub(super) const TRIES: u32 = 4;

impl Library {
    /// A call about nothing but the device that gives nothing but its return code.
    pub(crate) fn check(&self, function: &Function<Check>, device: Device) -> Result<(), Code> {
        let call = self.find(function)?;
        // SAFETY: as above.
        done(unsafe { call(device.0) })
    }

    pub(crate) fn text(&self, function: &Function<Text>, device: Device) -> Result<String, Code> {
        // SAFETY: as above; the room is as large as is told.
        self.text_of_length::<_, TEXT>(function, |call, room, length| unsafe {
            call(device.0, room, length)
        })
    }

    pub(crate) fn text_of(
        &self,
        function: &Function<TextOf>,
        device: Device,
        what: u32,
    ) -> Result<String, Code> {
        // SAFETY: as above; the room is as large as is told.
        self.text_of_length::<_, TEXT>(function, |call, room, length| unsafe {
            call(device.0, what, room, length)
        })
    }

    pub(crate) fn system_text(&self, function: &Function<SystemText>) -> Result<String, Code> {
        // SAFETY: the room is as large as is told.
        self.text_of_length::<_, TEXT>(function, |call, room, length| unsafe { call(room, length) })
    }

    /// `nvmlSystemGetProcessName`.
    pub(crate) fn process_name(&self, pid: u32) -> Result<String, Code> {
        let function = &function::PROCESS_NAME;
        // SAFETY: the room is as large as is told.
        self.text_of_length::<_, PROCESS_NAME>(function, |call, room, length| unsafe {
            call(pid, room, length)
        })
    }

    fn text_of_length<F: Copy, const LENGTH: usize>(
        &self,
        function: &Function<F>,
        call: impl FnOnce(F, *mut c_char, c_uint) -> nvmlReturn_t,
    ) -> Result<String, Code> {
        let room: [c_char; LENGTH] = self.filled(function, |found, room: &mut [_; LENGTH]| {
            call(found, room.as_mut_ptr(), LENGTH as c_uint)
        })?;
        Ok(text(&room))
    }

    pub(crate) fn out<T: Plain>(
        &self,
        function: &Function<Out<T>>,
        device: Device,
    ) -> Result<T, Code> {
        self.fill(function, device, T::blank())
    }

    /// One value, which goes in as this one.
    pub(crate) fn fill<T: Plain>(
        &self,
        function: &Function<Out<T>>,
        device: Device,
        value: T,
    ) -> Result<T, Code> {
        self.filled(function, |call, out| {
            *out = value;
            // SAFETY: as above.
            unsafe { call(device.0, out) }
        })
    }

    pub(crate) fn out2<T: Plain>(
        &self,
        function: &Function<Out2<T>>,
        device: Device,
    ) -> Result<[T; 2], Code> {
        // SAFETY: as above.
        self.filled(function, |call, [one, two]: &mut [T; 2]| unsafe {
            call(device.0, one, two)
        })
    }

    pub(crate) fn out3<T: Plain>(
        &self,
        function: &Function<Out3<T>>,
        device: Device,
    ) -> Result<[T; 3], Code> {
        // SAFETY: as above.
        self.filled(function, |call, [one, two, three]: &mut [T; 3]| unsafe {
            call(device.0, one, two, three)
        })
    }

    pub(crate) fn out4<T: Plain>(
        &self,
        function: &Function<Out4<T>>,
        device: Device,
    ) -> Result<[T; 4], Code> {
        // SAFETY: as above.
        self.filled(function, |call, [a, b, c, d]: &mut [T; 4]| unsafe {
            call(device.0, a, b, c, d)
        })
    }

    pub(crate) fn of<T: Plain>(
        &self,
        function: &Function<Of<T>>,
        device: Device,
        what: u32,
    ) -> Result<T, Code> {
        // SAFETY: as above.
        self.filled(function, |call, value| unsafe {
            call(device.0, what, value)
        })
    }

    pub(crate) fn of2<T: Plain>(
        &self,
        function: &Function<Of2<T>>,
        device: Device,
        [one, two]: [u32; 2],
    ) -> Result<T, Code> {
        // SAFETY: as above.
        self.filled(function, |call, value| unsafe {
            call(device.0, one, two, value)
        })
    }

    pub(crate) fn of3<T: Plain>(
        &self,
        function: &Function<Of3<T>>,
        device: Device,
        [one, two, three]: [u32; 3],
    ) -> Result<T, Code> {
        // SAFETY: as above.
        self.filled(function, |call, value| unsafe {
            call(device.0, one, two, three, value)
        })
    }

    pub(crate) fn between<T: Plain>(
        &self,
        function: &Function<Between<T>>,
        one: Device,
        two: Device,
    ) -> Result<T, Code> {
        // SAFETY: as above.
        self.filled(function, |call, value| unsafe { call(one.0, two.0, value) })
    }

    pub(crate) fn between_of<T: Plain>(
        &self,
        function: &Function<BetweenOf<T>>,
        one: Device,
        two: Device,
        what: u32,
    ) -> Result<T, Code> {
        // SAFETY: as above.
        self.filled(function, |call, value| unsafe {
            call(one.0, two.0, what, value)
        })
    }

    pub(crate) fn system<T: Plain>(&self, function: &Function<System<T>>) -> Result<T, Code> {
        // SAFETY: as above.
        self.filled(function, |call, value| unsafe { call(value) })
    }

    pub(crate) fn system_of<T: Plain>(
        &self,
        function: &Function<SystemOf<T>>,
        what: u32,
    ) -> Result<T, Code> {
        // SAFETY: as above.
        self.filled(function, |call, value| unsafe { call(what, value) })
    }

    /// A list, for which there is room for `room` entries at first.
    pub(crate) fn list<T: Plain>(
        &self,
        function: &Function<List<T>>,
        device: Device,
        room: usize,
    ) -> Result<Vec<T>, Code> {
        let call = self.find(function)?;
        // SAFETY: as above; there is as much room as is told.
        grow(room, |count, items| unsafe { call(device.0, count, items) })
    }

    pub(crate) fn list_of<T: Plain>(
        &self,
        function: &Function<ListOf<T>>,
        device: Device,
        what: u32,
        room: usize,
    ) -> Result<Vec<T>, Code> {
        let call = self.find(function)?;
        // SAFETY: as above; there is as much room as is told.
        grow(room, |count, items| unsafe {
            call(device.0, what, count, items)
        })
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
        self.filled(&function::DRAIN_STATE, |call, state| unsafe {
            call(&raw mut place, state)
        })
    }

    /// `nvmlDeviceGetHandleByIndex_v2`.
    pub(crate) fn device(&self, index: u32) -> Result<Device, Code> {
        self.system_of(&function::HANDLE, index).map(Device)
    }

    /// `nvmlDeviceGetMigDeviceHandleByIndex`.
    pub(crate) fn mig_device(&self, gpu: Device, index: u32) -> Result<Device, Code> {
        self.of(&function::MIG_HANDLE, gpu, index).map(Device)
    }

    /// `nvmlDeviceGetTopologyNearestGpus`.
    pub(crate) fn nearest_gpus(&self, device: Device, level: u32) -> Result<Vec<Device>, Code> {
        let call = self.find(&function::NEAREST_GPUS)?;
        // SAFETY: as above; there is as much room as is told.
        let gpus = counted(|count, items| unsafe { call(device.0, level, count, items) })?;
        Ok(gpus.into_iter().map(Device).collect())
    }

    /// `nvmlSystemGetTopologyGpuSet`.
    pub(crate) fn gpus_near_cpu(&self, cpu: u32) -> Result<Vec<Device>, Code> {
        let call = self.find(&function::GPUS_NEAR_CPU)?;
        // SAFETY: there is as much room as is told.
        let gpus = counted(|count, items| unsafe { call(cpu, count, items) })?;
        Ok(gpus.into_iter().map(Device).collect())
    }

    /// `nvmlDeviceGetCpuAffinity`, without the empty words at the end.
    pub(crate) fn cpu_affinity(&self, device: Device) -> Result<Vec<u64>, Code> {
        // SAFETY: as above; there are as many words as is told.
        let set: [c_ulong; SET] = self.filled(
            &function::CPU_AFFINITY,
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
        let set: [c_ulong; SET] = self.filled(
            &function::MEMORY_AFFINITY,
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
