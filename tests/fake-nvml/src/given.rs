//! Answers of functions that the scenario specifies instead of the simulation.

use std::{
    ffi::{c_char, c_int, c_uint, c_ulonglong},
    mem, process,
};

use gpumon_probe::vendor::{
    nvml::query::{self, Value},
    sim::GivenAnswer,
};
use nvml_wrapper_sys::bindings as sys;

use crate::{
    call::decode_handle,
    code::{Code, Outcome},
    session::current_session,
};

/// A function's name and its answer in the scenario.
#[derive(Clone, Copy)]
pub(crate) struct Answer(&'static str, &'static GivenAnswer);

/// Returns the scenario's answer to a call about the machine.
pub(crate) fn system(function: &'static str, arguments: &[u32]) -> Option<Answer> {
    current_session()
        .machine
        .world
        .scenario()
        .find_given_answer(function, arguments)
        .map(|given| Answer(function, given))
}

/// Returns the scenario's answer to a call about a GPU or a MIG device.
pub(crate) fn device(
    function: &'static str,
    handle: sys::nvmlDevice_t,
    arguments: &[u32],
) -> Option<Answer> {
    let (gpu, part) = decode_handle(handle).ok()?;
    let scenario = current_session().machine.world.scenario();
    scenario
        .find_given_gpu_answer(gpu, part, function, arguments)
        .map(|given| Answer(function, given))
}

pub(crate) use device as part;

/// Returns the scenario's value, or otherwise the result of `find`.
pub(crate) fn answer_value_or_else<T: Filled>(
    answer: Option<Answer>,
    find: impl FnOnce() -> Result<T, Code>,
) -> Result<T, Code> {
    let Some(answer) = answer else { return find() };
    let mut value = T::new_zeroed();
    answer.fill(&mut value)?;
    Ok(value)
}

impl Answer {
    pub(crate) fn number(self) -> Result<i128, Code> {
        match self.numbers()?[..] {
            [number] => Ok(number),
            _ => Err(self.failure_code_or_exit("one number")),
        }
    }

    fn numbers(self) -> Result<Vec<i128>, Code> {
        match self.1 {
            GivenAnswer::Numbers(numbers) => {
                Ok(numbers.iter().map(|number| (*number).into()).collect())
            }
            _ => Err(self.failure_code_or_exit("a list of numbers")),
        }
    }

    /// Writes the scenario's numbers into a value.
    pub(crate) fn fill(self, value: &mut impl Filled) -> Outcome {
        value
            .fill_from_numbers(&self.numbers()?)
            .ok_or_else(|| self.failure_code_or_exit("numbers that fit the output values"))
    }

    /// Returns the failure code if the answer is one. Any other answer is an error in the scenario,
    /// because the function needs another kind of answer. The process then exits, as it does for an
    /// unreadable scenario.
    fn failure_code_or_exit(self, wanted: &str) -> Code {
        match self.1 {
            GivenAnswer::Code(code) => Code(*code),
            given => {
                eprintln!(
                    "fake NVML: the scenario sets {} to {given:?}, but it must be {wanted}; \
                     correct `answers`",
                    self.0
                );
                process::exit(2)
            }
        }
    }
}

/// The answer to a call, from the scenario or the simulation.
pub(crate) struct Answered {
    value: Value,
    given: Option<Answer>,
}

impl Answered {
    pub(crate) fn new(
        given: Option<Answer>,
        find: impl FnOnce() -> query::Answer,
    ) -> Result<Self, Code> {
        let value = match given.map(|Answer(_, given)| given) {
            None => find().map_err(|query::Code(code)| Code(code))?,
            Some(GivenAnswer::Code(code)) => return Err(Code(*code)),
            Some(GivenAnswer::Text(text)) => Value::Text(text.clone()),
            Some(GivenAnswer::Numbers(numbers)) => {
                Value::Numbers(numbers.iter().map(|number| (*number).into()).collect())
            }
        };
        Ok(Self { value, given })
    }

    /// Writes one value of an answer that consists of `count` values. `place` is the index of this
    /// value.
    ///
    /// # Safety
    /// The pointer is null or points to a value, with its version filled in if it has one.
    pub(crate) unsafe fn write_output_value<T: Filled>(
        &self,
        to: *mut T,
        place: usize,
        count: usize,
    ) -> Outcome {
        if to.is_null() {
            return Err(Code::INVALID_ARGUMENT);
        }
        let mut value = if T::VERSION.is_some() {
            // SAFETY: by this function's contract, the pointer is to a value.
            unsafe { to.read() }
        } else {
            T::new_zeroed()
        };
        let own = match &self.value {
            Value::Numbers(numbers) if count > 1 => numbers
                .chunks(T::COUNT)
                .nth(place)
                .map(|own| Value::Numbers(own.to_vec())),
            value => Some(value.clone()),
        };
        own.and_then(|own| value.fill_from_answer(&own))
            .ok_or_else(|| self.report_mismatch("numbers that fit the output values"))?;
        // SAFETY: by this function's contract, the pointer, which is not null, may be written.
        unsafe { to.write(value) };
        Ok(())
    }

