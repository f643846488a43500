//! What can be asked about a GPU.

use serde::{Deserialize, Serialize};

/// A query about a GPU or a MIG device. What is not said to be text is numbers, in the order that is given; one
/// number where none is given. Watts, degrees and the like are in NVML's own units: milliwatts, degrees Celsius, MHz,
/// percent, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Query {
    // Who it is.
    /// Text: `nvmlDeviceGetName`.
    Name,
    /// Text: `nvmlDeviceGetUUID`.
    Uuid,
    /// Text: `nvmlDeviceGetSerial`.
    Serial,
    /// Text, as `00000000:01:00.0`: `nvmlDeviceGetPciInfo_v3`.
    BusId,
    /// Domain, bus, device, device and vendor, subsystem, base class, sub class: `nvmlDeviceGetPciInfoExt`, or
    /// `nvmlDeviceGetPciInfo_v3`, which knows no classes: the last two are missing then.
    PciInfo,
    /// `nvmlBrandType_t`: `nvmlDeviceGetBrand`.
    Brand,
    /// `nvmlDeviceArchitecture_t`: `nvmlDeviceGetArchitecture`.
    Architecture,
    /// Major, minor: `nvmlDeviceGetCudaComputeCapability`.
    ComputeCapability,
    /// `nvmlDeviceGetNumGpuCores`.
    NumGpuCores,
    /// Bits: `nvmlDeviceGetMemoryBusWidth`.
    MemoryBusWidth,
    /// `nvmlDeviceGetMinorNumber`.
    MinorNumber,
    /// `nvmlDeviceGetMultiGpuBoard`.
    MultiGpuBoard,
    /// `nvmlDeviceGetBoardId`.
    BoardId,
    /// Text: `nvmlDeviceGetBoardPartNumber`.
    BoardPartNumber,
    /// Text: the GPU's own part number. It stands in a table inside the library that has no documentation, so that NVML
    /// never answers it here.
    GpuPartNumber,
    /// `nvmlDeviceGetModuleId`.
    ModuleId,
    /// The 64 bits of the per-device identifier: `nvmlDeviceGetPdi`.
    Pdi,
    /// Text: `nvmlDeviceGetHostname_v1`.
    Hostname,
    /// GUID's two halves, chassis serial number as two halves, slot, tray, host, peer type, module:
    /// `nvmlDeviceGetPlatformInfo`. The first byte is the highest of the first half.
    PlatformInfo,
    /// Text: `nvmlDeviceGetVbiosVersion`.
    VbiosVersion,
    /// Text: `nvmlDeviceGetInforomImageVersion`.
    InforomImageVersion,
    /// Text: `nvmlDeviceGetInforomVersion` of this `nvmlInforomObject_t`.
    InforomVersion(u32),
    /// No number where the infoROM is valid; it takes 70 ms: `nvmlDeviceValidateInforom`.
    InforomIsValid,
    /// Time stamp in us, duration in us: `nvmlDeviceGetLastBBXFlushTime`.
    LastBbxFlush,
    /// Seconds of the GPU's life with a driver loaded: `nvmlDeviceGetBBXTimeData_v1`.
    TimeRun,
    /// Text: `nvmlDeviceGetGspFirmwareVersion`.
    GspFirmwareVersion,
    /// Enabled, default: `nvmlDeviceGetGspFirmwareMode`.
    GspFirmwareMode,

    // How it is set.
    /// `nvmlDeviceGetDisplayMode`: whether a display is attached.
    DisplayMode,
    /// `nvmlDeviceGetDisplayActive`.
    DisplayActive,
    /// `nvmlDeviceGetPersistenceMode`.
    PersistenceMode,
    /// `nvmlDeviceGetAddressingMode`: 0 none, 1 HMM, 2 ATS.
    AddressingMode,
    /// `nvmlComputeMode_t`: `nvmlDeviceGetComputeMode`.
    ComputeMode,
    /// Current, pending: `nvmlDeviceGetMigMode`.
    MigMode,
    /// Current, pending: `nvmlDeviceGetEccMode`.
    EccMode,
    /// Current, pending: `nvmlDeviceGetDramEncryptionMode`.
    DramEncryptionMode,
    /// Current, pending: `nvmlDeviceGetGpuOperationMode`.
    GpuOperationMode,
    /// Current, pending: `nvmlDeviceGetDriverModel_v2`.
    DriverModel,
    /// `nvmlDeviceGetAccountingMode`.
    AccountingMode,
    /// `nvmlDeviceGetAccountingBufferSize`.
    AccountingBufferSize,
    /// `nvmlDeviceGetVirtualizationMode`.
    VirtualizationMode,
    /// `nvmlDeviceGetHostVgpuMode`.
    HostVgpuMode,
    /// `nvmlDeviceGetVgpuHeterogeneousMode`.
    VgpuHeterogeneousMode,
    /// `nvmlDeviceGetVgpuCapabilities` of this `nvmlDeviceVgpuCapability_t`.
    VgpuCapability(u32),
    /// `nvmlDeviceGetC2cModeInfoV`.
    C2cMode,
    /// `nvmlDeviceGetCapabilities`: a bit mask.
    Capabilities,
    /// Enabled, default: `nvmlDeviceGetAutoBoostedClocksEnabled`.
    AutoBoost,
    /// Three masks of 256 bits as eight numbers each, all that there are, requested, enforced:
    /// `nvmlDeviceWorkloadPowerProfileGetCurrentProfiles`.
    WorkloadPowerProfiles,

    // What it does.
    /// GPU, memory: `nvmlDeviceGetUtilizationRates`.
    UtilizationRates,
    /// Percent, sampling period in us: `nvmlDeviceGetEncoderUtilization`.
    EncoderUtilization,
    /// The same: `nvmlDeviceGetDecoderUtilization`.
    DecoderUtilization,
    /// The same: `nvmlDeviceGetJpgUtilization`.
    JpgUtilization,
    /// The same: `nvmlDeviceGetOfaUtilization`.
    OfaUtilization,
    /// Sessions, average frames per second, average latency in us: `nvmlDeviceGetEncoderStats`.
    EncoderStats,
    /// The same: `nvmlDeviceGetFBCStats`.
    FbcStats,
    /// Session, PID, `nvmlEncoderType_t`, width, height, average frames per second, average latency in us of each:
    /// `nvmlDeviceGetEncoderSessions`.
    EncoderSessions,
    /// Session, PID, display, `nvmlFBCSessionType_t`, flags, greatest width, greatest height, width, height, average
    /// frames per second, average latency in us of each: `nvmlDeviceGetFBCSessions`.
    FbcSessions,
    /// Whether GPM streams: `nvmlGpmQueryIfStreamingEnabled`.
    GpmStreaming,
    /// Total, reserved, free, used: `nvmlDeviceGetMemoryInfo_v2`, or `nvmlDeviceGetMemoryInfo` of drivers before 510,
    /// which count as used what they reserve, and do not say how much that is (-1).
    MemoryInfo,
    /// Total, free, used: `nvmlDeviceGetMemoryInfo`.
    MemoryInfoV1,
    /// Total, free, used: `nvmlDeviceGetBAR1MemoryInfo`.
    Bar1MemoryInfo,
    /// Total, free, used: `nvmlDeviceGetConfComputeProtectedMemoryUsage`.
    ProtectedMemory,
    /// Protected, unprotected in KiB: `nvmlDeviceGetConfComputeMemSizeInfo`.
    ConfComputeMemorySize,
    /// `nvmlDeviceGetTemperatureV` of the chip, or `nvmlDeviceGetTemperature` of older drivers.
    Temperature,
    /// Degrees below the limit: `nvmlDeviceGetMarginTemperature`.
    MarginTemperature,
    /// `nvmlDeviceGetTemperatureThreshold` of this `nvmlTemperatureThresholds_t`.
    TemperatureThreshold(u32),
    /// `nvmlDeviceGetFanSpeed`.
    FanSpeed,
    /// `nvmlDeviceGetNumFans`.
    NumFans,
    /// Percent, of this fan: `nvmlDeviceGetFanSpeed_v2`.
    FanSpeedOf(u32),
    /// Revolutions per minute of this fan: `nvmlDeviceGetFanSpeedRPM`.
    FanSpeedRpm(u32),
    /// `nvmlDeviceGetPerformanceState`.
    PerformanceState,
    /// `nvmlDeviceGetSupportedClocksEventReasons`, or `...ThrottleReasons` of older drivers.
    SupportedThrottleReasons,
    /// `nvmlDeviceGetCurrentClocksEventReasons`, or `...ThrottleReasons` of older drivers.
    ThrottleReasons,
    /// Reference time in us, time of violation in ns of this `nvmlPerfPolicyType_t`: `NVML_FI_DEV_PERF_POLICY_*`, or
    /// `nvmlDeviceGetViolationStatus` of older drivers.
    ViolationStatus(u32),
    /// `nvmlDeviceGetPowerUsage`.
    PowerUsage,
    /// Millijoules since the driver was loaded: `nvmlDeviceGetTotalEnergyConsumption`.
    TotalEnergyConsumption,
    /// `nvmlDeviceGetPowerManagementMode`.
    PowerManagementMode,
    /// The requested limit: `nvmlDeviceGetPowerManagementLimit`.
    PowerLimit,
    /// The limit in force: `nvmlDeviceGetEnforcedPowerLimit`.
    EnforcedPowerLimit,
    /// `nvmlDeviceGetPowerManagementDefaultLimit`.
    DefaultPowerLimit,
    /// Least, most: `nvmlDeviceGetPowerManagementLimitConstraints`.
    PowerLimitConstraints,
    /// `nvmlDeviceGetClockInfo` of this `nvmlClockType_t`: 0 graphics, 1 SM, 2 memory, 3 video.
    Clock(u32),
    /// `nvmlDeviceGetMaxClockInfo`.
    MaxClock(u32),
    /// `nvmlDeviceGetApplicationsClock`.
    ApplicationsClock(u32),
    /// `nvmlDeviceGetDefaultApplicationsClock`.
    DefaultApplicationsClock(u32),
    /// `nvmlDeviceGetClock` with `NVML_CLOCK_ID_CUSTOMER_BOOST_MAX`.
    CustomerBoostClock(u32),
    /// A list: `nvmlDeviceGetSupportedMemoryClocks`.
    SupportedMemoryClocks,
    /// A list, at this memory clock: `nvmlDeviceGetSupportedGraphicsClocks`.
    SupportedGraphicsClocks(u32),
    /// A field by its id and scope, in its own type: `nvmlDeviceGetFieldValues`. The id is the driver's own: those from
    /// 251 on were renumbered at driver 580.82.
    Field(u32, u32),
    /// The time stamp in us and the value of each sample of this `nvmlSamplingType_t` from after
    /// this time on, in us since the epoch: `nvmlDeviceGetSamples`.
    /// [`Value::Reals`](super::Value::Reals) if the samples are not integers.
    Samples(u32, u64),

    // Its health.
    /// `nvmlDeviceGetTotalEccErrors`: `nvmlMemoryErrorType_t`, `nvmlEccCounterType_t`.
    TotalEccErrors(u32, u32),
    /// `nvmlDeviceGetMemoryErrorCounter`: error type, counter type, `nvmlMemoryLocation_t`.
    MemoryErrors(u32, u32, u32),
    /// Aggregate uncorrectable parity, aggregate uncorrectable SEC-DED, aggregate corrected, the same three volatile,
    /// aggregate uncorrectable in L2, SM, PCIe, microcontroller, other, whether the threshold is exceeded:
    /// `nvmlDeviceGetSramEccErrorStatus`.
    SramEccErrors,
    /// A channel's repair is pending, a TPC's: `nvmlDeviceGetRepairStatus`.
    RepairStatus,
    /// `nvmlDeviceGetUnrepairableMemoryFlag_v1`.
    UnrepairableMemory,
    /// Time stamp, as the driver gives it, and address of each page that was taken out of use for this
    /// `nvmlPageRetirementCause_t`: `nvmlDeviceGetRetiredPages_v2`, or `nvmlDeviceGetRetiredPages`, which gives no times
    /// (0).
    RetiredPages(u32),
    /// `nvmlDeviceGetRetiredPagesPendingStatus`.
    RetiredPagesPending,
    /// Correctable, uncorrectable, pending, failed: `nvmlDeviceGetRemappedRows`.
    RemappedRows,
    /// Correctable, inactive correctable, uncorrectable, inactive uncorrectable, pending, failed:
    /// `nvmlDeviceGetRemappedRows_v2`.
    RemappedRowsV2,
    /// Banks with the most spare rows left, many, some, few, none: `nvmlDeviceGetRowRemapperHistogram`.
    RowRemapperHistogram,

    // Its links.
    /// `nvmlDeviceGetCurrPcieLinkGeneration`.
    PcieGeneration,
    /// Of the GPU and its slot: `nvmlDeviceGetMaxPcieLinkGeneration`.
    MaxPcieGeneration,
    /// Of the GPU alone: `nvmlDeviceGetGpuMaxPcieLinkGeneration`.
    GpuMaxPcieGeneration,
    /// Of the port above the GPU. NVML has no function for it; the kernel tells it, as `max_link_speed` of the device
    /// above the GPU's own in `/sys/bus/pci/devices`. [`Code::NOT_SUPPORTED`](super::Code::NOT_SUPPORTED) where there is
    /// none, as in virtual machines.
    HostMaxPcieGeneration,
    /// `nvmlDeviceGetCurrPcieLinkWidth`.
    PcieWidth,
    /// `nvmlDeviceGetMaxPcieLinkWidth`.
    MaxPcieWidth,
    /// `nvmlDeviceGetPcieReplayCounter`.
    PcieReplays,
    /// KB/s over the last 20 ms, which it waits for: `nvmlDeviceGetPcieThroughput`, 0 transmit, 1 receive.
    PcieThroughput(u32),
    /// Type and firmware of each bridge chip: `nvmlDeviceGetBridgeChipInfo`.
    BridgeChips,
    /// State, status, clique, health mask, health summary, cluster UUID's two halves: `nvmlDeviceGetGpuFabricInfoV`. The
    /// UUID's first byte is the highest of the first half.
    FabricInfo,
    /// Text, the bus id of the other end of this link: `nvmlDeviceGetNvLinkRemotePciInfo_v2`.
    NvLinkRemoteBusId(u32),
    /// `nvmlDeviceGetNvLinkCapability`: link, `nvmlNvLinkCapability_t`.
    NvLinkCapability(u32, u32),
    /// `nvmlDeviceGetNvLinkState` of this link.
    NvLinkState(u32),
    /// `nvmlNvlinkVersion_t` of this link: `nvmlDeviceGetNvLinkVersion`.
    NvLinkVersion(u32),
    /// `nvmlIntNvLinkDeviceType_t` at the other end of this link: `nvmlDeviceGetNvLinkRemoteDeviceType`.
    NvLinkRemoteDeviceType(u32),
    /// Whether NVLE is enabled, then `nvmlNvlinkFirmwareVersion_t` of each firmware (type, major, minor, sub-minor):
    /// `nvmlDeviceGetNvLinkInfo`.
    NvLinkInfo,
    /// 64-bit words, the lowest CPUs first, without the empty ones at the end: `nvmlDeviceGetCpuAffinity`.
    CpuAffinity,
    /// 64-bit words of NUMA nodes, likewise: `nvmlDeviceGetMemoryAffinity`, node scope.
    MemoryAffinity,
    /// The GPU's own: `nvmlDeviceGetNumaNodeId`.
    NumaNode,
    /// Indices: `nvmlDeviceGetTopologyNearestGpus` up to this `nvmlGpuTopologyLevel_t`.
    NearestGpus(u32),
    /// `nvmlDeviceGetTopologyCommonAncestor` with the GPU of this index.
    CommonAncestor(u32),
    /// `nvmlDeviceGetP2PStatus` with the GPU of this index, of this `nvmlGpuP2PCapsIndex_t`.
    P2pStatus(u32, u32),

    // Who uses it.
    /// PID, memory, GPU instance, compute instance of each: `nvmlDeviceGetComputeRunningProcesses_v3`. Memory that the
    /// driver does not know is -1, an instance that there is not is -1 too.
    ComputeProcesses,
    /// The same: `nvmlDeviceGetGraphicsRunningProcesses_v3`.
    GraphicsProcesses,
    /// The same: `nvmlDeviceGetMPSComputeRunningProcesses_v3`.
    MpsProcesses,
    /// Time stamp in us, PID, SM, memory, encoder, decoder, JPEG, OFA of each process's last sample since this time:
    /// `nvmlDeviceGetProcessesUtilizationInfo`, or `nvmlDeviceGetProcessUtilization`, which knows no JPEG and OFA (-1).
    /// Where nobody did anything since, that is [`Code::NOT_FOUND`](super::Code::NOT_FOUND).
    ProcessUtilization(u64),
    /// A list: `nvmlDeviceGetAccountingPids`.
    AccountingPids,
    /// GPU, memory, most bytes, time in ms, start in us, whether it runs: `nvmlDeviceGetAccountingStats`.
    AccountingStats(u32),

    // Its parts.
    /// `nvmlDeviceGetMaxMigDeviceCount`: 0 where MIG is off or there is none.
    MaxMigDevices,
    /// The indices at which there is one: `nvmlDeviceGetMigDeviceHandleByIndex` up to `nvmlDeviceGetMaxMigDeviceCount`,
    /// which is 0 where MIG is off or there is none.
    MigDevices,
    /// GPU instance, compute instance of a MIG device: `nvmlDeviceGetGpuInstanceId`, `nvmlDeviceGetComputeInstanceId`.
    MigInstance,
    /// Multiprocessors, copy engines, decoders, encoders, JPEG decoders, OFAs, GPU instance's slices, compute
    /// instance's slices, memory in MiB of a MIG device: `nvmlDeviceGetAttributes_v2`.
    MigAttributes,
    /// Id, whether P2P is supported, slices, most instances, multiprocessors, copy engines, decoders, encoders, JPEG
    /// decoders, OFAs, memory in MiB of this `NVML_GPU_INSTANCE_PROFILE_*`: `nvmlDeviceGetGpuInstanceProfileInfoV`, or
    /// `nvmlDeviceGetGpuInstanceProfileInfo`.
    GpuInstanceProfile(u32),
    /// Text: the name of this `NVML_GPU_INSTANCE_PROFILE_*`, as `MIG 1g.10gb`: `nvmlDeviceGetGpuInstanceProfileInfoV`.
    GpuInstanceProfileName(u32),
    /// How many more instances fit, of the profile with this id: `nvmlDeviceGetGpuInstanceRemainingCapacity`.
    GpuInstanceCapacity(u32),
    /// Start and size of each place, of the profile with this id: `nvmlDeviceGetGpuInstancePossiblePlacements_v2`.
    GpuInstancePlacements(u32),
    /// Id, start, size of each instance, of the profile with this id: `nvmlDeviceGetGpuInstances`,
    /// `nvmlGpuInstanceGetInfo`.
    GpuInstances(u32),
    /// In the GPU instance of this id: id, slices, most instances, multiprocessors, copy engines, decoders, encoders,
    /// JPEG decoders, OFAs of this `NVML_COMPUTE_INSTANCE_PROFILE_*`: `nvmlGpuInstanceGetComputeInstanceProfileInfoV`,
    /// with shared engines, or `nvmlGpuInstanceGetComputeInstanceProfileInfo`.
    ComputeInstanceProfile(u32, u32),
    /// Text: its name, as `MIG 1c.3g.40gb`: `nvmlGpuInstanceGetComputeInstanceProfileInfoV`.
    ComputeInstanceProfileName(u32, u32),
    /// How many more instances fit, of the profile with this id:
    /// `nvmlGpuInstanceGetComputeInstanceRemainingCapacity`.
    ComputeInstanceCapacity(u32, u32),
    /// Start and size of each place, of the profile with this id:
    /// `nvmlGpuInstanceGetComputeInstancePossiblePlacements`.
    ComputeInstancePlacements(u32, u32),
    /// Id, start, size of each instance, of the profile with this id: `nvmlGpuInstanceGetComputeInstances`,
    /// `nvmlComputeInstanceGetInfo_v2`.
    ComputeInstances(u32, u32),
}
