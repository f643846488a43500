//! The table of all NVML queries, with one row per query.
//!
//! A row starts with the query and its arguments, and the shape and name of its NVML function. The
//! corresponding functions of older drivers follow after `|`, and then attributes. If a query needs
//! more than one function, its row has `=>` and a method instead of the function. All other code
//! for a query is generated from its row:
//!
//! - the variants of [`Query`](super::Query) and [`SystemQuery`](super::SystemQuery),
//! - the NVML calls in `backend/`, with the shapes of `backend/ffi/shapes.rs`,
//! - the schedule of a collector's own calls in `schedule.rs`. The attribute states the call's lane
//!   and its cost on an H200 in microseconds. The cost is the median of 20 calls, 2 ms apart
//!   (driver 580.159, `probe/examples/call_costs.rs`). If the query has arguments, the attribute
//!   also lists the arguments to use. Lanes ending in `_smi` are for the output of `gpumon smi`
//!   only.
//! - the set of answers that never change while a process runs (`constant`). Settings can change,
//!   and so can everything that depends on a link or a driver option, so they are not in this set.
//! - the functions that the fake library in `tests/fake-nvml/` exports, except for those that it
//!   defines itself.

/// Calls the macro `$then` with the tokens in `$before`, followed by one row for each query about a
/// GPU or a MIG device. Queries of the shape `Text` return text. All others return one number, or
/// several in the documented order. They are in NVML's units: milliwatts, degrees Celsius, MHz,
/// percent and bytes.
#[doc(hidden)]
#[macro_export]
macro_rules! nvml_queries {
    ($then:ident $($before:tt)*) => { $then! {
        $($before)*
        Name: Text = nvmlDeviceGetName, constant;
        Uuid: Text = nvmlDeviceGetUUID, constant;
        Serial: Text = nvmlDeviceGetSerial, constant, once 7;
        /// The bus ID from `nvmlDeviceGetPciInfo_v3`, as text, for example `00000000:01:00.0`.
        BusId => bus_id, constant;
        /// The domain, bus, device number, device and vendor ID, subsystem ID, base class and
        /// subclass. Older drivers do not report the two classes, so their answers are shorter.
        PciInfo: Out<sys::nvmlPciInfoExt_v1_t> = nvmlDeviceGetPciInfoExt
            | Out<sys::nvmlPciInfo_t> = nvmlDeviceGetPciInfo_v3, constant, once_smi 1066;
        /// The brand as `nvmlBrandType_t`.
        Brand: Out<c_uint> = nvmlDeviceGetBrand, constant, once_smi 7;
        /// The architecture as `nvmlDeviceArchitecture_t`.
        Architecture: Out<c_uint> = nvmlDeviceGetArchitecture, constant, once 6;
        /// The major and minor version of the CUDA compute capability.
        ComputeCapability: Out2<c_int> = nvmlDeviceGetCudaComputeCapability, constant, once 6;
        NumGpuCores: Out<c_uint> = nvmlDeviceGetNumGpuCores, once 394;
        /// The width of the memory bus, in bits.
        MemoryBusWidth: Out<c_uint> = nvmlDeviceGetMemoryBusWidth, once 452;
        MinorNumber: Out<c_uint> = nvmlDeviceGetMinorNumber, constant, once 4;
        MultiGpuBoard: Out<c_uint> = nvmlDeviceGetMultiGpuBoard, constant, once_smi 20;
        BoardId: Out<c_uint> = nvmlDeviceGetBoardId, constant, once_smi 24;
        BoardPartNumber: Text = nvmlDeviceGetBoardPartNumber, constant, once 6;
        /// The part number of the GPU itself, as text. No NVML function returns it: nvidia-smi
        /// reads it from an undocumented table in the library.
        GpuPartNumber => gpu_part_number, constant;
        ModuleId: Out<c_uint> = nvmlDeviceGetModuleId, constant, once_smi 4;
        /// The 64-bit per-device identifier (PDI).
        Pdi: Out<sys::nvmlPdi_v1_t> = nvmlDeviceGetPdi, constant, once_smi 433;
        Hostname: Out<ShortText> = nvmlDeviceGetHostname_v1, once_smi 6;
        /// The GUID in two halves, the chassis serial number in two halves, slot, tray, host, peer
        /// type and module. In each half, the first byte is the most significant.
        PlatformInfo: Out<sys::nvmlPlatformInfo_v2_t> = nvmlDeviceGetPlatformInfo, constant,
            once_smi 432;
        VbiosVersion: Text = nvmlDeviceGetVbiosVersion, constant, once 6;
        InforomImageVersion: Text = nvmlDeviceGetInforomImageVersion, constant, once_smi 9;
        /// The version of the given `nvmlInforomObject_t`, as text.
        InforomVersion(object: u32): TextOf = nvmlDeviceGetInforomVersion, constant,
            once_smi 5 for 0..3;
        /// An empty list if the InfoROM is valid; otherwise, the call fails. The call takes 70 ms.
        InforomIsValid: Check = nvmlDeviceValidateInforom, once_smi 68873;
        /// The time and duration of the last flush of the black box recorder (BBX), in
        /// microseconds.
        LastBbxFlush: Out2<c_ulonglong> = nvmlDeviceGetLastBBXFlushTime, once_smi 344;
        /// The total time during which a driver was loaded on the GPU, in seconds.
        TimeRun: Out<c_uint> = nvmlDeviceGetBBXTimeData_v1, slow_smi 344;
        GspFirmwareVersion: Out<ShortText> = nvmlDeviceGetGspFirmwareVersion, constant, once_smi 22;
        /// The enabled GSP firmware mode and the default mode.
        GspFirmwareMode: Out2<c_uint> = nvmlDeviceGetGspFirmwareMode, once_smi 22;

        /// Whether a display is attached.
        DisplayMode: Out<c_uint> = nvmlDeviceGetDisplayMode, slow_smi 388;
        DisplayActive: Out<c_uint> = nvmlDeviceGetDisplayActive, slow 387;
        PersistenceMode: Out<c_uint> = nvmlDeviceGetPersistenceMode, slow 14;
        /// The addressing mode: 0 for none, 1 for HMM, 2 for ATS.
        AddressingMode: Out<sys::nvmlDeviceAddressingMode_v1_t> = nvmlDeviceGetAddressingMode,
            once_smi 6;
        /// The compute mode as `nvmlComputeMode_t`.
        ComputeMode: Out<c_uint> = nvmlDeviceGetComputeMode, slow 24;
        /// The current and the pending MIG mode.
        MigMode: Out2<c_uint> = nvmlDeviceGetMigMode, slow 378;
        /// The current and the pending ECC mode.
        EccMode: Out2<c_uint> = nvmlDeviceGetEccMode, slow 365;
        /// The current and the pending DRAM encryption mode.
        DramEncryptionMode: Out2<sys::nvmlDramEncryptionInfo_v1_t>
            = nvmlDeviceGetDramEncryptionMode, once_smi 7;
        /// The current and the pending GPU operation mode.
        GpuOperationMode: Out2<c_uint> = nvmlDeviceGetGpuOperationMode, once_smi 7;
        /// The current and the pending driver model.
        DriverModel: Out2<c_uint> = nvmlDeviceGetDriverModel_v2, once_smi 6;
        AccountingMode: Out<c_uint> = nvmlDeviceGetAccountingMode, slow 30;
        AccountingBufferSize: Out<c_uint> = nvmlDeviceGetAccountingBufferSize, once_smi 5;
        VirtualizationMode: Out<c_uint> = nvmlDeviceGetVirtualizationMode, once_smi 7;
        HostVgpuMode: Out<c_uint> = nvmlDeviceGetHostVgpuMode, once_smi 6;
        VgpuHeterogeneousMode: Out<sys::nvmlVgpuHeterogeneousMode_v1_t>
            = nvmlDeviceGetVgpuHeterogeneousMode, once_smi 6;
        /// The value of the given `nvmlDeviceVgpuCapability_t`.
        VgpuCapability(capability: u32): Of<c_uint> = nvmlDeviceGetVgpuCapabilities,
            once_smi 3 for [0, 1, 2, 9, 10, 11];
        C2cMode: Out<sys::nvmlC2cModeInfo_v1_t> = nvmlDeviceGetC2cModeInfoV, slow 2;
        /// A bit mask of the GPU's capabilities.
        Capabilities: Out<sys::nvmlDeviceCapabilities_v1_t> = nvmlDeviceGetCapabilities, once_smi 7;
        /// Whether auto boost is enabled, and whether it is enabled by default.
        AutoBoost: Out2<c_uint> = nvmlDeviceGetAutoBoostedClocksEnabled, once_smi 6;
        /// Masks of the available, requested and enforced power profiles. Each mask has 256 bits
        /// and is split into eight numbers.
        WorkloadPowerProfiles: Out<sys::nvmlWorkloadPowerProfileCurrentProfiles_v1_t>
            = nvmlDeviceWorkloadPowerProfileGetCurrentProfiles, slow_smi 390;

        /// The GPU utilization and the memory utilization, in percent.
        UtilizationRates: Out<sys::nvmlUtilization_t> = nvmlDeviceGetUtilizationRates, tick 5;
        /// The encoder's utilization in percent, and the sampling period in microseconds.
        EncoderUtilization: Out2<c_uint> = nvmlDeviceGetEncoderUtilization, tick 5;
        /// The decoder's utilization in percent, and the sampling period in microseconds.
        DecoderUtilization: Out2<c_uint> = nvmlDeviceGetDecoderUtilization, tick 5;
        /// The JPEG engine's utilization in percent, and the sampling period in microseconds.
        JpgUtilization: Out2<c_uint> = nvmlDeviceGetJpgUtilization, tick 6;
        /// The optical flow engine's utilization in percent, and the sampling period in
        /// microseconds.
        OfaUtilization: Out2<c_uint> = nvmlDeviceGetOfaUtilization, tick 4;
        /// The number of encoder sessions, the average frames per second, and the average latency
        /// in microseconds.
        EncoderStats: Out3<c_uint> = nvmlDeviceGetEncoderStats, slow_smi 28;
        /// The number of frame buffer capture sessions, the average frames per second, and the
        /// average latency in microseconds.
        FbcStats: Out<sys::nvmlFBCStats_t> = nvmlDeviceGetFBCStats, slow_smi 26;
        /// The total, reserved, free and used memory from `nvmlDeviceGetMemoryInfo_v2`. Drivers
        /// before 510 have only `nvmlDeviceGetMemoryInfo`, which counts reserved memory as used.
        /// Reserved memory is then -1.
        MemoryInfo => memory_info, tick 23;
        /// The total, free and used memory.
        MemoryInfoV1: Out<sys::nvmlMemory_t> = nvmlDeviceGetMemoryInfo;
        /// The total, free and used BAR1 memory.
        Bar1MemoryInfo: Out<sys::nvmlBAR1Memory_t> = nvmlDeviceGetBAR1MemoryInfo, slow 369;
        /// The total, free and used memory that confidential computing protects.
        ProtectedMemory: Out<sys::nvmlMemory_t> = nvmlDeviceGetConfComputeProtectedMemoryUsage,
            slow_smi 29;
        /// The chip's temperature.
        Temperature: Out<sys::nvmlTemperature_v1_t> = nvmlDeviceGetTemperatureV
            | Of<c_uint> = nvmlDeviceGetTemperature, tick 4;
        /// The chip's distance from its temperature limit, in degrees.
        MarginTemperature: Out<sys::nvmlMarginTemperature_v1_t> = nvmlDeviceGetMarginTemperature,
            paced 1190;
        /// The temperature for the given `nvmlTemperatureThresholds_t`.
        TemperatureThreshold(threshold: u32): Of<c_uint> = nvmlDeviceGetTemperatureThreshold,
            constant, once 450 for 0..4, once_smi 7 for 4..8;
        FanSpeed: Out<c_uint> = nvmlDeviceGetFanSpeed, tick 384;
        NumFans: Out<c_uint> = nvmlDeviceGetNumFans, slow 4;
        /// The fan's speed in percent.
        FanSpeedOf(fan: u32): Of<c_uint> = nvmlDeviceGetFanSpeed_v2;
        /// The fan's speed in revolutions per minute, from `nvmlDeviceGetFanSpeedRPM`.
        FanSpeedRpm(fan: u32) => fan_speed_rpm;
        PerformanceState: Out<c_uint> = nvmlDeviceGetPerformanceState, tick 3;
        SupportedThrottleReasons: Out<c_ulonglong> = nvmlDeviceGetSupportedClocksEventReasons
            | Out<c_ulonglong> = nvmlDeviceGetSupportedClocksThrottleReasons, constant, once_smi 8;
        ThrottleReasons: Out<c_ulonglong> = nvmlDeviceGetCurrentClocksEventReasons
            | Out<c_ulonglong> = nvmlDeviceGetCurrentClocksThrottleReasons, tick 9;
        /// The reference time in microseconds, and the violation time for the given
        /// `nvmlPerfPolicyType_t` in nanoseconds. Both come from `NVML_FI_DEV_PERF_POLICY_*`, or
        /// from `nvmlDeviceGetViolationStatus` with older drivers.
        ViolationStatus(policy: u32) => violation_status, slow 400 for 0..6;
        PowerUsage: Out<c_uint> = nvmlDeviceGetPowerUsage, tick 5;
        /// The energy consumed since the driver was loaded, in millijoules.
        TotalEnergyConsumption: Out<c_ulonglong> = nvmlDeviceGetTotalEnergyConsumption, paced 3200;
        PowerManagementMode: Out<c_uint> = nvmlDeviceGetPowerManagementMode, once_smi 360;
        /// The power limit that was requested.
        PowerLimit: Out<c_uint> = nvmlDeviceGetPowerManagementLimit, slow 392;
        /// The power limit that is in effect.
        EnforcedPowerLimit: Out<c_uint> = nvmlDeviceGetEnforcedPowerLimit, tick 3;
        DefaultPowerLimit: Out<c_uint> = nvmlDeviceGetPowerManagementDefaultLimit, constant, once 6;
        /// The minimum and maximum power limit.
        PowerLimitConstraints: Out2<c_uint> = nvmlDeviceGetPowerManagementLimitConstraints,
            constant, once 5;
        /// The clock of the given `nvmlClockType_t`: 0 graphics, 1 SM, 2 memory, 3 video.
        Clock(kind: u32): Of<c_uint> = nvmlDeviceGetClockInfo, tick 5 for 0..4;
        MaxClock(kind: u32): Of<c_uint> = nvmlDeviceGetMaxClockInfo, constant, once 1800 for 0..4;
        ApplicationsClock(kind: u32): Of<c_uint> = nvmlDeviceGetApplicationsClock,
            slow 1250 for [0, 2];
        DefaultApplicationsClock(kind: u32): Of<c_uint> = nvmlDeviceGetDefaultApplicationsClock,
            constant, once_smi 1145 for [0, 2];
        /// The clock that `nvmlDeviceGetClock` returns for `NVML_CLOCK_ID_CUSTOMER_BOOST_MAX`.
        CustomerBoostClock(kind: u32) => customer_boost_clock, once_smi 1139 for [0];
        /// The list of supported memory clocks.
        SupportedMemoryClocks: List<c_uint> = nvmlDeviceGetSupportedMemoryClocks, constant,
            once_smi 5;
        /// The list of graphics clocks supported at the given memory clock.
        SupportedGraphicsClocks(memory_mhz: u32): ListOf<c_uint>
            = nvmlDeviceGetSupportedGraphicsClocks, constant;
        /// A field from `nvmlDeviceGetFieldValues`, by ID and scope. The value has the field's
        /// type. Driver 580.82 renumbered the IDs from 251 on; an ID here has the meaning that it
        /// has in the installed driver.
        Field(id: u32, scope: u32) => field,
            tick 10 for combine(TICK_FIELDS, [0]),
            // These fields contain temperature thresholds as margins, and the support for PCIe
            // atomics.
            once_smi 60 for combine([193, 194, 195, 196, 228, 229], [0]),
            // These fields contain power limits of the GPU and the module, and the base power.
            once_smi 280 for combine(187..=192, [0, 1, 3]),
            // These fields contain the settings for power smoothing. Scope 5 is the active profile.
            once_smi 375 for combine((251..=268).chain(275..=288), [0, 5]),
            once_smi 375 for [(300, 0)],
            slow 31 for [(NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, 0)],
            slow_smi 10 for [(274, 0)],
            // These fields contain throttling times, and how often the PCIe replay counter has
            // rolled over.
            slow_smi 400 for combine([74, 76, 95, 269, 270, 271], [0]),
            // These fields contain the average and current power of the module and the memory.
            slow_smi 10 for combine([185, 186], POWER_SCOPES);
        /// The time and value of each sample of the given `nvmlSamplingType_t` after `since_us`,
        /// from `nvmlDeviceGetSamples`. Times are in microseconds since 1970. If the values are not
        /// integers, the answer is `Value::Reals`.
        Samples(kind: u32, since_us: u64) => list_samples;

        /// The number of errors with the given `nvmlMemoryErrorType_t` and `nvmlEccCounterType_t`.
        TotalEccErrors(kind: u32, counter: u32): Of2<c_ulonglong> = nvmlDeviceGetTotalEccErrors,
            slow 10 for combine(0..2, 0..2);
        /// The number of errors with the given error type, counter type, and
        /// `nvmlMemoryLocation_t`.
        MemoryErrors(kind: u32, counter: u32, location: u32): Of3<c_ulonglong>
            = nvmlDeviceGetMemoryErrorCounter, slow 7 for memory_errors();
        /// In this order: the aggregate counts of uncorrectable parity errors, uncorrectable
        /// SEC-DED errors and corrected errors; the same three volatile counts; the aggregate
        /// counts of uncorrectable errors in L2, SM, PCIe, microcontroller and elsewhere; and
        /// whether the error threshold is exceeded.
        SramEccErrors: Out<sys::nvmlEccSramErrorStatus_v1_t> = nvmlDeviceGetSramEccErrorStatus,
            slow_smi 8;
        /// Whether a channel repair is pending, and whether a TPC repair is pending.
        RepairStatus: Out<sys::nvmlRepairStatus_v1_t> = nvmlDeviceGetRepairStatus, slow_smi 388;
        UnrepairableMemory: Out<UnrepairableMemory> = nvmlDeviceGetUnrepairableMemoryFlag_v1,
            slow_smi 381;
        /// The time and address of each page that was retired for the given
        /// `nvmlPageRetirementCause_t`. Times are in the driver's format. Older drivers report no
        /// times, so they are 0.
        RetiredPages(cause: u32): RetiredPages = nvmlDeviceGetRetiredPages_v2
            | ListOf<UntimedPage> = nvmlDeviceGetRetiredPages, slow 10 for 0..2;
        RetiredPagesPending: Out<c_uint> = nvmlDeviceGetRetiredPagesPendingStatus, slow 8;
        /// The number of correctable remappings, the number of uncorrectable remappings, whether a
        /// remapping is pending, and whether a remapping has failed.
        RemappedRows: Out4<c_uint> = nvmlDeviceGetRemappedRows, slow 4;
        /// The number of remappings of each kind (correctable, inactive correctable, uncorrectable,
        /// inactive uncorrectable), whether a remapping is pending, and whether a remapping has
        /// failed.
        RemappedRowsV2: Out<RemappedRowsInfo> = nvmlDeviceGetRemappedRows_v2, slow_smi 4;
        /// Five counts of banks: those with the maximum number of spare rows, and those with many,
        /// some, few, and no spare rows.
        RowRemapperHistogram: Out<sys::nvmlRowRemapperHistogramValues_t>
            = nvmlDeviceGetRowRemapperHistogram, slow 3;

        PcieGeneration: Out<c_uint> = nvmlDeviceGetCurrPcieLinkGeneration, tick 7;
        /// The highest PCIe generation that both the GPU and its slot support.
        MaxPcieGeneration: Out<c_uint> = nvmlDeviceGetMaxPcieLinkGeneration, constant, once 4;
        /// The highest PCIe generation that the GPU supports.
        GpuMaxPcieGeneration: Out<c_uint> = nvmlDeviceGetGpuMaxPcieLinkGeneration, constant,
            once_smi 8;
        /// The highest PCIe generation that the port above the GPU supports. No NVML function
        /// returns it, so it is read from the kernel: from `max_link_speed` of the device above the
        /// GPU in `/sys/bus/pci/devices`. If there is no such device, as in virtual machines, the
        /// answer is `Code::NOT_SUPPORTED`.
        HostMaxPcieGeneration => host_max_pcie_generation, constant, once_smi 36;
        PcieWidth: Out<c_uint> = nvmlDeviceGetCurrPcieLinkWidth, tick 74;
        MaxPcieWidth: Out<c_uint> = nvmlDeviceGetMaxPcieLinkWidth, constant, once 4;
        PcieReplays: Out<c_uint> = nvmlDeviceGetPcieReplayCounter, slow 381;
        /// The PCIe rate in KB/s, measured for 20 ms during the call. Counter 0 is for sent data,
        /// and counter 1 for received data.
        PcieThroughput(counter: u32): Of<c_uint> = nvmlDeviceGetPcieThroughput;
        /// The type and firmware version of each bridge chip.
        BridgeChips: Out<sys::nvmlBridgeChipHierarchy_t> = nvmlDeviceGetBridgeChipInfo, constant,
            once_smi 7;
        /// The state, status, clique, health mask, health summary, and the cluster UUID in two
        /// halves. In each half, the first byte is the most significant.
        FabricInfo: Out<sys::nvmlGpuFabricInfo_v3_t> = nvmlDeviceGetGpuFabricInfoV, slow 11;
        /// The bus ID of the device at the link's other end, as text, from
        /// `nvmlDeviceGetNvLinkRemotePciInfo_v2`.
        NvLinkRemoteBusId(link: u32) => remote_bus_id, constant;
        /// Whether the link has the given `nvmlNvLinkCapability_t`.
        NvLinkCapability(link: u32, capability: u32): Of2<c_uint> = nvmlDeviceGetNvLinkCapability,
            constant;
        /// Whether the link is active.
        NvLinkState(link: u32): Of<c_uint> = nvmlDeviceGetNvLinkState, slow 16 for [0];
        /// The link's version as `nvmlNvlinkVersion_t`.
        NvLinkVersion(link: u32): Of<c_uint> = nvmlDeviceGetNvLinkVersion;
        /// The type of the device at the link's other end, as `nvmlIntNvLinkDeviceType_t`.
        NvLinkRemoteDeviceType(link: u32): Of<c_uint> = nvmlDeviceGetNvLinkRemoteDeviceType;
        /// Whether NVLE is enabled, and the `nvmlNvlinkFirmwareVersion_t` of each firmware: type,
        /// major version, minor version, and sub-minor version.
        NvLinkInfo: Out<sys::nvmlNvLinkInfo_v2_t> = nvmlDeviceGetNvLinkInfo;
        /// The CPUs near the GPU as a mask of 64-bit words, from `nvmlDeviceGetCpuAffinity`. The
        /// lowest CPUs come first, and trailing empty words are omitted.
        CpuAffinity => cpu_affinity, constant;
        /// The NUMA nodes near the GPU as a mask of 64-bit words, from
        /// `nvmlDeviceGetMemoryAffinity` with node scope. Trailing empty words are omitted.
        MemoryAffinity => memory_affinity, constant;
        /// The NUMA node that consists of the GPU's own memory.
        NumaNode: Out<c_uint> = nvmlDeviceGetNumaNodeId, constant, once 16;
        /// The indices of the nearest GPUs, from `nvmlDeviceGetTopologyNearestGpus` for the given
        /// `nvmlGpuTopologyLevel_t`.
        NearestGpus(level: u32) => nearest_gpus, constant;
        /// The level that `nvmlDeviceGetTopologyCommonAncestor` returns for this GPU and the GPU
        /// with the given index.
        CommonAncestor(other: u32) => common_ancestor, constant;
        /// The status that `nvmlDeviceGetP2PStatus` returns for this GPU, the GPU with the given
        /// index, and the given `nvmlGpuP2PCapsIndex_t`.
        P2pStatus(other: u32, capability: u32) => p2p_status;

        /// The PID, memory, GPU instance and compute instance of each compute process. Unknown
        /// memory and missing instances are -1.
        ComputeProcesses: Processes = nvmlDeviceGetComputeRunningProcesses_v3
            | Processes = nvmlDeviceGetComputeRunningProcesses_v2
            | ShortProcesses = nvmlDeviceGetComputeRunningProcesses, tick 33;
        /// The PID, memory, GPU instance and compute instance of each graphics process. Unknown
        /// memory and missing instances are -1.
        GraphicsProcesses: Processes = nvmlDeviceGetGraphicsRunningProcesses_v3
            | Processes = nvmlDeviceGetGraphicsRunningProcesses_v2
            | ShortProcesses = nvmlDeviceGetGraphicsRunningProcesses, tick 37;
        /// The PID, memory, GPU instance and compute instance of each MPS process. Unknown memory
        /// and missing instances are -1.
        MpsProcesses: Processes = nvmlDeviceGetMPSComputeRunningProcesses_v3
            | Processes = nvmlDeviceGetMPSComputeRunningProcesses_v2
            | ShortProcesses = nvmlDeviceGetMPSComputeRunningProcesses, tick 27;
        /// For each process, the latest sample after `since_us`: time in microseconds, PID, SM,
        /// memory, encoder, decoder, JPEG and OFA. The source is
        /// `nvmlDeviceGetProcessesUtilizationInfo`, or `nvmlDeviceGetProcessUtilization`. The
        /// latter lacks JPEG and OFA, which are then -1. If no process has been active, the answer
        /// is `Code::NOT_FOUND`.
        ProcessUtilization(since_us: u64) => process_utilization;
        /// The list of accounted PIDs.
        AccountingPids: List<c_uint> = nvmlDeviceGetAccountingPids, slow_smi 25;
        /// The GPU and memory utilization, maximum memory in bytes, run time in milliseconds, start
        /// time in microseconds, and whether the process is running.
        AccountingStats(pid: u32): Of<sys::nvmlAccountingStats_t> = nvmlDeviceGetAccountingStats;

        /// The maximum number of MIG devices, or 0 if MIG mode is off or unsupported.
        MaxMigDevices: Out<c_uint> = nvmlDeviceGetMaxMigDeviceCount, once_smi 341;
        /// The indices of existing MIG devices, found by calling
        /// `nvmlDeviceGetMigDeviceHandleByIndex` for each index up to
        /// `nvmlDeviceGetMaxMigDeviceCount`.
        MigDevices => mig_devices, slow_smi 382;
        /// The GPU instance and compute instance of a MIG device, from `nvmlDeviceGetGpuInstanceId`
        /// and `nvmlDeviceGetComputeInstanceId`.
        MigInstance => mig_instance, constant;
        /// The resources of a MIG device: multiprocessors, copy engines, decoders, encoders, JPEG
        /// decoders, OFAs, slices of the GPU instance, slices of the compute instance, and memory
        /// in MiB.
        MigAttributes: Out<sys::nvmlDeviceAttributes_t> = nvmlDeviceGetAttributes_v2, constant;
    } };
}

