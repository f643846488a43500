//! Scripted boards that return the answers of real boards.

use gpumon_probe::vendor::nvml::query::{Code, Query, Subject, SystemQuery, Value};

use crate::tests::scripted::ScriptedBackend;

/// Returns a scripted 580 driver without GPUs.
pub(crate) fn driver_580() -> ScriptedBackend {
    driver_with_version("580.159.04")
}

/// Returns a scripted driver of the given version, without GPUs.
pub(crate) fn driver_with_version(version: &str) -> ScriptedBackend {
    ScriptedBackend::default()
        .with_system_answer(
            SystemQuery::DriverVersion,
            Ok(Value::Text(version.to_owned())),
        )
        .with_system_answer(SystemQuery::CudaVersion, Ok(Value::from_number(13_000)))
}

/// Adds an idle H200 in a virtual machine to the script.
pub(crate) fn add_hopper(script: ScriptedBackend, gpu: u32) -> ScriptedBackend {
    let device = 6 + i128::from(gpu);
    let mib = 1 << 20;
    let script = [
        (Query::Name, "NVIDIA H200"),
        (Query::Serial, "1650000000000"),
        (Query::Uuid, "GPU-00000000-1111-2222-3333-444444444444"),
        (Query::VbiosVersion, "96.00.A5.00.1A"),
        (Query::BoardPartNumber, "692-2G520-0282-000"),
        (Query::GpuPartNumber, "2335-895-A1"),
        (Query::InforomImageVersion, "G520.0282.02.02"),
        (Query::InforomVersion(0), "2.1"),
        (Query::InforomVersion(1), "7.16"),
        (Query::GspFirmwareVersion, "580.159.04"),
    ]
    .into_iter()
    .fold(script, |script, (query, text)| {
        script.with_text(gpu, query, text)
    })
    .with_text(gpu, Query::BusId, &format!("00000000:00:{device:02X}.0"))
    .with_answer(
        Subject::from_gpu(gpu),
        Query::LastBbxFlush,
        Err(Code::NOT_READY),
    );
    let script = [5, 6].into_iter().fold(script, |script, kind| {
        script.with_answer(
            Subject::from_gpu(gpu),
            Query::Samples(kind, 0),
            Err(Code::NOT_FOUND),
        )
    });
    let answers: &[(Query, &[i128])] = &[
        (
            Query::PciInfo,
            &[0, 0, device, 0x2335_10DE, 0x18BF_10DE, 3, 2],
        ),
        (Query::Brand, &[14]),
        (Query::Architecture, &[9]),
        (Query::DisplayMode, &[1]),
        (Query::DisplayActive, &[0]),
        (Query::PersistenceMode, &[1]),
        (Query::AddressingMode, &[0]),
        (Query::MigMode, &[0, 0]),
        (Query::AccountingMode, &[0]),
        (Query::AccountingBufferSize, &[4000]),
        (Query::AccountingPids, &[]),
        (Query::Pdi, &[0x00d6_716e_d5bf_3e92]),
        (Query::MinorNumber, &[i128::from(gpu)]),
        (Query::MultiGpuBoard, &[0]),
        (Query::BoardId, &[device]),
        (Query::ModuleId, &[2]),
        (Query::C2cMode, &[0]),
        (Query::VirtualizationMode, &[1]),
        (Query::Field(230, 0), &[0]),
        (Query::MaxPcieGeneration, &[5]),
        (Query::PcieGeneration, &[5]),
        (Query::GpuMaxPcieGeneration, &[5]),
        (Query::MaxPcieWidth, &[16]),
        (Query::PcieWidth, &[16]),
        (Query::PcieReplays, &[0]),
        (Query::Field(95, 0), &[0]),
        (Query::Field(228, 0), &[0]),
        (Query::Field(229, 0), &[0]),
        (Query::PcieThroughput(0), &[1067]),
        (Query::PcieThroughput(1), &[633]),
        (Query::PerformanceState, &[0]),
        (Query::SupportedThrottleReasons, &[0x1FF]),
        (Query::ThrottleReasons, &[1]),
        (Query::Field(74, 0), &[19_431_388_416]),
        (Query::Field(76, 0), &[0]),
        (Query::Field(269, 0), &[0]),
        (Query::Field(270, 0), &[0]),
        (Query::Field(271, 0), &[0]),
        (
            Query::MemoryInfo,
            &[143_771 * mib, 0x2671_0000, 0x22_F33F_0000, 0],
        ),
        (
            Query::Bar1MemoryInfo,
            &[0x40_0000_0000, 0x3F_FFE6_0000, 0x1A_0000],
        ),
        (Query::ProtectedMemory, &[0, 0, 0]),
        (Query::ComputeMode, &[0]),
        (Query::UtilizationRates, &[0, 0]),
        (Query::EncoderUtilization, &[0, 100_000]),
        (Query::DecoderUtilization, &[0, 100_000]),
        (Query::JpgUtilization, &[0, 100_000]),
        (Query::OfaUtilization, &[0, 100_000]),
        (Query::EncoderStats, &[0, 0, 0]),
        (Query::FbcStats, &[0, 0, 0]),
        (Query::EccMode, &[1, 1]),
        (Query::SramEccErrors, &[0; 12]),
        (Query::MemoryErrors(0, 0, 7), &[0]),
        (Query::MemoryErrors(0, 1, 7), &[0]),
        (Query::MemoryErrors(0, 0, 2), &[0]),
        (Query::MemoryErrors(0, 1, 2), &[0]),
        (Query::MemoryErrors(1, 0, 2), &[0]),
        (Query::MemoryErrors(1, 1, 2), &[0]),
        (Query::RepairStatus, &[0, 0]),
        (Query::UnrepairableMemory, &[0]),
        (Query::RemappedRowsV2, &[0, 0, 0, 0, 0, 0]),
        (Query::RowRemapperHistogram, &[3072, 0, 0, 0, 0]),
        (Query::Temperature, &[28]),
        (Query::MarginTemperature, &[59]),
        (Query::Field(193, 0), &[-8]),
        (Query::Field(194, 0), &[-2]),
        (Query::Field(196, 0), &[0]),
        (Query::Field(82, 0), &[28]),
        (Query::Field(195, 0), &[0]),
        (Query::Field(185, 0), &[75_170]),
        (Query::Field(186, 0), &[75_340]),
        (Query::Field(190, 0), &[700_000]),
        (Query::Field(192, 0), &[700_000]),
        (Query::Field(189, 0), &[700_000]),
        (Query::Field(187, 0), &[200_000]),
        (Query::Field(188, 0), &[700_000]),
        (Query::Field(185, 2), &[44_310]),
        (Query::Clock(0), &[345]),
        (Query::Clock(1), &[345]),
        (Query::Clock(2), &[3201]),
        (Query::Clock(3), &[765]),
        (Query::ApplicationsClock(0), &[1980]),
        (Query::ApplicationsClock(2), &[3201]),
        (Query::DefaultApplicationsClock(0), &[1980]),
        (Query::DefaultApplicationsClock(2), &[3201]),
        (Query::MaxClock(0), &[1980]),
        (Query::MaxClock(1), &[1980]),
        (Query::MaxClock(2), &[3201]),
        (Query::MaxClock(3), &[1545]),
        (Query::CustomerBoostClock(0), &[1980]),
        (Query::FabricInfo, &[3, 0, 0, 0, 0, 0, 0]),
        (Query::SupportedMemoryClocks, &[3201, 2201]),
        (Query::SupportedGraphicsClocks(3201), &[1980, 1965, 345]),
        (Query::SupportedGraphicsClocks(2201), &[1980, 345]),
        (Query::ComputeProcesses, &[]),
        (Query::GraphicsProcesses, &[]),
        (Query::MpsProcesses, &[]),
        (Query::Capabilities, &[0]),
        // The answers contain three power samples, 20 ms apart, and four utilization samples, 200
        // ms apart.
        (
            Query::Samples(0, 0),
            &[1_000_000, 76_360, 1_020_000, 74_690, 1_040_000, 75_161],
        ),
        (
            Query::Samples(1, 0),
            &[1_000_000, 0, 1_200_000, 99, 1_400_000, 99, 1_600_000, 50],
        ),
    ];
    answers.iter().fold(script, |script, (query, numbers)| {
        script.with_numbers(gpu, *query, numbers)
    })
}

