//! Boards that answer as real ones do.

use gpumon_probe::question::{Code, Question, Subject, SystemQuestion, Value};

use crate::smi::script::Script;

/// A driver without a GPU.
pub(super) fn driver() -> Script {
    Script::default()
        .system(SystemQuestion::DriverVersion, Ok(Value::Text("580.159.04".to_owned())))
        .system(SystemQuestion::CudaVersion, Ok(Value::number(13_000)))
        .system(SystemQuestion::UnitCount, Ok(Value::number(0)))
}

/// An H200 in a virtual machine, with nothing to do.
pub(super) fn hopper(script: Script, gpu: u32) -> Script {
    let device = 6 + i128::from(gpu);
    let mib = 1 << 20;
    let script = [
        (Question::Name, "NVIDIA H200"),
        (Question::Serial, "1650000000000"),
        (Question::Uuid, "GPU-00000000-1111-2222-3333-444444444444"),
        (Question::VbiosVersion, "96.00.A5.00.1A"),
        (Question::BoardPartNumber, "692-2G520-0282-000"),
        (Question::GpuPartNumber, "2335-895-A1"),
        (Question::InforomImageVersion, "G520.0282.02.02"),
        (Question::InforomVersion(0), "2.1"),
        (Question::InforomVersion(1), "7.16"),
        (Question::GspFirmwareVersion, "580.159.04"),
    ]
    .into_iter()
    .fold(script, |script, (question, text)| script.text(gpu, question, text))
    .text(gpu, Question::BusId, &format!("00000000:00:{device:02X}.0"))
    .answer(Subject::gpu(gpu), Question::LastBbxFlush, Err(Code::NOT_READY));
    let script = [5, 6]
        .into_iter()
        .fold(script, |script, kind| script.answer(Subject::gpu(gpu), Question::Samples(kind), Err(Code::NOT_FOUND)));
    let answers: &[(Question, &[i128])] = &[
        (Question::PciInfo, &[0, 0, device, 0x2335_10DE, 0x18BF_10DE, 3, 2]),
        (Question::Brand, &[14]),
        (Question::Architecture, &[9]),
        (Question::DisplayMode, &[1]),
        (Question::DisplayActive, &[0]),
        (Question::PersistenceMode, &[1]),
        (Question::AddressingMode, &[0]),
        (Question::MigMode, &[0, 0]),
        (Question::AccountingMode, &[0]),
        (Question::AccountingBufferSize, &[4000]),
        (Question::AccountingPids, &[]),
        (Question::Pdi, &[0x00d6_716e_d5bf_3e92]),
        (Question::MinorNumber, &[i128::from(gpu)]),
        (Question::MultiGpuBoard, &[0]),
        (Question::BoardId, &[device]),
        (Question::ModuleId, &[2]),
        (Question::C2cMode, &[0]),
        (Question::VirtualizationMode, &[1]),
        (Question::Field(230, 0), &[0]),
        (Question::MaxPcieGeneration, &[5]),
        (Question::PcieGeneration, &[5]),
        (Question::GpuMaxPcieGeneration, &[5]),
        (Question::MaxPcieWidth, &[16]),
        (Question::PcieWidth, &[16]),
        (Question::PcieReplays, &[0]),
        (Question::Field(95, 0), &[0]),
        (Question::Field(228, 0), &[0]),
        (Question::Field(229, 0), &[0]),
        (Question::PcieThroughput(0), &[1067]),
        (Question::PcieThroughput(1), &[633]),
        (Question::PerformanceState, &[0]),
        (Question::SupportedThrottleReasons, &[0x1FF]),
        (Question::ThrottleReasons, &[1]),
        (Question::Field(74, 0), &[19_431_388_416]),
        (Question::Field(76, 0), &[0]),
        (Question::Field(269, 0), &[0]),
        (Question::Field(270, 0), &[0]),
        (Question::Field(271, 0), &[0]),
        (Question::MemoryInfo, &[143_771 * mib, 0x2671_0000, 0x22_F33F_0000, 0]),
        (Question::Bar1MemoryInfo, &[0x40_0000_0000, 0x3F_FFE6_0000, 0x1A_0000]),
        (Question::ProtectedMemory, &[0, 0, 0]),
        (Question::ComputeMode, &[0]),
        (Question::UtilizationRates, &[0, 0]),
        (Question::EncoderUtilization, &[0, 100_000]),
        (Question::DecoderUtilization, &[0, 100_000]),
        (Question::JpgUtilization, &[0, 100_000]),
        (Question::OfaUtilization, &[0, 100_000]),
        (Question::EncoderStats, &[0, 0, 0]),
        (Question::FbcStats, &[0, 0, 0]),
        (Question::EccMode, &[1, 1]),
        (Question::SramEccErrors, &[0; 12]),
        (Question::MemoryErrors(0, 0, 7), &[0]),
        (Question::MemoryErrors(0, 1, 7), &[0]),
        (Question::MemoryErrors(0, 0, 2), &[0]),
        (Question::MemoryErrors(0, 1, 2), &[0]),
        (Question::MemoryErrors(1, 0, 2), &[0]),
        (Question::MemoryErrors(1, 1, 2), &[0]),
        (Question::RepairStatus, &[0, 0]),
        (Question::UnrepairableMemory, &[0]),
        (Question::RemappedRowsV2, &[0, 0, 0, 0, 0, 0]),
        (Question::RowRemapperHistogram, &[3072, 0, 0, 0, 0]),
        (Question::Temperature, &[28]),
        (Question::MarginTemperature, &[59]),
        (Question::Field(193, 0), &[-8]),
        (Question::Field(194, 0), &[-2]),
        (Question::Field(196, 0), &[0]),
        (Question::Field(82, 0), &[28]),
        (Question::Field(195, 0), &[0]),
        (Question::Field(185, 0), &[75_170]),
        (Question::Field(186, 0), &[75_340]),
        (Question::Field(190, 0), &[700_000]),
        (Question::Field(192, 0), &[700_000]),
        (Question::Field(189, 0), &[700_000]),
        (Question::Field(187, 0), &[200_000]),
        (Question::Field(188, 0), &[700_000]),
        (Question::Field(185, 2), &[44_310]),
        (Question::Clock(0), &[345]),
        (Question::Clock(1), &[345]),
        (Question::Clock(2), &[3201]),
        (Question::Clock(3), &[765]),
        (Question::ApplicationsClock(0), &[1980]),
        (Question::ApplicationsClock(2), &[3201]),
        (Question::DefaultApplicationsClock(0), &[1980]),
        (Question::DefaultApplicationsClock(2), &[3201]),
        (Question::MaxClock(0), &[1980]),
        (Question::MaxClock(1), &[1980]),
        (Question::MaxClock(2), &[3201]),
        (Question::MaxClock(3), &[1545]),
        (Question::CustomerBoostClock(0), &[1980]),
        (Question::FabricInfo, &[3, 0, 0, 0, 0, 0, 0]),
        (Question::SupportedMemoryClocks, &[3201, 2201]),
        (Question::SupportedGraphicsClocks(3201), &[1980, 1965, 345]),
        (Question::SupportedGraphicsClocks(2201), &[1980, 345]),
        (Question::ComputeProcesses, &[]),
        (Question::GraphicsProcesses, &[]),
        (Question::MpsProcesses, &[]),
        (Question::Capabilities, &[0]),
        // Three samples, 20 ms apart, and four, 200 ms apart.
        (Question::Samples(0), &[1_000_000, 76_360, 1_020_000, 74_690, 1_040_000, 75_161]),
        (Question::Samples(1), &[1_000_000, 0, 1_200_000, 99, 1_400_000, 99, 1_600_000, 50]),
    ];
    answers.iter().fold(script, |script, (question, numbers)| script.numbers(gpu, *question, numbers))
}

