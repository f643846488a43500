//! NVML's functions, by their names, with the types that `nvml.h` gives them.

use std::ffi::{c_char, c_int, c_uint, c_ulong, c_ulonglong};

use nvml_wrapper_sys::bindings as sys;

use super::{
    library::Function,
    plain::{RemappedRowsInfo, ShortText, UnrepairableMemory},
};

pub(crate) type Call0 = unsafe extern "C" fn() -> sys::nvmlReturn_t;
pub(crate) type Call1<A> = unsafe extern "C" fn(A) -> sys::nvmlReturn_t;
pub(crate) type Call2<A, B> = unsafe extern "C" fn(A, B) -> sys::nvmlReturn_t;
pub(crate) type Call3<A, B, C> = unsafe extern "C" fn(A, B, C) -> sys::nvmlReturn_t;
pub(crate) type Call4<A, B, C, D> = unsafe extern "C" fn(A, B, C, D) -> sys::nvmlReturn_t;
pub(crate) type Call5<A, B, C, D, E> = unsafe extern "C" fn(A, B, C, D, E) -> sys::nvmlReturn_t;
pub(crate) type Call6<A, B, C, D, E, F> =
    unsafe extern "C" fn(A, B, C, D, E, F) -> sys::nvmlReturn_t;

/// Gives nothing but its return code.
pub(crate) type Check = Call1<sys::nvmlDevice_t>;
/// Fills a text of so many bytes in.
pub(crate) type Text = Call3<sys::nvmlDevice_t, *mut c_char, c_uint>;
/// The same, about one of several things.
pub(crate) type TextOf = Call4<sys::nvmlDevice_t, c_uint, *mut c_char, c_uint>;
/// Fills one value in.
pub(crate) type Out<T> = Call2<sys::nvmlDevice_t, *mut T>;
/// Fills two in.
pub(crate) type Out2<T> = Call3<sys::nvmlDevice_t, *mut T, *mut T>;
/// Fills three in.
pub(crate) type Out3<T> = Call4<sys::nvmlDevice_t, *mut T, *mut T, *mut T>;
/// Fills four in.
pub(crate) type Out4<T> = Call5<sys::nvmlDevice_t, *mut T, *mut T, *mut T, *mut T>;
/// Fills one value in, about one of several things.
pub(crate) type Of<T> = Call3<sys::nvmlDevice_t, c_uint, *mut T>;
/// The same with two choices.
pub(crate) type Of2<T> = Call4<sys::nvmlDevice_t, c_uint, c_uint, *mut T>;
/// The same with three.
pub(crate) type Of3<T> = Call5<sys::nvmlDevice_t, c_uint, c_uint, c_uint, *mut T>;
/// Fills one value in, about two GPUs.
pub(crate) type Between<T> = Call3<sys::nvmlDevice_t, sys::nvmlDevice_t, *mut T>;
/// The same with a choice.
pub(crate) type BetweenOf<T> = Call4<sys::nvmlDevice_t, sys::nvmlDevice_t, c_uint, *mut T>;
/// Fills in a list, whose room is told and whose length comes back.
pub(crate) type List<T> = Call3<sys::nvmlDevice_t, *mut c_uint, *mut T>;
/// The same, about one of several things.
pub(crate) type ListOf<T> = Call4<sys::nvmlDevice_t, c_uint, *mut c_uint, *mut T>;
/// Lists processes. The structures differ between versions of the driver, so that they are taken as words.
pub(crate) type Processes = List<sys::nvmlProcessInfo_t>;
/// Lists what there is of a profile of MIG, in room that must be enough.
pub(crate) type Listed<A, T> = Call4<A, c_uint, *mut T, *mut c_uint>;
/// About the machine: fills one value in.
pub(crate) type System<T> = Call1<*mut T>;
/// About the machine: fills one value in, about one of several things.
pub(crate) type SystemOf<T> = Call2<c_uint, *mut T>;
/// About the machine: fills a text of so many bytes in.
pub(crate) type SystemText = Call2<*mut c_char, c_uint>;
/// Fills in a compute instance's profile, with engines of this kind.
pub(crate) type ComputeProfile<T> = Call4<sys::nvmlGpuInstance_t, c_uint, c_uint, *mut T>;
/// Waits for an event of a set.
pub(crate) type WaitCall = Call3<sys::nvmlEventSet_t, *mut sys::nvmlEventData_t, c_uint>;