/// Adds an H200 with two MIG devices to the script. A process uses one of the devices.
pub(crate) fn add_divided_h200(script: ScriptedBackend) -> ScriptedBackend {
    let script = add_hopper(script, 0)
        .with_numbers(0, Query::MigMode, &[1, 1])
        .with_numbers(0, Query::MigDevices, &[0, 3])
        .with_answer(
            Subject::from_gpu(0),
            Query::UtilizationRates,
            Err(Code::NOT_SUPPORTED),
        )
        .with_numbers(0, Query::ComputeProcesses, &[4711, 12 << 20, 2, 0])
        .with_system_answer(
            SystemQuery::ProcessName(4711),
            Ok(Value::Text("/usr/bin/python3".to_owned())),
        );
    [(0, 1), (3, 2)]
        .into_iter()
        .fold(script, |script, (part, instance)| {
            let answers: &[(Query, &[i128])] = &[
                (Query::MigInstance, &[instance, 0]),
                (Query::MigAttributes, &[60, 3, 2, 0, 4, 1, 3, 3, 71_424]),
                (Query::MemoryErrors(1, 0, 7), &[5]),
                (
                    Query::MemoryInfo,
                    &[71_424 << 20, 0, 71_411 << 20, (12 << 20) + 1],
                ),
                (
                    Query::Bar1MemoryInfo,
                    &[131_072 << 20, (131_071 << 20) + 1, (1 << 20) - 1],
                ),
            ];
            answers.iter().fold(script, |script, (query, numbers)| {
                script.with_answer(
                    Subject::from_mig(0, part),
                    *query,
                    Ok(Value::Numbers(numbers.to_vec())),
                )
            })
        })
}

