//! Tests of `nvlink` against the output of nvidia-smi 580 for two H200 GPUs.

use gpumon_probe::vendor::nvml::query::{Code, Query, Subject, SystemQuery, Value};

use crate::{subcommand::tests::run_line, tests::scripted::ScriptedBackend};

const FIRST_HEADLINE: &str =
    "GPU 0: NVIDIA H200 (UUID: GPU-9ca18e3a-2fa7-dda5-c459-f1a949369cee)\n";
const SECOND_HEADLINE: &str =
    "GPU 1: NVIDIA H200 (UUID: GPU-2b4dbf4c-88ba-09d8-5bfb-978dc3993b24)\n";

/// Returns a machine with three GPUs. The first two have two links each, but the second GPU's
/// second link is down. The third GPU has no NVLink.
fn three_gpus() -> ScriptedBackend {
    let mut driver = ScriptedBackend::default()
        .with_system_answer(
            SystemQuery::DriverVersion,
            Ok(Value::Text("580.159.04".to_owned())),
        )
        .with_system_answer(SystemQuery::DeviceCount, Ok(Value::from_number(3)))
        .with_system_answer(SystemQuery::NvlinkBandwidthMode, Ok(Value::from_number(0)))
        .with_text(0, Query::Uuid, "GPU-9ca18e3a-2fa7-dda5-c459-f1a949369cee")
        .with_text(1, Query::Uuid, "GPU-2b4dbf4c-88ba-09d8-5bfb-978dc3993b24");
    for gpu in 0..2 {
        driver = driver
            .with_text(gpu, Query::Name, "NVIDIA H200")
            .with_numbers(gpu, Query::Architecture, &[9])
            .with_numbers(gpu, Query::Field(91, 0), &[2])
            .with_numbers(gpu, Query::NvLinkInfo, &[0]);
        for link in 0..2 {
            let up = i128::from((gpu, link) != (1, 1));
            driver = driver
                .with_numbers(gpu, Query::Field(165, link), &[up])
                .with_numbers(gpu, Query::Field(164, link), &[26562])
                .with_numbers(gpu, Query::Field(146, link), &[0])
                .with_numbers(gpu, Query::Field(161, link), &[0])
                .with_numbers(gpu, Query::Field(162, link), &[5])
                .with_numbers(gpu, Query::Field(163, link), &[0])
                .with_numbers(gpu, Query::Field(138, link), &[285_539_039])
                .with_numbers(gpu, Query::Field(139, link), &[0])
                .with_numbers(gpu, Query::Field(140, link), &[90])
                .with_numbers(gpu, Query::Field(141, link), &[196])
                .with_numbers(gpu, Query::Field(167, link), &[i128::from(link)])
                .with_numbers(gpu, Query::Field(168, link), &[500])
                .with_text(gpu, Query::NvLinkRemoteBusId(link), "FFFFFFFF:FF:FF.0");
            for capability in 0..6 {
                driver = driver.with_numbers(
                    gpu,
                    Query::NvLinkCapability(link, capability),
                    &[i128::from(capability != 4)],
                );
            }
        }
    }
    driver
}

#[test]
fn driver_590_explains_missing_links() {
    let driver = |version: &str| {
        three_gpus()
            .with_system_answer(
                SystemQuery::DriverVersion,
                Ok(Value::Text(version.to_owned())),
            )
            .with_text(2, Query::Name, "NVIDIA L40S")
            .with_text(2, Query::Uuid, "GPU-2")
    };
    let third = "GPU 2: NVIDIA L40S (UUID: GPU-2)\n";
    assert_eq!(
        run_line("nvlink -s -i 2", &driver("580.159.04")),
        (String::new(), 0)
    );
    let none = format!("{third}Device does not have or support Nvlink\n");
    assert_eq!(run_line("nvlink -s -i 2", &driver("590.48.01")), (none, 0));
    let divided = driver("590.48.01").with_numbers(0, Query::MigMode, &[1, 1]);
    let refused =
        format!("{FIRST_HEADLINE}Nvlink queries are not supported for Devices in MIG mode\n");
    assert_eq!(run_line("nvlink -s -i 0", &divided), (refused, 0));
    let down = driver("595.80").with_numbers(1, Query::Field(165, 0), &[0]);
    assert_eq!(
        run_line("nvlink -s -i 1", &down).0,
        format!(
            "{SECOND_HEADLINE}NVML: Unable to retrieve Nvlink information as all links are \
             inActive\n"
        )
    );
}

#[test]
fn links_are_up_or_inactive() {
    let expected = format!(
        "{FIRST_HEADLINE}\t Link 0: 26.562 GB/s\n\t Link 1: 26.562 GB/s\n{SECOND_HEADLINE}\t Link \
         0: 26.562 GB/s\n\t Link 1: <inactive>\n"
    );
    assert_eq!(run_line("nvlink -s", &three_gpus()), (expected.clone(), 0));
    assert_eq!(
        run_line("nvlink -s -i 1,0 -l -1", &three_gpus()),
        (expected, 0)
    );
    assert_eq!(
        run_line("nvlink -s -i 0 -l 1", &three_gpus()).0,
        format!("{FIRST_HEADLINE}\t Link 1: 26.562 GB/s\n")
    );
    assert_eq!(
        run_line("nvlink -s -i 0 -l 99", &three_gpus()).0,
        format!("{FIRST_HEADLINE}\t Invalid Link\n")
    );
    let down = three_gpus().with_numbers(1, Query::Field(165, 0), &[0]);
    assert_eq!(
        run_line("nvlink -s -i 1", &down).0,
        format!(
            "{SECOND_HEADLINE}NVML: Unable to retrieve NVLink information as all links are \
             inActive\n"
        )
    );
    assert_eq!(run_line("nvlink -p -i 1", &down).0, SECOND_HEADLINE);
}

