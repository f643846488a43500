//! What the scenario says that a function answers, word for word, in place of what the simulation would.

use std::{
    ffi::{c_char, c_int, c_uint, c_ulonglong},
    mem, process,
};

use gpumon_probe::vendor::sim::Given;
use nvml_wrapper_sys::bindings as sys;

use crate::{
    call::target,
    code::{Code, Outcome},
    session::session,
};

/// An answer with the function that it is of.
#[derive(Clone, Copy)]
pub(crate) struct Answer(&'static str, &'static Given);

/// The answer of a call about the machine.
pub(crate) fn system(function: &'static str, arguments: &[u32]) -> Option<Answer> {
    session()
        .machine
        .world
        .scenario()
        .given(function, arguments)
        .map(|given| Answer(function, given))
}

/// The answer of a call about a GPU or a MIG device.
pub(crate) fn device(
    function: &'static str,
    handle: sys::nvmlDevice_t,
    arguments: &[u32],
) -> Option<Answer> {
    let (gpu, part) = target(handle).ok()?;
    let scenario = session().machine.world.scenario();
    scenario
        .given_about(gpu, part, function, arguments)
        .map(|given| Answer(function, given))
}

pub(crate) use device as part;

/// Instances have none.
pub(crate) fn gpu_instance<T>(_: &'static str, _: *mut T, _: &[u32]) -> Option<Answer> {
    None
}

pub(crate) use gpu_instance as compute_instance;

/// The text that was given, or else the one that is found.
pub(crate) fn text_or<T: AsRef<str>>(
    answer: Option<Answer>,
    find: impl FnOnce() -> Result<T, Code>,
) -> Result<String, Code> {
    match answer {
        None => find().map(|text| text.as_ref().to_owned()),
        Some(Answer(_, Given::Text(text))) => Ok(text.clone()),
        Some(other) => Err(other.failure("a text")),
    }
}

/// The value that was given, or else the one that is found.
pub(crate) fn value_or<T: Filled>(
    answer: Option<Answer>,
    find: impl FnOnce() -> Result<T, Code>,
) -> Result<T, Code> {
    let Some(answer) = answer else { return find() };
    let mut value = T::blank();
    answer.fill(&mut value)?;
    Ok(value)
}

/// The two values that were given, or else those that are found.
pub(crate) fn pair_or<A: Filled, B: Filled>(
    answer: Option<Answer>,
    find: impl FnOnce() -> Result<(A, B), Code>,
) -> Result<(A, B), Code> {
    let Some(answer) = answer else { return find() };
    let (mut first, mut second) = (A::blank(), B::blank());
    let halves = answer
        .numbers()?
        .split_at_checked(1)
        .and_then(|(one, rest)| first.fill(one).zip(second.fill(rest)));
    halves
        .map(|_| (first, second))
        .ok_or_else(|| answer.failure("two numbers"))
}

/// The list that was given, or else the one that is found.
pub(crate) fn list_or<T: Filled>(
    answer: Option<Answer>,
    find: impl FnOnce() -> Result<Vec<T>, Code>,
) -> Result<Vec<T>, Code> {
    let Some(answer) = answer else { return find() };
    let item = |number: &i64| {
        let mut item = T::blank();
        item.fill(&[*number]).map(|()| item)
    };
    answer
        .numbers()?
        .iter()
        .map(item)
        .collect::<Option<_>>()
        .ok_or_else(|| answer.failure("nothing"))
}

impl Answer {
    pub(crate) fn number(self) -> Result<i64, Code> {
        match self.numbers()? {
            [number] => Ok(*number),
            _ => Err(self.failure("one number")),
        }
    }

    fn numbers(self) -> Result<&'static [i64], Code> {
        match self.1 {
            Given::Numbers(numbers) => Ok(numbers),
            _ => Err(self.failure("numbers")),
        }
    }

    /// Writes what was given into a value that is there.
    pub(crate) fn fill(self, value: &mut impl Filled) -> Outcome {
        value
            .fill(self.numbers()?)
            .ok_or_else(|| self.failure("another number of numbers, or none"))
    }

    /// The code that the call fails with. An answer that is not of the function's kind is an error of the scenario,
    /// which ends the process, as one that cannot be read does.
    fn failure(self, wanted: &str) -> Code {
        match self.1 {
            Given::Code(code) => Code(*code),
            given => {
                eprintln!(
                    "fake NVML: the scenario gives {} {given:?}, which takes {wanted}; correct `answers`",
                    self.0
                );
                process::exit(2)
            }
        }
    }
}

/// A value that can be made of numbers in the order of its fields.
///
/// # Safety
/// All zeros are a value of it.
pub(crate) unsafe trait Filled: Sized {
    /// `None` where the numbers are too few, too many or too large, and of structures that no scenario gives.
    fn fill(&mut self, _numbers: &[i64]) -> Option<()> {
        None
    }

    /// All zeros.
    fn blank() -> Self {
        // SAFETY: the trait's contract.
        unsafe { mem::zeroed() }
    }
}

macro_rules! filled {
    ($($type:ty: $($field:ident),+;)*) => {$(
        // SAFETY: it consists of integers.
        unsafe impl Filled for $type {
            fn fill(&mut self, numbers: &[i64]) -> Option<()> {
                let mut numbers = numbers.iter();
                $(self.$field = (*numbers.next()?).try_into().ok()?;)+
                numbers.next().is_none().then_some(())
            }
        }
    )*};
}

