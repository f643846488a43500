//! The table of all that NVML is asked: one row for each query.
//!
//! A row has the query with its arguments, the shape and the name of NVML's function, the functions
//! of older drivers behind a `|`, and attributes. A query that no single function answers has `=>`
//! and a method instead. Everything else about a query is made of its row:
//!
//! - the variants of [`Query`](super::Query) and [`SystemQuery`](super::SystemQuery),
//! - the calls of NVML (`backend/`), in the shapes of `backend/raw/shapes.rs`,
//! - what a collector asks by itself, and when (`lanes.rs`): the lane, and what a call costs on an
//!   H200 in us, the median of 20 calls, 2 ms apart (driver 580.159,
//!   `probe/examples/call_costs.rs`). A query with arguments names those that are asked. `_smi` is
//!   what nvidia-smi's output alone has.
//! - which answers never change while a process lives (`constant`). Settings do change, and so does
//!   anything that a link or an option of the driver can change.
//! - the exported functions of the fake library in `tests/fake-nvml/`, as far as it has no others.

/// Calls a macro with the rows of all queries about a GPU or a MIG device, behind other tokens. An
/// answer that is not
/// documented as text is numbers, in the documented order, or else one number. They have NVML's
/// units: milliwatts, degrees Celsius, MHz, percent, bytes.
#[doc(hidden)]
#[macro_export]
macro_rules! nvml_queries {
    ($then:ident $($before:tt)*) => { $then! {
        $($before)*
        /// Text.
        Name: Text = nvmlDeviceGetName, constant;
        /// Text.
        Uuid: Text = nvmlDeviceGetUUID, constant;
        /// Text.
        Serial: Text = nvmlDeviceGetSerial, constant, once 7;
        /// Text, as `00000000:01:00.0`, of `nvmlDeviceGetPciInfo_v3`.
        BusId => bus_id, constant;
        /// Domain, bus, device, device and vendor, subsystem, base class, sub class. Older drivers
        /// know no classes: the last two are missing then.
        PciInfo: Out<sys::nvmlPciInfoExt_v1_t> = nvmlDeviceGetPciInfoExt
            | Out<sys::nvmlPciInfo_t> = nvmlDeviceGetPciInfo_v3, constant, once_smi 1066;
        /// `nvmlBrandType_t`.
        Brand: Out<c_uint> = nvmlDeviceGetBrand, constant, once_smi 7;
        /// `nvmlDeviceArchitecture_t`.
        Architecture: Out<c_uint> = nvmlDeviceGetArchitecture, constant, once 6;
        /// Major, minor.
        ComputeCapability: Out2<c_int> = nvmlDeviceGetCudaComputeCapability, constant, once 6;
        NumGpuCores: Out<c_uint> = nvmlDeviceGetNumGpuCores, once 394;
        /// Bits.
        MemoryBusWidth: Out<c_uint> = nvmlDeviceGetMemoryBusWidth, once 452;
        MinorNumber: Out<c_uint> = nvmlDeviceGetMinorNumber, constant, once 4;
        MultiGpuBoard: Out<c_uint> = nvmlDeviceGetMultiGpuBoard, constant, once_smi 20;
        BoardId: Out<c_uint> = nvmlDeviceGetBoardId, constant, once_smi 24;
        /// Text.
        BoardPartNumber: Text = nvmlDeviceGetBoardPartNumber, constant, once 6;
        /// Text: the GPU's own part number. nvidia-smi finds it in a table of the library that has
        /// no documentation, and no function returns it.
        GpuPartNumber => gpu_part_number, constant;
        ModuleId: Out<c_uint> = nvmlDeviceGetModuleId, constant, once_smi 4;
        /// The 64 bits of the per-device identifier.
        Pdi: Out<sys::nvmlPdi_v1_t> = nvmlDeviceGetPdi, constant, once_smi 433;
        /// Text.
        Hostname: Out<ShortText> = nvmlDeviceGetHostname_v1, once_smi 6;
        /// GUID's two halves, chassis serial number as two halves, slot, tray, host, peer type,
        /// module. The first byte is the highest of the first half.
        PlatformInfo: Out<sys::nvmlPlatformInfo_v2_t> = nvmlDeviceGetPlatformInfo, constant,
            once_smi 432;
        /// Text.
        VbiosVersion: Text = nvmlDeviceGetVbiosVersion, constant, once 6;
        /// Text.
        InforomImageVersion: Text = nvmlDeviceGetInforomImageVersion, constant, once_smi 9;
        /// Text of this `nvmlInforomObject_t`.
        InforomVersion(object: u32): TextOf = nvmlDeviceGetInforomVersion, constant,
            once_smi 5 for 0..3;
        /// No number if the infoROM is valid. It takes 70 ms.
        InforomIsValid: Check = nvmlDeviceValidateInforom, once_smi 68873;
        /// Time stamp in us, duration in us.
        LastBbxFlush: Out2<c_ulonglong> = nvmlDeviceGetLastBBXFlushTime, once_smi 344;
        /// Seconds of the GPU's life with a driver loaded.
        TimeRun: Out<c_uint> = nvmlDeviceGetBBXTimeData_v1, slow_smi 344;
        /// Text.
        GspFirmwareVersion: Out<ShortText> = nvmlDeviceGetGspFirmwareVersion, constant, once_smi 22;
        /// Enabled, default.
        GspFirmwareMode: Out2<c_uint> = nvmlDeviceGetGspFirmwareMode, once_smi 22;

        /// Whether a display is attached.
        DisplayMode: Out<c_uint> = nvmlDeviceGetDisplayMode, slow_smi 388;
        DisplayActive: Out<c_uint> = nvmlDeviceGetDisplayActive, slow 387;
        PersistenceMode: Out<c_uint> = nvmlDeviceGetPersistenceMode, slow 14;
        /// 0 none, 1 HMM, 2 ATS.
        AddressingMode: Out<sys::nvmlDeviceAddressingMode_v1_t> = nvmlDeviceGetAddressingMode,
            once_smi 6;
        /// `nvmlComputeMode_t`.
        ComputeMode: Out<c_uint> = nvmlDeviceGetComputeMode, slow 24;
        /// Current, pending.
        MigMode: Out2<c_uint> = nvmlDeviceGetMigMode, slow 378;
        /// Current, pending.
        EccMode: Out2<c_uint> = nvmlDeviceGetEccMode, slow 365;
        /// Current, pending.
        DramEncryptionMode: Out2<sys::nvmlDramEncryptionInfo_v1_t>
            = nvmlDeviceGetDramEncryptionMode, once_smi 7;
        /// Current, pending.
        GpuOperationMode: Out2<c_uint> = nvmlDeviceGetGpuOperationMode, once_smi 7;
        /// Current, pending.
        DriverModel: Out2<c_uint> = nvmlDeviceGetDriverModel_v2, once_smi 6;
        AccountingMode: Out<c_uint> = nvmlDeviceGetAccountingMode, slow 30;
        AccountingBufferSize: Out<c_uint> = nvmlDeviceGetAccountingBufferSize, once_smi 5;
        VirtualizationMode: Out<c_uint> = nvmlDeviceGetVirtualizationMode, once_smi 7;
        HostVgpuMode: Out<c_uint> = nvmlDeviceGetHostVgpuMode, once_smi 6;
        VgpuHeterogeneousMode: Out<sys::nvmlVgpuHeterogeneousMode_v1_t>
            = nvmlDeviceGetVgpuHeterogeneousMode, once_smi 6;
        /// For a `nvmlDeviceVgpuCapability_t`.
        VgpuCapability(capability: u32): Of<c_uint> = nvmlDeviceGetVgpuCapabilities,
            once_smi 3 for [0, 1, 2, 9, 10, 11];
        C2cMode: Out<sys::nvmlC2cModeInfo_v1_t> = nvmlDeviceGetC2cModeInfoV, slow 2;
        /// A bit mask.
        Capabilities: Out<sys::nvmlDeviceCapabilities_v1_t> = nvmlDeviceGetCapabilities, once_smi 7;
        /// Enabled, default.
        AutoBoost: Out2<c_uint> = nvmlDeviceGetAutoBoostedClocksEnabled, once_smi 6;
        /// Three masks of 256 bits as eight numbers each: available, requested, enforced.
        WorkloadPowerProfiles: Out<sys::nvmlWorkloadPowerProfileCurrentProfiles_v1_t>
            = nvmlDeviceWorkloadPowerProfileGetCurrentProfiles, slow_smi 390;

        /// GPU, memory.
        UtilizationRates: Out<sys::nvmlUtilization_t> = nvmlDeviceGetUtilizationRates, tick 5;
        /// Percent, sampling period in us.
        EncoderUtilization: Out2<c_uint> = nvmlDeviceGetEncoderUtilization, tick 5;
        /// Percent, sampling period in us.
        DecoderUtilization: Out2<c_uint> = nvmlDeviceGetDecoderUtilization, tick 5;
        /// Percent, sampling period in us.
        JpgUtilization: Out2<c_uint> = nvmlDeviceGetJpgUtilization, tick 6;
        /// Percent, sampling period in us.
        OfaUtilization: Out2<c_uint> = nvmlDeviceGetOfaUtilization, tick 4;
        /// Sessions, average frames per second, average latency in us.
        EncoderStats: Out3<c_uint> = nvmlDeviceGetEncoderStats, slow_smi 28;
        /// Sessions, average frames per second, average latency in us.
        FbcStats: Out<sys::nvmlFBCStats_t> = nvmlDeviceGetFBCStats, slow_smi 26;
        /// Total, reserved, free, used: `nvmlDeviceGetMemoryInfo_v2`, or `nvmlDeviceGetMemoryInfo`
        /// of drivers before 510, which count the reserved memory as used and do not report how
        /// much that is (-1).
        MemoryInfo => memory_info, tick 23;
        /// Total, free, used.
        MemoryInfoV1: Out<sys::nvmlMemory_t> = nvmlDeviceGetMemoryInfo;
        /// Total, free, used.
        Bar1MemoryInfo: Out<sys::nvmlBAR1Memory_t> = nvmlDeviceGetBAR1MemoryInfo, slow 369;
        /// Total, free, used.
        ProtectedMemory: Out<sys::nvmlMemory_t> = nvmlDeviceGetConfComputeProtectedMemoryUsage,
            slow_smi 29;
        /// The temperature of the chip.
        Temperature: Out<sys::nvmlTemperature_v1_t> = nvmlDeviceGetTemperatureV
            | Of<c_uint> = nvmlDeviceGetTemperature, tick 4;
        /// Degrees below the limit.
        MarginTemperature: Out<sys::nvmlMarginTemperature_v1_t> = nvmlDeviceGetMarginTemperature,
            paced 1190;
        /// For a `nvmlTemperatureThresholds_t`.
        TemperatureThreshold(threshold: u32): Of<c_uint> = nvmlDeviceGetTemperatureThreshold,
            constant, once 450 for 0..4, once_smi 7 for 4..8;
        FanSpeed: Out<c_uint> = nvmlDeviceGetFanSpeed, tick 384;
        NumFans: Out<c_uint> = nvmlDeviceGetNumFans, slow 4;
        /// Percent, of this fan.
        FanSpeedOf(fan: u32): Of<c_uint> = nvmlDeviceGetFanSpeed_v2;
        /// Revolutions per minute of this fan: `nvmlDeviceGetFanSpeedRPM`.
        FanSpeedRpm(fan: u32) => fan_speed_rpm;
        PerformanceState: Out<c_uint> = nvmlDeviceGetPerformanceState, tick 3;
        SupportedThrottleReasons: Out<c_ulonglong> = nvmlDeviceGetSupportedClocksEventReasons
            | Out<c_ulonglong> = nvmlDeviceGetSupportedClocksThrottleReasons, constant, once_smi 8;
        ThrottleReasons: Out<c_ulonglong> = nvmlDeviceGetCurrentClocksEventReasons
            | Out<c_ulonglong> = nvmlDeviceGetCurrentClocksThrottleReasons, tick 9;
        /// Reference time in us, time of violation in ns of this `nvmlPerfPolicyType_t`:
        /// `NVML_FI_DEV_PERF_POLICY_*`, or `nvmlDeviceGetViolationStatus` of older drivers.
        ViolationStatus(policy: u32) => violation_status, slow 400 for 0..6;
        PowerUsage: Out<c_uint> = nvmlDeviceGetPowerUsage, tick 5;
        /// Millijoules since the driver was loaded.
        TotalEnergyConsumption: Out<c_ulonglong> = nvmlDeviceGetTotalEnergyConsumption, paced 3200;
        PowerManagementMode: Out<c_uint> = nvmlDeviceGetPowerManagementMode, once_smi 360;
        /// The requested limit.
        PowerLimit: Out<c_uint> = nvmlDeviceGetPowerManagementLimit, slow 392;
        /// The limit in force.
        EnforcedPowerLimit: Out<c_uint> = nvmlDeviceGetEnforcedPowerLimit, tick 3;
        DefaultPowerLimit: Out<c_uint> = nvmlDeviceGetPowerManagementDefaultLimit, constant, once 6;
        /// Least, most.
        PowerLimitConstraints: Out2<c_uint> = nvmlDeviceGetPowerManagementLimitConstraints,
            constant, once 5;
        /// For a `nvmlClockType_t`: 0 graphics, 1 SM, 2 memory, 3 video.
        Clock(kind: u32): Of<c_uint> = nvmlDeviceGetClockInfo, tick 5 for 0..4;
        MaxClock(kind: u32): Of<c_uint> = nvmlDeviceGetMaxClockInfo, constant, once 1800 for 0..4;
        ApplicationsClock(kind: u32): Of<c_uint> = nvmlDeviceGetApplicationsClock,
            slow 1250 for [0, 2];
        DefaultApplicationsClock(kind: u32): Of<c_uint> = nvmlDeviceGetDefaultApplicationsClock,
            constant, once_smi 1145 for [0, 2];
        /// `nvmlDeviceGetClock` with `NVML_CLOCK_ID_CUSTOMER_BOOST_MAX`.
        CustomerBoostClock(kind: u32) => customer_boost_clock, once_smi 1139 for [0];
        /// A list.
        SupportedMemoryClocks: List<c_uint> = nvmlDeviceGetSupportedMemoryClocks, constant,
            once_smi 5;
        /// A list, at this memory clock.
        SupportedGraphicsClocks(memory_mhz: u32): ListOf<c_uint>
            = nvmlDeviceGetSupportedGraphicsClocks, constant;
        /// A field by its id and scope, in its own type: `nvmlDeviceGetFieldValues`. The id is the
        /// driver's own: those from 251 on were renumbered at driver 580.82.
        Field(id: u32, scope: u32) => field,
            tick 10 for combine(TICK_FIELDS, [0]),
            // Thresholds by margin, PCIe atomics.
            once_smi 60 for combine([193, 194, 195, 196, 228, 229], [0]),
            // Power limits of the GPU, its module and its base power.
            once_smi 280 for combine(187..=192, [0, 1, 3]),
            // Power smoothing. 5 is the profile in force.
            once_smi 375 for combine((251..=268).chain(275..=288), [0, 5]),
            once_smi 375 for [(300, 0)],
            slow 31 for [(NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, 0)],
            slow_smi 10 for [(274, 0)],
            // Times of throttling, rollovers of PCIe replays.
            slow_smi 400 for combine([74, 76, 95, 269, 270, 271], [0]),
            // Average and instantaneous power of the module and the memory.
            slow_smi 10 for combine([185, 186], POWER_SCOPES);
        /// The time stamp in us and the value of each sample of this `nvmlSamplingType_t` from
        /// after this time on, in us since the epoch: `nvmlDeviceGetSamples`.
        /// [`Value::Reals`](super::Value::Reals) if the samples are not integers.
        Samples(kind: u32, since_us: u64) => list_samples;

        /// `nvmlMemoryErrorType_t`, `nvmlEccCounterType_t`.
        TotalEccErrors(kind: u32, counter: u32): Of2<c_ulonglong> = nvmlDeviceGetTotalEccErrors,
            slow 10 for combine(0..2, 0..2);
        /// Error type, counter type, `nvmlMemoryLocation_t`.
        MemoryErrors(kind: u32, counter: u32, location: u32): Of3<c_ulonglong>
            = nvmlDeviceGetMemoryErrorCounter, slow 7 for memory_errors();
        /// Aggregate uncorrectable parity, aggregate uncorrectable SEC-DED, aggregate corrected,
        /// the same three volatile, aggregate uncorrectable in L2, SM, PCIe, microcontroller,
        /// other, whether the threshold is exceeded.
        SramEccErrors: Out<sys::nvmlEccSramErrorStatus_v1_t> = nvmlDeviceGetSramEccErrorStatus,
            slow_smi 8;
        /// Whether the repair of a channel is pending, and of a TPC.
        RepairStatus: Out<sys::nvmlRepairStatus_v1_t> = nvmlDeviceGetRepairStatus, slow_smi 388;
        UnrepairableMemory: Out<UnrepairableMemory> = nvmlDeviceGetUnrepairableMemoryFlag_v1,
            slow_smi 381;
        /// Time stamp, as the driver gives it, and address of each page that was taken out of use
        /// for this `nvmlPageRetirementCause_t`. Older drivers give no times (0).
        RetiredPages(cause: u32): RetiredPages = nvmlDeviceGetRetiredPages_v2
            | ListOf<UntimedPage> = nvmlDeviceGetRetiredPages, slow 10 for 0..2;
        RetiredPagesPending: Out<c_uint> = nvmlDeviceGetRetiredPagesPendingStatus, slow 8;
        /// Correctable, uncorrectable, pending, failed.
        RemappedRows: Out4<c_uint> = nvmlDeviceGetRemappedRows, slow 4;
        /// Correctable, inactive correctable, uncorrectable, inactive uncorrectable, pending,
        /// failed.
        RemappedRowsV2: Out<RemappedRowsInfo> = nvmlDeviceGetRemappedRows_v2, slow_smi 4;
        /// Banks with the most spare rows left, many, some, few, none.
        RowRemapperHistogram: Out<sys::nvmlRowRemapperHistogramValues_t>
            = nvmlDeviceGetRowRemapperHistogram, slow 3;

        PcieGeneration: Out<c_uint> = nvmlDeviceGetCurrPcieLinkGeneration, tick 7;
        /// The highest of the GPU and its slot.
        MaxPcieGeneration: Out<c_uint> = nvmlDeviceGetMaxPcieLinkGeneration, constant, once 4;
        /// The highest of the GPU alone.
        GpuMaxPcieGeneration: Out<c_uint> = nvmlDeviceGetGpuMaxPcieLinkGeneration, constant,
            once_smi 8;
        /// The highest of the port above the GPU. NVML has no function for it. The kernel reports
        /// it, as `max_link_speed` of the device above the GPU's own in `/sys/bus/pci/devices`.
        /// [`Code::NOT_SUPPORTED`](super::Code::NOT_SUPPORTED) if there is none, as in virtual
        /// machines.
        HostMaxPcieGeneration => host_max_pcie_generation, constant, once_smi 36;
        PcieWidth: Out<c_uint> = nvmlDeviceGetCurrPcieLinkWidth, tick 74;
        MaxPcieWidth: Out<c_uint> = nvmlDeviceGetMaxPcieLinkWidth, constant, once 4;
        PcieReplays: Out<c_uint> = nvmlDeviceGetPcieReplayCounter, slow 381;
        /// KB/s over the last 20 ms, for which it waits, 0 transmit, 1 receive.
        PcieThroughput(counter: u32): Of<c_uint> = nvmlDeviceGetPcieThroughput;
        /// Type and firmware of each bridge chip.
        BridgeChips: Out<sys::nvmlBridgeChipHierarchy_t> = nvmlDeviceGetBridgeChipInfo, constant,
            once_smi 7;
        /// State, status, clique, health mask, health summary, cluster UUID's two halves. The
        /// UUID's first byte is the highest of the first half.
        FabricInfo: Out<sys::nvmlGpuFabricInfo_v3_t> = nvmlDeviceGetGpuFabricInfoV, slow 11;
        /// Text, the bus id of the other end of this link: `nvmlDeviceGetNvLinkRemotePciInfo_v2`.
        NvLinkRemoteBusId(link: u32) => remote_bus_id, constant;
        /// Link, `nvmlNvLinkCapability_t`.
        NvLinkCapability(link: u32, capability: u32): Of2<c_uint> = nvmlDeviceGetNvLinkCapability,
            constant;
        /// Whether this link is up.
        NvLinkState(link: u32): Of<c_uint> = nvmlDeviceGetNvLinkState, slow 16 for [0];
        /// `nvmlNvlinkVersion_t` of this link.
        NvLinkVersion(link: u32): Of<c_uint> = nvmlDeviceGetNvLinkVersion;
        /// `nvmlIntNvLinkDeviceType_t` at the other end of this link.
        NvLinkRemoteDeviceType(link: u32): Of<c_uint> = nvmlDeviceGetNvLinkRemoteDeviceType;
        /// Whether NVLE is enabled, then `nvmlNvlinkFirmwareVersion_t` of each firmware (type,
        /// major, minor, sub-minor).
        NvLinkInfo: Out<sys::nvmlNvLinkInfo_v2_t> = nvmlDeviceGetNvLinkInfo;
        /// 64-bit words, the lowest CPUs first, without the empty ones at the end:
        /// `nvmlDeviceGetCpuAffinity`.
        CpuAffinity => cpu_affinity, constant;
        /// 64-bit words of NUMA nodes, without the empty ones at the end:
        /// `nvmlDeviceGetMemoryAffinity`, node scope.
        MemoryAffinity => memory_affinity, constant;
        /// The GPU's own.
        NumaNode: Out<c_uint> = nvmlDeviceGetNumaNodeId, constant, once 16;
        /// Indices: `nvmlDeviceGetTopologyNearestGpus` up to this `nvmlGpuTopologyLevel_t`.
        NearestGpus(level: u32) => nearest_gpus, constant;
        /// `nvmlDeviceGetTopologyCommonAncestor` with the GPU of this index.
        CommonAncestor(other: u32) => common_ancestor, constant;
        /// `nvmlDeviceGetP2PStatus` with the GPU of this index, of this `nvmlGpuP2PCapsIndex_t`.
        P2pStatus(other: u32, capability: u32) => p2p_status;

        /// PID, memory, GPU instance, compute instance of each. Memory that the driver does not
        /// know is -1, and so is an instance that does not exist.
        ComputeProcesses: Processes = nvmlDeviceGetComputeRunningProcesses_v3
            | Processes = nvmlDeviceGetComputeRunningProcesses_v2
            | ShortProcesses = nvmlDeviceGetComputeRunningProcesses, tick 33;
        /// PID, memory, GPU instance, compute instance of each, with -1 as in the other list.
        GraphicsProcesses: Processes = nvmlDeviceGetGraphicsRunningProcesses_v3
            | Processes = nvmlDeviceGetGraphicsRunningProcesses_v2
            | ShortProcesses = nvmlDeviceGetGraphicsRunningProcesses, tick 37;
        /// PID, memory, GPU instance, compute instance of each, with -1 as in the other lists.
        MpsProcesses: Processes = nvmlDeviceGetMPSComputeRunningProcesses_v3
            | Processes = nvmlDeviceGetMPSComputeRunningProcesses_v2
            | ShortProcesses = nvmlDeviceGetMPSComputeRunningProcesses, tick 27;
        /// Time stamp in us, PID, SM, memory, encoder, decoder, JPEG, OFA of each process's last
        /// sample since this time: `nvmlDeviceGetProcessesUtilizationInfo`, or
        /// `nvmlDeviceGetProcessUtilization`, which knows no JPEG and OFA (-1). If no process did
        /// anything since, that is [`Code::NOT_FOUND`](super::Code::NOT_FOUND).
        ProcessUtilization(since_us: u64) => process_utilization;
        /// A list.
        AccountingPids: List<c_uint> = nvmlDeviceGetAccountingPids, slow_smi 25;
        /// GPU, memory, most bytes, time in ms, start in us, whether it runs.
        AccountingStats(pid: u32): Of<sys::nvmlAccountingStats_t> = nvmlDeviceGetAccountingStats;

        /// 0 if MIG is off or the GPU has none.
        MaxMigDevices: Out<c_uint> = nvmlDeviceGetMaxMigDeviceCount, once_smi 341;
        /// The indices that have a device: `nvmlDeviceGetMigDeviceHandleByIndex` up to
        /// `nvmlDeviceGetMaxMigDeviceCount`.
        MigDevices => mig_devices, slow_smi 382;
        /// GPU instance, compute instance of a MIG device: `nvmlDeviceGetGpuInstanceId`,
        /// `nvmlDeviceGetComputeInstanceId`.
        MigInstance => mig_instance, constant;
        /// Multiprocessors, copy engines, decoders, encoders, JPEG decoders, OFAs, GPU instance's
        /// slices, compute instance's slices, memory in MiB of a MIG device.
        MigAttributes: Out<sys::nvmlDeviceAttributes_t> = nvmlDeviceGetAttributes_v2, constant;
    } };
}