macro_rules! functions {
    (others: $($other:literal),+; $($constant:ident: $type:ty = $name:literal;)*) => {
        /// Where the library keeps the address of each.
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        enum Place { $($constant,)* }

        $(
            #[doc = concat!("`", stringify!($name), "`.")]
            // SAFETY: the type is the one that `nvml.h` gives the function, and no other has its place.
            pub(crate) const $constant: Function<$type> = unsafe { Function::new($name, Place::$constant as usize) };
        )*

        /// How many have a place.
        pub(super) const PLACES: usize = [$($name),*].len();

        /// Every function of NVML that is called here, and those that other programs call: what gpumon's fake library
        /// exports, and a scenario can slow down, hide, or make fail.
        pub const FUNCTIONS: &[&str] = &[$($other,)+ $($constant.name()),*];
    };
}

functions! {
    others: "nvmlInitWithFlags", "nvmlShutdown", "nvmlErrorString", "nvmlSystemGetCudaDriverVersion",
        "nvmlDeviceGetHandleByPciBusId_v2", "nvmlDeviceGetHandleBySerial", "nvmlDeviceGetHandleByUUID",
        "nvmlDeviceIsMigDeviceHandle", "nvmlDeviceGetDeviceHandleFromMigDeviceHandle",
        "nvmlDeviceGetNvLinkErrorCounter";

    INIT: Call0 = c"nvmlInit_v2";
    DEVICE_COUNT: System<c_uint> = c"nvmlDeviceGetCount_v2";
    HANDLE: SystemOf<sys::nvmlDevice_t> = c"nvmlDeviceGetHandleByIndex_v2";
    INDEX: Out<c_uint> = c"nvmlDeviceGetIndex";
    MIG_HANDLE: Of<sys::nvmlDevice_t> = c"nvmlDeviceGetMigDeviceHandleByIndex";

    DRIVER_VERSION: SystemText = c"nvmlSystemGetDriverVersion";
    NVML_VERSION: SystemText = c"nvmlSystemGetNVMLVersion";
    CUDA_VERSION: System<c_int> = c"nvmlSystemGetCudaDriverVersion_v2";
    EXCLUDED_COUNT: System<c_uint> = c"nvmlGetExcludedDeviceCount";
    EXCLUDED_DEVICE: SystemOf<sys::nvmlExcludedDeviceInfo_t> = c"nvmlGetExcludedDeviceInfoByIndex";
    PROCESS_NAME: Call3<c_uint, *mut c_char, c_uint> = c"nvmlSystemGetProcessName";
    VGPU_DRIVER_CAPABILITY: SystemOf<c_uint> = c"nvmlGetVgpuDriverCapabilities";
    NVLINK_BANDWIDTH_MODE: System<c_uint> = c"nvmlSystemGetNvlinkBwMode";
    UNIT_COUNT: System<c_uint> = c"nvmlUnitGetCount";
    CONF_COMPUTE_STATE: System<sys::nvmlConfComputeSystemState_t> = c"nvmlSystemGetConfComputeState";
    CONF_COMPUTE_CAPABILITIES: System<sys::nvmlConfComputeSystemCaps_t> = c"nvmlSystemGetConfComputeCapabilities";
    CONF_COMPUTE_READY: System<c_uint> = c"nvmlSystemGetConfComputeGpusReadyState";
    CONF_COMPUTE_KEY_ROTATION: System<sys::nvmlConfComputeGetKeyRotationThresholdInfo_t> =
        c"nvmlSystemGetConfComputeKeyRotationThresholdInfo";
    CONF_COMPUTE_SETTINGS: System<sys::nvmlSystemConfComputeSettings_t> = c"nvmlSystemGetConfComputeSettings";
    DRAIN_STATE: Call2<*mut sys::nvmlPciInfo_t, *mut c_uint> = c"nvmlDeviceQueryDrainState";
    GPUS_NEAR_CPU: Call3<c_uint, *mut c_uint, *mut sys::nvmlDevice_t> = c"nvmlSystemGetTopologyGpuSet";

    NAME: Text = c"nvmlDeviceGetName";
    UUID: Text = c"nvmlDeviceGetUUID";
    SERIAL: Text = c"nvmlDeviceGetSerial";
    PCI_INFO: Out<sys::nvmlPciInfo_t> = c"nvmlDeviceGetPciInfo_v3";
    PCI_INFO_EXT: Out<sys::nvmlPciInfoExt_v1_t> = c"nvmlDeviceGetPciInfoExt";
    BRAND: Out<c_uint> = c"nvmlDeviceGetBrand";
    ARCHITECTURE: Out<c_uint> = c"nvmlDeviceGetArchitecture";
    COMPUTE_CAPABILITY: Out2<c_int> = c"nvmlDeviceGetCudaComputeCapability";
    NUM_GPU_CORES: Out<c_uint> = c"nvmlDeviceGetNumGpuCores";
    MEMORY_BUS_WIDTH: Out<c_uint> = c"nvmlDeviceGetMemoryBusWidth";
    MINOR_NUMBER: Out<c_uint> = c"nvmlDeviceGetMinorNumber";
    MULTI_GPU_BOARD: Out<c_uint> = c"nvmlDeviceGetMultiGpuBoard";
    BOARD_ID: Out<c_uint> = c"nvmlDeviceGetBoardId";
    BOARD_PART_NUMBER: Text = c"nvmlDeviceGetBoardPartNumber";
    MODULE_ID: Out<c_uint> = c"nvmlDeviceGetModuleId";
    PDI: Out<sys::nvmlPdi_v1_t> = c"nvmlDeviceGetPdi";
    HOSTNAME: Out<ShortText> = c"nvmlDeviceGetHostname_v1";
    PLATFORM_INFO: Out<sys::nvmlPlatformInfo_v2_t> = c"nvmlDeviceGetPlatformInfo";
    VBIOS_VERSION: Text = c"nvmlDeviceGetVbiosVersion";
    INFOROM_IMAGE_VERSION: Text = c"nvmlDeviceGetInforomImageVersion";
    INFOROM_VERSION: TextOf = c"nvmlDeviceGetInforomVersion";
    VALIDATE_INFOROM: Check = c"nvmlDeviceValidateInforom";
    LAST_BBX_FLUSH: Out2<c_ulonglong> = c"nvmlDeviceGetLastBBXFlushTime";
    // The one field of `nvmlBBXTimeData_v1_t`.
    BBX_TIME_DATA: Out<c_uint> = c"nvmlDeviceGetBBXTimeData_v1";
    GSP_FIRMWARE_VERSION: Out<ShortText> = c"nvmlDeviceGetGspFirmwareVersion";
    GSP_FIRMWARE_MODE: Out2<c_uint> = c"nvmlDeviceGetGspFirmwareMode";

    DISPLAY_MODE: Out<c_uint> = c"nvmlDeviceGetDisplayMode";
    DISPLAY_ACTIVE: Out<c_uint> = c"nvmlDeviceGetDisplayActive";
    PERSISTENCE_MODE: Out<c_uint> = c"nvmlDeviceGetPersistenceMode";
    ADDRESSING_MODE: Out<sys::nvmlDeviceAddressingMode_v1_t> = c"nvmlDeviceGetAddressingMode";
    COMPUTE_MODE: Out<c_uint> = c"nvmlDeviceGetComputeMode";
    MIG_MODE: Out2<c_uint> = c"nvmlDeviceGetMigMode";
    ECC_MODE: Out2<c_uint> = c"nvmlDeviceGetEccMode";
    DRAM_ENCRYPTION_MODE: Out2<sys::nvmlDramEncryptionInfo_v1_t> = c"nvmlDeviceGetDramEncryptionMode";
    GPU_OPERATION_MODE: Out2<c_uint> = c"nvmlDeviceGetGpuOperationMode";
    DRIVER_MODEL: Out2<c_uint> = c"nvmlDeviceGetDriverModel_v2";
    ACCOUNTING_MODE: Out<c_uint> = c"nvmlDeviceGetAccountingMode";
    ACCOUNTING_BUFFER_SIZE: Out<c_uint> = c"nvmlDeviceGetAccountingBufferSize";
    VIRTUALIZATION_MODE: Out<c_uint> = c"nvmlDeviceGetVirtualizationMode";
    HOST_VGPU_MODE: Out<c_uint> = c"nvmlDeviceGetHostVgpuMode";
    VGPU_HETEROGENEOUS_MODE: Out<sys::nvmlVgpuHeterogeneousMode_v1_t> = c"nvmlDeviceGetVgpuHeterogeneousMode";
    VGPU_CAPABILITY: Of<c_uint> = c"nvmlDeviceGetVgpuCapabilities";
    C2C_MODE: Out<sys::nvmlC2cModeInfo_v1_t> = c"nvmlDeviceGetC2cModeInfoV";
    CAPABILITIES: Out<sys::nvmlDeviceCapabilities_v1_t> = c"nvmlDeviceGetCapabilities";
    AUTO_BOOST: Out2<c_uint> = c"nvmlDeviceGetAutoBoostedClocksEnabled";
    WORKLOAD_POWER_PROFILES: Out<sys::nvmlWorkloadPowerProfileCurrentProfiles_v1_t> =
        c"nvmlDeviceWorkloadPowerProfileGetCurrentProfiles";

    UTILIZATION_RATES: Out<sys::nvmlUtilization_t> = c"nvmlDeviceGetUtilizationRates";
    ENCODER_UTILIZATION: Out2<c_uint> = c"nvmlDeviceGetEncoderUtilization";
    DECODER_UTILIZATION: Out2<c_uint> = c"nvmlDeviceGetDecoderUtilization";
    ENCODER_SESSIONS: List<sys::nvmlEncoderSessionInfo_t> = c"nvmlDeviceGetEncoderSessions";
    FBC_SESSIONS: List<sys::nvmlFBCSessionInfo_t> = c"nvmlDeviceGetFBCSessions";
    JPG_UTILIZATION: Out2<c_uint> = c"nvmlDeviceGetJpgUtilization";
    OFA_UTILIZATION: Out2<c_uint> = c"nvmlDeviceGetOfaUtilization";
    ENCODER_STATS: Out3<c_uint> = c"nvmlDeviceGetEncoderStats";
    FBC_STATS: Out<sys::nvmlFBCStats_t> = c"nvmlDeviceGetFBCStats";
    MEMORY_INFO: Out<sys::nvmlMemory_v2_t> = c"nvmlDeviceGetMemoryInfo_v2";
    MEMORY_INFO_V1: Out<sys::nvmlMemory_t> = c"nvmlDeviceGetMemoryInfo";
    BAR1_MEMORY_INFO: Out<sys::nvmlBAR1Memory_t> = c"nvmlDeviceGetBAR1MemoryInfo";
    PROTECTED_MEMORY: Out<sys::nvmlMemory_t> = c"nvmlDeviceGetConfComputeProtectedMemoryUsage";
    CONF_COMPUTE_MEMORY: Out<sys::nvmlConfComputeMemSizeInfo_t> = c"nvmlDeviceGetConfComputeMemSizeInfo";
    TEMPERATURE_V: Out<sys::nvmlTemperature_v1_t> = c"nvmlDeviceGetTemperatureV";
    TEMPERATURE: Of<c_uint> = c"nvmlDeviceGetTemperature";
    MARGIN_TEMPERATURE: Out<sys::nvmlMarginTemperature_v1_t> = c"nvmlDeviceGetMarginTemperature";
    TEMPERATURE_THRESHOLD: Of<c_uint> = c"nvmlDeviceGetTemperatureThreshold";
    FAN_SPEED: Out<c_uint> = c"nvmlDeviceGetFanSpeed";
    NUM_FANS: Out<c_uint> = c"nvmlDeviceGetNumFans";
    FAN_SPEED_OF: Of<c_uint> = c"nvmlDeviceGetFanSpeed_v2";
    FAN_SPEED_RPM: Out<sys::nvmlFanSpeedInfo_t> = c"nvmlDeviceGetFanSpeedRPM";
    PERFORMANCE_STATE: Out<c_uint> = c"nvmlDeviceGetPerformanceState";
    SUPPORTED_EVENT_REASONS: Out<c_ulonglong> = c"nvmlDeviceGetSupportedClocksEventReasons";
    SUPPORTED_THROTTLE_REASONS: Out<c_ulonglong> = c"nvmlDeviceGetSupportedClocksThrottleReasons";
    EVENT_REASONS: Out<c_ulonglong> = c"nvmlDeviceGetCurrentClocksEventReasons";
    THROTTLE_REASONS: Out<c_ulonglong> = c"nvmlDeviceGetCurrentClocksThrottleReasons";
    VIOLATION_STATUS: Of<sys::nvmlViolationTime_t> = c"nvmlDeviceGetViolationStatus";
    TOTAL_ENERGY_CONSUMPTION: Out<c_ulonglong> = c"nvmlDeviceGetTotalEnergyConsumption";
    POWER_USAGE: Out<c_uint> = c"nvmlDeviceGetPowerUsage";
    POWER_MANAGEMENT_MODE: Out<c_uint> = c"nvmlDeviceGetPowerManagementMode";
    POWER_LIMIT: Out<c_uint> = c"nvmlDeviceGetPowerManagementLimit";
    ENFORCED_POWER_LIMIT: Out<c_uint> = c"nvmlDeviceGetEnforcedPowerLimit";
    DEFAULT_POWER_LIMIT: Out<c_uint> = c"nvmlDeviceGetPowerManagementDefaultLimit";
    POWER_LIMIT_CONSTRAINTS: Out2<c_uint> = c"nvmlDeviceGetPowerManagementLimitConstraints";
    CLOCK_INFO: Of<c_uint> = c"nvmlDeviceGetClockInfo";
    MAX_CLOCK_INFO: Of<c_uint> = c"nvmlDeviceGetMaxClockInfo";
    APPLICATIONS_CLOCK: Of<c_uint> = c"nvmlDeviceGetApplicationsClock";
    DEFAULT_APPLICATIONS_CLOCK: Of<c_uint> = c"nvmlDeviceGetDefaultApplicationsClock";
    CLOCK: Of2<c_uint> = c"nvmlDeviceGetClock";
    SUPPORTED_MEMORY_CLOCKS: List<c_uint> = c"nvmlDeviceGetSupportedMemoryClocks";
    SUPPORTED_GRAPHICS_CLOCKS: ListOf<c_uint> = c"nvmlDeviceGetSupportedGraphicsClocks";
    FIELD_VALUES: Call3<sys::nvmlDevice_t, c_int, *mut sys::nvmlFieldValue_t> = c"nvmlDeviceGetFieldValues";
    SAMPLES: Call6<sys::nvmlDevice_t, c_uint, c_ulonglong, *mut c_uint, *mut c_uint, *mut sys::nvmlSample_t> =
        c"nvmlDeviceGetSamples";

    TOTAL_ECC_ERRORS: Of2<c_ulonglong> = c"nvmlDeviceGetTotalEccErrors";
    MEMORY_ERROR_COUNTER: Of3<c_ulonglong> = c"nvmlDeviceGetMemoryErrorCounter";
    SRAM_ECC_ERROR_STATUS: Out<sys::nvmlEccSramErrorStatus_v1_t> = c"nvmlDeviceGetSramEccErrorStatus";
    REPAIR_STATUS: Out<sys::nvmlRepairStatus_v1_t> = c"nvmlDeviceGetRepairStatus";
    UNREPAIRABLE_MEMORY: Out<UnrepairableMemory> = c"nvmlDeviceGetUnrepairableMemoryFlag_v1";
    RETIRED_PAGES: Call5<sys::nvmlDevice_t, c_uint, *mut c_uint, *mut c_ulonglong, *mut c_ulonglong> =
        c"nvmlDeviceGetRetiredPages_v2";
    RETIRED_PAGES_V1: ListOf<c_ulonglong> = c"nvmlDeviceGetRetiredPages";
    RETIRED_PAGES_PENDING: Out<c_uint> = c"nvmlDeviceGetRetiredPagesPendingStatus";
    REMAPPED_ROWS: Out4<c_uint> = c"nvmlDeviceGetRemappedRows";
    REMAPPED_ROWS_V2: Out<RemappedRowsInfo> = c"nvmlDeviceGetRemappedRows_v2";
    ROW_REMAPPER_HISTOGRAM: Out<sys::nvmlRowRemapperHistogramValues_t> = c"nvmlDeviceGetRowRemapperHistogram";

    PCIE_GENERATION: Out<c_uint> = c"nvmlDeviceGetCurrPcieLinkGeneration";
    MAX_PCIE_GENERATION: Out<c_uint> = c"nvmlDeviceGetMaxPcieLinkGeneration";
    GPU_MAX_PCIE_GENERATION: Out<c_uint> = c"nvmlDeviceGetGpuMaxPcieLinkGeneration";
    PCIE_WIDTH: Out<c_uint> = c"nvmlDeviceGetCurrPcieLinkWidth";
    MAX_PCIE_WIDTH: Out<c_uint> = c"nvmlDeviceGetMaxPcieLinkWidth";
    PCIE_REPLAYS: Out<c_uint> = c"nvmlDeviceGetPcieReplayCounter";
    PCIE_THROUGHPUT: Of<c_uint> = c"nvmlDeviceGetPcieThroughput";
    BRIDGE_CHIPS: Out<sys::nvmlBridgeChipHierarchy_t> = c"nvmlDeviceGetBridgeChipInfo";
    FABRIC_INFO: Out<sys::nvmlGpuFabricInfo_v3_t> = c"nvmlDeviceGetGpuFabricInfoV";
    NVLINK_REMOTE_PCI_INFO: Of<sys::nvmlPciInfo_t> = c"nvmlDeviceGetNvLinkRemotePciInfo_v2";
    NVLINK_CAPABILITY: Of2<c_uint> = c"nvmlDeviceGetNvLinkCapability";
    NVLINK_REMOTE_DEVICE_TYPE: Of<c_uint> = c"nvmlDeviceGetNvLinkRemoteDeviceType";
    NVLINK_STATE: Of<c_uint> = c"nvmlDeviceGetNvLinkState";
    NVLINK_VERSION: Of<c_uint> = c"nvmlDeviceGetNvLinkVersion";
    NVLINK_INFO: Out<sys::nvmlNvLinkInfo_v2_t> = c"nvmlDeviceGetNvLinkInfo";
    CPU_AFFINITY: Of<c_ulong> = c"nvmlDeviceGetCpuAffinity";
    MEMORY_AFFINITY: Call4<sys::nvmlDevice_t, c_uint, *mut c_ulong, c_uint> = c"nvmlDeviceGetMemoryAffinity";
    NUMA_NODE: Out<c_uint> = c"nvmlDeviceGetNumaNodeId";
    NEAREST_GPUS: ListOf<sys::nvmlDevice_t> = c"nvmlDeviceGetTopologyNearestGpus";
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
    PROCESSES_UTILIZATION: Out<sys::nvmlProcessesUtilizationInfo_v1_t> = c"nvmlDeviceGetProcessesUtilizationInfo";
    PROCESS_UTILIZATION: Call4<sys::nvmlDevice_t, *mut sys::nvmlProcessUtilizationSample_t, *mut c_uint, c_ulonglong> =
        c"nvmlDeviceGetProcessUtilization";
    ACCOUNTING_PIDS: List<c_uint> = c"nvmlDeviceGetAccountingPids";
    ACCOUNTING_STATS: Of<sys::nvmlAccountingStats_t> = c"nvmlDeviceGetAccountingStats";

    MAX_MIG_DEVICES: Out<c_uint> = c"nvmlDeviceGetMaxMigDeviceCount";
    GPU_INSTANCE_ID: Out<c_uint> = c"nvmlDeviceGetGpuInstanceId";
    COMPUTE_INSTANCE_ID: Out<c_uint> = c"nvmlDeviceGetComputeInstanceId";
    ATTRIBUTES: Out<sys::nvmlDeviceAttributes_t> = c"nvmlDeviceGetAttributes_v2";

    GPU_INSTANCE_PROFILE: Of<sys::nvmlGpuInstanceProfileInfo_v2_t> = c"nvmlDeviceGetGpuInstanceProfileInfoV";
    GPU_INSTANCE_PROFILE_V1: Of<sys::nvmlGpuInstanceProfileInfo_t> = c"nvmlDeviceGetGpuInstanceProfileInfo";
    GPU_INSTANCE_CAPACITY: Of<c_uint> = c"nvmlDeviceGetGpuInstanceRemainingCapacity";
    GPU_INSTANCE_PLACEMENTS: Listed<sys::nvmlDevice_t, sys::nvmlGpuInstancePlacement_t> =
        c"nvmlDeviceGetGpuInstancePossiblePlacements_v2";
    GPU_INSTANCES: Listed<sys::nvmlDevice_t, sys::nvmlGpuInstance_t> = c"nvmlDeviceGetGpuInstances";
    GPU_INSTANCE_BY_ID: Of<sys::nvmlGpuInstance_t> = c"nvmlDeviceGetGpuInstanceById";
    GPU_INSTANCE_INFO: Call2<sys::nvmlGpuInstance_t, *mut sys::nvmlGpuInstanceInfo_t> = c"nvmlGpuInstanceGetInfo";
    COMPUTE_INSTANCE_PROFILE: ComputeProfile<sys::nvmlComputeInstanceProfileInfo_v2_t> =
        c"nvmlGpuInstanceGetComputeInstanceProfileInfoV";
    COMPUTE_INSTANCE_PROFILE_V1: ComputeProfile<sys::nvmlComputeInstanceProfileInfo_t> =
        c"nvmlGpuInstanceGetComputeInstanceProfileInfo";
    COMPUTE_INSTANCE_CAPACITY: Call3<sys::nvmlGpuInstance_t, c_uint, *mut c_uint> =
        c"nvmlGpuInstanceGetComputeInstanceRemainingCapacity";
    COMPUTE_INSTANCE_PLACEMENTS: Listed<sys::nvmlGpuInstance_t, sys::nvmlComputeInstancePlacement_t> =
        c"nvmlGpuInstanceGetComputeInstancePossiblePlacements";
    COMPUTE_INSTANCES: Listed<sys::nvmlGpuInstance_t, sys::nvmlComputeInstance_t> =
        c"nvmlGpuInstanceGetComputeInstances";
    COMPUTE_INSTANCE_INFO: Call2<sys::nvmlComputeInstance_t, *mut sys::nvmlComputeInstanceInfo_t> =
        c"nvmlComputeInstanceGetInfo_v2";

    GPM_STREAMING: Out<c_uint> = c"nvmlGpmQueryIfStreamingEnabled";
    GPM_SUPPORT: Out<sys::nvmlGpmSupport_t> = c"nvmlGpmQueryDeviceSupport";
    GPM_SAMPLE_ALLOC: System<sys::nvmlGpmSample_t> = c"nvmlGpmSampleAlloc";
    GPM_SAMPLE_FREE: Call1<sys::nvmlGpmSample_t> = c"nvmlGpmSampleFree";
    GPM_SAMPLE: Call2<sys::nvmlDevice_t, sys::nvmlGpmSample_t> = c"nvmlGpmSampleGet";
    GPM_MIG_SAMPLE: Call3<sys::nvmlDevice_t, c_uint, sys::nvmlGpmSample_t> = c"nvmlGpmMigSampleGet";
    GPM_METRICS: System<sys::nvmlGpmMetricsGet_t> = c"nvmlGpmMetricsGet";

    EVENT_SET_CREATE: System<sys::nvmlEventSet_t> = c"nvmlEventSetCreate";
    EVENT_SET_FREE: Call1<sys::nvmlEventSet_t> = c"nvmlEventSetFree";
    EVENT_SET_WAIT: WaitCall = c"nvmlEventSetWait_v2";
    SUPPORTED_EVENT_TYPES: Out<c_ulonglong> = c"nvmlDeviceGetSupportedEventTypes";
    REGISTER_EVENTS: Call3<sys::nvmlDevice_t, c_ulonglong, sys::nvmlEventSet_t> = c"nvmlDeviceRegisterEvents";
}
