//! Tests of the summary against nvidia-smi's output for H200 GPUs.

use gpumon_probe::vendor::nvml::query::{Code, Query as Q, Subject, SystemQuery, Value};
use jiff::civil::date;

use super::*;
use crate::tests::scripted::ScriptedBackend;

/// Returns a machine with two H200 GPUs and the values of a real driver. The first GPU is busy.
fn two_h200s() -> ScriptedBackend {
    let mut script = ScriptedBackend::default()
        .with_system_answer(
            SystemQuery::DriverVersion,
            Ok(Value::Text("580.159.04".to_owned())),
        )
        .with_system_answer(SystemQuery::CudaVersion, Ok(Value::from_number(13_000)))
        .with_system_answer(
            SystemQuery::ProcessName(1538),
            Ok(Value::Text("/opt/torch/.venv/bin/python3".to_owned())),
        )
        .with_system_answer(
            SystemQuery::ProcessName(1540),
            Ok(Value::Text(
                "/home/ana/micromamba/envs/sam6d/bin/python".to_owned(),
            )),
        );
    for (gpu, bus_id, celsius, milliwatts, used, percent) in [
        (0, "00000000:00:06.0", 53, 688_992, 7_840_202_752_i128, 99),
        (1, "00000000:00:07.0", 29, 117_999, 0, 0),
    ] {
        script = script
            .with_text(gpu, Q::Name, "NVIDIA H200")
            .with_numbers(gpu, Q::PersistenceMode, &[1])
            .with_text(gpu, Q::BusId, bus_id)
            .with_numbers(gpu, Q::DisplayActive, &[0])
            .with_numbers(gpu, Q::EccMode, &[1, 1])
            .with_numbers(gpu, Q::TotalEccErrors(1, 0), &[0])
            .with_numbers(gpu, Q::Temperature, &[celsius])
            .with_numbers(gpu, Q::PerformanceState, &[0])
            .with_numbers(gpu, Q::PowerUsage, &[milliwatts])
            .with_numbers(gpu, Q::EnforcedPowerLimit, &[700_000])
            .with_numbers(
                gpu,
                Q::MemoryInfo,
                &[150_754_820_096, 644_939_776, 150_109_552_640, used],
            )
            .with_numbers(gpu, Q::UtilizationRates, &[percent, 0])
            .with_numbers(gpu, Q::ComputeMode, &[0])
            .with_numbers(gpu, Q::MigMode, &[0, 0])
            .with_numbers(gpu, Q::InforomIsValid, &[]);
    }
    script.with_numbers(
        0,
        Q::ComputeProcesses,
        &[1540, 6_007_291_904, -1, -1, 1538, 1_815_085_056, -1, -1],
    )
}

fn render_script(script: &ScriptedBackend, gpus: &[u32]) -> String {
    let now = date(2026, 11, 1)
        .at(12, 0, 9, 0)
        .to_zoned(jiff::tz::TimeZone::UTC)
        .unwrap();
    render_summary(&Context {
        driver: script,
        gpus,
        count: 2,
        now,
    })
}

#[test]
fn summary_matches_nvidia_smi() {
    assert_eq!(
        render_script(&two_h200s(), &[0, 1]),
        "\
Sun Nov  1 12:00:09 2026       
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 580.159.04             Driver Version: 580.159.04     CUDA Version: 13.0     |
+-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA H200                    On  |   00000000:00:06.0 Off |                    0 |
| N/A   53C    P0            688W /  700W |    7477MiB / 143771MiB |     99%      Default |
|                                         |                        |             Disabled |
+-----------------------------------------+------------------------+----------------------+
|   1  NVIDIA H200                    On  |   00000000:00:07.0 Off |                    0 |
| N/A   29C    P0            117W /  700W |       0MiB / 143771MiB |      0%      Default |
|                                         |                        |             Disabled |
+-----------------------------------------+------------------------+----------------------+

+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |
|        ID   ID                                                               Usage      |
|=========================================================================================|
|    0   N/A  N/A            1538      C   /opt/torch/.venv/bin/python3           1731MiB |
|    0   N/A  N/A            1540      C   ...romamba/envs/sam6d/bin/python       5729MiB |
+-----------------------------------------------------------------------------------------+
"
    );
}

