//! Tests of `dmon` against the output of nvidia-smi 580 for two H200 GPUs.

use gpumon_probe::vendor::nvml::query::{Code, Query, Subject, SystemQuery, Value};

use crate::{subcommand::tests::run_line, tests::scripted::ScriptedBackend};

/// Returns a machine with two H200 GPUs: the first is under load, the second is idle with memory in
/// use.
fn two_h200s() -> ScriptedBackend {
    let readings: [(u32, [i128; 9]); 2] = [
        (0, [690_999, 53, 42, 99, 23, 3201, 1485, 7477, 7478]),
        (1, [117_250, 29, 28, 0, 0, 3201, 1980, 5739, 5740]),
    ];
    let mut driver = ScriptedBackend::default()
        .with_system_answer(SystemQuery::DeviceCount, Ok(Value::from_number(2)));
    for (
        gpu,
        [
            milliwatts,
            chip,
            memory,
            sm,
            bus,
            memory_clock,
            sm_clock,
            fb,
            bar1,
        ],
    ) in readings
    {
        let mib = |mib: i128| (mib << 20) - 4096;
        driver = driver
            .with_numbers(gpu, Query::PowerUsage, &[milliwatts])
            .with_numbers(gpu, Query::Temperature, &[chip])
            .with_numbers(gpu, Query::Field(82, 0), &[memory])
            .with_numbers(gpu, Query::UtilizationRates, &[sm, bus])
            .with_numbers(gpu, Query::EncoderUtilization, &[0, 100_000])
            .with_numbers(gpu, Query::DecoderUtilization, &[0, 100_000])
            .with_numbers(gpu, Query::JpgUtilization, &[0, 100_000])
            .with_numbers(gpu, Query::OfaUtilization, &[0, 100_000])
            .with_numbers(gpu, Query::Clock(2), &[memory_clock])
            .with_numbers(gpu, Query::Clock(1), &[sm_clock])
            .with_numbers(
                gpu,
                Query::ViolationStatus(0),
                &[1_795_262_308_000_000, 19_400_000_000],
            )
            .with_numbers(gpu, Query::ViolationStatus(1), &[1_795_262_308_000_000, 0])
            .with_numbers(
                gpu,
                Query::MemoryInfo,
                &[mib(143_771), mib(616), 0, mib(fb)],
            )
            .with_numbers(
                gpu,
                Query::Bar1MemoryInfo,
                &[mib(262_144), 0, mib(bar1) + 8192],
            )
            .with_numbers(gpu, Query::ProtectedMemory, &[0, 0, 0])
            .with_numbers(gpu, Query::EccMode, &[1, 1])
            .with_numbers(gpu, Query::TotalEccErrors(0, 0), &[0])
            .with_numbers(gpu, Query::TotalEccErrors(1, 0), &[0])
            .with_numbers(gpu, Query::PcieReplays, &[0])
            .with_numbers(gpu, Query::PcieThroughput(1), &[i128::from(1 - gpu) * 3500])
            .with_numbers(gpu, Query::PcieThroughput(0), &[i128::from(1 - gpu) * 2047]);
    }
    driver
}

#[test]
fn all_groups_match_nvidia_smi() {
    let (text, code) = run_line("dmon -c 1 -s pucvmet", &two_h200s());
    assert_eq!(
        text,
        "\
# gpu    pwr  gtemp  mtemp     sm    mem    enc    dec    jpg    ofa   mclk   pclk  pviol  tviol     fb   bar1   ccpm  sbecc  dbecc    pci  rxpci  txpci 
# Idx      W      C      C      %      %      %      %      %      %    MHz    MHz      %   bool     MB     MB     MB   errs   errs   errs   MB/s   MB/s 
    0    690     53     42     99     23      0      0      0      0   3201   1485      0      0   7477   7478      0      0      0      0      3      1 
    1    117     29     28      0      0      0      0      0      0   3201   1980      0      0   5739   5740      0      0      0      0      0      0 
"
    );
    assert_eq!(code, 0);
}

