//! Each kind of query returns the expected answer if the library is loaded with `dlopen`.

#![allow(
    clippy::unnecessary_wraps,
    reason = "expected answers have the same type as answers"
)]

use std::{fs, os::unix::fs::symlink, path::Path};

use crate::common::run_with_library;
use gpumon_probe::{
    vendor::nvml::query::{
        Answer, Code, Query as Q, QueryBackend, Subject, SystemQuery as S, Value,
    },
    vendor::{Roots, nvml::NvmlBackend},
};

/// An H200 board, a consumer board, a board with MIG devices, and an old board.
const BOARDS_SCENARIO: &str = r#"
start_ms = 1_763_630_000_000
[[gpu]]
index = 0
nvlinks = 18
utilization_percent = 50
memory_used = "10 GiB"
power_watts = 300
temperature_celsius = 40
encoder_percent = 5
ecc_corrected = 10
ecc_uncorrected = 5
remapped_rows = { correctable = 2, uncorrectable = 1, pending = true }
accounting = true
[[process]]
gpu = 0
pid = 4312
memory = "2 GiB"
sm_percent = 50
name = "python"
[[gpu]]
index = 1
name = "NVIDIA GeForce RTX 4090"
architecture = "ada"
profile = "idle"
[[gpu]]
index = 2
mig = [{ profile = "3g.71gb", gpu_instance = 2 }, { profile = "1g.18gb", gpu_instance = 7 }]
[[process]]
gpu = 2
pid = 77
memory = "1 GiB"
gpu_instance = 2
sm_percent = 10
[[gpu]]
index = 3
name = "Tesla P100-SXM2-16GB"
architecture = "pascal"
profile = "idle"
retired_pages = { single_bit = 2, double_bit = 1 }
"#;

const H200: Subject = Subject::from_gpu(0);
const GEFORCE: Subject = Subject::from_gpu(1);
const MIG_GPU: Subject = Subject::from_gpu(2);
const MIG_DEVICE: Subject = Subject::from_mig(2, 0);
const PASCAL: Subject = Subject::from_gpu(3);

/// Opens the library with simulated files of the system. They show a PCIe port of the fourth
/// generation above the first GPU, and contain no information about the other GPUs.
fn open_library(library: &Path) -> NvmlBackend {
    let sys = library.parent().unwrap().join("sys");
    let (port, known) = (
        sys.join("devices/pci0000:0f/0000:0f:01.0"),
        sys.join("bus/pci/devices"),
    );
    fs::create_dir_all(port.join("0000:10:00.0")).unwrap();
    fs::create_dir_all(&known).unwrap();
    fs::write(port.join("max_link_speed"), "16.0 GT/s PCIe\n").unwrap();
    symlink(port.join("0000:10:00.0"), known.join("0000:10:00.0")).unwrap();
    let roots = Roots {
        sys,
        ..Roots::default()
    };
    NvmlBackend::open(Some(library.into()))
        .unwrap()
        .with_roots(&roots)
}

fn number_answer(numbers: &[i128]) -> Answer {
    Ok(Value::Numbers(numbers.to_vec()))
}

fn text_answer(text: &str) -> Answer {
    Ok(Value::Text(text.to_owned()))
}

fn not_supported() -> Answer {
    Err(Code::NOT_SUPPORTED)
}

/// Queries with their answers. The list must contain every kind of query.
macro_rules! every {
    ($kind:ident: $($name:ident $(($($argument:literal),+))? => $answer:expr;)*) => {{
        // This function does not compile if a kind of query is missing in the table.
        #[allow(unreachable_patterns, reason = "some are asked with several arguments")]
        fn is_known(query: $kind) {
            match query {
                $($kind::$name { .. } => {})*
            }
        }
        let table = [$(($kind::$name $(($($argument),+))?, $answer)),*];
        for (query, _) in &table {
            is_known(*query);
        }
        table
    }};
}

