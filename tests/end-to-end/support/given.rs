//! The readings that each function of NVML provides. They are lost if the function is missing or
//! fails.

/// Returns the readings that only this function provides, as paths. A path stands for a reading and
/// for all readings below it.
pub(crate) fn readings_of_function(function: &str) -> &'static [&'static str] {
    let getter = function.strip_prefix("nvmlDeviceGet").unwrap_or(function);
    match getter {
        "AccountingMode" => &["details.accounting", "details.modes.accounting"],
        "AccountingPids" => &["details.accounting"],
        "AccountingStats" => &["details.accounting[]"],
        "ApplicationsClock" => &["details.application_clocks"],
        "Architecture" => &["gpu.board.architecture"],
        "Attributes_v2" => &[
            "gpu.mig_devices[].copy_engines",
            "gpu.mig_devices[].decoders",
            "gpu.mig_devices[].encoders",
            "gpu.mig_devices[].multiprocessors",
        ],
        "BAR1MemoryInfo" => &["details.bar1"],
        "BoardPartNumber" => &["gpu.board.part_number"],
        "C2cModeInfoV" => &["details.c2c_enabled"],
        "ClockInfo" => &["sample.clocks"],
        "ComputeMode" => &["details.modes.compute"],
        "CudaComputeCapability" => &["gpu.board.compute_capability"],
        "CurrPcieLinkGeneration" => &["sample.pcie.generation"],
        "CurrPcieLinkWidth" => &["sample.pcie.width"],
        "DecoderUtilization" => &["sample.utilization.decoder_percent"],
        "DisplayActive" => &["details.modes.display_active"],
        "EccMode" => &["details.modes.ecc"],
        "EncoderUtilization" => &["sample.utilization.encoder_percent"],
        "EnforcedPowerLimit" => &["sample.power.limit_watts"],
        "FanSpeedRPM" => &["details.fans[].rpm"],
        "FanSpeed" => &["sample.fan_percent"],
        "FanSpeed_v2" => &["details.fans[].speed_percent"],
        "FieldValues" => &[
            "details.nvlinks[].bytes_per_second",
            "details.nvlinks[].crc_errors_total",
            "details.nvlinks[].errors_total",
            "details.nvlinks[].recoveries_total",
            "details.nvlinks[].replays_total",
            "details.nvlinks[].rx_bytes_total",
            "details.nvlinks[].tx_bytes_total",
            "details.recovery_action",
            "sample.power.average_watts",
            "sample.power.instant_watts",
            "sample.temperature.memory_celsius",
        ],
        "GpuFabricInfoV" => &["details.fabric"],
        "JpgUtilization" => &["sample.utilization.jpeg_percent"],
        "MarginTemperature" => &["sample.temperature.margin_celsius"],
        "MaxClockInfo" => &["gpu.board.max_clocks"],
        "MaxPcieLinkGeneration" => &["gpu.board.pcie_max_generation"],
        "MaxPcieLinkWidth" => &["gpu.board.pcie_max_width"],
        "MemoryBusWidth" => &["gpu.board.memory_bus_bits"],
        "MemoryErrorCounter" => &[
            "details.ecc.aggregate_by_location",
            "details.ecc.volatile_by_location",
        ],
        "MemoryInfo_v2" => &[
            "sample.memory.reserved_bytes",
            "sample.mig_devices[].memory",
        ],
        "MigMode" => &[
            "details.modes.mig",
            "gpu.mig_devices[]",
            "sample.mig_devices",
        ],
        "ComputeInstanceId" | "GpuInstanceId" | "MaxMigDeviceCount" | "MigDeviceHandleByIndex" => {
            &["gpu.mig_devices[]", "sample.mig_devices[]"]
        }
        "MinorNumber" => &["gpu.board.minor_number"],
        "Name" => &["gpu.name", "gpu.mig_devices[].profile"],
        "NumFans" => &["details.fans"],
        "NumGpuCores" => &["gpu.board.cores"],
        "NumaNodeId" => &["gpu.board.numa_node"],
        "NvLinkRemoteDeviceType" => &["details.nvlinks[].remote"],
        "NvLinkRemotePciInfo_v2" => &["details.nvlinks[].remote_pci_bus_id"],
        "NvLinkState" => &["details.nvlinks[]"],
        "NvLinkVersion" => &["details.nvlinks[].version"],
        "OfaUtilization" => &["sample.utilization.ofa_percent"],
        "PciInfo_v3" => &["gpu.pci_bus_id", "topology"],
        "PcieThroughput" => &[
            "sample.pcie.rx_bytes_per_second",
            "sample.pcie.tx_bytes_per_second",
        ],
        "PcieReplayCounter" => &["details.pcie_replays_total"],
        "PerformanceState" => &["sample.performance_state"],
        "PersistenceMode" => &["details.modes.persistence"],
        "PowerManagementLimit" => &["details.requested_power_limit_watts"],
        "PowerManagementDefaultLimit" => &["gpu.board.power_limits.default_watts"],
        "PowerManagementLimitConstraints" => &[
            "gpu.board.power_limits.max_watts",
            "gpu.board.power_limits.min_watts",
        ],
        "PowerUsage" => &["sample.power.draw_watts"],
        "RemappedRows" => &["details.remapped_rows"],
        "RetiredPagesPendingStatus" => &["details.retired_pages"],
        "RowRemapperHistogram" => &["details.remapped_rows.spare"],
        "Samples" => &["trace"],
        "Serial" => &["gpu.board.serial"],
        "TemperatureThreshold" => &["gpu.board.thresholds"],
        "TopologyCommonAncestor" => &["topology"],
        "TotalEccErrors" => &["details.ecc.aggregate", "details.ecc.volatile"],
        "TotalEnergyConsumption" => &["sample.power.energy_joules_total"],
        "HandleByIndex_v2" => &["details", "sample", "gpu", "trace", "topology"],
        // MIG devices are identified by UUID.
        "UUID" => &[
            "details.uuid",
            "gpu.uuid",
            "sample.uuid",
            "gpu.mig_devices[]",
            "sample.mig_devices[]",
        ],
        "UtilizationRates" => &[
            "sample.utilization.gpu_percent",
            "sample.utilization.memory_percent",
        ],
        "VbiosVersion" => &["gpu.board.vbios_version"],
        "nvmlGpmMetricsGet"
        | "nvmlGpmQueryDeviceSupport"
        | "nvmlGpmSampleAlloc"
        | "nvmlGpmSampleFree" => &[
            "sample.activity",
            "sample.nvlink",
            "sample.mig_devices[].activity",
        ],
        "nvmlGpmSampleGet" => &["sample.activity", "sample.nvlink"],
        "nvmlGpmMigSampleGet" => &["sample.mig_devices[].activity"],
        "nvmlSystemGetConfComputeState" => &["details.modes.confidential_compute"],
        _ => &[],
    }
}