/// The same, in MIG mode: two parts, one of which a process uses.
pub(super) fn parted(script: Script) -> Script {
    let script = hopper(script, 0)
        .numbers(0, Question::MigMode, &[1, 1])
        .numbers(0, Question::MigDevices, &[0, 3])
        .answer(Subject::gpu(0), Question::UtilizationRates, Err(Code::NOT_SUPPORTED))
        .numbers(0, Question::ComputeProcesses, &[4711, 12 << 20, 2, 0])
        .system(SystemQuestion::ProcessName(4711), Ok(Value::Text("/usr/bin/python3".to_owned())));
    [(0, 1), (3, 2)].into_iter().fold(script, |script, (part, instance)| {
        let answers: &[(Question, &[i128])] = &[
            (Question::MigInstance, &[instance, 0]),
            (Question::MigAttributes, &[60, 3, 2, 0, 4, 1, 3, 3, 71_424]),
            (Question::MemoryErrors(1, 0, 7), &[5]),
            (Question::MemoryInfo, &[71_424 << 20, 0, 71_411 << 20, (12 << 20) + 1]),
            (Question::Bar1MemoryInfo, &[131_072 << 20, (131_071 << 20) + 1, (1 << 20) - 1]),
        ];
        answers.iter().fold(script, |script, (question, numbers)| {
            script.answer(Subject::mig(0, part), *question, Ok(Value::Numbers(numbers.to_vec())))
        })
    })
}

