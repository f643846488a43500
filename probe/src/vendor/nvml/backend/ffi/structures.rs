//! The structures that NVML calls fill in: their versions, and the order of their numbers in
//! answers.

use std::{array, ffi::c_char};

use nvml_wrapper_sys::bindings as sys;

use super::library::{Plain, text, version_of};
use crate::vendor::nvml::query::Value;

/// The structure `nvmlRemappedRowsInfo_v2_t`, which is missing from the bindings.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct RemappedRowsInfo {
    correctable: u32,
    inactive_correctable: u32,
    uncorrectable: u32,
    inactive_uncorrectable: u32,
    pending: u32,
    failed: u32,
}

/// The structure `nvmlUnrepairableMemoryStatus_v1_t`, which is missing from the bindings. The
/// reserved words are for later versions.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct UnrepairableMemory {
    is_unrepairable: u32,
    _reserved: [u32; 3],
}

/// A buffer for functions that return text without its length. `nvml.h` specifies this size.
pub(crate) type ShortText = [c_char; 64];

/// The address of a retired page whose time is unknown, because older drivers do not report it. In
/// the answer, the time is 0.
#[repr(transparent)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct UntimedPage(u64);

/// Conversion of a filled-in structure to the numbers in an answer.
pub(crate) trait Numbers: Sized {
    fn numbers(&self) -> Vec<i128>;

    /// Returns an answer that contains the numbers of `all` structures.
    fn value(all: &[Self]) -> Value {
        Value::Numbers(all.iter().flat_map(Self::numbers).collect())
    }
}

/// Returns an answer that contains the numbers of `values`, one value after another.
pub(crate) fn numbers<T: Numbers>(values: impl IntoIterator<Item = T>) -> Value {
    T::value(&values.into_iter().collect::<Vec<_>>())
}

/// Implements [`Plain`] and [`Numbers`] for types. Each row has the form `TYPE = version [older
/// version]: |own| number, ...;`. Only the type is required.
macro_rules! plain {
    ($(
        $type:ty $(= $version:literal $([$older:expr])?)? $(: |$own:ident| $($number:expr),+)?;
    )*) => {$(
        // SAFETY: the type consists of numbers and pointers. If it has a version, it begins with
        // the version.
        unsafe impl Plain for $type {
            $(
                const VERSION: Option<u32> = Some($version);
                $(const OLDER: Option<u32> = Some($older);)?
            )?
        }

        $(impl Numbers for $type {
            fn numbers(&self) -> Vec<i128> {
                let $own = self;
                vec![$(($number).into()),+]
            }
        })?
    )*};
}

/// Calls a macro with a table of the structures that NVML calls fill in. Each row contains the
/// structure's version, if any, and the numbers in its answer, in order.
#[doc(hidden)]
#[macro_export]
macro_rules! nvml_structures {
    ($then:ident) => {
        $then! {
            sys::nvmlAccountingStats_t:
                gpuUtilization, memoryUtilization, maxMemoryUsage, time, startTime, isRunning;
            sys::nvmlBAR1Memory_t: bar1Total, bar1Free, bar1Used;
            sys::nvmlC2cModeInfo_v1_t: isC2cEnabled;
            sys::nvmlConfComputeSystemState_t: environment, ccFeature, devToolsMode;
            sys::nvmlDeviceAddressingMode_v1_t = 1: value;
            sys::nvmlDeviceAttributes_t:
                multiprocessorCount, sharedCopyEngineCount, sharedDecoderCount, sharedEncoderCount,
                sharedJpegCount, sharedOfaCount, gpuInstanceSliceCount, computeInstanceSliceCount,
                memorySizeMB;
            sys::nvmlDeviceCapabilities_v1_t = 1: capMask;
            sys::nvmlDramEncryptionInfo_v1_t = 1: encryptionState;
            sys::nvmlEccSramErrorStatus_v1_t = 1:
                aggregateUncParity, aggregateUncSecDed, aggregateCor, volatileUncParity,
                volatileUncSecDed, volatileCor, aggregateUncBucketL2, aggregateUncBucketSm,
                aggregateUncBucketPcie, aggregateUncBucketMcu, aggregateUncBucketOther,
                bThresholdExceeded;
            sys::nvmlFanSpeedInfo_t = 1: speed;
            sys::nvmlFBCStats_t: sessionsCount, averageFPS, averageLatency;
            sys::nvmlMarginTemperature_v1_t = 1: marginTemperature;
            sys::nvmlMemory_t: total, free, used;
            sys::nvmlMemory_v2_t = 2: total, reserved, free, used;
            sys::nvmlProcessUtilizationInfo_v1_t:
                timeStamp, pid, smUtil, memUtil, encUtil, decUtil, jpgUtil, ofaUtil;
            sys::nvmlRepairStatus_v1_t = 1: bChannelRepairPending, bTpcRepairPending;
            sys::nvmlRowRemapperHistogramValues_t: max, high, partial, low, none;
            sys::nvmlTemperature_v1_t = 1: temperature;
            sys::nvmlUtilization_t: gpu, memory;
            sys::nvmlVgpuHeterogeneousMode_v1_t = 1: mode;
            sys::nvmlViolationTime_t: referenceTime, violationTime;
        }
    };
}

