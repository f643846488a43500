//! Which numbers of a structure are told, and in which order.

use nvml_wrapper::{
    struct_wrappers::device::{BAR1MemoryInfo, MemoryInfo, Utilization},
    structs::device::{MigMode, PowerManagementConstraints, UtilizationInfo},
};

use nvml_wrapper_sys::bindings::{
    nvmlAccountingStats_t, nvmlBridgeChipHierarchy_t, nvmlC2cModeInfo_v1_t, nvmlComputeInstanceProfileInfo_t,
    nvmlComputeInstanceProfileInfo_v2_t, nvmlConfComputeGetKeyRotationThresholdInfo_t, nvmlConfComputeMemSizeInfo_t,
    nvmlConfComputeSystemCaps_t, nvmlConfComputeSystemState_t, nvmlDeviceAddressingMode_v1_t, nvmlDeviceAttributes_t,
    nvmlDeviceCapabilities_v1_t, nvmlDramEncryptionInfo_v1_t, nvmlEccSramErrorStatus_v1_t, nvmlEncoderSessionInfo_t,
    nvmlFBCSessionInfo_t, nvmlFBCStats_t, nvmlGpuFabricInfo_v3_t, nvmlGpuInstanceProfileInfo_t,
    nvmlGpuInstanceProfileInfo_v2_t, nvmlMarginTemperature_v1_t, nvmlMemory_t, nvmlNvLinkInfo_v2_t, nvmlPciInfo_t,
    nvmlPciInfoExt_v1_t, nvmlPdi_v1_t, nvmlPlatformInfo_v2_t, nvmlProcessUtilizationInfo_v1_t,
    nvmlProcessUtilizationSample_t, nvmlRepairStatus_v1_t, nvmlRowRemapperHistogramValues_t,
    nvmlSystemConfComputeSettings_t, nvmlVgpuHeterogeneousMode_v1_t, nvmlViolationTime_t,
    nvmlWorkloadPowerProfileCurrentProfiles_v1_t,
};

use super::raw::{RemappedRowsInfo, UnrepairableMemory};

/// What a call filled in, as the numbers of an answer.
pub(super) trait Numbers {
    fn numbers(&self) -> Vec<i128>;
}

/// `TYPE: number, number, ...;` where each number is written after the structure itself.
macro_rules! numbers {
    ($($type:ty: |$own:ident| $($number:expr),+;)*) => {$(
        impl Numbers for $type {
            fn numbers(&self) -> Vec<i128> {
                let $own = self;
                vec![$(($number).into()),+]
            }
        }
    )*};
}