#[test]
fn missing_values_are_shown_as_words() {
    let script = two_h200s()
        .with_text(
            1,
            Q::Name,
            "NVIDIA RTX PRO 6000 Blackwell Workstation Edition",
        )
        .with_numbers(1, Q::PersistenceMode, &[0])
        .with_numbers(1, Q::DisplayActive, &[1])
        .with_answer(Subject::from_gpu(1), Q::EccMode, Err(Code::NOT_SUPPORTED))
        .with_numbers(1, Q::FanSpeed, &[30])
        .with_numbers(1, Q::PerformanceState, &[8])
        .with_answer(
            Subject::from_gpu(1),
            Q::PowerUsage,
            Err(Code::NOT_SUPPORTED),
        )
        .with_answer(
            Subject::from_gpu(1),
            Q::EnforcedPowerLimit,
            Err(Code::NOT_SUPPORTED),
        )
        .with_answer(
            Subject::from_gpu(1),
            Q::UtilizationRates,
            Err(Code::UNKNOWN),
        )
        .with_answer(Subject::from_gpu(1), Q::MigMode, Err(Code::NOT_SUPPORTED))
        .with_numbers(1, Q::GraphicsProcesses, &[2199, -1, -1, -1])
        .with_numbers(1, Q::ComputeProcesses, &[2199, -1, -1, -1]);
    let text = render_script(&script, &[1]);
    for line in [
        "|   1  NVIDIA RTX PRO 6000 Blac...    Off |   00000000:00:07.0  On |                  \
         N/A |",
        "| 30%   29C    P8            N/A  /  N/A  |       0MiB / 143771MiB |    ERR!      \
         Default |",
        "|                                         |                        |                  \
         N/A |",
        "|    1   N/A  N/A            2199    C+G   [N/A]                                 \
         N/A      |",
    ] {
        assert!(text.lines().any(|own| own == line), "{line}\n{text}");
    }
}

#[test]
fn divided_gpu_shows_mig_devices() {
    let device = Subject::from_mig(0, 0);
    let script = two_h200s()
        .with_numbers(0, Q::MigMode, &[1, 1])
        .with_answer(
            Subject::from_gpu(0),
            Q::UtilizationRates,
            Err(Code::NOT_SUPPORTED),
        )
        .with_numbers(0, Q::MigDevices, &[0])
        .with_answer(device, Q::MigInstance, Ok(Value::Numbers(vec![2, 0])))
        .with_answer(
            device,
            Q::MigAttributes,
            Ok(Value::Numbers(vec![60, 3, 3, 0, 3, 0, 3, 3, 71_424])),
        )
        .with_answer(
            device,
            Q::MemoryInfo,
            Ok(Value::Numbers(vec![42_412_802_048, 0, 0, 46_137_344])),
        )
        .with_answer(
            device,
            Q::Bar1MemoryInfo,
            Ok(Value::Numbers(vec![25_941_770_240, 0, 0])),
        )
        .with_answer(device, Q::MemoryErrors(1, 0, 7), Ok(Value::from_number(0)))
        .with_numbers(
            0,
            Q::ComputeProcesses,
            &[1540, 6_007_291_904, 2, 0, 1541, 104_857_600, 13, 1],
        )
        .with_numbers(0, Q::MpsProcesses, &[1541, 104_857_600, 13, 1]);
    let text = render_script(&script, &[0]);
    let expected = "
+-----------------------------------------------------------------------------------------+
| MIG devices:                                                                            |
+------------------+----------------------------------+-----------+-----------------------+
| GPU  GI  CI  MIG |              Shared Memory-Usage |        Vol|        Shared         |
|      ID  ID  Dev |                Shared BAR1-Usage | SM     Unc| CE ENC  DEC  OFA  JPG |
|                  |                                  |        ECC|                       |
|==================+==================================+===========+=======================|
|  0    2   0   0  |              44MiB / 40448MiB    | 60      0 |  3   0    3    0    3 |
|                  |               0MiB / 24740MiB    |           |                       |
+------------------+----------------------------------+-----------+-----------------------+
";
    assert!(text.contains(expected), "{text}");
    assert!(text.contains("|     N/A      Default |"), "{text}");
    assert!(text.contains("|                   On |"), "{text}");
    for line in [
        "|    0    2    0             1540      C   ...romamba/envs/sam6d/bin/python       \
         5729MiB |",
        "|    0   13    1             1541    M+C   [N/A]                                   \
         100MiB |",
    ] {
        assert!(text.lines().any(|own| own == line), "{line}\n{text}");
    }
}

#[test]
fn corrupt_inforom_is_shown_if_query_is_fast() {
    let corrupt = || {
        two_h200s().with_answer(
            Subject::from_gpu(1),
            Q::InforomIsValid,
            Err(Code::CORRUPTED_INFOROM),
        )
    };
    let warning = "WARNING: infoROM is corrupted at gpu 0000:00:07.0\n";
    assert!(render_script(&corrupt().with_quick_answers(), &[0, 1]).ends_with(warning));
    assert!(
        !render_script(&corrupt(), &[0, 1]).contains("WARNING"),
        "asking the driver takes 70 ms"
    );
}