/// Adds a board from 2017 to the script. It has a fan, a bridge chip, errors by cache, retired
/// pages, auto boost, and accounting, but neither MIG nor margins.
pub(crate) fn add_volta(script: ScriptedBackend) -> ScriptedBackend {
    let answers: &[(Query, &[i128])] = &[
        (Query::Architecture, &[5]),
        (Query::Brand, &[2]),
        (Query::FanSpeed, &[31]),
        (Query::BridgeChips, &[0, 0xF047_2900]),
        (Query::EccMode, &[1, 0]),
        (Query::MemoryErrors(0, 0, 2), &[3]),
        (Query::MemoryErrors(0, 0, 3), &[4]),
        (Query::MemoryErrors(1, 1, 6), &[7]),
        (Query::TotalEccErrors(0, 0), &[11]),
        (Query::RetiredPages(0), &[0, 0x1_B0D9, 0, 0x2_0000]),
        (Query::RetiredPages(1), &[]),
        (Query::RetiredPagesPending, &[1]),
        (Query::Temperature, &[41]),
        (Query::TemperatureThreshold(0), &[90]),
        (Query::TemperatureThreshold(1), &[87]),
        (Query::TemperatureThreshold(2), &[85]),
        (Query::TemperatureThreshold(3), &[83]),
        (Query::TemperatureThreshold(4), &[65]),
        (Query::TemperatureThreshold(6), &[88]),
        (Query::TemperatureThreshold(7), &[84]),
        (Query::AutoBoost, &[1, 0]),
        (Query::SupportedThrottleReasons, &[0x3F]),
        (Query::ThrottleReasons, &[0x208]),
        (Query::PerformanceState, &[32]),
        (Query::AccountingMode, &[1]),
        (Query::AccountingPids, &[54_796, 1]),
        (
            Query::AccountingStats(54_796),
            &[76, 19, 843 << 20, 18_228, 1_700_000_000_000_000, 0],
        ),
        (
            Query::ComputeProcesses,
            &[2000, 100 << 20, -1, -1, 900, -1, -1, -1],
        ),
        (Query::GraphicsProcesses, &[2000, 30 << 20, -1, -1]),
        (Query::LastBbxFlush, &[1_700_000_000_288_000, 69_751]),
        (Query::VirtualizationMode, &[0]),
        (Query::Field(228, 0), &[0x3F]),
    ];
    answers
        .iter()
        .fold(script, |script, (query, numbers)| {
            script.with_numbers(0, *query, numbers)
        })
        .with_text(0, Query::Name, "Tesla V100-PCIE-16GB")
        .with_text(0, Query::BusId, "00000000:3B:00.0")
        .with_answer(
            Subject::from_gpu(0),
            Query::AccountingStats(1),
            Err(Code::NOT_FOUND),
        )
        .with_system_answer(
            SystemQuery::ProcessName(2000),
            Ok(Value::Text("a<b>&\u{1b}[31m\"c\"".to_owned())),
        )
        .with_system_answer(SystemQuery::ProcessName(900), Err(Code::NOT_FOUND))
}