/// Returns further readings that are lost if the function exists but fails. If the function does
/// not exist, another function provides them instead.
pub(crate) fn additional_readings_of_failure(function: &str) -> &'static [&'static str] {
    match function.strip_prefix("nvmlDeviceGet").unwrap_or(function) {
        "AccountingStats" => &["details.accounting"],
        "ComputeRunningProcesses_v3" | "GraphicsRunningProcesses_v3" => &["sample.processes"],
        "CurrentClocksEventReasons" => &["sample.throttle_reasons"],
        "FieldValues" => &["details.throttled"],
        "MemoryInfo_v2" => &["sample.memory"],
        // The link rates are lost, too, if the error means that the first link does not exist. The
        // GPU then counts as a GPU without links.
        "NvLinkState" => &["details.nvlinks", "sample.nvlink"],
        "ProcessesUtilizationInfo" => &[
            "sample.processes[].decoder_percent",
            "sample.processes[].encoder_percent",
            "sample.processes[].memory_percent",
            "sample.processes[].sm_percent",
        ],
        "RetiredPages_v2" => &["details.retired_pages"],
        "nvmlGpmQueryDeviceSupport" | "nvmlGpmSampleGet" => &[
            "sample.pcie.rx_bytes_per_second",
            "sample.pcie.tx_bytes_per_second",
        ],
        "TemperatureV" => &["sample.temperature.gpu_celsius"],
        _ => &[],
    }
}

/// Returns whether a path is this reading or below it.
pub(crate) fn is_at_or_below_reading(path: &str, given: &str) -> bool {
    path.strip_prefix(given)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}