/// Returns the first GPU's queries with their expected answers.
fn h200_answers() -> impl IntoIterator<Item = (Q, Answer)> {
    every! { Q:
        Name => text_answer("NVIDIA H200");
        Uuid => text_answer("GPU-b8bcb11f-9c4e-cd9c-d9e0-e08923109224");
        Serial => text_answer("1651676853549");
        BusId => text_answer("00000000:10:00.0");
        PciInfo => number_answer(&[0, 0x10, 0, 0x2335_10DE, 0x18BF_10DE, 3, 2]);
        Brand => number_answer(&[14]);
        Architecture => number_answer(&[9]);
        ComputeCapability => number_answer(&[9, 0]);
        NumGpuCores => number_answer(&[16_896]);
        MemoryBusWidth => number_answer(&[6144]);
        MinorNumber => number_answer(&[0]);
        MultiGpuBoard => number_answer(&[0]);
        BoardId => number_answer(&[0x1000]);
        BoardPartNumber => text_answer("692-2G520-0282-000");
        GpuPartNumber => Err(Code::FUNCTION_NOT_FOUND);
        ModuleId => number_answer(&[1]);
        Pdi => number_answer(&[0xD9E0_E089_2310_9224]);
        Hostname => not_supported();
        PlatformInfo => number_answer(&[0, 0, 0, 0, 0, 0, 1, 0, 1]);
        VbiosVersion => text_answer("96.00.A5.00.1A");
        InforomImageVersion => text_answer("G520.0282.02.02");
        InforomVersion(0) => text_answer("2.1");
        InforomVersion(1) => text_answer("7.16");
        InforomVersion(2) => not_supported();
        InforomVersion(99) => Err(Code::INVALID_ARGUMENT);
        InforomIsValid => number_answer(&[]);
        LastBbxFlush => Err(Code::NOT_READY);
        TimeRun => number_answer(&[15_811_200]);
        GspFirmwareVersion => text_answer("580.159.04");
        GspFirmwareMode => number_answer(&[1, 1]);

        DisplayMode => number_answer(&[1]);
        DisplayActive => number_answer(&[0]);
        PersistenceMode => number_answer(&[1]);
        AddressingMode => number_answer(&[0]);
        ComputeMode => number_answer(&[0]);
        MigMode => number_answer(&[0, 0]);
        EccMode => number_answer(&[1, 1]);
        DramEncryptionMode => not_supported();
        GpuOperationMode => not_supported();
        DriverModel => not_supported();
        AccountingMode => number_answer(&[1]);
        AccountingBufferSize => number_answer(&[4000]);
        VirtualizationMode => number_answer(&[1]);
        HostVgpuMode => not_supported();
        VgpuHeterogeneousMode => not_supported();
        VgpuCapability(0) => not_supported();
        C2cMode => number_answer(&[0]);
        Capabilities => number_answer(&[0]);
        AutoBoost => not_supported();
        WorkloadPowerProfiles => not_supported();

        UtilizationRates => number_answer(&[50, 20]);
        EncoderUtilization => number_answer(&[5, 166_666]);
        DecoderUtilization => number_answer(&[0, 166_666]);
        JpgUtilization => number_answer(&[0, 166_666]);
        OfaUtilization => number_answer(&[0, 166_666]);
        EncoderStats => number_answer(&[1, 30, 5000]);
        FbcStats => number_answer(&[0, 0, 0]);
        MemoryInfo => number_answer(&[150_754_820_096, 647_016_395, 139_370_385_461, 10 << 30]);
        MemoryInfoV1 => number_answer(&[150_754_820_096, 139_370_385_461, 647_016_395 + (10 << 30)]);
        Bar1MemoryInfo => number_answer(&[262_144 << 20, 262_141 << 20, 3 << 20]);
        ProtectedMemory => number_answer(&[0, 0, 0]);
        Temperature => number_answer(&[40]);
        MarginTemperature => number_answer(&[47]);
        TemperatureThreshold(0) => number_answer(&[95]);
        TemperatureThreshold(5) => not_supported();
        FanSpeed => not_supported();
        NumFans => not_supported();
        FanSpeedOf(0) => not_supported();
        FanSpeedRpm(0) => not_supported();
        PerformanceState => number_answer(&[0]);
        SupportedThrottleReasons => number_answer(&[0x1FF]);
        ThrottleReasons => number_answer(&[0]);
        ViolationStatus(99) => Err(Code::INVALID_ARGUMENT);
        PowerUsage => number_answer(&[300_000]);
        TotalEnergyConsumption => number_answer(&[1_080_000_000]);
        PowerManagementMode => number_answer(&[1]);
        PowerLimit => number_answer(&[700_000]);
        EnforcedPowerLimit => number_answer(&[700_000]);
        DefaultPowerLimit => number_answer(&[700_000]);
        PowerLimitConstraints => number_answer(&[200_000, 700_000]);
        Clock(0) => number_answer(&[1980]);
        Clock(2) => number_answer(&[3201]);
        MaxClock(3) => number_answer(&[1545]);
        ApplicationsClock(0) => number_answer(&[1980]);
        DefaultApplicationsClock(2) => number_answer(&[3201]);
        CustomerBoostClock(0) => number_answer(&[1980]);
        SupportedMemoryClocks => number_answer(&[3201, 2201]);
        SupportedGraphicsClocks(3201) => {
            Ok(Value::Numbers((0..110).map(|step| 1980 - 15 * step).collect()))
        };
        SupportedGraphicsClocks(1) => Err(Code::NOT_FOUND);
        Field(193, 0) => number_answer(&[-8]);
        Field(186, 0) => number_answer(&[300_000]);
        Field(185, 2) => number_answer(&[36_000]);
        Field(185, 1) => not_supported();
        Field(164, 17) => number_answer(&[26_562]);
        Field(164, 18) => Err(Code::INVALID_ARGUMENT);
        Samples(3, 0) => Err(Code::NOT_FOUND);

        TotalEccErrors(0, 0) => number_answer(&[10]);
        TotalEccErrors(1, 1) => number_answer(&[6]);
        MemoryErrors(0, 1, 2) => number_answer(&[10]);
        MemoryErrors(1, 0, 7) => number_answer(&[1]);
        SramEccErrors => number_answer(&[0, 1, 2, 0, 1, 2, 1, 0, 0, 0, 0, 0]);
        RepairStatus => number_answer(&[0, 0]);
        UnrepairableMemory => number_answer(&[0]);
        RetiredPages(0) => not_supported();
        RetiredPagesPending => not_supported();
        RemappedRows => number_answer(&[2, 1, 1, 0]);
        RemappedRowsV2 => number_answer(&[2, 0, 1, 0, 1, 0]);
        RowRemapperHistogram => number_answer(&[3069, 3, 0, 0, 0]);

        PcieGeneration => number_answer(&[5]);
        MaxPcieGeneration => number_answer(&[5]);
        GpuMaxPcieGeneration => number_answer(&[5]);
        HostMaxPcieGeneration => number_answer(&[4]);
        PcieWidth => number_answer(&[16]);
        MaxPcieWidth => number_answer(&[16]);
        PcieReplays => number_answer(&[0]);
        PcieThroughput(1) => number_answer(&[1_200_000]);
        BridgeChips => not_supported();
        FabricInfo => number_answer(&[3, 0, 0, 0, 0, 0x57BF_BBFA_D116_9904, 0x6F72_323F_0A04_9EA2]);
        NvLinkRemoteBusId(0) => text_answer("00000000:04:00.0");
        NvLinkCapability(0, 5) => number_answer(&[1]);
        NvLinkState(17) => number_answer(&[1]);
        NvLinkState(18) => Err(Code::INVALID_ARGUMENT);
        NvLinkVersion(0) => number_answer(&[6]);
        NvLinkRemoteDeviceType(0) => number_answer(&[2]);
        NvLinkInfo => number_answer(&[0]);
        CpuAffinity => number_answer(&[0xFFFF_FFFF]);
        MemoryAffinity => number_answer(&[1]);
        NumaNode => number_answer(&[0]);
        NearestGpus(30) => number_answer(&[]);
        NearestGpus(40) => number_answer(&[1, 2, 3]);
        CommonAncestor(1) => number_answer(&[40]);
        CommonAncestor(9) => Err(Code::INVALID_ARGUMENT);
        P2pStatus(1, 0) => number_answer(&[5]);
        P2pStatus(0, 0) => number_answer(&[0]);

        ComputeProcesses => number_answer(&[4312, 2 << 30, -1, -1]);
        GraphicsProcesses => number_answer(&[]);
        MpsProcesses => number_answer(&[]);
        ProcessUtilization(0xFFFF_FFFF_FFFF_FFFF) => Err(Code::NOT_FOUND);
        AccountingPids => number_answer(&[4312]);
        AccountingStats(4312) => number_answer(&[50, 20, 2 << 30, 0, 1_763_629_400_000_000, 1]);
        AccountingStats(1) => Err(Code::NOT_FOUND);

        MaxMigDevices => number_answer(&[0]);
        MigDevices => number_answer(&[]);
        MigInstance => Err(Code::INVALID_ARGUMENT);
        MigAttributes => not_supported();
    }
}

