//! Each query is answered by the call in its table, through `dlopen`.

#![allow(
    clippy::unnecessary_wraps,
    reason = "what is compared with answers is an answer"
)]

use std::{fs, os::unix::fs::symlink, path::Path};

use crate::common::with_library;
use gpumon_probe::{
    vendor::nvml::query::{
        Answer, Code, Query as Q, QueryBackend, Subject, SystemQuery as S, Value,
    },
    vendor::{Roots, nvml::NvmlBackend},
};

/// The measured board, a consumer board, a board with MIG devices, and an old board.
const MACHINE: &str = r#"
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

const H200: Subject = Subject::gpu(0);
const GEFORCE: Subject = Subject::gpu(1);
const DIVIDED: Subject = Subject::gpu(2);
const PART: Subject = Subject::mig(2, 0);
const PASCAL: Subject = Subject::gpu(3);

/// Opens the library. The first GPU is below a PCIe port of the fourth generation, and the system
/// has no information about the others.
fn open(library: &Path) -> NvmlBackend {
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

fn n(numbers: &[i128]) -> Answer {
    Ok(Value::Numbers(numbers.to_vec()))
}

fn t(text: &str) -> Answer {
    Ok(Value::Text(text.to_owned()))
}

fn none() -> Answer {
    Err(Code::NOT_SUPPORTED)
}

/// Queries with their answers. The list must contain every kind of query.
macro_rules! every {
    ($kind:ident: $($name:ident $(($($argument:literal),+))? => $answer:expr;)*) => {{
        // A query that is not in the table does not compile.
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

/// The answers of the first GPU.
fn h200() -> impl IntoIterator<Item = (Q, Answer)> {
    every! { Q:
        Name => t("NVIDIA H200");
        Uuid => t("GPU-b8bcb11f-9c4e-cd9c-d9e0-e08923109224");
        Serial => t("1651676853549");
        BusId => t("00000000:10:00.0");
        PciInfo => n(&[0, 0x10, 0, 0x2335_10DE, 0x18BF_10DE, 3, 2]);
        Brand => n(&[14]);
        Architecture => n(&[9]);
        ComputeCapability => n(&[9, 0]);
        NumGpuCores => n(&[16_896]);
        MemoryBusWidth => n(&[6144]);
        MinorNumber => n(&[0]);
        MultiGpuBoard => n(&[0]);
        BoardId => n(&[0x1000]);
        BoardPartNumber => t("692-2G520-0282-000");
        GpuPartNumber => Err(Code::FUNCTION_NOT_FOUND);
        ModuleId => n(&[1]);
        Pdi => n(&[0xD9E0_E089_2310_9224]);
        Hostname => none();
        PlatformInfo => n(&[0, 0, 0, 0, 0, 0, 1, 0, 1]);
        VbiosVersion => t("96.00.A5.00.1A");
        InforomImageVersion => t("G520.0282.02.02");
        InforomVersion(0) => t("2.1");
        InforomVersion(1) => t("7.16");
        InforomVersion(2) => none();
        InforomVersion(99) => Err(Code::INVALID_ARGUMENT);
        InforomIsValid => n(&[]);
        LastBbxFlush => Err(Code::NOT_READY);
        TimeRun => n(&[15_811_200]);
        GspFirmwareVersion => t("580.159.04");
        GspFirmwareMode => n(&[1, 1]);

        DisplayMode => n(&[1]);
        DisplayActive => n(&[0]);
        PersistenceMode => n(&[1]);
        AddressingMode => n(&[0]);
        ComputeMode => n(&[0]);
        MigMode => n(&[0, 0]);
        EccMode => n(&[1, 1]);
        DramEncryptionMode => none();
        GpuOperationMode => none();
        DriverModel => none();
        AccountingMode => n(&[1]);
        AccountingBufferSize => n(&[4000]);
        VirtualizationMode => n(&[1]);
        HostVgpuMode => none();
        VgpuHeterogeneousMode => none();
        VgpuCapability(0) => none();
        C2cMode => n(&[0]);
        Capabilities => n(&[0]);
        AutoBoost => none();
        WorkloadPowerProfiles => none();

        UtilizationRates => n(&[50, 20]);
        EncoderUtilization => n(&[5, 166_666]);
        DecoderUtilization => n(&[0, 166_666]);
        JpgUtilization => n(&[0, 166_666]);
        OfaUtilization => n(&[0, 166_666]);
        EncoderStats => n(&[1, 30, 5000]);
        FbcStats => n(&[0, 0, 0]);
        MemoryInfo => n(&[150_754_820_096, 647_016_395, 139_370_385_461, 10 << 30]);
        MemoryInfoV1 => n(&[150_754_820_096, 139_370_385_461, 647_016_395 + (10 << 30)]);
        Bar1MemoryInfo => n(&[262_144 << 20, 262_141 << 20, 3 << 20]);
        ProtectedMemory => n(&[0, 0, 0]);
        Temperature => n(&[40]);
        MarginTemperature => n(&[47]);
        TemperatureThreshold(0) => n(&[95]);
        TemperatureThreshold(5) => none();
        FanSpeed => none();
        NumFans => none();
        FanSpeedOf(0) => none();
        FanSpeedRpm(0) => none();
        PerformanceState => n(&[0]);
        SupportedThrottleReasons => n(&[0x1FF]);
        ThrottleReasons => n(&[0]);
        ViolationStatus(99) => Err(Code::INVALID_ARGUMENT);
        PowerUsage => n(&[300_000]);
        TotalEnergyConsumption => n(&[1_080_000_000]);
        PowerManagementMode => n(&[1]);
        PowerLimit => n(&[700_000]);
        EnforcedPowerLimit => n(&[700_000]);
        DefaultPowerLimit => n(&[700_000]);
        PowerLimitConstraints => n(&[200_000, 700_000]);
        Clock(0) => n(&[1980]);
        Clock(2) => n(&[3201]);
        MaxClock(3) => n(&[1545]);
        ApplicationsClock(0) => n(&[1980]);
        DefaultApplicationsClock(2) => n(&[3201]);
        CustomerBoostClock(0) => n(&[1980]);
        SupportedMemoryClocks => n(&[3201, 2201]);
        SupportedGraphicsClocks(3201) => {
            Ok(Value::Numbers((0..110).map(|step| 1980 - 15 * step).collect()))
        };
        SupportedGraphicsClocks(1) => Err(Code::NOT_FOUND);
        Field(193, 0) => n(&[-8]);
        Field(186, 0) => n(&[300_000]);
        Field(185, 2) => n(&[36_000]);
        Field(185, 1) => none();
        Field(164, 17) => n(&[26_562]);
        Field(164, 18) => Err(Code::INVALID_ARGUMENT);
        Samples(3, 0) => Err(Code::NOT_FOUND);

        TotalEccErrors(0, 0) => n(&[10]);
        TotalEccErrors(1, 1) => n(&[6]);
        MemoryErrors(0, 1, 2) => n(&[10]);
        MemoryErrors(1, 0, 7) => n(&[1]);
        SramEccErrors => n(&[0, 1, 2, 0, 1, 2, 1, 0, 0, 0, 0, 0]);
        RepairStatus => n(&[0, 0]);
        UnrepairableMemory => n(&[0]);
        RetiredPages(0) => none();
        RetiredPagesPending => none();
        RemappedRows => n(&[2, 1, 1, 0]);
        RemappedRowsV2 => n(&[2, 0, 1, 0, 1, 0]);
        RowRemapperHistogram => n(&[3069, 3, 0, 0, 0]);

        PcieGeneration => n(&[5]);
        MaxPcieGeneration => n(&[5]);
        GpuMaxPcieGeneration => n(&[5]);
        HostMaxPcieGeneration => n(&[4]);
        PcieWidth => n(&[16]);
        MaxPcieWidth => n(&[16]);
        PcieReplays => n(&[0]);
        PcieThroughput(1) => n(&[1_200_000]);
        BridgeChips => none();
        FabricInfo => n(&[3, 0, 0, 0, 0, 0x57BF_BBFA_D116_9904, 0x6F72_323F_0A04_9EA2]);
        NvLinkRemoteBusId(0) => t("00000000:04:00.0");
        NvLinkCapability(0, 5) => n(&[1]);
        NvLinkState(17) => n(&[1]);
        NvLinkState(18) => Err(Code::INVALID_ARGUMENT);
        NvLinkVersion(0) => n(&[6]);
        NvLinkRemoteDeviceType(0) => n(&[2]);
        NvLinkInfo => n(&[0]);
        CpuAffinity => n(&[0xFFFF_FFFF]);
        MemoryAffinity => n(&[1]);
        NumaNode => n(&[0]);
        NearestGpus(30) => n(&[]);
        NearestGpus(40) => n(&[1, 2, 3]);
        CommonAncestor(1) => n(&[40]);
        CommonAncestor(9) => Err(Code::INVALID_ARGUMENT);
        P2pStatus(1, 0) => n(&[5]);
        P2pStatus(0, 0) => n(&[0]);

        ComputeProcesses => n(&[4312, 2 << 30, -1, -1]);
        GraphicsProcesses => n(&[]);
        MpsProcesses => n(&[]);
        ProcessUtilization(0xFFFF_FFFF_FFFF_FFFF) => Err(Code::NOT_FOUND);
        AccountingPids => n(&[4312]);
        AccountingStats(4312) => n(&[50, 20, 2 << 30, 0, 1_763_629_400_000_000, 1]);
        AccountingStats(1) => Err(Code::NOT_FOUND);

        MaxMigDevices => n(&[0]);
        MigDevices => n(&[]);
        MigInstance => Err(Code::INVALID_ARGUMENT);
        MigAttributes => none();
    }
}

#[test]
fn every_query_about_a_gpu_is_answered() {
    with_library(
        "answers::every_query_about_a_gpu_is_answered",
        MACHINE,
        &[],
        |library| {
            let answers = open(library);
            let answer = |query| match answers.about(H200, query) {
                // The energy increases while the test runs, so it is rounded down to the energy of
                // a minute at 300 W, in mJ.
                Ok(Value::Numbers(energy)) if query == Q::TotalEnergyConsumption => {
                    n(&[energy[0] - energy[0] % (60 * 300_000)])
                }
                answer => answer,
            };
            let wrong: Vec<_> = h200()
                .into_iter()
                .map(|(query, expected)| (query, expected, answer(query)))
                .filter(|(_, expected, answer)| answer != expected)
                .collect();
            assert!(wrong.is_empty(), "{wrong:#?}");
            // The time stamp of the last sample depends on the current time, and there are several
            // samples.
            let Ok(Value::Numbers(samples)) = answers.about(H200, Q::Samples(0, 0)) else {
                panic!("no samples of power")
            };
            assert_eq!(
                (samples.len(), samples[1], samples[237]),
                (2 * 119, 300_000, 300_000)
            );
            assert_eq!(samples[2] - samples[0], 20_000);
            let Ok(Value::Numbers(used)) = answers.about(H200, Q::ProcessUtilization(0)) else {
                panic!("nobody did")
            };
            assert_eq!(used[1..], [4312, 50, 20, 0, 0, 0, 0]);
            assert_eq!(
                answers
                    .about(H200, Q::ViolationStatus(3))
                    .map(|times| times.at(1)),
                Ok(Some(0))
            );
        },
    );
}

#[test]
fn boards_lack_what_they_lack() {
    with_library(
        "answers::boards_lack_what_they_lack",
        MACHINE,
        &[],
        |library| {
            let answers = open(library);
            let say = |subject, query, answer: Answer| {
                assert_eq!(
                    answers.about(subject, query),
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
                say(GEFORCE, query, none());
            }
            say(GEFORCE, Q::Brand, n(&[5]));
            assert!(
                matches!(answers.about(GEFORCE, Q::FanSpeed), Ok(Value::Numbers(speed)) if (30..50).contains(&speed[0]))
            );
            say(GEFORCE, Q::AccountingPids, n(&[]));

            say(PASCAL, Q::Brand, n(&[2]));
            say(
                PASCAL,
                Q::RetiredPages(0),
                n(&[1_763_630_000, 0x10_0000, 1_763_630_000, 0x10_1000]),
            );
            say(PASCAL, Q::RetiredPages(1), n(&[1_763_630_000, 0x1000_0000]));
            say(PASCAL, Q::RetiredPagesPending, n(&[0]));
            for query in [
                Q::RemappedRowsV2,
                Q::GspFirmwareVersion,
                Q::SramEccErrors,
                Q::UnrepairableMemory,
            ] {
                say(PASCAL, query, none());
            }
        },
    );
}

#[test]
fn a_mig_device_answers_for_its_part() {
    with_library(
        "answers::a_mig_device_answers_for_its_part",
        MACHINE,
        &[],
        |library| {
            let answers = open(library);
            let say = |subject, query, answer: Answer| {
                assert_eq!(
                    answers.about(subject, query),
                    answer,
                    "{query:?} of {subject:?}"
                );
            };
            say(DIVIDED, Q::MigMode, n(&[1, 1]));
            say(DIVIDED, Q::MaxMigDevices, n(&[7]));
            say(DIVIDED, Q::MigDevices, n(&[0, 1]));
            say(DIVIDED, Q::UtilizationRates, none());
            say(DIVIDED, Q::ComputeProcesses, n(&[77, 1 << 30, 2, 0]));
            say(PART, Q::Name, t("NVIDIA H200 MIG 3g.71gb"));
            say(PART, Q::MigInstance, n(&[2, 0]));
            say(Subject::mig(2, 1), Q::MigInstance, n(&[7, 0]));
            say(Subject::mig(2, 2), Q::MigInstance, Err(Code::NOT_FOUND));
            say(
                PART,
                Q::MigAttributes,
                n(&[60, 3, 3, 0, 3, 0, 3, 3, 67_710]),
            );
            say(
                PART,
                Q::MemoryInfo,
                n(&[70_999_080_960, 0, 69_925_339_136, 1 << 30]),
            );
            say(
                PART,
                Q::Bar1MemoryInfo,
                n(&[131_072 << 20, 131_072 << 20, 0]),
            );
            say(PART, Q::MemoryErrors(1, 0, 7), n(&[0]));
            say(PART, Q::ComputeProcesses, n(&[77, 1 << 30, 2, 0]));
            say(Subject::mig(2, 1), Q::ComputeProcesses, n(&[]));
            say(PART, Q::PowerUsage, none());
        },
    );
}

#[test]
fn every_query_about_the_machine_is_answered() {
    with_library(
        "answers::every_query_about_the_machine_is_answered",
        MACHINE,
        &[],
        |library| {
            let answers = open(library);
            let table = every! { S:
                DriverVersion => t("580.159.04");
                NvmlVersion => t("13.580.159.04");
                CudaVersion => n(&[13_000]);
                DeviceCount => n(&[4]);
                ProcessName(4312) => t("python");
                ProcessName(1) => Err(Code::NOT_FOUND);
                VgpuDriverCapability(0) => none();
                NvlinkBandwidthMode => n(&[0]);
                GpusNearCpu(5) => n(&[0, 1, 2, 3]);
                GpusNearCpu(40) => n(&[]);
                ConfComputeState => n(&[0, 0, 0]);
            };
            for (query, expected) in table {
                assert_eq!(answers.system(query), expected, "{query:?}");
            }
        },
    );
}

#[test]
fn an_older_library_answers_with_what_it_has() {
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
    with_library(
        "answers::an_older_library_answers_with_what_it_has",
        MACHINE,
        &NEWER,
        |library| {
            let answers = open(library);
            let say = |subject, query, answer: Answer| {
                assert_eq!(
                    answers.about(subject, query),
                    answer,
                    "{query:?} of {subject:?}"
                );
            };
            say(
                H200,
                Q::MemoryInfo,
                n(&[
                    150_754_820_096,
                    -1,
                    139_370_385_461,
                    647_016_395 + (10 << 30),
                ]),
            );
            say(H200, Q::ComputeProcesses, n(&[4312, 2 << 30, -1, -1]));
            say(H200, Q::GraphicsProcesses, n(&[]));
            say(H200, Q::MpsProcesses, Err(Code::FUNCTION_NOT_FOUND));
            say(PASCAL, Q::RetiredPages(1), n(&[0, 0x1000_0000]));
            say(H200, Q::SupportedThrottleReasons, n(&[0x1FF]));
            say(GEFORCE, Q::ThrottleReasons, n(&[1]));
            say(H200, Q::PciInfo, n(&[0, 0x10, 0, 0x2335_10DE, 0x18BF_10DE]));
            say(H200, Q::Pdi, Err(Code::FUNCTION_NOT_FOUND));
            let Ok(Value::Numbers(used)) = answers.about(H200, Q::ProcessUtilization(0)) else {
                panic!("nobody did")
            };
            assert_eq!(used[1..], [4312, 50, 20, 0, 0, -1, -1]);
        },
    );
}