/// Adds a board from 2025 in a rack to the script. It has platform information, a fabric, power
/// smoothing, and power profiles.
pub(crate) fn add_blackwell(script: ScriptedBackend) -> ScriptedBackend {
    let answers: &[(Query, &[i128])] = &[
        (Query::Architecture, &[10]),
        (
            Query::PlatformInfo,
            &[
                0x2,
                0,
                0x3138_3230_3030_3030,
                0x3030_3030_3100_0000,
                25,
                255,
                1,
                1,
                2,
            ],
        ),
        (Query::FabricInfo, &[3, 0, 32_766, 0x01AA, 1, 1 << 32, 1]),
        (Query::Field(251, 5), &[1]),
        (Query::Field(261, 5), &[1_000]),
        (Query::Field(281, 5), &[120]),
        (
            Query::WorkloadPowerProfiles,
            &[
                0x6003, 0, 0, 0, 0, 0, 0, 0, 0x2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
            ],
        ),
    ];
    answers
        .iter()
        .fold(add_hopper(script, 0), |script, (query, numbers)| {
            script.with_numbers(0, *query, numbers)
        })
        .with_answer(
            Subject::from_gpu(0),
            Query::Field(260, 5),
            Ok(Value::Reals(vec![55.44])),
        )
}

/// Adds a vGPU host to the script.
pub(crate) fn add_virtual_gpu_host(script: ScriptedBackend) -> ScriptedBackend {
    add_hopper(script, 0)
        .with_numbers(0, Query::VirtualizationMode, &[3])
        .with_numbers(0, Query::HostVgpuMode, &[1])
        .with_numbers(0, Query::VgpuCapability(1), &[1])
        .with_numbers(0, Query::VgpuCapability(2), &[0])
        .with_numbers(0, Query::VgpuCapability(11), &[1])
        .with_system_answer(
            SystemQuery::VgpuDriverCapability(0),
            Ok(Value::from_number(1)),
        )
        .with_system_answer(SystemQuery::CudaVersion, Err(Code::NOT_FOUND))
}

/// Adds a GPU that has fallen off the bus to the script.
pub(crate) fn add_lost_gpu(script: ScriptedBackend, gpu: u32) -> ScriptedBackend {
    [
        Query::Name,
        Query::Serial,
        Query::Temperature,
        Query::ThrottleReasons,
        Query::ComputeProcesses,
    ]
    .into_iter()
    .chain([
        Query::GraphicsProcesses,
        Query::MpsProcesses,
        Query::SupportedMemoryClocks,
    ])
    .fold(add_hopper(script, gpu), |script, query| {
        script.with_answer(Subject::from_gpu(gpu), query, Err(Code::GPU_IS_LOST))
    })
}
