"""Explanations of how often each function of NVML is called."""

_SAMPLE = "in every sample; the library has the value in memory"
_LISTS = "processes on the GPU, in every sample; takes microseconds"
_ONCE = "does not change: read once, when the GPU is opened"
_DETAILS = "changes slowly: read every 10 s"
_MISSING = "not available on this board: queried once, and again after a minute"

REASONS = {
    "nvmlDeviceGetClockInfo": "four clocks " + _SAMPLE,
    "nvmlDeviceGetComputeRunningProcesses_v3": _LISTS,
    "nvmlDeviceGetGraphicsRunningProcesses_v3": _LISTS,
    "nvmlDeviceGetMPSComputeRunningProcesses_v3": _LISTS,
    "nvmlDeviceGetFieldValues": "instant and average power and memory temperature in every sample; "
    "six throttling times, recovery action and NVLinks in the details",
    "nvmlDeviceGetMemoryInfo_v2": _SAMPLE,
    "nvmlGpmSampleGet": "activity and link rates in every sample",
    "nvmlDeviceGetProcessesUtilizationInfo": "utilization by process; takes 2 ms, so once a "
    "second, also at 10 Hz, and only if there are processes",
    "nvmlDeviceGetTotalEnergyConsumption": "takes 4 ms, so every 5 s; between two reads, the 50 Hz "
    "power is used",
    "nvmlDeviceGetMarginTemperature": "takes 1.2 ms, so every 5 s",
    "nvmlDeviceGetSamples": "power every 2 s, both utilizations every 10 s, before the driver's "
    "buffers overflow",
    "nvmlDeviceGetMemoryErrorCounter": "errors by location, " + _DETAILS + "; takes 35 us",
    "nvmlDeviceGetTotalEccErrors": "four totals, " + _DETAILS,
    "nvmlDeviceGetMaxClockInfo": "four clocks, " + _ONCE,
    "nvmlDeviceGetTemperatureThreshold": "four thresholds, " + _ONCE,
    "nvmlDeviceGetHandleByIndex_v2": "by the thread of the GPU, for events, and for its links",
    "nvmlDeviceGetNvLinkState": "links, once; without links, again after a minute",
    "nvmlDeviceGetTopologyCommonAncestor": "the connection to each other GPU, once",
    "nvmlDeviceGetSupportedEventTypes": "for events, once",
    "nvmlDeviceRegisterEvents": "for events, once",
    "nvmlGpmQueryDeviceSupport": _ONCE,
    "nvmlDeviceGetUUID": _ONCE,
    "nvmlDeviceGetName": _ONCE,
    "nvmlDeviceGetPciInfo_v3": "once for the identity of the GPU, once for its links",
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
