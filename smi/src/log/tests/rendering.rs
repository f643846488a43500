//! Tests of individual lines in text and XML output.

use gpumon_probe::vendor::nvml::query::{Code, Query, Subject, SystemQuery, Value};

use super::{
    boards::{
        add_blackwell, add_divided_h200, add_hopper, add_lost_gpu, add_virtual_gpu_host, add_volta,
        driver_580, driver_with_version,
    },
    make_context,
};
use crate::{
    log::{parse_sections, render_dtd, render_text_log, render_xml_log},
    release::Release,
    tests::scripted::ScriptedBackend,
};

#[test]
fn hopper_log_matches_expected_text() {
    let script = add_hopper(driver_580(), 0);
    assert_eq!(
        render_text_log(&make_context(&script, &[0]), None),
        include_str!("hopper.txt")
    );
    assert_eq!(
        render_xml_log(&make_context(&script, &[0]), false),
        include_str!("hopper.xml")
    );
}

/// For a board without ECC, the driver may return zeros.
#[test]
fn ecc_counters_are_absent_without_ecc() {
    let is_counter = |line: &&str| {
        ["SRAM ", "DRAM "]
            .iter()
            .any(|memory| line.trim_start().starts_with(memory))
    };
    let counters = |mode| {
        let log = render_text_log(
            &make_context(
                &add_hopper(driver_580(), 0).with_answer(
                    Subject::from_gpu(0),
                    Query::EccMode,
                    mode,
                ),
                &[0],
            ),
            None,
        );
        log.lines()
            .filter(is_counter)
            .filter(|line| !line.contains("Encryption"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    for mode in [Err(Code::NOT_SUPPORTED), Ok(Value::Numbers(vec![0, 0]))] {
        let counters = counters(mode);
        assert_eq!(counters.len(), 16, "{counters:#?}");
        assert!(
            counters.iter().all(|line| line.ends_with(": N/A")),
            "{counters:#?}"
        );
    }
    let enabled = counters(Ok(Value::Numbers(vec![1, 1])));
    assert!(
        enabled.iter().all(|line| !line.ends_with(": N/A")),
        "{enabled:#?}"
    );
}

#[test]
fn volta_log_matches_expected_text() {
    let script = add_volta(driver_580());
    assert_eq!(
        render_text_log(&make_context(&script, &[0]), None),
        include_str!("volta.txt")
    );
    assert_eq!(
        render_xml_log(&make_context(&script, &[0]), false),
        include_str!("volta.xml")
    );
}

#[test]
fn newer_driver_changes_lines_and_elements() {
    let newest = |version| {
        add_hopper(driver_with_version(version), 0)
            .with_numbers(0, Query::Field(274, 0), &[100])
            .with_numbers(0, Query::Field(190, 3), &[450_000])
            .with_numbers(0, Query::TimeRun, &[86_400])
            .with_answer(
                Subject::from_gpu(0),
                Query::RemappedRowsV2,
                Err(Code::FUNCTION_NOT_FOUND),
            )
            .with_numbers(0, Query::RemappedRows, &[0, 0, 0, 0])
    };
    let log = |version| render_text_log(&make_context(&newest(version), &[0]), None);
    let lines = [
        (
            "590.48.01",
            "    EDPp Multiplier                                    : 100.00%",
        ),
        (
            "610.57.04",
            "CUDA UMD Version                                       : 13.0",
        ),
        (
            "610.57.04",
            "        Time Run                                       : 86400 seconds",
        ),
        (
            "610.57.04",
            "            Current Base Power                         : 450.00 W",
        ),
    ];
    for (since, line) in lines {
        for version in ["580.159.04", "590.48.01", "610.57.04", "999.1"] {
            let is_known = version.split('.').next() >= since.split('.').next();
            assert_eq!(has_line(&log(version), line), is_known, "{version}: {line}");
        }
    }
    assert!(
        !log("580.65.06").contains("Inactive"),
        "rows that no function returns"
    );
    assert_eq!(
        ["580.159.04", "590.48.01", "595.80"].map(|own| log(own).contains("Partition")),
        [true, false, true]
    );
    let real = newest("590.48.01").with_answer(
        Subject::from_gpu(0),
        Query::Field(274, 0),
        Ok(Value::Reals(vec![87.5])),
    );
    assert!(
        render_text_log(&make_context(&real, &[0]), None)
            .contains("EDPp Multiplier                                    : 87.50%")
    );
    let lost = newest("590.48.01").with_answer(
        Subject::from_gpu(0),
        Query::Field(274, 0),
        Err(Code::GPU_IS_LOST),
    );
    assert!(
        render_text_log(&make_context(&lost, &[0]), None)
            .contains("EDPp Multiplier                                    : GPU is lost")
    );

    let document = render_xml_log(&make_context(&newest("610.57.04"), &[0]), false);
    for line in [
        "\t<driver_version>610.57.04</driver_version>",
        "\t<kmd_version>610.57.04</kmd_version>",
        "\t<cuda_umd_version>13.0</cuda_umd_version>",
        "\t\t\t\t<current_base_power>450.00 W</current_base_power>",
    ] {
        assert!(has_line(&document, line), "{line}");
    }
    let limits = cut_between(
        &document,
        "<gpu_ceiling_power_limit>",
        "</gpu_ceiling_power_limit>",
    );
    assert!(
        has_line(
            limits,
            "\t\t\t\t<current_power_limit>700.00 W</current_power_limit>"
        ),
        "{limits}"
    );
}

#[test]
fn gpu_blocks_appear_in_order() {
    let script = add_lost_gpu(add_hopper(add_hopper(driver_580(), 0), 2), 1);
    let (log, document) = (
        render_text_log(&make_context(&script, &[0, 1, 2]), None),
        render_xml_log(&make_context(&script, &[0, 1, 2]), false),
    );
    let ids: Vec<_> = log
        .lines()
        .filter(|line| line.starts_with("GPU "))
        .collect();
    assert_eq!(
        ids,
        [
            "GPU 00000000:00:06.0",
            "GPU 00000000:00:07.0",
            "GPU 00000000:00:08.0"
        ]
    );
    assert_eq!(document.matches("\t<gpu id=\"00000000:00:0").count(), 3);
    assert_eq!(
        log.matches("\n\nGPU 0").count(),
        2,
        "a blank line between the blocks"
    );
    assert_eq!(
        document.matches("\t</gpu>\n\n").count(),
        3,
        "and behind each of them in the XML"
    );
}

#[test]
fn lost_gpu_shows_error_instead_of_values() {
    let script = add_lost_gpu(driver_580(), 0);
    let (log, document) = (
        render_text_log(&make_context(&script, &[0]), None),
        render_xml_log(&make_context(&script, &[0]), false),
    );
    for line in [
        "    Product Name                                       : GPU is lost",
        "    Clocks Event Reasons                               : GPU is lost",
        "    Processes                                          : GPU is lost",
    ] {
        assert!(has_line(&log, line), "{line}");
    }
    for element in ["clocks_event_reasons", "supported_clocks", "processes"] {
        assert!(
            has_line(
                &document,
                &format!("\t\t<{element}>GPU is lost</{element}>")
            ),
            "{element}"
        );
    }
}

#[test]
fn mig_devices_have_separate_blocks() {
    let script = add_divided_h200(driver_580());
    assert_eq!(
        cut_between(
            &render_text_log(&make_context(&script, &[0]), None),
            "    MIG Device\n        Index                                          : 3",
            "    Accounting Mode"
        ),
        "    MIG Device
        Index                                          : 3
        GPU Instance ID                                : 2
        Compute Instance ID                            : 0
        Device Attributes
            Shared
                Multiprocessor count                   : 60
                Copy Engine count                      : 3
                Encoder count                          : 0
                Decoder count                          : 2
                OFA count                              : 1
                JPG count                              : 4
        ECC Errors
            Volatile
                SRAM Uncorrectable                     : 5
        Shared FB Memory Usage
            Total                                      : 71424 MiB
            Reserved                                   : 0 MiB
            Used                                       : 13 MiB
            Free                                       : 71411 MiB
        Shared BAR1 Memory
            Total                                      : 131072 MiB
            Used                                       : 0 MiB
            Free                                       : 131071 MiB
"
    );
    let document = render_xml_log(&make_context(&script, &[0]), false);
    assert!(document.contains("\t\t<mig_devices>\n\t\t<mig_device>\n\t\t\t<index>0</index>\n"));
    assert!(document.contains("\t\t</mig_device>\n\t\t</mig_devices>\n"));
    assert!(document.contains("<gpu_instance_id>2</gpu_instance_id>\n\t\t\t\t<compute_instance_id>0</compute_instance_id>\n\t\t\t\t<pid>4711</pid>"));
}

#[test]
fn rack_board_shows_platform_fabric_and_profiles() {
    let script = add_blackwell(driver_580());
    let log = render_text_log(&make_context(&script, &[0]), None);
    assert_eq!(
        cut_between(&log, "    Platform Info", "    Inforom Version"),
        "    Platform Info
        Chassis Serial Number                          : 1820000000001
        Slot Number                                    : 25
        Tray Index                                     : N/A
        Host ID                                        : 1
        Peer Type                                      : Switch Connected
        Module Id                                      : 2
        GPU Fabric GUID                                : 0x0000000000000002
"
    );
    for line in [
        "            Bandwidth                                  : Full",
        "            Incorrect Configuration                    : None",
        "        ClusterUUID                                    : \
         00000001-0000-0000-0000-000000000001",
        "            % TMP Floor                                : 55.44 %",
        "            Ramp Up Rate                               : 1000 mW/s",
        "            Secondary Power Floor                      : 120.00 W",
        "        Requested Profiles                             : Max-Q, 32",
        "        Enforced Profiles                              : N/A",
    ] {
        assert!(has_line(&log, line), "{line}");
    }
    let document = render_xml_log(&make_context(&script, &[0]), false);
    assert!(
        document.contains("<power_profile_requested_profile>32</power_profile_requested_profile>")
    );
}

#[test]
fn virtual_gpu_host_shows_capabilities() {
    let script = add_virtual_gpu_host(driver_580());
    let log = render_text_log(&make_context(&script, &[0]), None);
    let above = "vGPU Driver Capability\n        Heterogenous Multi-vGPU                        : \
                 Supported\n\nAttached";
    assert!(log.contains(above));
    assert!(has_line(
        &log,
        "        Heterogeneous Time-Slice Sizes                 : Not Supported"
    ));
    assert!(
        !render_text_log(&make_context(&add_hopper(driver_580(), 0), &[0]), None)
            .contains("vGPU D")
    );
}

#[test]
fn older_driver_is_queried_by_older_field_numbers() {
    let script = add_hopper(driver_580(), 0)
        .with_system_answer(
            SystemQuery::DriverVersion,
            Ok(Value::Text("575.57.08".to_owned())),
        )
        .with_numbers(0, Query::Field(251, 0), &[5_000_999])
        .with_numbers(0, Query::Field(253, 0), &[7_000])
        .with_answer(
            Subject::from_gpu(0),
            Query::Field(265, 5),
            Ok(Value::Reals(vec![12.34])),
        )
        .with_numbers(0, Query::Field(256, 5), &[1]);
    let log = render_text_log(&make_context(&script, &[0]), None);
    for line in [
        "        SW Thermal Slowdown                            : 5000 us",
        "        HW Thermal Slowdown                            : N/A",
        "        HW Power Braking                               : 7 us",
        "        Enabled                                        : Enabled",
        "            % TMP Floor                                : 12.34 %",
        "        Window Multiplier                              : N/A",
    ] {
        assert!(has_line(&log, line), "{line}");
    }
}

#[test]
fn sections_appear_in_log_order() {
    assert_eq!(
        render_sections(&add_hopper(driver_580(), 0), "power,compute"),
        "    Compute Mode                                       : Default
    GPU Power Readings
        Average Power Draw                             : 75.17 W
        Instantaneous Power Draw                       : 75.34 W
        Current Power Limit                            : 700.00 W
        Requested Power Limit                          : 700.00 W
        Default Power Limit                            : 700.00 W
        Min Power Limit                                : 200.00 W
        Max Power Limit                                : 700.00 W
    Power Samples
        Duration                                       : 0.04 sec
        Number of Samples                              : 3
        Max                                            : 76.36 W
        Min                                            : 74.69 W
        Avg                                            : 75.40 W
    GPU Memory Power Readings\u{20}
        Average Power Draw                             : 44.31 W
        Instantaneous Power Draw                       : N/A
    Module Power Readings
        Average Power Draw                             : N/A
        Instantaneous Power Draw                       : N/A
        Current Power Limit                            : N/A
        Requested Power Limit                          : N/A
        Default Power Limit                            : N/A
        Min Power Limit                                : N/A
        Max Power Limit                                : N/A

"
    );
    assert_eq!(
        render_sections(&add_hopper(driver_580(), 0), "VOLTAGE"),
        "\n"
    );
    assert_eq!(render_sections(&add_hopper(driver_580(), 0), ""), "\n");
}

#[test]
fn samples_are_summarized_in_whole_percents() {
    let utilization = render_sections(&add_hopper(driver_580(), 0), "UTILIZATION");
    assert_eq!(
        cut_between(
            &utilization,
            "    GPU Utilization Samples",
            "    Memory Utilization Samples"
        ),
        "    GPU Utilization Samples
        Duration                                       : 0.60 sec
        Number of Samples                              : 4
        Max                                            : 99 %
        Min                                            : 0 %
        Avg                                            : 62 %
"
    );
    assert!(has_line(
        &render_sections(&add_hopper(driver_580(), 0), "CLOCK"),
        "        Number of Samples                              : Not Found"
    ));
}

#[test]
fn section_options_show_lists_missing_in_full_log() {
    assert_eq!(
        render_sections(&add_hopper(driver_580(), 0), "SUPPORTED_CLOCKS"),
        "    Supported Clocks
        Memory                                         : 3201 MHz
            Graphics                                   : 1980 MHz
            Graphics                                   : 1965 MHz
            Graphics                                   : 345 MHz
        Memory                                         : 2201 MHz
            Graphics                                   : 1980 MHz
            Graphics                                   : 345 MHz

"
    );
    assert_eq!(
        cut_between(
            &render_sections(&add_volta(driver_580()), "ACCOUNTING"),
            "    Accounted",
            "\n\n"
        ),
        "    Accounted Processes
        Process ID                        : 54796
            GPU Utilization               : 76 %
            Memory Utilization            : 19 %
            Max memory usage              : 843 MiB
            Time                          : 18228 ms
            Is Running                    : 0"
    );
    assert!(has_line(
        &render_sections(&add_hopper(driver_580(), 0), "ACCOUNTING"),
        "    Accounted Processes                                : None"
    ));
    assert!(
        render_sections(&add_volta(driver_580()), "SUPPORTED_GPU_TARGET_TEMP").starts_with(
            "    Supported GPU_TARGET_TEMP\n        \
             Min                                            : 65 C\n"
        )
    );
}

#[test]
fn dtd_of_release_declares_its_elements() {
    for (branch, has) in [(580, true), (590, false), (595, true)] {
        let dtd = render_dtd(Release(branch, 0));
        assert_eq!(dtd.contains("partition_assigned"), has, "{branch}");
        assert!(!dtd.contains("partition_assigned?"), "{branch}");
    }
}

#[test]
fn document_can_include_dtd() {
    let document = render_xml_log(&make_context(&add_hopper(driver_580(), 0), &[0]), true);
    let head = format!(
        "<?xml version=\"1.0\" ?>\n<!DOCTYPE nvidia_smi_log [\n{}]>\n<nvidia_smi_log>\n",
        render_dtd(Release(580, 159))
    );
    assert!(document.starts_with(&head));
}

/// Returns the first GPU's text output for the given sections.
fn render_sections(script: &ScriptedBackend, sections: &str) -> String {
    let sections = parse_sections(sections).unwrap();
    let log = render_text_log(&make_context(script, &[0]), Some(&sections));
    let block = log.split_once("\nGPU ").unwrap().1;
    block.split_once('\n').unwrap().1.to_owned()
}

/// Returns the part of the log from `from` up to `to`.
fn cut_between<'a>(log: &'a str, from: &str, to: &str) -> &'a str {
    let start = log.find(from).unwrap();
    let end = log[start..].find(to).unwrap();
    &log[start..start + end]
}

fn has_line(log: &str, line: &str) -> bool {
    log.lines().any(|other| other == line)
}
