//! Tests of the text and the XML, line by line.

use gpumon_probe::vendor::nvml::query::{Code, Query, Subject, SystemQuery, Value};

use super::{
    boards::{blackwell, driver, driver_of, hopper, host, lost, parted, volta},
    context,
};
use crate::{
    log::{dtd_text, parse_sections, text, xml},
    release::Release,
    tests::scripted::ScriptedBackend,
};

#[test]
fn a_hopper_board_is_written_as_it_is() {
    let script = hopper(driver(), 0);
    assert_eq!(
        text(&context(&script, &[0]), None),
        include_str!("hopper.txt")
    );
    assert_eq!(
        xml(&context(&script, &[0]), false),
        include_str!("hopper.xml")
    );
}

/// The driver may answer zeros for a board without ECC.
#[test]
fn ecc_counters_are_absent_without_ecc() {
    let is_counter = |line: &&str| {
        ["SRAM ", "DRAM "]
            .iter()
            .any(|memory| line.trim_start().starts_with(memory))
    };
    let counters = |mode| {
        let log = text(
            &context(
                &hopper(driver(), 0).answer(Subject::gpu(0), Query::EccMode, mode),
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
fn an_old_board_with_a_fan_retired_pages_and_accounting_is_written_as_it_is() {
    let script = volta(driver());
    assert_eq!(
        text(&context(&script, &[0]), None),
        include_str!("volta.txt")
    );
    assert_eq!(
        xml(&context(&script, &[0]), false),
        include_str!("volta.xml")
    );
}

#[test]
fn a_newer_driver_has_other_lines_and_elements() {
    let newest = |version| {
        hopper(driver_of(version), 0)
            .numbers(0, Query::Field(274, 0), &[100])
            .numbers(0, Query::Field(190, 3), &[450_000])
            .numbers(0, Query::TimeRun, &[86_400])
            .answer(
                Subject::gpu(0),
                Query::RemappedRowsV2,
                Err(Code::FUNCTION_NOT_FOUND),
            )
            .numbers(0, Query::RemappedRows, &[0, 0, 0, 0])
    };
    let log = |version| text(&context(&newest(version), &[0]), None);
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
        "rows that no function tells"
    );
    assert_eq!(
        ["580.159.04", "590.48.01", "595.80"].map(|own| log(own).contains("Partition")),
        [true, false, true]
    );
    let real = newest("590.48.01").answer(
        Subject::gpu(0),
        Query::Field(274, 0),
        Ok(Value::Reals(vec![87.5])),
    );
    assert!(
        text(&context(&real, &[0]), None)
            .contains("EDPp Multiplier                                    : 87.50%")
    );
    let lost = newest("590.48.01").answer(
        Subject::gpu(0),
        Query::Field(274, 0),
        Err(Code::GPU_IS_LOST),
    );
    assert!(
        text(&context(&lost, &[0]), None)
            .contains("EDPp Multiplier                                    : GPU is lost")
    );

    let document = xml(&context(&newest("610.57.04"), &[0]), false);
    for line in [
        "\t<driver_version>610.57.04</driver_version>",
        "\t<kmd_version>610.57.04</kmd_version>",
        "\t<cuda_umd_version>13.0</cuda_umd_version>",
        "\t\t\t\t<current_base_power>450.00 W</current_base_power>",
    ] {
        assert!(has_line(&document, line), "{line}");
    }
    let limits = between(
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
fn every_gpu_has_a_block_in_order() {
    let script = lost(hopper(hopper(driver(), 0), 2), 1);
    let (log, document) = (
        text(&context(&script, &[0, 1, 2]), None),
        xml(&context(&script, &[0, 1, 2]), false),
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
fn a_lost_gpu_says_so_where_a_value_should_be() {
    let script = lost(driver(), 0);
    let (log, document) = (
        text(&context(&script, &[0]), None),
        xml(&context(&script, &[0]), false),
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
fn the_parts_of_a_gpu_have_blocks_of_their_own() {
    let script = parted(driver());
    assert_eq!(
        between(
            &text(&context(&script, &[0]), None),
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
    let document = xml(&context(&script, &[0]), false);
    assert!(document.contains("\t\t<mig_devices>\n\t\t<mig_device>\n\t\t\t<index>0</index>\n"));
    assert!(document.contains("\t\t</mig_device>\n\t\t</mig_devices>\n"));
    assert!(document.contains("<gpu_instance_id>2</gpu_instance_id>\n\t\t\t\t<compute_instance_id>0</compute_instance_id>\n\t\t\t\t<pid>4711</pid>"));
}

#[test]
fn a_board_in_a_rack_tells_its_place_fabric_and_profiles() {
    let script = blackwell(driver());
    let log = text(&context(&script, &[0]), None);
    assert_eq!(
        between(&log, "    Platform Info", "    Inforom Version"),
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
        "        ClusterUUID                                    : 00000001-0000-0000-0000-000000000001",
        "            % TMP Floor                                : 55.44 %",
        "            Ramp Up Rate                               : 1000 mW/s",
        "            Secondary Power Floor                      : 120.00 W",
        "        Requested Profiles                             : Max-Q, 32",
        "        Enforced Profiles                              : N/A",
    ] {
        assert!(has_line(&log, line), "{line}");
    }
    let document = xml(&context(&script, &[0]), false);
    assert!(
        document.contains("<power_profile_requested_profile>32</power_profile_requested_profile>")
    );
}

#[test]
fn a_host_of_virtual_gpus_says_what_it_can_do() {
    let script = host(driver());
    let log = text(&context(&script, &[0]), None);
    let above = "vGPU Driver Capability\n        Heterogenous Multi-vGPU                        : Supported\n\nAttached";
    assert!(log.contains(above));
    assert!(has_line(
        &log,
        "        Heterogeneous Time-Slice Sizes                 : Not Supported"
    ));
    assert!(!text(&context(&hopper(driver(), 0), &[0]), None).contains("vGPU D"));
}

#[test]
fn an_older_driver_is_asked_for_its_own_fields() {
    let script = hopper(driver(), 0)
        .system(
            SystemQuery::DriverVersion,
            Ok(Value::Text("575.57.08".to_owned())),
        )
        .numbers(0, Query::Field(251, 0), &[5_000_999])
        .numbers(0, Query::Field(253, 0), &[7_000])
        .answer(
            Subject::gpu(0),
            Query::Field(265, 5),
            Ok(Value::Reals(vec![12.34])),
        )
        .numbers(0, Query::Field(256, 5), &[1]);
    let log = text(&context(&script, &[0]), None);
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
fn sections_show_what_is_asked_for_in_the_order_of_the_log() {
    assert_eq!(
        shown(&hopper(driver(), 0), "power,compute"),
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
    assert_eq!(shown(&hopper(driver(), 0), "VOLTAGE"), "\n");
    assert_eq!(shown(&hopper(driver(), 0), ""), "\n");
}

#[test]
fn samples_are_summed_up_and_cut_to_whole_percents() {
    let utilization = shown(&hopper(driver(), 0), "UTILIZATION");
    assert_eq!(
        between(
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
        &shown(&hopper(driver(), 0), "CLOCK"),
        "        Number of Samples                              : Not Found"
    ));
}

#[test]
fn lists_that_the_whole_log_leaves_out_are_shown_by_their_sections() {
    assert_eq!(
        shown(&hopper(driver(), 0), "SUPPORTED_CLOCKS"),
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
        between(
            &shown(&volta(driver()), "ACCOUNTING"),
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
        &shown(&hopper(driver(), 0), "ACCOUNTING"),
        "    Accounted Processes                                : None"
    ));
    assert!(
        shown(&volta(driver()), "SUPPORTED_GPU_TARGET_TEMP").starts_with(
            "    Supported GPU_TARGET_TEMP\n        Min                                            : 65 C\n"
        )
    );
}

#[test]
fn the_dtd_of_a_release_holds_what_every_document_of_it_holds() {
    for (branch, has) in [(580, true), (590, false), (595, true)] {
        let dtd = dtd_text(Release(branch, 0));
        assert_eq!(dtd.contains("partition_assigned"), has, "{branch}");
        assert!(!dtd.contains("partition_assigned?"), "{branch}");
    }
}

#[test]
fn the_dtd_stands_in_the_document_where_it_is_asked_for() {
    let document = xml(&context(&hopper(driver(), 0), &[0]), true);
    let head = format!(
        "<?xml version=\"1.0\" ?>\n<!DOCTYPE nvidia_smi_log [\n{}]>\n<nvidia_smi_log>\n",
        dtd_text(Release(580, 159))
    );
    assert!(document.starts_with(&head));
}

/// Returns the text of the first GPU for these sections.
fn shown(script: &ScriptedBackend, sections: &str) -> String {
    let sections = parse_sections(sections).unwrap();
    let log = text(&context(script, &[0]), Some(&sections));
    let block = log.split_once("\nGPU ").unwrap().1;
    block.split_once('\n').unwrap().1.to_owned()
}

/// Returns the part of the log from `from` up to `to`.
fn between<'a>(log: &'a str, from: &str, to: &str) -> &'a str {
    let start = log.find(from).unwrap();
    let end = log[start..].find(to).unwrap();
    &log[start..start + end]
}

fn has_line(log: &str, line: &str) -> bool {
    log.lines().any(|other| other == line)
}
