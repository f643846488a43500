//! The shapes that NVML's calls have, each made once.

use std::ffi::{c_char, c_uint, c_ulong};

use nvml_wrapper_sys::bindings::{nvmlDevice_t, nvmlPciInfo_t, nvmlReturn_t};

use super::{
    function::{
        self, Between, BetweenOf, List, ListOf, Of, Of2, Of3, Out, Out2, Out3, Out4, System, SystemOf, SystemText,
        Text, TextOf,
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
const INSUFFICIENT_SIZE: Code = Code(7);

/// A list can grow while it is asked for; after so many tries it is growing for ever.
const TRIES: u32 = 4;

impl Library {
    /// A call about nothing but the device that gives nothing but its return code.
    pub(in super::super) fn check(
        &self,
        function: &Function<unsafe extern "C" fn(nvmlDevice_t) -> nvmlReturn_t>,
        device: Device,
    ) -> Result<(), Code> {
        let call = self.find(function)?;
        // SAFETY: the handle is the library's.
        done(unsafe { call(device.0) })
    }

    /// A text.
    pub(in super::super) fn text(&self, function: &Function<Text>, device: Device) -> Result<String, Code> {
        let call = self.find(function)?;
        let mut room = [0 as c_char; TEXT];
        // SAFETY: the handle is the library's, and the room is as large as is told.
        done(unsafe { call(device.0, room.as_mut_ptr(), TEXT as c_uint) })?;
        Ok(text(&room))
    }

    /// A text about one of several things.
    pub(in super::super) fn text_of(
        &self,
        function: &Function<TextOf>,
        device: Device,
        what: u32,
    ) -> Result<String, Code> {
        let call = self.find(function)?;
        let mut room = [0 as c_char; TEXT];
        // SAFETY: the handle is the library's, and the room is as large as is told.
        done(unsafe { call(device.0, what, room.as_mut_ptr(), TEXT as c_uint) })?;
        Ok(text(&room))
    }

    /// One value.
    pub(in super::super) fn out<T: Plain>(&self, function: &Function<Out<T>>, device: Device) -> Result<T, Code> {
        self.fill(function, device, T::blank())
    }

    /// One value, which goes in as this one.
    pub(in super::super) fn fill<T: Plain>(
        &self,
        function: &Function<Out<T>>,
        device: Device,
        mut value: T,
    ) -> Result<T, Code> {
        let call = self.find(function)?;
        // SAFETY: the handle is the library's; the value outlives the call.
        done(unsafe { call(device.0, &raw mut value) })?;
        Ok(value)
    }

    /// Two values.
    pub(in super::super) fn out2<T: Plain, U: Plain>(
        &self,
        function: &Function<Out2<T, U>>,
        device: Device,
    ) -> Result<(T, U), Code> {
        let call = self.find(function)?;
        let (mut one, mut two) = (T::blank(), U::blank());
        // SAFETY: the handle is the library's; the values outlive the call.
        done(unsafe { call(device.0, &raw mut one, &raw mut two) })?;
        Ok((one, two))
    }

    /// Three values.
    pub(in super::super) fn out3<T: Plain>(
        &self,
        function: &Function<Out3<T>>,
        device: Device,
    ) -> Result<[T; 3], Code> {
        let call = self.find(function)?;
        let [mut one, mut two, mut three] = [T::blank(); 3];
        // SAFETY: the handle is the library's; the values outlive the call.
        done(unsafe { call(device.0, &raw mut one, &raw mut two, &raw mut three) })?;
        Ok([one, two, three])
    }

    /// Four values.
    pub(in super::super) fn out4<T: Plain>(
        &self,
        function: &Function<Out4<T>>,
        device: Device,
    ) -> Result<[T; 4], Code> {
        let call = self.find(function)?;
        let [mut one, mut two, mut three, mut four] = [T::blank(); 4];
        // SAFETY: the handle is the library's; the values outlive the call.
        done(unsafe { call(device.0, &raw mut one, &raw mut two, &raw mut three, &raw mut four) })?;
        Ok([one, two, three, four])
    }

    /// One value about one of several things.
    pub(in super::super) fn of<T: Plain>(
        &self,
        function: &Function<Of<T>>,
        device: Device,
        what: u32,
    ) -> Result<T, Code> {
        let call = self.find(function)?;
        let mut value = T::blank();
        // SAFETY: the handle is the library's; the value outlives the call.
        done(unsafe { call(device.0, what, &raw mut value) })?;
        Ok(value)
    }

    /// One value with two choices.
    pub(in super::super) fn of2<T: Plain>(
        &self,
        function: &Function<Of2<T>>,
        device: Device,
        what: [u32; 2],
    ) -> Result<T, Code> {
        let call = self.find(function)?;
        let mut value = T::blank();
        // SAFETY: the handle is the library's; the value outlives the call.
        done(unsafe { call(device.0, what[0], what[1], &raw mut value) })?;
        Ok(value)
    }

    /// One value with three choices.
    pub(in super::super) fn of3<T: Plain>(
        &self,
        function: &Function<Of3<T>>,
        device: Device,
        what: [u32; 3],
    ) -> Result<T, Code> {
        let call = self.find(function)?;
        let mut value = T::blank();
        // SAFETY: the handle is the library's; the value outlives the call.
        done(unsafe { call(device.0, what[0], what[1], what[2], &raw mut value) })?;
        Ok(value)
    }

    /// One value about two GPUs.
    pub(in super::super) fn between<T: Plain>(
        &self,
        function: &Function<Between<T>>,
        one: Device,
        two: Device,
    ) -> Result<T, Code> {
        let call = self.find(function)?;
        let mut value = T::blank();
        // SAFETY: both handles are the library's; the value outlives the call.
        done(unsafe { call(one.0, two.0, &raw mut value) })?;
        Ok(value)
    }

    /// One value about two GPUs, with a choice.
    pub(in super::super) fn between_of<T: Plain>(
        &self,
        function: &Function<BetweenOf<T>>,
        one: Device,
        two: Device,
        what: u32,
    ) -> Result<T, Code> {
        let call = self.find(function)?;
        let mut value = T::blank();
        // SAFETY: both handles are the library's; the value outlives the call.
        done(unsafe { call(one.0, two.0, what, &raw mut value) })?;
        Ok(value)
    }

    /// A list, for which there is room for `room` entries at first.
    pub(in super::super) fn list<T: Plain>(
        &self,
        function: &Function<List<T>>,
        device: Device,
        room: usize,
    ) -> Result<Vec<T>, Code> {
        let call = self.find(function)?;
        // SAFETY: the handle is the library's, and there is as much room as is told.
        grow(room, |count, items| unsafe { call(device.0, count, items) })
    }

    /// A list about one of several things.
    pub(in super::super) fn list_of<T: Plain>(
        &self,
        function: &Function<ListOf<T>>,
        device: Device,
        what: u32,
        room: usize,
    ) -> Result<Vec<T>, Code> {
        let call = self.find(function)?;
        // SAFETY: the handle is the library's, and there is as much room as is told.
        grow(room, |count, items| unsafe { call(device.0, what, count, items) })
    }

    /// One value about the machine.
    pub(in super::super) fn system<T: Plain>(&self, function: &Function<System<T>>) -> Result<T, Code> {
        let call = self.find(function)?;
        let mut value = T::blank();
        // SAFETY: the value outlives the call.
        done(unsafe { call(&raw mut value) })?;
        Ok(value)
    }

    /// One value about the machine, about one of several things.
    pub(in super::super) fn system_of<T: Plain>(&self, function: &Function<SystemOf<T>>, what: u32) -> Result<T, Code> {
        let call = self.find(function)?;
        let mut value = T::blank();
        // SAFETY: the value outlives the call.
        done(unsafe { call(what, &raw mut value) })?;
        Ok(value)
    }

    /// A text about the machine.
    pub(in super::super) fn system_text(&self, function: &Function<SystemText>) -> Result<String, Code> {
        let call = self.find(function)?;
        let mut room = [0 as c_char; TEXT];
        // SAFETY: the room is as large as is told.
        done(unsafe { call(room.as_mut_ptr(), TEXT as c_uint) })?;
        Ok(text(&room))
    }

    /// `nvmlSystemGetProcessName`.
    pub(in super::super) fn process_name(&self, pid: u32) -> Result<String, Code> {
        let call = self.find(&function::PROCESS_NAME)?;
        let mut room = [0 as c_char; PROCESS_NAME];
        // SAFETY: the room is as large as is told.
        done(unsafe { call(pid, room.as_mut_ptr(), PROCESS_NAME as c_uint) })?;
        Ok(text(&room))
    }

    /// `nvmlDeviceQueryDrainState` of the device at this domain, bus and device.
    pub(in super::super) fn drain_state(&self, domain: u32, bus: u32, device: u32) -> Result<u32, Code> {
        let call = self.find(&function::DRAIN_STATE)?;
        let mut place = nvmlPciInfo_t::blank();
        (place.domain, place.bus, place.device) = (domain, bus, device);
        write(&mut place.busId, &format!("{domain:08X}:{bus:02X}:{device:02X}.0"));
        write(&mut place.busIdLegacy, &format!("{domain:04X}:{bus:02X}:{device:02X}.0"));
        let mut state = 0;
        // SAFETY: both values outlive the call.
        done(unsafe { call(&raw mut place, &raw mut state) })?;
        Ok(state)
    }

    /// `nvmlDeviceGetHandleByIndex_v2`.
    pub(in super::super) fn device(&self, index: u32) -> Result<Device, Code> {
        self.system_of(&function::HANDLE, index).map(Device)
    }

    /// `nvmlDeviceGetMigDeviceHandleByIndex`.
    pub(in super::super) fn mig_device(&self, gpu: Device, index: u32) -> Result<Device, Code> {
        self.of(&function::MIG_HANDLE, gpu, index).map(Device)
    }

    /// `nvmlDeviceGetTopologyNearestGpus`.
    pub(in super::super) fn nearest_gpus(&self, device: Device, level: u32) -> Result<Vec<Device>, Code> {
        let call = self.find(&function::NEAREST_GPUS)?;
        // SAFETY: the handle is the library's, and there is as much room as is told.
        devices(|count, items| unsafe { call(device.0, level, count, items) })
    }

    /// `nvmlSystemGetTopologyGpuSet`.
    pub(in super::super) fn gpus_near_cpu(&self, cpu: u32) -> Result<Vec<Device>, Code> {
        let call = self.find(&function::GPUS_NEAR_CPU)?;
        // SAFETY: there is as much room as is told.
        devices(|count, items| unsafe { call(cpu, count, items) })
    }

    /// `nvmlDeviceGetCpuAffinity`, without the empty words at the end.
    pub(in super::super) fn cpu_affinity(&self, device: Device) -> Result<Vec<u64>, Code> {
        let call = self.find(&function::CPU_AFFINITY)?;
        let mut words: [c_ulong; SET] = [0; SET];
        // SAFETY: the handle is the library's, and there are as many words as is told.
        done(unsafe { call(device.0, SET as c_uint, words.as_mut_ptr()) })?;
        Ok(trimmed(&words))
    }

    /// `nvmlDeviceGetMemoryAffinity` in the scope of the node, without the empty words at the end.
    pub(in super::super) fn memory_affinity(&self, device: Device) -> Result<Vec<u64>, Code> {
        const NODE: c_uint = 0;
        let call = self.find(&function::MEMORY_AFFINITY)?;
        let mut words: [c_ulong; SET] = [0; SET];
        // SAFETY: the handle is the library's, and there are as many words as is told.
        done(unsafe { call(device.0, SET as c_uint, words.as_mut_ptr(), NODE) })?;
        Ok(trimmed(&words))
    }
}

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
            Err(INSUFFICIENT_SIZE) => items.resize(items.len().max(count as usize) + room, T::blank()),
            Err(code) => return Err(code),
        }
    }
    Err(INSUFFICIENT_SIZE)
}

/// Handles of GPUs. These functions are not asked with too much room, but for the number first.
fn devices(call: impl Fn(*mut c_uint, *mut nvmlDevice_t) -> nvmlReturn_t) -> Result<Vec<Device>, Code> {
    let mut count = 0;
    done(call(&raw mut count, std::ptr::null_mut()))?;
    let mut items = vec![nvmlDevice_t::blank(); count as usize];
    if count > 0 {
        done(call(&raw mut count, items.as_mut_ptr()))?;
        items.truncate(count as usize);
    }
    Ok(items.into_iter().map(Device).collect())
}

/// Writes a text into a C array, which keeps a NUL at its end.
fn write(array: &mut [c_char], text: &str) {
    let room = array.len() - 1;
    for (to, byte) in array[..room].iter_mut().zip(text.bytes()) {
        // A C character may be signed or not; bus ids are ASCII.
        *to = c_char::try_from(byte).unwrap_or(0);
    }
}

fn trimmed(words: &[c_ulong]) -> Vec<u64> {
    let used = words.iter().rposition(|word| *word != 0).map_or(1, |last| last + 1);
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
