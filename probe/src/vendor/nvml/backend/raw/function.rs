//! NVML's functions, by their names, with the types that `nvml.h` gives them.

use std::ffi::{c_char, c_int, c_uint, c_ulong, c_ulonglong};

use nvml_wrapper_sys::bindings::{
    nvmlAccountingStats_t, nvmlBridgeChipHierarchy_t, nvmlC2cModeInfo_v1_t, nvmlComputeInstance_t,
    nvmlComputeInstanceInfo_t, nvmlComputeInstancePlacement_t, nvmlComputeInstanceProfileInfo_t,
    nvmlComputeInstanceProfileInfo_v2_t, nvmlConfComputeGetKeyRotationThresholdInfo_t, nvmlConfComputeMemSizeInfo_t,
    nvmlConfComputeSystemCaps_t, nvmlConfComputeSystemState_t, nvmlDevice_t, nvmlDeviceAddressingMode_v1_t,
    nvmlDeviceAttributes_t, nvmlDeviceCapabilities_v1_t, nvmlDramEncryptionInfo_v1_t, nvmlEccSramErrorStatus_v1_t,
    nvmlEncoderSessionInfo_t, nvmlExcludedDeviceInfo_t, nvmlFBCSessionInfo_t, nvmlFBCStats_t, nvmlFieldValue_t,
    nvmlGpmMetricsGet_t, nvmlGpmSample_t, nvmlGpmSupport_t, nvmlGpuFabricInfo_v3_t, nvmlGpuInstance_t,
    nvmlGpuInstanceInfo_t, nvmlGpuInstancePlacement_t, nvmlGpuInstanceProfileInfo_t, nvmlGpuInstanceProfileInfo_v2_t,
    nvmlMarginTemperature_v1_t, nvmlMemory_t, nvmlNvLinkInfo_v2_t, nvmlPciInfo_t, nvmlPciInfoExt_v1_t, nvmlPdi_v1_t,
    nvmlPlatformInfo_v2_t, nvmlProcessInfo_t, nvmlProcessUtilizationSample_t, nvmlProcessesUtilizationInfo_v1_t,
    nvmlRepairStatus_v1_t, nvmlReturn_t, nvmlRowRemapperHistogramValues_t, nvmlSample_t,
    nvmlSystemConfComputeSettings_t, nvmlVgpuHeterogeneousMode_v1_t, nvmlViolationTime_t,
    nvmlWorkloadPowerProfileCurrentProfiles_v1_t,
};

use super::{
    library::Function,
    plain::{Hostname, RemappedRowsInfo, ShortText, UnrepairableMemory},
};

type Call1<A> = unsafe extern "C" fn(A) -> nvmlReturn_t;
type Call2<A, B> = unsafe extern "C" fn(A, B) -> nvmlReturn_t;
type Call3<A, B, C> = unsafe extern "C" fn(A, B, C) -> nvmlReturn_t;
type Call4<A, B, C, D> = unsafe extern "C" fn(A, B, C, D) -> nvmlReturn_t;
type Call5<A, B, C, D, E> = unsafe extern "C" fn(A, B, C, D, E) -> nvmlReturn_t;
type Call6<A, B, C, D, E, F> = unsafe extern "C" fn(A, B, C, D, E, F) -> nvmlReturn_t;