/// A board of 2017: a fan, a bridge chip, errors by cache, retired pages, auto boost, accounting, no MIG and no margin.
pub(super) fn volta(script: Script) -> Script {
    let answers: &[(Question, &[i128])] = &[
        (Question::Architecture, &[5]),
        (Question::Brand, &[2]),
        (Question::FanSpeed, &[31]),
        (Question::BridgeChips, &[0, 0xF047_2900]),
        (Question::EccMode, &[1, 0]),
        (Question::MemoryErrors(0, 0, 2), &[3]),
        (Question::MemoryErrors(0, 0, 3), &[4]),
        (Question::MemoryErrors(1, 1, 6), &[7]),
        (Question::TotalEccErrors(0, 0), &[11]),
        (Question::RetiredPages(0), &[0, 0x1_B0D9, 0, 0x2_0000]),
        (Question::RetiredPages(1), &[]),
        (Question::RetiredPagesPending, &[1]),
        (Question::Temperature, &[41]),
        (Question::TemperatureThreshold(0), &[90]),
        (Question::TemperatureThreshold(1), &[87]),
        (Question::TemperatureThreshold(2), &[85]),
        (Question::TemperatureThreshold(3), &[83]),
        (Question::TemperatureThreshold(4), &[65]),
        (Question::TemperatureThreshold(6), &[88]),
        (Question::TemperatureThreshold(7), &[84]),
        (Question::AutoBoost, &[1, 0]),
        (Question::SupportedThrottleReasons, &[0x3F]),
        (Question::ThrottleReasons, &[0x208]),
        (Question::PerformanceState, &[32]),
        (Question::AccountingMode, &[1]),
        (Question::AccountingPids, &[54_796, 1]),
        (Question::AccountingStats(54_796), &[76, 19, 843 << 20, 18_228, 1_700_000_000_000_000, 0]),
        (Question::ComputeProcesses, &[2000, 100 << 20, -1, -1, 900, -1, -1, -1]),
        (Question::GraphicsProcesses, &[2000, 30 << 20, -1, -1]),
        (Question::LastBbxFlush, &[1_700_000_000_288_000, 69_751]),
        (Question::VirtualizationMode, &[0]),
        (Question::Field(228, 0), &[0x3F]),
    ];
    answers
        .iter()
        .fold(script, |script, (question, numbers)| script.numbers(0, *question, numbers))
        .text(0, Question::Name, "Tesla V100-PCIE-16GB")
        .text(0, Question::BusId, "00000000:3B:00.0")
        .answer(Subject::gpu(0), Question::AccountingStats(1), Err(Code::NOT_FOUND))
        .system(SystemQuestion::ProcessName(2000), Ok(Value::Text("a<b>&\u{1b}[31m\"c\"".to_owned())))
        .system(SystemQuestion::ProcessName(900), Err(Code::NOT_FOUND))
}

/// A board of 2025 in a rack: platform, fabric, power smoothing and profiles.
pub(super) fn blackwell(script: Script) -> Script {
    let answers: &[(Question, &[i128])] = &[
        (Question::Architecture, &[10]),
        (Question::PlatformInfo, &[0x2, 0, 0x3138_3230_3030_3030, 0x3030_3030_3100_0000, 25, 255, 1, 1, 2]),
        (Question::FabricInfo, &[3, 0, 32_766, 0x01AA, 1, 1 << 32, 1]),
        (Question::Field(251, 5), &[1]),
        (Question::Field(260, 5), &[5_544]),
        (Question::Field(261, 5), &[1_000]),
        (Question::Field(281, 5), &[120_000]),
        (
            Question::WorkloadPowerProfiles,
            &[0x6003, 0, 0, 0, 0, 0, 0, 0, 0x2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        ),
    ];
    answers.iter().fold(hopper(script, 0), |script, (question, numbers)| script.numbers(0, *question, numbers))
}

/// A host of virtual GPUs.
pub(super) fn host(script: Script) -> Script {
    hopper(script, 0)
        .numbers(0, Question::VirtualizationMode, &[3])
        .numbers(0, Question::HostVgpuMode, &[1])
        .numbers(0, Question::VgpuCapability(1), &[1])
        .numbers(0, Question::VgpuCapability(2), &[0])
        .numbers(0, Question::VgpuCapability(11), &[1])
        .system(SystemQuestion::VgpuDriverCapability(0), Ok(Value::number(1)))
        .system(SystemQuestion::CudaVersion, Err(Code::NOT_FOUND))
}

/// A GPU that has fallen off the bus.
pub(super) fn lost(script: Script, gpu: u32) -> Script {
    [Question::Name, Question::Serial, Question::Temperature, Question::ThrottleReasons, Question::ComputeProcesses]
        .into_iter()
        .chain([Question::GraphicsProcesses, Question::MpsProcesses, Question::SupportedMemoryClocks])
        .fold(hopper(script, gpu), |script, question| {
            script.answer(Subject::gpu(gpu), question, Err(Code::GPU_IS_LOST))
        })
}