macro_rules! structures {
    ($($type:ty $(= $version:literal)?: $($($field:ident).+),+;)*) => {
        plain! { $($type $(= $version)?: |own| $(own.$($field).+),+;)* }
    };
}

crate::nvml_structures! { structures }

plain! {
    c_char;
    UntimedPage: |own| 0, own.0;
    UnrepairableMemory: |own| own.is_unrepairable;
    i32: |own| *own;
    u32: |own| *own;
    u64: |own| *own;
    RemappedRowsInfo: |own| own.correctable, own.inactive_correctable, own.uncorrectable,
        own.inactive_uncorrectable, own.pending, own.failed;
    sys::nvmlBridgeChipHierarchy_t;
    sys::nvmlEventData_t;
    sys::nvmlGpmMetricsGet_t;
    sys::nvmlGpmSupport_t;
    sys::nvmlGpuFabricInfo_v3_t = 3 [version_of::<sys::nvmlGpuFabricInfo_v2_t>(2)]: |own| own.state,
        own.status, own.cliqueId, own.healthMask, own.healthSummary, take_half(&own.clusterUuid, 0),
        take_half(&own.clusterUuid, 1);
    // The first version consists of only the two numbers at the start of the second version.
    sys::nvmlNvLinkInfo_v2_t = 2 [version_of::<[u32; 2]>(1)];
    sys::nvmlPciInfo_t: |own| own.domain, own.bus, own.device, own.pciDeviceId, own.pciSubSystemId;
    sys::nvmlPciInfoExt_v1_t = 1: |own| own.domain, own.bus, own.device, own.pciDeviceId,
        own.pciSubSystemId, own.baseClass, own.subClass;
    sys::nvmlPdi_v1_t = 1: |own| own.value;
    sys::nvmlPlatformInfo_v2_t = 2: |own| take_half(&own.ibGuid, 0), take_half(&own.ibGuid, 1),
        take_half(&own.chassisSerialNumber, 0), take_half(&own.chassisSerialNumber, 1), own.slotNumber,
        own.trayIndex, own.hostId, own.peerType, own.moduleId;
    sys::nvmlProcessUtilizationSample_t: |own| own.timeStamp, own.pid, own.smUtil, own.memUtil,
        own.encUtil, own.decUtil, -1, -1;
    sys::nvmlSample_t;
    sys::nvmlWorkloadPowerProfileCurrentProfiles_v1_t = 1;
}

// SAFETY: NVML's handles are pointers, for which null is a valid value.
unsafe impl<T> Plain for *mut T {}