/// Fills a text of so many bytes in.
pub(in super::super) type Text = Call3<nvmlDevice_t, *mut c_char, c_uint>;
/// The same, about one of several things.
pub(in super::super) type TextOf = Call4<nvmlDevice_t, c_uint, *mut c_char, c_uint>;
/// Fills one value in.
pub(in super::super) type Out<T> = Call2<nvmlDevice_t, *mut T>;
/// Fills two in.
pub(in super::super) type Out2<T, U = T> = Call3<nvmlDevice_t, *mut T, *mut U>;
/// Fills three in.
pub(in super::super) type Out3<T> = Call4<nvmlDevice_t, *mut T, *mut T, *mut T>;
/// Fills four in.
pub(in super::super) type Out4<T> = Call5<nvmlDevice_t, *mut T, *mut T, *mut T, *mut T>;
/// Fills one value in, about one of several things.
pub(in super::super) type Of<T> = Call3<nvmlDevice_t, c_uint, *mut T>;
/// The same with two choices.
pub(in super::super) type Of2<T> = Call4<nvmlDevice_t, c_uint, c_uint, *mut T>;
/// The same with three.
pub(in super::super) type Of3<T> = Call5<nvmlDevice_t, c_uint, c_uint, c_uint, *mut T>;
/// Fills one value in, about two GPUs.
pub(in super::super) type Between<T> = Call3<nvmlDevice_t, nvmlDevice_t, *mut T>;
/// The same with a choice.
pub(in super::super) type BetweenOf<T> = Call4<nvmlDevice_t, nvmlDevice_t, c_uint, *mut T>;
/// Fills in a list, whose room is told and whose length comes back.
pub(in super::super) type List<T> = Call3<nvmlDevice_t, *mut c_uint, *mut T>;
/// The same, about one of several things.
pub(in super::super) type ListOf<T> = Call4<nvmlDevice_t, c_uint, *mut c_uint, *mut T>;
/// Lists processes. The structures differ between versions of the driver, so that they are taken as words.
pub(in super::super) type Processes = List<nvmlProcessInfo_t>;
/// Lists what there is of a profile of MIG, in room that must be enough.
pub(in super::super) type Listed<A, T> = Call4<A, c_uint, *mut T, *mut c_uint>;
/// About the machine: fills one value in.
pub(in super::super) type System<T> = Call1<*mut T>;
/// About the machine: fills one value in, about one of several things.
pub(in super::super) type SystemOf<T> = Call2<c_uint, *mut T>;
/// About the machine: fills a text of so many bytes in.
pub(in super::super) type SystemText = Call2<*mut c_char, c_uint>;

macro_rules! functions {
    ($($constant:ident: $type:ty = $name:literal;)*) => {$(
        #[doc = concat!("`", stringify!($name), "`.")]
        // SAFETY: the type is the one that `nvml.h` gives the function.
        pub(in super::super) const $constant: Function<$type> = unsafe { Function::new($name) };
    )*};
}