macro_rules! numbers {
    ($($type:ty),*) => {$(
        // SAFETY: it consists of integers.
        unsafe impl Filled for $type {
            fn fill(&mut self, numbers: &[i64]) -> Option<()> {
                let [number] = numbers else { return None };
                *self = (*number).try_into().ok()?;
                Some(())
            }
        }
    )*};
}

numbers!(c_int, c_uint, c_ulonglong);

filled! {
    sys::nvmlBAR1Memory_t: bar1Total, bar1Free, bar1Used;
    sys::nvmlC2cModeInfo_v1_t: isC2cEnabled;
    sys::nvmlDeviceAddressingMode_t: value;
    sys::nvmlDeviceAttributes_t: multiprocessorCount, sharedCopyEngineCount, sharedDecoderCount, sharedEncoderCount,
        sharedJpegCount, sharedOfaCount, gpuInstanceSliceCount, computeInstanceSliceCount, memorySizeMB;
    sys::nvmlDeviceCapabilities_t: capMask;
    sys::nvmlEccSramErrorStatus_t: aggregateUncParity, aggregateUncSecDed, aggregateCor, volatileUncParity,
        volatileUncSecDed, volatileCor, aggregateUncBucketL2, aggregateUncBucketSm, aggregateUncBucketPcie,
        aggregateUncBucketMcu, aggregateUncBucketOther, bThresholdExceeded;
    sys::nvmlFBCStats_t: sessionsCount, averageFPS, averageLatency;
    sys::nvmlFanSpeedInfo_t: speed;
    sys::nvmlGpuFabricInfo_v2_t: state, status, cliqueId, healthMask;
    sys::nvmlMarginTemperature_t: marginTemperature;
    sys::nvmlMemory_t: total, free, used;
    sys::nvmlMemory_v2_t: total, reserved, free, used;
    // Of no chassis and no fabric.
    sys::nvmlPlatformInfo_t: slotNumber, trayIndex, hostId, peerType, moduleId;
    sys::nvmlRepairStatus_t: bChannelRepairPending, bTpcRepairPending;
    sys::nvmlRowRemapperHistogramValues_t: max, high, partial, low, none;
    sys::nvmlTemperature_t: temperature;
    sys::nvmlUtilization_t: gpu, memory;
    sys::nvmlViolationTime_t: referenceTime, violationTime;
}

macro_rules! never_given {
    ($($type:ty),* $(,)?) => {$(
        // SAFETY: it consists of integers, and of pointers that nobody follows.
        unsafe impl Filled for $type {}
    )*};
}

never_given! {
    [c_char; 64],
    sys::nvmlAccountingStats_t,
    sys::nvmlBridgeChipHierarchy_t,
    sys::nvmlComputeInstanceInfo_t,
    sys::nvmlComputeInstancePlacement_t,
    sys::nvmlComputeInstanceProfileInfo_t,
    sys::nvmlComputeInstanceProfileInfo_v2_t,
    sys::nvmlComputeInstance_t,
    sys::nvmlConfComputeGetKeyRotationThresholdInfo_t,
    sys::nvmlConfComputeMemSizeInfo_t,
    sys::nvmlDevice_t,
    sys::nvmlDramEncryptionInfo_t,
    sys::nvmlEncoderSessionInfo_t,
    sys::nvmlFBCSessionInfo_t,
    sys::nvmlGpuInstanceInfo_t,
    sys::nvmlGpuInstancePlacement_t,
    sys::nvmlGpuInstanceProfileInfo_t,
    sys::nvmlGpuInstanceProfileInfo_v2_t,
    sys::nvmlGpuInstance_t,
    sys::nvmlProcessesUtilizationInfo_t,
    sys::nvmlSystemConfComputeSettings_t,
    sys::nvmlVgpuHeterogeneousMode_t,
    sys::nvmlWorkloadPowerProfileCurrentProfiles_t,
}

/// Its upper and its lower half: one number could be beyond what TOML has.
// SAFETY: it consists of integers.
unsafe impl Filled for sys::nvmlPdi_t {
    fn fill(&mut self, numbers: &[i64]) -> Option<()> {
        let [high, low] = narrow(numbers)?;
        self.value = u64::from(high) << 32 | u64::from(low);
        Some(())
    }
}

/// Domain, bus, device, the two identifiers; the text follows.
// SAFETY: it consists of integers.
unsafe impl Filled for sys::nvmlPciInfo_t {
    fn fill(&mut self, numbers: &[i64]) -> Option<()> {
        let [domain, bus, device, id, subsystem] = narrow(numbers)?;
        *self = crate::exports::pci_device((domain, bus, device), id, subsystem);
        Some(())
    }
}

/// The same, and the two classes.
// SAFETY: it consists of integers.
unsafe impl Filled for sys::nvmlPciInfoExt_t {
    fn fill(&mut self, numbers: &[i64]) -> Option<()> {
        let [domain, bus, device, id, subsystem, base, sub] = narrow(numbers)?;
        let plain = crate::exports::pci_device((domain, bus, device), id, subsystem);
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

fn narrow<const N: usize>(numbers: &[i64]) -> Option<[u32; N]> {
    let narrow: Option<Vec<u32>> = numbers
        .iter()
        .map(|number| (*number).try_into().ok())
        .collect();
    narrow?.try_into().ok()
}
