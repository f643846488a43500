"""The reasons for the number of calls to each function of NVML."""

_SAMPLE = "in every sample; answered from the library's memory"
_LISTS = "in every sample: who holds the GPU; microseconds"
_ONCE = "never changes: once, when the GPU is opened"
_DETAILS = "changes slowly: every 10 s"
_MISSING = "this board has none: asked once, and again after a minute"

REASONS = {
    "nvmlDeviceGetClockInfo": "four clocks " + _SAMPLE,
    "nvmlDeviceGetComputeRunningProcesses_v3": _LISTS,
    "nvmlDeviceGetGraphicsRunningProcesses_v3": _LISTS,
    "nvmlDeviceGetMPSComputeRunningProcesses_v3": _LISTS,
    "nvmlDeviceGetFieldValues": "instant and average power and memory temperature in every sample; "
    "six "
    "times "
    "of "
    "throttling, "
    "recovery action and NVLinks in the details",
    "nvmlDeviceGetMemoryInfo_v2": _SAMPLE,
    "nvmlGpmSampleGet": "activity and link rates in every sample",
    "nvmlDeviceGetProcessesUtilizationInfo": "who computes: 2 ms, so once a second, also at 10 Hz, "
    "and "
    "only "
    "where "
    "there "
    "are "
    "processes",
    "nvmlDeviceGetTotalEnergyConsumption": "4 ms, so every 5 s; the 50 Hz power tells the rest",
    "nvmlDeviceGetMarginTemperature": "1.2 ms, so every 5 s",
    "nvmlDeviceGetSamples": "power every 2 s, both utilizations every 10 s, before the driver's "
    "buffers "
    "overflow",
    "nvmlDeviceGetMemoryErrorCounter": "errors by place, " + _DETAILS + "; 35 us for all",
    "nvmlDeviceGetTotalEccErrors": "four totals, " + _DETAILS,
    "nvmlDeviceGetMaxClockInfo": "four clocks, " + _ONCE,
    "nvmlDeviceGetTemperatureThreshold": "four thresholds, " + _ONCE,
    "nvmlDeviceGetHandleByIndex_v2": "by the GPU's thread, for events, and for how it is linked",
    "nvmlDeviceGetNvLinkState": "how it is linked, once; without links asked again after a minute",
    "nvmlDeviceGetTopologyCommonAncestor": "how it is linked to each other GPU, once",
    "nvmlDeviceGetSupportedEventTypes": "for events, once",
    "nvmlDeviceRegisterEvents": "for events, once",
    "nvmlGpmQueryDeviceSupport": _ONCE,
    "nvmlDeviceGetUUID": _ONCE,
    "nvmlDeviceGetName": _ONCE,
    "nvmlDeviceGetPciInfo_v3": "once for who it is, once for how it is linked",
}
for _name in (
    "CurrPcieLinkGeneration CurrPcieLinkWidth CurrentClocksEventReasons DecoderUtilization "
    "EncoderUtilization "
    "EnforcedPowerLimit JpgUtilization OfaUtilization PerformanceState PowerUsage TemperatureV "
    "UtilizationRates"
).split():
    REASONS["nvmlDeviceGet" + _name] = _SAMPLE
for _name in (
    "Architecture BoardPartNumber CudaComputeCapability MaxPcieLinkGeneration MaxPcieLinkWidth "
    "MemoryBusWidth MinorNumber "
    "NumGpuCores NumaNodeId PowerManagementDefaultLimit PowerManagementLimitConstraints Serial "
    "VbiosVersion"
).split():
    REASONS["nvmlDeviceGet" + _name] = _ONCE
for _name in (
    "AccountingMode BAR1MemoryInfo C2cModeInfoV ComputeMode DisplayActive EccMode MigMode "
    "PcieReplayCounter PersistenceMode "
    "PowerManagementLimit RemappedRows RowRemapperHistogram"
).split():
    REASONS["nvmlDeviceGet" + _name] = _DETAILS
for _name in (
    "ApplicationsClock FanSpeed GpuFabricInfoV NumFans RetiredPages RetiredPages_v2 "
    "RetiredPagesPendingStatus"
).split():
    REASONS["nvmlDeviceGet" + _name] = _MISSING