    pub(crate) fn text(&self) -> Result<&str, Code> {
        self.value
            .text()
            .ok_or_else(|| self.report_mismatch("a text"))
    }

    pub(crate) fn list<T: Filled>(&self) -> Result<Vec<T>, Code> {
        let item = |numbers: &[i128]| {
            let mut item = T::new_zeroed();
            item.fill_from_numbers(numbers).map(|()| item)
        };
        // In an answer from the scenario, each list item is a single number, even if the simulation
        // uses several numbers for an item.
        let size = if self.given.is_some() { 1 } else { T::COUNT };
        let all = self.value.numbers().chunks(size).map(item);
        all.collect::<Option<_>>()
            .ok_or_else(|| self.report_mismatch("a list"))
    }

    /// Checks an answer that only consists of a return code.
    pub(crate) fn check_is_empty(&self) -> Outcome {
        if self.value.numbers().is_empty() {
            Ok(())
        } else {
            Err(self.report_mismatch("empty"))
        }
    }

    fn report_mismatch(&self, wanted: &str) -> Code {
        match self.given {
            Some(given) => given.failure_code_or_exit(wanted),
            None => panic!("the answer is {:?}, but must be {wanted}", self.value),
        }
    }
}

/// A value that is made from numbers in the order of its fields.
///
/// # Safety
/// All zeros are a valid value, and the type begins with its version if it has one.
pub(crate) unsafe trait Filled: Sized {
    /// The version that the caller fills in.
    const VERSION: Option<u32> = None;
    /// The number of integers from which the value is made.
    const COUNT: usize = 1;

    /// Fills in numbers. Returns `None` if there are too few or too many, if they are too large, or
    /// if scenarios do not support the structure.
    fn fill_from_numbers(&mut self, _numbers: &[i128]) -> Option<()> {
        None
    }

    /// Fills in the value from an answer.
    fn fill_from_answer(&mut self, answer: &Value) -> Option<()> {
        self.fill_from_numbers(answer.numbers())
    }

    /// Returns a value of all zeros.
    fn new_zeroed() -> Self {
        // SAFETY: all zeros are a valid value by the trait's contract.
        unsafe { mem::zeroed() }
    }
}

macro_rules! filled {
    ($($type:ty $(= $version:literal)?: $($($field:ident).+),+;)*) => {$(
        // SAFETY: the type consists of integers, and of pointers that are never dereferenced.
        unsafe impl Filled for $type {
            $(const VERSION: Option<u32> = Some($version);)?
            const COUNT: usize = [$(stringify!($($field).+)),+].len();

            fn fill_from_numbers(&mut self, numbers: &[i128]) -> Option<()> {
                let mut numbers = numbers.iter();
                $(self.$($field).+ = (*numbers.next()?).try_into().ok()?;)+
                numbers.next().is_none().then_some(())
            }
        }
    )*};
}

gpumon_probe::nvml_structures! { filled }

filled! {
    RemappedRowsInfo:
        correctable, inactive_correctable, uncorrectable, inactive_uncorrectable, pending, failed;
    UnrepairableMemory: is_unrepairable;
}

/// A structure that the bindings lack.
#[repr(C)]
pub(crate) struct RemappedRowsInfo {
    correctable: c_uint,
    inactive_correctable: c_uint,
    uncorrectable: c_uint,
    inactive_uncorrectable: c_uint,
    pending: c_uint,
    failed: c_uint,
}

/// Whether memory is beyond repair. The reserved fields of the structure are left out.
#[repr(C)]
pub(crate) struct UnrepairableMemory {
    is_unrepairable: c_uint,
}

/// The address of a retired page, without its time. In an answer from the simulation, each page has
/// two numbers: first its time, then its address.
#[repr(C)]
pub(crate) struct UntimedPage {
    address: c_ulonglong,
}

// SAFETY: the type is an integer.
unsafe impl Filled for UntimedPage {
    const COUNT: usize = 2;

    fn fill_from_numbers(&mut self, numbers: &[i128]) -> Option<()> {
        self.address = (*numbers.last()?).try_into().ok()?;
        Some(())
    }
}

macro_rules! numbers {
    ($($type:ty),*) => {$(
        // SAFETY: the type consists of integers.
        unsafe impl Filled for $type {
            fn fill_from_numbers(&mut self, numbers: &[i128]) -> Option<()> {
                let [number] = numbers else { return None };
                *self = (*number).try_into().ok()?;
                Some(())
            }
        }
    )*};
}

numbers!(c_int, c_uint, c_ulonglong);

/// The text buffer of functions without a length parameter.
pub(crate) type ShortText = [c_char; 64];