#[test]
fn every_query_about_a_gpu_is_answered() {
    run_with_library(
        "answers::every_query_about_a_gpu_is_answered",
        BOARDS_SCENARIO,
        &[],
        |library| {
            let answers = open_library(library);
            let answer = |query| match answers.answer_query(H200, query) {
                // The energy grows while the test runs. So it is rounded down to the energy that
                // 300 W need for a minute, in mJ.
                Ok(Value::Numbers(energy)) if query == Q::TotalEnergyConsumption => {
                    number_answer(&[energy[0] - energy[0] % (60 * 300_000)])
                }
                answer => answer,
            };
            let wrong: Vec<_> = h200_answers()
                .into_iter()
                .map(|(query, expected)| (query, expected, answer(query)))
                .filter(|(_, expected, answer)| answer != expected)
                .collect();
            assert!(wrong.is_empty(), "{wrong:#?}");
            // This query is checked separately: there are several samples, and the time stamp of
            // the last one depends on the current time.
            let Ok(Value::Numbers(samples)) = answers.answer_query(H200, Q::Samples(0, 0)) else {
                panic!("there are no power samples")
            };
            assert_eq!(
                (samples.len(), samples[1], samples[237]),
                (2 * 119, 300_000, 300_000)
            );
            assert_eq!(samples[2] - samples[0], 20_000);
            let Ok(Value::Numbers(used)) = answers.answer_query(H200, Q::ProcessUtilization(0))
            else {
                panic!("no process has utilization")
            };
            assert_eq!(used[1..], [4312, 50, 20, 0, 0, 0, 0]);
            assert_eq!(
                answers
                    .answer_query(H200, Q::ViolationStatus(3))
                    .map(|times| times.number_at(1)),
                Ok(Some(0))
            );
        },
    );
}