#[test]
fn groups_appear_once_in_typed_order() {
    let (text, _) = run_line("dmon --count=1 --select upp -i 1,1", &two_h200s());
    assert_eq!(
        text,
        "\
# gpu     sm    mem    enc    dec    jpg    ofa    pwr  gtemp  mtemp 
# Idx      %      %      %      %      %      %      W      C      C 
    1      0      0      0      0      0      0    117     29     28 
"
    );
}

#[test]
fn csv_format_can_omit_headings() {
    let units = "#Idx, W, C, C\n";
    let rows = " 0, 690, 53, 42\n 1, 117, 29, 28\n";
    for (format, expected) in [
        ("csv", format!("#gpu, pwr, gtemp, mtemp\n{units}{rows}")),
        ("csv,nounit", format!("#gpu, pwr, gtemp, mtemp\n{rows}")),
        ("csv,noheader", format!("{units}{rows}")),
        ("noheader,csv,nounit", rows.to_owned()),
    ] {
        assert_eq!(
            run_line(&format!("dmon -c 1 -s p --format {format}"), &two_h200s()).0,
            expected,
            "{format}"
        );
    }
}

#[test]
fn unavailable_reading_is_a_dash() {
    let lost = Subject::from_gpu(0);
    let driver = ScriptedBackend::default()
        .with_system_answer(SystemQuery::DeviceCount, Ok(Value::from_number(1)))
        .with_answer(lost, Query::PowerUsage, Err(Code::GPU_IS_LOST));
    let (text, code) = run_line("dmon -c 1 -s pv --format csv,nounit,noheader", &driver);
    assert_eq!(text, " 0, -, -, -, -, -\n");
    assert_eq!(code, 0);
}

#[test]
fn disabled_ecc_has_no_error_counts() {
    let driver = two_h200s()
        .with_numbers(0, Query::EccMode, &[0, 1])
        .with_numbers(1, Query::TotalEccErrors(0, 0), &[7]);
    let (text, _) = run_line("dmon -c 1 -s e --format csv,nounit,noheader", &driver);
    assert_eq!(text, " 0, -, -, 0\n 1, 7, 0, 0\n");
}

#[test]
fn gpm_columns_follow_gpu_columns() {
    let driver = two_h200s().with_gpm_metrics(
        Subject::from_gpu(0),
        &[(1, 81.9), (2, 76.2), (20, 6.4), (61, 68_204.3), (170, 12.0)],
    );
    let (text, _) = run_line("dmon -c 1 -s p --gpm-metrics 1,2,20,61,8,170,171", &driver);
    assert_eq!(
        text,
        "\
# gpu    pwr  gtemp  mtemp      gract     smutil      pcitx      nvltx       id=8           cs0elp     cs0act 
# Idx      W      C      C      GPM:%      GPM:%  GPM:MiB/s  GPM:MiB/s      GPM:%            GPM:#      GPM:# 
    0    690     53     42         81         76          6      68204          -               12         - 
    1    117     29     28          -          -          -          -          -                -          - 
"
    );
}

#[test]
fn mig_device_metrics_have_separate_rows() {
    let device = Subject::from_mig(0, 2);
    let driver = two_h200s()
        .with_numbers(0, Query::MigDevices, &[2])
        .with_answer(device, Query::MigInstance, Ok(Value::Numbers(vec![9, 0])))
        .with_gpm_metrics(device, &[(2, 55.0)])
        .with_gpm_metrics(Subject::from_gpu(1), &[(2, 44.0)]);
    let (text, _) = run_line("dmon -c 1 --gpm-metrics 2 --gpm-options m", &driver);
    assert_eq!(
        text,
        "\
# gpu     mig_id      gi_id      ci_id     smutil 
# Idx        Idx        Idx        Idx      GPM:% 
    0          2          9          0         55 
    1          -          -          -          - 
"
    );
    let (text, _) = run_line(
        "dmon -c 1 -s p --gpm-metrics 2 --gpm-options md --format csv,nounit,noheader",
        &driver,
    );
    assert_eq!(
        text,
        " 0, 690, 53, 42, -, -, -, -\n 0, -, -, -, 2, 9, 0, 55\n 1, 117, 29, 28, -, -, -, 44\n"
    );
}