// SAFETY: the type consists of integers.
unsafe impl Filled for ShortText {
    fn fill_from_answer(&mut self, answer: &Value) -> Option<()> {
        *self = crate::exports::to_padded_c_array(answer.text()?);
        Some(())
    }
}

macro_rules! never_given {
    ($($type:ty),* $(,)?) => {$(
        // SAFETY: the type consists of integers, and of pointers that are never dereferenced.
        unsafe impl Filled for $type {}
    )*};
}

never_given! {
    sys::nvmlBridgeChipHierarchy_t,
    sys::nvmlDevice_t,
    sys::nvmlProcessesUtilizationInfo_t,
}

/// The three masks of the structure are all empty.
// SAFETY: the type consists of integers.
unsafe impl Filled for sys::nvmlWorkloadPowerProfileCurrentProfiles_v1_t {
    const VERSION: Option<u32> = Some(1);

    fn fill_from_numbers(&mut self, numbers: &[i128]) -> Option<()> {
        let none = sys::nvmlMask255_t { mask: [0; 8] };
        self.perfProfilesMask = none;
        self.requestedProfilesMask = none;
        self.enforcedProfilesMask = none;
        numbers.iter().all(|number| *number == 0).then_some(())
    }
}

/// An answer has four numbers: state, status, clique and health. It does not contain the UUID of
/// the cluster.
// SAFETY: the type consists of integers.
unsafe impl Filled for sys::nvmlGpuFabricInfo_v2_t {
    fn fill_from_numbers(&mut self, numbers: &[i128]) -> Option<()> {
        let [state, status, clique, health] = convert_to_u32_array(numbers)?;
        (self.state, self.status) = (state.try_into().ok()?, status);
        (self.cliqueId, self.healthMask) = (clique, health);
        Some(())
    }
}

/// A location without chassis and fabric. If an answer contains these two values, they are its
/// first four numbers, two for each, and are ignored.
// SAFETY: the type consists of integers.
unsafe impl Filled for sys::nvmlPlatformInfo_v2_t {
    const VERSION: Option<u32> = Some(2);

    fn fill_from_numbers(&mut self, numbers: &[i128]) -> Option<()> {
        let own = if numbers.len() > 5 {
            &numbers[4..]
        } else {
            numbers
        };
        let [slot, tray, host, peer, module] = convert_to_u32_array(own)?;
        (self.ibGuid, self.chassisSerialNumber) = ([0; 16], [0; 16]);
        self.slotNumber = slot.try_into().ok()?;
        self.trayIndex = tray.try_into().ok()?;
        self.hostId = host.try_into().ok()?;
        self.peerType = peer.try_into().ok()?;
        self.moduleId = module.try_into().ok()?;
        Some(())
    }
}

/// An identifier of 64 bits. A scenario may instead specify its upper and its lower half as two
/// numbers, because TOML cannot represent all 64-bit numbers.
// SAFETY: the type consists of integers.
unsafe impl Filled for sys::nvmlPdi_v1_t {
    const VERSION: Option<u32> = Some(1);

    fn fill_from_numbers(&mut self, numbers: &[i128]) -> Option<()> {
        self.value = if let [number] = *numbers {
            number.try_into().ok()?
        } else {
            let [high, low] = convert_to_u32_array(numbers)?;
            u64::from(high) << 32 | u64::from(low)
        };
        Some(())
    }
}

/// Domain, bus, device, two IDs, and the address as text. An answer may also contain the two PCI
/// classes, which are ignored here.
// SAFETY: the type consists of integers.
unsafe impl Filled for sys::nvmlPciInfo_t {
    fn fill_from_numbers(&mut self, numbers: &[i128]) -> Option<()> {
        let own = if numbers.len() == 7 {
            &numbers[..5]
        } else {
            numbers
        };
        let [domain, bus, device, id, subsystem] = convert_to_u32_array(own)?;
        *self = crate::exports::make_pci_info((domain, bus, device), id, subsystem);
        Some(())
    }
}

/// Domain, bus, device, two IDs and the two classes.
// SAFETY: the type consists of integers.
unsafe impl Filled for sys::nvmlPciInfoExt_v1_t {
    const VERSION: Option<u32> = Some(1);

    fn fill_from_numbers(&mut self, numbers: &[i128]) -> Option<()> {
        let [domain, bus, device, id, subsystem, base, sub] = convert_to_u32_array(numbers)?;
        let plain = crate::exports::make_pci_info((domain, bus, device), id, subsystem);
        (self.domain, self.bus, self.device, self.busId) = (domain, bus, device, plain.busId);
        (
            self.pciDeviceId,
            self.pciSubSystemId,
            self.baseClass,
            self.subClass,
        ) = (id, subsystem, base, sub);
        Some(())
    }
}

fn convert_to_u32_array<const N: usize>(numbers: &[i128]) -> Option<[u32; N]> {
    let narrow: Option<Vec<u32>> = numbers
        .iter()
        .map(|number| (*number).try_into().ok())
        .collect();
    narrow?.try_into().ok()
}