// SAFETY: the elements are `Plain`, and each begins with its own version if it has one.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {
    fn make_blank() -> Self {
        array::from_fn(|_| T::make_blank())
    }
}

impl Numbers for [u64; 2] {
    fn numbers(&self) -> Vec<i128> {
        self.map(i128::from).to_vec()
    }
}

impl Numbers for ShortText {
    fn numbers(&self) -> Vec<i128> {
        Vec::new()
    }

    fn value(all: &[Self]) -> Value {
        Value::Text(all.iter().map(|own| text(own)).collect())
    }
}

impl Numbers for sys::nvmlBridgeChipHierarchy_t {
    fn numbers(&self) -> Vec<i128> {
        let chips = self.bridgeChipInfo.iter().take(self.bridgeCount.into());
        chips
            .flat_map(|chip| [chip.type_.into(), chip.fwVersion.into()])
            .collect()
    }
}

impl Numbers for sys::nvmlNvLinkInfo_v2_t {
    fn numbers(&self) -> Vec<i128> {
        let known = self
            .firmwareInfo
            .firmwareVersion
            .iter()
            .take(self.firmwareInfo.numValidEntries as usize);
        let versions = known.flat_map(|version| {
            [
                version.ucodeType.into(),
                version.major.into(),
                version.minor.into(),
                version.subMinor.into(),
            ]
        });
        [self.isNvleEnabled.into()]
            .into_iter()
            .chain(versions)
            .collect()
    }
}

impl Numbers for sys::nvmlWorkloadPowerProfileCurrentProfiles_v1_t {
    fn numbers(&self) -> Vec<i128> {
        let masks = [
            self.perfProfilesMask,
            self.requestedProfilesMask,
            self.enforcedProfilesMask,
        ];
        masks
            .iter()
            .flat_map(|mask| mask.mask)
            .map(i128::from)
            .collect()
    }
}

/// Returns one half of 16 bytes as a number. The first byte is the most significant, so the two
/// halves in hexadecimal show the bytes in their original order.
fn take_half(bytes: &[u8; 16], which: usize) -> u64 {
    bytes
        .iter()
        .skip(which.saturating_mul(8))
        .take(8)
        .fold(0, |half, byte| half << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vendor::nvml::backend::ffi::library::version_of;

    /// The expected numbers are the structure versions that a program was observed to pass to a 580
    /// driver.
    #[test]
    fn structures_have_size_expected_by_driver() {
        let of = |version: u32, size: u32| version << 24 | size;
        assert_eq!(version_of::<sys::nvmlPdi_v1_t>(1), of(1, 0x10));
        assert_eq!(version_of::<sys::nvmlPciInfoExt_v1_t>(1), of(1, 0x40));
        assert_eq!(version_of::<sys::nvmlPlatformInfo_v2_t>(2), of(2, 0x2c));
        assert_eq!(
            version_of::<sys::nvmlEccSramErrorStatus_v1_t>(1),
            of(1, 0x68)
        );
        assert_eq!(version_of::<sys::nvmlRepairStatus_v1_t>(1), of(1, 0x0c));
        assert_eq!(version_of::<sys::nvmlNvLinkInfo_v2_t>(2), of(2, 0x64c));
        assert_eq!(
            version_of::<sys::nvmlWorkloadPowerProfileCurrentProfiles_v1_t>(1),
            of(1, 0x64)
        );
        assert_eq!(version_of::<sys::nvmlGpuFabricInfo_v3_t>(3), of(3, 0x28));
        assert_eq!(
            version_of::<sys::nvmlDramEncryptionInfo_v1_t>(1),
            of(1, 0x08)
        );
    }

    #[test]
    fn uuid_halves_keep_byte_order() {
        let bytes: [u8; 16] = std::array::from_fn(|at| at as u8 + 1);
        assert_eq!(
            format!("{:016x}{:016x}", take_half(&bytes, 0), take_half(&bytes, 1)),
            "0102030405060708090a0b0c0d0e0f10"
        );
    }
}