#[test]
fn metric_names_match_nvidia_smi() {
    let name = |metric| super::columns::describe_metric_column(metric).0;
    for (metric, expected) in [
        (37, "nvdec7"),
        (40, "nvjpg0"),
        (51, "nvofa1"),
        (62, "nvl0rx"),
        (63, "nvl0tx"),
        (97, "nvl17tx"),
        (98, "id=98"),
        (101, "c2ctrx"),
        (104, "c2c0ttx"),
        (159, "c2c13drx"),
        (161, "hmmiss"),
        (169, "nvenc3"),
        (173, "cs0cperq"),
        (209, "cs7actpt"),
    ] {
        assert_eq!(name(metric), expected);
    }
    assert_eq!(super::columns::describe_metric_column(173).1, "GPM:C/R");
}

#[test]
fn invalid_value_errors_match_nvidia_smi() {
    let process = "Failed to process command line \n\n";
    for (line, text, code) in [
        (
            "-s z",
            format!("Failed to find any metric to display\n{process}"),
            255,
        ),
        ("-o Z", format!("Error in parsing options\n{process}"), 255),
        (
            "--format csv,bogus",
            format!(
                "bogus is not a recognized format option\nError parsing format options\n{process}"
            ),
            255,
        ),
        ("-f /nonexistent/x", process.to_owned(), 255),
        (
            "--gpm-metrics bogus",
            format!("Found offending character: b\nCould not parse GPM metrics\n{process}"),
            255,
        ),
        (
            "--gpm-metrics 999",
            format!("Metric value too high: 999\nCould not parse GPM metrics\n{process}"),
            255,
        ),
        ("-i 9", "No devices were found\n".to_owned(), 6),
    ] {
        assert_eq!(
            run_line(&format!("dmon {line} -c 1"), &two_h200s()),
            (text, code),
            "{line}"
        );
    }
}

#[test]
fn usage_error_exits_with_code_0() {
    for (line, first) in [
        (
            "bogus",
            "Option \"bogus\" is not recognized.\n\n    Usage: nvidia-smi dmon [options]\n",
        ),
        ("-s", "Option \"-s\" is missing its value.\n\n    Usage:"),
        (
            "-c 0",
            "Invalid value for number of samples to be displayed\n\n    Usage:",
        ),
        (
            "-d 601",
            "Collection delay/interval should be between 1 second and 600 seconds\n\n    Usage:",
        ),
        ("--gpm-metrics 2 --gpm-options x", "\n    Usage:"),
        ("-h", "\n    Prints"),
    ] {
        let (text, code) = run_line(&format!("dmon {line}"), &two_h200s());
        assert!(text.starts_with(first), "{line}: {text}");
        assert!(text.ends_with("\n\n\n"), "{line}");
        assert_eq!(code, 0, "{line}");
    }
}

#[test]
fn file_receives_the_same_output() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let shown = run_line("dmon -c 1 -s p", &two_h200s()).0;
    let (text, code) = run_line(
        &format!("dmon -c 1 -s p -f {}", file.path().display()),
        &two_h200s(),
    );
    assert_eq!((text.as_str(), code), ("", 0));
    assert_eq!(std::fs::read_to_string(file.path()).unwrap(), shown);
}

#[test]
fn driver_610_refuses_mma_stall_group() {
    let with = |version: &str| {
        two_h200s().with_system_answer(
            SystemQuery::DriverVersion,
            Ok(Value::Text(version.to_owned())),
        )
    };
    let (text, code) = run_line("dmon -c 1 -s pn", &with("610.57.04"));
    assert!(
        code == 3 && text.contains("'dmon -s n' is not part of gpumon"),
        "{text}"
    );
    let (text, code) = run_line("dmon -c 1 -s pn", &with("595.80"));
    assert_eq!((text, code), run_line("dmon -c 1 -s p", &two_h200s()));
}