#[test]
fn each_nvlink_option_prints_its_lines() {
    for (line, expected) in [
        (
            "-c -l 0",
            "\t Link 0, P2P is supported: true\n\t Link 0, Access to system memory supported: \
             true\n\t Link 0, P2P atomics supported: true\n\t Link 0, System memory atomics \
             supported: true\n\t Link 0, SLI is supported: false\n\t Link 0, Link is supported: \
             true\n",
        ),
        ("-p -l 0", "\t Link 0: FFFFFFFF:FF:FF.0\n"),
        (
            "-R -l 0",
            "\t Link 0: Remote Device FFFFFFFF:FF:FF.0: Link 0\n",
        ),
        (
            "-e -l 1",
            "\t Link 1: Replay Errors: 0\n\t Link 1: Recovery Errors: 5\n\t Link 1: CRC Errors: \
             0\n\n",
        ),
        (
            "-gt d -l 0",
            "\t Link 0: Data Tx: 285539039 KiB\n\t Link 0: Data Rx: 0 KiB\n",
        ),
        (
            "-gt r -l 0",
            "\t Link 0: Raw Tx: 90 KiB\n\t Link 0: Raw Rx: 196 KiB\n",
        ),
        ("-info", "\t NVLE: disabled\n\t Firmware Version: N/A\n"),
        (
            "-gLowPwrInfo",
            "\t Low Power Threshold are in units of 100 us\n\t Range of Low Power Threshold \
             values are 1 to 8191\n\n\t Link 0: Low Power Mode: High Speed State\n\t Link 0: Low \
             Power Threshold: 50000 us\n\n\t Link 1: Low Power Mode: Low Power State\n\t Link 1: \
             Low Power Threshold: 50000 us\n\n",
        ),
        ("-cBridge", ""),
        ("-l 1", ""),
    ] {
        assert_eq!(
            run_line(&format!("nvlink {line} -i 0"), &three_gpus()),
            (format!("{FIRST_HEADLINE}{expected}"), 0),
            "{line}"
        );
    }
    assert_eq!(
        run_line("nvlink -gBwMode", &three_gpus()).0,
        "GPU NVLINK bandwidth mode: FULL\n"
    );
    assert_eq!(
        run_line("nvlink -s -p -l 0 -i 0", &three_gpus()).0,
        format!("{FIRST_HEADLINE}\t Link 0: 26.562 GB/s\n\t Link 0: FFFFFFFF:FF:FF.0\n")
    );
}

#[test]
fn firmware_is_listed() {
    let driver = three_gpus().with_numbers(0, Query::NvLinkInfo, &[1, 1, 14, 4, 0, 3, 7, 0, 0]);
    assert_eq!(
        run_line("nvlink -info -i 0", &driver).0,
        format!(
            "{FIRST_HEADLINE}\t NVLE: enabled\n\t Firmware Version:\n\t     MSE: 14:4:0\n\t     \
             NETIR UPHY: 7:0:0\n"
        )
    );
}

#[test]
fn deprecated_option_exits_with_code_3() {
    for (line, words) in [
        ("-sc", "Warning: Setting counter control is deprecated!\n\n"),
        ("-gc", "Warning: Getting counter control is deprecated!\n\n"),
        (
            "-g 0",
            "Warning: Getting counters using option -g is deprecated.\n       Please use option \
             -gt instead.\n\n",
        ),
        ("-gLWidth", "Not supported\n"),
    ] {
        assert_eq!(
            run_line(&format!("nvlink {line}"), &three_gpus()),
            (format!("{FIRST_HEADLINE}{words}"), 3),
            "{line}"
        );
    }
    assert_eq!(
        run_line("nvlink -gt z", &three_gpus()),
        (
            format!("{FIRST_HEADLINE}Failed to get throughput counters\n"),
            2
        )
    );
}

#[test]
fn changing_option_is_refused() {
    for switch in ["-re", "-sLowPwrThres", "-sBwMode", "-sLWidth"] {
        let (text, code) = run_line(&format!("nvlink -s {switch}"), &three_gpus());
        assert_eq!(
            text,
            format!(
                "gpumon: 'nvlink {switch}' changes the GPU, which gpumon never does; use NVIDIA's \
                 own nvidia-smi for it\n"
            )
        );
        assert_eq!(code, 3);
    }
}

#[test]
fn lost_gpu_does_not_hide_others() {
    let lost = Subject::from_gpu(0);
    let driver = three_gpus()
        .with_answer(lost, Query::Field(91, 0), Err(Code::GPU_IS_LOST))
        .with_answer(lost, Query::Name, Err(Code::GPU_IS_LOST));
    let (text, code) = run_line("nvlink -s -l 0", &driver);
    assert_eq!(
        text,
        format!(
            "Unable to determine the device handle for GPU0: GPU is lost.  Reboot the system to \
             recover this GPU\n{SECOND_HEADLINE}\t Link 0: 26.562 GB/s\n"
        )
    );
    assert_eq!(code, 15);
}