#[test]
fn older_and_consumer_boards_lack_features() {
    run_with_library(
        "answers::older_and_consumer_boards_lack_features",
        BOARDS_SCENARIO,
        &[],
        |library| {
            let answers = open_library(library);
            let say = |subject, query, answer: Answer| {
                assert_eq!(
                    answers.answer_query(subject, query),
                    answer,
                    "{query:?} of {subject:?}"
                );
            };
            for query in [
                Q::Serial,
                Q::BoardPartNumber,
                Q::ModuleId,
                Q::MigMode,
                Q::EccMode,
                Q::TotalEccErrors(1, 0),
                Q::SramEccErrors,
                Q::RepairStatus,
                Q::RemappedRows,
                Q::RetiredPages(0),
                Q::MarginTemperature,
                Q::Field(193, 0),
                Q::InforomVersion(1),
                Q::NvLinkState(0),
                Q::FabricInfo,
                Q::HostMaxPcieGeneration,
            ] {
                say(GEFORCE, query, not_supported());
            }
            say(GEFORCE, Q::Brand, number_answer(&[5]));
            assert!(
                matches!(answers.answer_query(GEFORCE, Q::FanSpeed), Ok(Value::Numbers(speed)) if (30..50).contains(&speed[0]))
            );
            say(GEFORCE, Q::AccountingPids, number_answer(&[]));

            say(PASCAL, Q::Brand, number_answer(&[2]));
            say(
                PASCAL,
                Q::RetiredPages(0),
                number_answer(&[1_763_630_000, 0x10_0000, 1_763_630_000, 0x10_1000]),
            );
            say(
                PASCAL,
                Q::RetiredPages(1),
                number_answer(&[1_763_630_000, 0x1000_0000]),
            );
            say(PASCAL, Q::RetiredPagesPending, number_answer(&[0]));
            for query in [
                Q::RemappedRowsV2,
                Q::GspFirmwareVersion,
                Q::SramEccErrors,
                Q::UnrepairableMemory,
            ] {
                say(PASCAL, query, not_supported());
            }
        },
    );
}

#[test]
fn mig_device_answers_queries_about_itself() {
    run_with_library(
        "answers::mig_device_answers_queries_about_itself",
        BOARDS_SCENARIO,
        &[],
        |library| {
            let answers = open_library(library);
            let say = |subject, query, answer: Answer| {
                assert_eq!(
                    answers.answer_query(subject, query),
                    answer,
                    "{query:?} of {subject:?}"
                );
            };
            say(MIG_GPU, Q::MigMode, number_answer(&[1, 1]));
            say(MIG_GPU, Q::MaxMigDevices, number_answer(&[7]));
            say(MIG_GPU, Q::MigDevices, number_answer(&[0, 1]));
            say(MIG_GPU, Q::UtilizationRates, not_supported());
            say(
                MIG_GPU,
                Q::ComputeProcesses,
                number_answer(&[77, 1 << 30, 2, 0]),
            );
            say(MIG_DEVICE, Q::Name, text_answer("NVIDIA H200 MIG 3g.71gb"));
            say(MIG_DEVICE, Q::MigInstance, number_answer(&[2, 0]));
            say(
                Subject::from_mig(2, 1),
                Q::MigInstance,
                number_answer(&[7, 0]),
            );
            say(
                Subject::from_mig(2, 2),
                Q::MigInstance,
                Err(Code::NOT_FOUND),
            );
            say(
                MIG_DEVICE,
                Q::MigAttributes,
                number_answer(&[60, 3, 3, 0, 3, 0, 3, 3, 67_710]),
            );
            say(
                MIG_DEVICE,
                Q::MemoryInfo,
                number_answer(&[70_999_080_960, 0, 69_925_339_136, 1 << 30]),
            );
            say(
                MIG_DEVICE,
                Q::Bar1MemoryInfo,
                number_answer(&[131_072 << 20, 131_072 << 20, 0]),
            );
            say(MIG_DEVICE, Q::MemoryErrors(1, 0, 7), number_answer(&[0]));
            say(
                MIG_DEVICE,
                Q::ComputeProcesses,
                number_answer(&[77, 1 << 30, 2, 0]),
            );
            say(
                Subject::from_mig(2, 1),
                Q::ComputeProcesses,
                number_answer(&[]),
            );
            say(MIG_DEVICE, Q::PowerUsage, not_supported());
        },
    );
}