/// Calls a macro with the rows of all queries about the machine.
#[doc(hidden)]
#[macro_export]
macro_rules! nvml_system_queries {
    ($then:ident) => { $then! {
        /// Text.
        DriverVersion: SystemText = nvmlSystemGetDriverVersion;
        /// Text.
        NvmlVersion: SystemText = nvmlSystemGetNVMLVersion;
        /// 1000 * major + 10 * minor.
        CudaVersion: System<c_int> = nvmlSystemGetCudaDriverVersion_v2;
        DeviceCount: System<c_uint> = nvmlDeviceGetCount_v2;
        /// Text.
        ProcessName(pid: u32): SystemTextOf = nvmlSystemGetProcessName;
        /// With this `nvmlVgpuDriverCapability_t`.
        VgpuDriverCapability(capability: u32): SystemOf<c_uint> = nvmlGetVgpuDriverCapabilities;
        NvlinkBandwidthMode: System<c_uint> = nvmlSystemGetNvlinkBwMode;
        /// The indices of the GPUs near this CPU: `nvmlSystemGetTopologyGpuSet`.
        GpusNearCpu(cpu: u32) => gpus_near_cpu;
        /// Environment, feature, developers' tools.
        ConfComputeState: System<sys::nvmlConfComputeSystemState_t> = nvmlSystemGetConfComputeState;
    } };
}