/// Calls a macro with the tokens that the caller gives, followed by the rows of all queries about
/// the machine.
#[doc(hidden)]
#[macro_export]
macro_rules! nvml_system_queries {
    ($then:ident $($before:tt)*) => { $then! {
        $($before)*
        DriverVersion: SystemText = nvmlSystemGetDriverVersion;
        NvmlVersion: SystemText = nvmlSystemGetNVMLVersion;
        /// The CUDA version as 1000 × major + 10 × minor.
        CudaVersion: System<c_int> = nvmlSystemGetCudaDriverVersion_v2;
        DeviceCount: System<c_uint> = nvmlDeviceGetCount_v2;
        ProcessName(pid: u32): SystemTextOf = nvmlSystemGetProcessName;
        /// The value of the given `nvmlVgpuDriverCapability_t`.
        VgpuDriverCapability(capability: u32): SystemOf<c_uint> = nvmlGetVgpuDriverCapabilities;
        NvlinkBandwidthMode: System<c_uint> = nvmlSystemGetNvlinkBwMode;
        /// The indices of the GPUs near the given CPU, from `nvmlSystemGetTopologyGpuSet`.
        GpusNearCpu(cpu: u32) => gpus_near_cpu;
        /// The environment, the feature state, and the developer tools mode.
        ConfComputeState: System<sys::nvmlConfComputeSystemState_t> = nvmlSystemGetConfComputeState;
    } };
}