#[test]
fn every_query_about_the_machine_is_answered() {
    run_with_library(
        "answers::every_query_about_the_machine_is_answered",
        BOARDS_SCENARIO,
        &[],
        |library| {
            let answers = open_library(library);
            let table = every! { S:
                DriverVersion => text_answer("580.159.04");
                NvmlVersion => text_answer("13.580.159.04");
                CudaVersion => number_answer(&[13_000]);
                DeviceCount => number_answer(&[4]);
                ProcessName(4312) => text_answer("python");
                ProcessName(1) => Err(Code::NOT_FOUND);
                VgpuDriverCapability(0) => not_supported();
                NvlinkBandwidthMode => number_answer(&[0]);
                GpusNearCpu(5) => number_answer(&[0, 1, 2, 3]);
                GpusNearCpu(40) => number_answer(&[]);
                ConfComputeState => number_answer(&[0, 0, 0]);
            };
            for (query, expected) in table {
                assert_eq!(answers.answer_system(query), expected, "{query:?}");
            }
        },
    );
}

#[test]
fn older_library_answers_with_available_functions() {
    const NEWER: [&str; 14] = [
        "nvmlDeviceGetMemoryInfo_v2",
        "nvmlDeviceGetComputeRunningProcesses_v3",
        "nvmlDeviceGetComputeRunningProcesses_v2",
        "nvmlDeviceGetGraphicsRunningProcesses_v3",
        "nvmlDeviceGetMPSComputeRunningProcesses_v3",
        "nvmlDeviceGetMPSComputeRunningProcesses_v2",
        "nvmlDeviceGetMPSComputeRunningProcesses",
        "nvmlDeviceGetRetiredPages_v2",
        "nvmlDeviceGetSupportedClocksEventReasons",
        "nvmlDeviceGetCurrentClocksEventReasons",
        "nvmlDeviceGetTemperatureV",
        "nvmlDeviceGetPciInfoExt",
        "nvmlDeviceGetProcessesUtilizationInfo",
        "nvmlDeviceGetPdi",
    ];
    run_with_library(
        "answers::older_library_answers_with_available_functions",
        BOARDS_SCENARIO,
        &NEWER,
        |library| {
            let answers = open_library(library);
            let say = |subject, query, answer: Answer| {
                assert_eq!(
                    answers.answer_query(subject, query),
                    answer,
                    "{query:?} of {subject:?}"
                );
            };
            say(
                H200,
                Q::MemoryInfo,
                number_answer(&[
                    150_754_820_096,
                    -1,
                    139_370_385_461,
                    647_016_395 + (10 << 30),
                ]),
            );
            say(
                H200,
                Q::ComputeProcesses,
                number_answer(&[4312, 2 << 30, -1, -1]),
            );
            say(H200, Q::GraphicsProcesses, number_answer(&[]));
            say(H200, Q::MpsProcesses, Err(Code::FUNCTION_NOT_FOUND));
            say(PASCAL, Q::RetiredPages(1), number_answer(&[0, 0x1000_0000]));
            say(H200, Q::SupportedThrottleReasons, number_answer(&[0x1FF]));
            say(GEFORCE, Q::ThrottleReasons, number_answer(&[1]));
            say(
                H200,
                Q::PciInfo,
                number_answer(&[0, 0x10, 0, 0x2335_10DE, 0x18BF_10DE]),
            );
            say(H200, Q::Pdi, Err(Code::FUNCTION_NOT_FOUND));
            let Ok(Value::Numbers(used)) = answers.answer_query(H200, Q::ProcessUtilization(0))
            else {
                panic!("no process has utilization")
            };
            assert_eq!(used[1..], [4312, 50, 20, 0, 0, -1, -1]);
        },
    );
}