numbers! {
    i32: |own| *own;
    u32: |own| *own;
    u64: |own| *own;
    BAR1MemoryInfo: |own| own.total, own.free, own.used;
    MemoryInfo: |own| own.total, own.reserved, own.free, own.used;
    MigMode: |own| own.current, own.pending;
    PowerManagementConstraints: |own| own.min_limit, own.max_limit;
    Utilization: |own| own.gpu, own.memory;
    UtilizationInfo: |own| own.utilization, own.sampling_period;
    UnrepairableMemory: |own| own[0];
    RemappedRowsInfo: |own| own.correctable, own.inactive_correctable, own.uncorrectable, own.inactive_uncorrectable,
        own.pending, own.failed;
    nvmlAccountingStats_t: |own| own.gpuUtilization, own.memoryUtilization, own.maxMemoryUsage, own.time,
        own.startTime, own.isRunning;
    nvmlC2cModeInfo_v1_t: |own| own.isC2cEnabled;
    nvmlComputeInstanceProfileInfo_t: |own| own.id, own.sliceCount, own.instanceCount, own.multiprocessorCount,
        own.sharedCopyEngineCount, own.sharedDecoderCount, own.sharedEncoderCount, own.sharedJpegCount,
        own.sharedOfaCount;
    nvmlComputeInstanceProfileInfo_v2_t: |own| own.id, own.sliceCount, own.instanceCount, own.multiprocessorCount,
        own.sharedCopyEngineCount, own.sharedDecoderCount, own.sharedEncoderCount, own.sharedJpegCount,
        own.sharedOfaCount;
    nvmlConfComputeGetKeyRotationThresholdInfo_t: |own| own.attackerAdvantage;
    nvmlConfComputeMemSizeInfo_t: |own| own.protectedMemSizeKib, own.unprotectedMemSizeKib;
    nvmlConfComputeSystemCaps_t: |own| own.cpuCaps, own.gpusCaps;
    nvmlConfComputeSystemState_t: |own| own.environment, own.ccFeature, own.devToolsMode;
    nvmlDeviceAddressingMode_v1_t: |own| own.value;
    nvmlDeviceAttributes_t: |own| own.multiprocessorCount, own.sharedCopyEngineCount, own.sharedDecoderCount,
        own.sharedEncoderCount, own.sharedJpegCount, own.sharedOfaCount, own.gpuInstanceSliceCount,
        own.computeInstanceSliceCount, own.memorySizeMB;
    nvmlDeviceCapabilities_v1_t: |own| own.capMask;
    nvmlDramEncryptionInfo_v1_t: |own| own.encryptionState;
    nvmlEccSramErrorStatus_v1_t: |own| own.aggregateUncParity, own.aggregateUncSecDed, own.aggregateCor,
        own.volatileUncParity, own.volatileUncSecDed, own.volatileCor, own.aggregateUncBucketL2,
        own.aggregateUncBucketSm, own.aggregateUncBucketPcie, own.aggregateUncBucketMcu, own.aggregateUncBucketOther,
        own.bThresholdExceeded;
    nvmlEncoderSessionInfo_t: |own| own.sessionId, own.pid, own.codecType, own.hResolution, own.vResolution,
        own.averageFps, own.averageLatency;
    nvmlFBCSessionInfo_t: |own| own.sessionId, own.pid, own.displayOrdinal, own.sessionType, own.sessionFlags,
        own.hMaxResolution, own.vMaxResolution, own.hResolution, own.vResolution, own.averageFPS, own.averageLatency;
    nvmlFBCStats_t: |own| own.sessionsCount, own.averageFPS, own.averageLatency;
    nvmlGpuFabricInfo_v3_t: |own| own.state, own.status, own.cliqueId, own.healthMask, own.healthSummary,
        half(&own.clusterUuid, 0), half(&own.clusterUuid, 1);
    nvmlGpuInstanceProfileInfo_t: |own| own.id, own.isP2pSupported, own.sliceCount, own.instanceCount,
        own.multiprocessorCount, own.copyEngineCount, own.decoderCount, own.encoderCount, own.jpegCount, own.ofaCount,
        own.memorySizeMB;
    nvmlGpuInstanceProfileInfo_v2_t: |own| own.id, own.isP2pSupported, own.sliceCount, own.instanceCount,
        own.multiprocessorCount, own.copyEngineCount, own.decoderCount, own.encoderCount, own.jpegCount, own.ofaCount,
        own.memorySizeMB;
    nvmlMarginTemperature_v1_t: |own| own.marginTemperature;
    nvmlMemory_t: |own| own.total, own.free, own.used;
    nvmlPciInfo_t: |own| own.domain, own.bus, own.device, own.pciDeviceId, own.pciSubSystemId;
    nvmlPciInfoExt_v1_t: |own| own.domain, own.bus, own.device, own.pciDeviceId, own.pciSubSystemId, own.baseClass,
        own.subClass;
    nvmlPdi_v1_t: |own| own.value;
    nvmlPlatformInfo_v2_t: |own| half(&own.ibGuid, 0), half(&own.ibGuid, 1), half(&own.chassisSerialNumber, 0),
        half(&own.chassisSerialNumber, 1), own.slotNumber, own.trayIndex, own.hostId, own.peerType, own.moduleId;
    nvmlProcessUtilizationInfo_v1_t: |own| own.timeStamp, own.pid, own.smUtil, own.memUtil, own.encUtil, own.decUtil,
        own.jpgUtil, own.ofaUtil;
    nvmlProcessUtilizationSample_t: |own| own.timeStamp, own.pid, own.smUtil, own.memUtil, own.encUtil, own.decUtil,
        -1, -1;
    nvmlRepairStatus_v1_t: |own| own.bChannelRepairPending, own.bTpcRepairPending;
    nvmlRowRemapperHistogramValues_t: |own| own.max, own.high, own.partial, own.low, own.none;
    nvmlSystemConfComputeSettings_t: |own| own.environment, own.ccFeature, own.devToolsMode, own.multiGpuMode;
    nvmlVgpuHeterogeneousMode_v1_t: |own| own.mode;
    nvmlViolationTime_t: |own| own.referenceTime, own.violationTime;
}

impl Numbers for nvmlBridgeChipHierarchy_t {
    fn numbers(&self) -> Vec<i128> {
        let chips = self.bridgeChipInfo.iter().take(self.bridgeCount.into());
        chips.flat_map(|chip| [chip.type_.into(), chip.fwVersion.into()]).collect()
    }
}

impl Numbers for nvmlNvLinkInfo_v2_t {
    fn numbers(&self) -> Vec<i128> {
        let known = self.firmwareInfo.firmwareVersion.iter().take(self.firmwareInfo.numValidEntries as usize);
        let versions = known.flat_map(|version| {
            [version.ucodeType.into(), version.major.into(), version.minor.into(), version.subMinor.into()]
        });
        [self.isNvleEnabled.into()].into_iter().chain(versions).collect()
    }
}

impl Numbers for nvmlWorkloadPowerProfileCurrentProfiles_v1_t {
    fn numbers(&self) -> Vec<i128> {
        let masks = [self.perfProfilesMask, self.requestedProfilesMask, self.enforcedProfilesMask];
        masks.iter().flat_map(|mask| mask.mask).map(i128::from).collect()
    }
}

/// Half of 16 bytes, the highest first, so that two halves in hexadecimal read as the bytes do.
fn half(bytes: &[u8; 16], which: usize) -> u64 {
    bytes[which * 8..].iter().take(8).fold(0, |half, byte| half << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_halves_read_as_the_bytes_do() {
        let bytes: [u8; 16] = std::array::from_fn(|at| at as u8 + 1);
        assert_eq!(format!("{:016x}{:016x}", half(&bytes, 0), half(&bytes, 1)), "0102030405060708090a0b0c0d0e0f10");
    }
}