functions! {
    DEVICE_COUNT: System<c_uint> = c"nvmlDeviceGetCount_v2";
    HANDLE: SystemOf<nvmlDevice_t> = c"nvmlDeviceGetHandleByIndex_v2";
    INDEX: Out<c_uint> = c"nvmlDeviceGetIndex";
    MIG_HANDLE: Of<nvmlDevice_t> = c"nvmlDeviceGetMigDeviceHandleByIndex";

    DRIVER_VERSION: SystemText = c"nvmlSystemGetDriverVersion";
    NVML_VERSION: SystemText = c"nvmlSystemGetNVMLVersion";
    CUDA_VERSION: System<c_int> = c"nvmlSystemGetCudaDriverVersion_v2";
    EXCLUDED_COUNT: System<c_uint> = c"nvmlGetExcludedDeviceCount";
    EXCLUDED_DEVICE: SystemOf<nvmlExcludedDeviceInfo_t> = c"nvmlGetExcludedDeviceInfoByIndex";
    PROCESS_NAME: Call3<c_uint, *mut c_char, c_uint> = c"nvmlSystemGetProcessName";
    VGPU_DRIVER_CAPABILITY: SystemOf<c_uint> = c"nvmlGetVgpuDriverCapabilities";
    NVLINK_BANDWIDTH_MODE: System<c_uint> = c"nvmlSystemGetNvlinkBwMode";
    UNIT_COUNT: System<c_uint> = c"nvmlUnitGetCount";
    CONF_COMPUTE_STATE: System<nvmlConfComputeSystemState_t> = c"nvmlSystemGetConfComputeState";
    CONF_COMPUTE_CAPABILITIES: System<nvmlConfComputeSystemCaps_t> = c"nvmlSystemGetConfComputeCapabilities";
    CONF_COMPUTE_READY: System<c_uint> = c"nvmlSystemGetConfComputeGpusReadyState";
    CONF_COMPUTE_KEY_ROTATION: System<nvmlConfComputeGetKeyRotationThresholdInfo_t> =
        c"nvmlSystemGetConfComputeKeyRotationThresholdInfo";
    CONF_COMPUTE_SETTINGS: System<nvmlSystemConfComputeSettings_t> = c"nvmlSystemGetConfComputeSettings";
    DRAIN_STATE: Call2<*mut nvmlPciInfo_t, *mut c_uint> = c"nvmlDeviceQueryDrainState";
    GPUS_NEAR_CPU: Call3<c_uint, *mut c_uint, *mut nvmlDevice_t> = c"nvmlSystemGetTopologyGpuSet";

    NAME: Text = c"nvmlDeviceGetName";
    UUID: Text = c"nvmlDeviceGetUUID";
    SERIAL: Text = c"nvmlDeviceGetSerial";
    PCI_INFO: Out<nvmlPciInfo_t> = c"nvmlDeviceGetPciInfo_v3";
    PCI_INFO_EXT: Out<nvmlPciInfoExt_v1_t> = c"nvmlDeviceGetPciInfoExt";
    BRAND: Out<c_uint> = c"nvmlDeviceGetBrand";
    ARCHITECTURE: Out<c_uint> = c"nvmlDeviceGetArchitecture";
    COMPUTE_CAPABILITY: Out2<c_int> = c"nvmlDeviceGetCudaComputeCapability";
    MULTI_GPU_BOARD: Out<c_uint> = c"nvmlDeviceGetMultiGpuBoard";
    BOARD_PART_NUMBER: Text = c"nvmlDeviceGetBoardPartNumber";
    MODULE_ID: Out<c_uint> = c"nvmlDeviceGetModuleId";
    PDI: Out<nvmlPdi_v1_t> = c"nvmlDeviceGetPdi";
    HOSTNAME: Out<Hostname> = c"nvmlDeviceGetHostname_v1";
    PLATFORM_INFO: Out<nvmlPlatformInfo_v2_t> = c"nvmlDeviceGetPlatformInfo";
    VBIOS_VERSION: Text = c"nvmlDeviceGetVbiosVersion";
    INFOROM_IMAGE_VERSION: Text = c"nvmlDeviceGetInforomImageVersion";
    INFOROM_VERSION: TextOf = c"nvmlDeviceGetInforomVersion";
    VALIDATE_INFOROM: Call1<nvmlDevice_t> = c"nvmlDeviceValidateInforom";
    LAST_BBX_FLUSH: Out2<c_ulonglong, c_ulong> = c"nvmlDeviceGetLastBBXFlushTime";
    GSP_FIRMWARE_VERSION: Out<ShortText> = c"nvmlDeviceGetGspFirmwareVersion";
    GSP_FIRMWARE_MODE: Out2<c_uint> = c"nvmlDeviceGetGspFirmwareMode";

    DISPLAY_MODE: Out<c_uint> = c"nvmlDeviceGetDisplayMode";
    DISPLAY_ACTIVE: Out<c_uint> = c"nvmlDeviceGetDisplayActive";
    PERSISTENCE_MODE: Out<c_uint> = c"nvmlDeviceGetPersistenceMode";
    ADDRESSING_MODE: Out<nvmlDeviceAddressingMode_v1_t> = c"nvmlDeviceGetAddressingMode";
    COMPUTE_MODE: Out<c_uint> = c"nvmlDeviceGetComputeMode";
    ECC_MODE: Out2<c_uint> = c"nvmlDeviceGetEccMode";
    DRAM_ENCRYPTION_MODE: Out2<nvmlDramEncryptionInfo_v1_t> = c"nvmlDeviceGetDramEncryptionMode";
    GPU_OPERATION_MODE: Out2<c_uint> = c"nvmlDeviceGetGpuOperationMode";
    DRIVER_MODEL: Out2<c_uint> = c"nvmlDeviceGetDriverModel_v2";
    ACCOUNTING_MODE: Out<c_uint> = c"nvmlDeviceGetAccountingMode";
    VIRTUALIZATION_MODE: Out<c_uint> = c"nvmlDeviceGetVirtualizationMode";
    HOST_VGPU_MODE: Out<c_uint> = c"nvmlDeviceGetHostVgpuMode";
    VGPU_HETEROGENEOUS_MODE: Out<nvmlVgpuHeterogeneousMode_v1_t> = c"nvmlDeviceGetVgpuHeterogeneousMode";
    VGPU_CAPABILITY: Of<c_uint> = c"nvmlDeviceGetVgpuCapabilities";
    C2C_MODE: Out<nvmlC2cModeInfo_v1_t> = c"nvmlDeviceGetC2cModeInfoV";
    CAPABILITIES: Out<nvmlDeviceCapabilities_v1_t> = c"nvmlDeviceGetCapabilities";
    AUTO_BOOST: Out2<c_uint> = c"nvmlDeviceGetAutoBoostedClocksEnabled";
    WORKLOAD_POWER_PROFILES: Out<nvmlWorkloadPowerProfileCurrentProfiles_v1_t> =
        c"nvmlDeviceWorkloadPowerProfileGetCurrentProfiles";

    ENCODER_SESSIONS: List<nvmlEncoderSessionInfo_t> = c"nvmlDeviceGetEncoderSessions";
    FBC_SESSIONS: List<nvmlFBCSessionInfo_t> = c"nvmlDeviceGetFBCSessions";
    JPG_UTILIZATION: Out2<c_uint> = c"nvmlDeviceGetJpgUtilization";
    OFA_UTILIZATION: Out2<c_uint> = c"nvmlDeviceGetOfaUtilization";
    ENCODER_STATS: Out3<c_uint> = c"nvmlDeviceGetEncoderStats";
    FBC_STATS: Out<nvmlFBCStats_t> = c"nvmlDeviceGetFBCStats";
    MEMORY_INFO_V1: Out<nvmlMemory_t> = c"nvmlDeviceGetMemoryInfo";
    PROTECTED_MEMORY: Out<nvmlMemory_t> = c"nvmlDeviceGetConfComputeProtectedMemoryUsage";
    CONF_COMPUTE_MEMORY: Out<nvmlConfComputeMemSizeInfo_t> = c"nvmlDeviceGetConfComputeMemSizeInfo";
    TEMPERATURE: Of<c_uint> = c"nvmlDeviceGetTemperature";
    MARGIN_TEMPERATURE: Out<nvmlMarginTemperature_v1_t> = c"nvmlDeviceGetMarginTemperature";
    TEMPERATURE_THRESHOLD: Of<c_uint> = c"nvmlDeviceGetTemperatureThreshold";
    FAN_SPEED: Out<c_uint> = c"nvmlDeviceGetFanSpeed";
    PERFORMANCE_STATE: Out<c_uint> = c"nvmlDeviceGetPerformanceState";
    SUPPORTED_THROTTLE_REASONS: Out<c_ulonglong> = c"nvmlDeviceGetSupportedClocksThrottleReasons";
    SUPPORTED_EVENT_REASONS: Out<c_ulonglong> = c"nvmlDeviceGetSupportedClocksEventReasons";
    THROTTLE_REASONS: Out<c_ulonglong> = c"nvmlDeviceGetCurrentClocksThrottleReasons";
    EVENT_REASONS: Out<c_ulonglong> = c"nvmlDeviceGetCurrentClocksEventReasons";
    VIOLATION_STATUS: Of<nvmlViolationTime_t> = c"nvmlDeviceGetViolationStatus";
    POWER_MANAGEMENT_MODE: Out<c_uint> = c"nvmlDeviceGetPowerManagementMode";
    CLOCK_INFO: Of<c_uint> = c"nvmlDeviceGetClockInfo";
    MAX_CLOCK_INFO: Of<c_uint> = c"nvmlDeviceGetMaxClockInfo";
    APPLICATIONS_CLOCK: Of<c_uint> = c"nvmlDeviceGetApplicationsClock";
    DEFAULT_APPLICATIONS_CLOCK: Of<c_uint> = c"nvmlDeviceGetDefaultApplicationsClock";
    CLOCK: Of2<c_uint> = c"nvmlDeviceGetClock";
    SUPPORTED_MEMORY_CLOCKS: List<c_uint> = c"nvmlDeviceGetSupportedMemoryClocks";
    SUPPORTED_GRAPHICS_CLOCKS: ListOf<c_uint> = c"nvmlDeviceGetSupportedGraphicsClocks";
    FIELD_VALUES: Call3<nvmlDevice_t, c_int, *mut nvmlFieldValue_t> = c"nvmlDeviceGetFieldValues";
    SAMPLES: Call6<nvmlDevice_t, c_uint, c_ulonglong, *mut c_uint, *mut c_uint, *mut nvmlSample_t> =
        c"nvmlDeviceGetSamples";

    TOTAL_ECC_ERRORS: Of2<c_ulonglong> = c"nvmlDeviceGetTotalEccErrors";
    MEMORY_ERROR_COUNTER: Of3<c_ulonglong> = c"nvmlDeviceGetMemoryErrorCounter";
    SRAM_ECC_ERROR_STATUS: Out<nvmlEccSramErrorStatus_v1_t> = c"nvmlDeviceGetSramEccErrorStatus";
    REPAIR_STATUS: Out<nvmlRepairStatus_v1_t> = c"nvmlDeviceGetRepairStatus";
    UNREPAIRABLE_MEMORY: Out<UnrepairableMemory> = c"nvmlDeviceGetUnrepairableMemoryFlag_v1";
    RETIRED_PAGES: Call5<nvmlDevice_t, c_uint, *mut c_uint, *mut c_ulonglong, *mut c_ulonglong> =
        c"nvmlDeviceGetRetiredPages_v2";
    RETIRED_PAGES_V1: ListOf<c_ulonglong> = c"nvmlDeviceGetRetiredPages";
    RETIRED_PAGES_PENDING: Out<c_uint> = c"nvmlDeviceGetRetiredPagesPendingStatus";
    REMAPPED_ROWS: Out4<c_uint> = c"nvmlDeviceGetRemappedRows";
    REMAPPED_ROWS_V2: Out<RemappedRowsInfo> = c"nvmlDeviceGetRemappedRows_v2";
    ROW_REMAPPER_HISTOGRAM: Out<nvmlRowRemapperHistogramValues_t> = c"nvmlDeviceGetRowRemapperHistogram";

    GPU_MAX_PCIE_GENERATION: Out<c_uint> = c"nvmlDeviceGetGpuMaxPcieLinkGeneration";
    PCIE_THROUGHPUT: Of<c_uint> = c"nvmlDeviceGetPcieThroughput";
    BRIDGE_CHIPS: Out<nvmlBridgeChipHierarchy_t> = c"nvmlDeviceGetBridgeChipInfo";
    FABRIC_INFO: Out<nvmlGpuFabricInfo_v3_t> = c"nvmlDeviceGetGpuFabricInfoV";
    NVLINK_REMOTE_PCI_INFO: Of<nvmlPciInfo_t> = c"nvmlDeviceGetNvLinkRemotePciInfo_v2";
    NVLINK_CAPABILITY: Of2<c_uint> = c"nvmlDeviceGetNvLinkCapability";
    NVLINK_REMOTE_DEVICE_TYPE: Of<c_uint> = c"nvmlDeviceGetNvLinkRemoteDeviceType";
    NVLINK_STATE: Of<c_uint> = c"nvmlDeviceGetNvLinkState";
    NVLINK_INFO: Out<nvmlNvLinkInfo_v2_t> = c"nvmlDeviceGetNvLinkInfo";
    CPU_AFFINITY: Of<c_ulong> = c"nvmlDeviceGetCpuAffinity";
    MEMORY_AFFINITY: Call4<nvmlDevice_t, c_uint, *mut c_ulong, c_uint> = c"nvmlDeviceGetMemoryAffinity";
    NEAREST_GPUS: ListOf<nvmlDevice_t> = c"nvmlDeviceGetTopologyNearestGpus";
    COMMON_ANCESTOR: Between<c_uint> = c"nvmlDeviceGetTopologyCommonAncestor";
    P2P_STATUS: BetweenOf<c_uint> = c"nvmlDeviceGetP2PStatus";

    COMPUTE_PROCESSES: Processes = c"nvmlDeviceGetComputeRunningProcesses_v3";
    COMPUTE_PROCESSES_V2: Processes = c"nvmlDeviceGetComputeRunningProcesses_v2";
    COMPUTE_PROCESSES_V1: Processes = c"nvmlDeviceGetComputeRunningProcesses";
    GRAPHICS_PROCESSES: Processes = c"nvmlDeviceGetGraphicsRunningProcesses_v3";
    GRAPHICS_PROCESSES_V2: Processes = c"nvmlDeviceGetGraphicsRunningProcesses_v2";
    GRAPHICS_PROCESSES_V1: Processes = c"nvmlDeviceGetGraphicsRunningProcesses";
    MPS_PROCESSES: Processes = c"nvmlDeviceGetMPSComputeRunningProcesses_v3";
    MPS_PROCESSES_V2: Processes = c"nvmlDeviceGetMPSComputeRunningProcesses_v2";
    MPS_PROCESSES_V1: Processes = c"nvmlDeviceGetMPSComputeRunningProcesses";
    PROCESSES_UTILIZATION: Out<nvmlProcessesUtilizationInfo_v1_t> = c"nvmlDeviceGetProcessesUtilizationInfo";
    PROCESS_UTILIZATION: Call4<nvmlDevice_t, *mut nvmlProcessUtilizationSample_t, *mut c_uint, c_ulonglong> =
        c"nvmlDeviceGetProcessUtilization";
    ACCOUNTING_PIDS: List<c_uint> = c"nvmlDeviceGetAccountingPids";
    ACCOUNTING_STATS: Of<nvmlAccountingStats_t> = c"nvmlDeviceGetAccountingStats";

    GPU_INSTANCE_ID: Out<c_uint> = c"nvmlDeviceGetGpuInstanceId";
    COMPUTE_INSTANCE_ID: Out<c_uint> = c"nvmlDeviceGetComputeInstanceId";
    ATTRIBUTES: Out<nvmlDeviceAttributes_t> = c"nvmlDeviceGetAttributes_v2";

    GPU_INSTANCE_PROFILE: Of<nvmlGpuInstanceProfileInfo_v2_t> = c"nvmlDeviceGetGpuInstanceProfileInfoV";
    GPU_INSTANCE_PROFILE_V1: Of<nvmlGpuInstanceProfileInfo_t> = c"nvmlDeviceGetGpuInstanceProfileInfo";
    GPU_INSTANCE_CAPACITY: Of<c_uint> = c"nvmlDeviceGetGpuInstanceRemainingCapacity";
    GPU_INSTANCE_PLACEMENTS: Listed<nvmlDevice_t, nvmlGpuInstancePlacement_t> =
        c"nvmlDeviceGetGpuInstancePossiblePlacements_v2";
    GPU_INSTANCES: Listed<nvmlDevice_t, nvmlGpuInstance_t> = c"nvmlDeviceGetGpuInstances";
    GPU_INSTANCE_BY_ID: Of<nvmlGpuInstance_t> = c"nvmlDeviceGetGpuInstanceById";
    GPU_INSTANCE_INFO: Call2<nvmlGpuInstance_t, *mut nvmlGpuInstanceInfo_t> = c"nvmlGpuInstanceGetInfo";
    COMPUTE_INSTANCE_PROFILE: Call4<nvmlGpuInstance_t, c_uint, c_uint, *mut nvmlComputeInstanceProfileInfo_v2_t> =
        c"nvmlGpuInstanceGetComputeInstanceProfileInfoV";
    COMPUTE_INSTANCE_PROFILE_V1: Call4<nvmlGpuInstance_t, c_uint, c_uint, *mut nvmlComputeInstanceProfileInfo_t> =
        c"nvmlGpuInstanceGetComputeInstanceProfileInfo";
    COMPUTE_INSTANCE_CAPACITY: Call3<nvmlGpuInstance_t, c_uint, *mut c_uint> =
        c"nvmlGpuInstanceGetComputeInstanceRemainingCapacity";
    COMPUTE_INSTANCE_PLACEMENTS: Listed<nvmlGpuInstance_t, nvmlComputeInstancePlacement_t> =
        c"nvmlGpuInstanceGetComputeInstancePossiblePlacements";
    COMPUTE_INSTANCES: Listed<nvmlGpuInstance_t, nvmlComputeInstance_t> = c"nvmlGpuInstanceGetComputeInstances";
    COMPUTE_INSTANCE_INFO: Call2<nvmlComputeInstance_t, *mut nvmlComputeInstanceInfo_t> =
        c"nvmlComputeInstanceGetInfo_v2";

    GPM_STREAMING: Out<c_uint> = c"nvmlGpmQueryIfStreamingEnabled";
    GPM_SUPPORT: Out<nvmlGpmSupport_t> = c"nvmlGpmQueryDeviceSupport";
    GPM_SAMPLE_ALLOC: System<nvmlGpmSample_t> = c"nvmlGpmSampleAlloc";
    GPM_SAMPLE_FREE: Call1<nvmlGpmSample_t> = c"nvmlGpmSampleFree";
    GPM_SAMPLE: Call2<nvmlDevice_t, nvmlGpmSample_t> = c"nvmlGpmSampleGet";
    GPM_MIG_SAMPLE: Call3<nvmlDevice_t, c_uint, nvmlGpmSample_t> = c"nvmlGpmMigSampleGet";
    GPM_METRICS: System<nvmlGpmMetricsGet_t> = c"nvmlGpmMetricsGet";
}
