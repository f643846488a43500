//! Tests of values of boards other than the H200 in the `board` module.

use Query as Q;

use super::*;

fn backend_with(query: Query, numbers: &[i128]) -> ScriptedBackend {
    ScriptedBackend::default().with_numbers(0, query, numbers)
}

#[test]
fn fan_and_host_pcie_readings_are_shown() {
    assert_eq!(
        render_cells(&backend_with(Q::FanSpeed, &[30]), "fan.speed"),
        "30 %"
    );
    assert_eq!(
        render_cells(
            &backend_with(Q::HostMaxPcieGeneration, &[4]),
            "pcie.link.gen.hostmax"
        ),
        "4"
    );
    assert_eq!(
        render_cells(&backend_with(Q::PerformanceState, &[8]), "pstate"),
        "P8"
    );
    assert_eq!(
        render_cells(&backend_with(Q::PerformanceState, &[32]), "pstate"),
        "[Unknown Error]"
    );
}

#[test]
fn unsupported_reason_is_not_shown_as_inactive() {
    let driver = backend_with(Q::SupportedThrottleReasons, &[0b11]).with_numbers(
        0,
        Q::ThrottleReasons,
        &[0b01],
    );
    let fields = "clocks_event_reasons.gpu_idle,clocks_event_reasons.applications_clocks_setting,\
                  clocks_event_reasons.hw_thermal_slowdown,clocks_event_reasons.active";
    assert_eq!(
        render_cells(&driver, fields),
        "Active, Not Active, [N/A], 0x0000000000000001"
    );
}

#[test]
fn each_throttle_reason_field_uses_its_own_bit() {
    let supported = backend_with(Q::SupportedThrottleReasons, &[0x1FF]);
    for (bit, reason) in [
        (0x1, "gpu_idle"),
        (0x2, "applications_clocks_setting"),
        (0x4, "sw_power_cap"),
        (0x8, "hw_slowdown"),
        (0x10, "sync_boost"),
        (0x20, "sw_thermal_slowdown"),
        (0x40, "hw_thermal_slowdown"),
        (0x80, "hw_power_brake_slowdown"),
    ] {
        let field = format!("clocks_throttle_reasons.{reason}");
        let active = backend_with(Q::SupportedThrottleReasons, &[0x1FF]).with_numbers(
            0,
            Q::ThrottleReasons,
            &[bit],
        );
        assert_eq!(render_cells(&active, &field), "Active", "{reason}");
        let others = backend_with(Q::SupportedThrottleReasons, &[0x1FF]).with_numbers(
            0,
            Q::ThrottleReasons,
            &[0x1FF & !bit],
        );
        assert_eq!(render_cells(&others, &field), "Not Active", "{reason}");
    }
    assert_eq!(
        render_cells(&supported, "clocks_throttle_reasons.active"),
        "[N/A]"
    );
}

#[test]
fn sram_error_counters_are_distinct() {
    // nvidia-smi 580 prints the same volatile parity counter for three fields.
    let driver = backend_with(
        Q::SramEccErrors,
        &[10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 1],
    );
    let field = |name: &str| render_cells(&driver, &format!("ecc.errors.uncorrected.{name}"));
    for name in [
        "aggregate.sram.parity",
        "aggregate.sram.secded",
        "volatile.sram.parity",
    ] {
        assert_eq!(field(name), "13", "{name}");
    }
    assert_eq!(field("volatile.sram.secded"), "14");
    assert_eq!(field("aggregate.sram.l2"), "16");
    assert_eq!(field("aggregate.sram.sm"), "17");
    assert_eq!(field("aggregate.sram.pcie"), "18");
    assert_eq!(field("aggregate.sram.mcu"), "19");
    assert_eq!(field("aggregate.sram.other"), "20");
    assert_eq!(field("aggregate.sram.thresholdExceeded"), "Yes");
}

#[test]
fn memory_error_counters_are_distinct() {
    for (kind, kind_name) in [(0, "corrected"), (1, "uncorrected")] {
        for (counter, counter_name) in [(0, "volatile"), (1, "aggregate")] {
            for (place, place_name) in [
                (0, "l1_cache"),
                (1, "l2_cache"),
                (2, "dram"),
                (2, "device_memory"),
                (3, "register_file"),
                (4, "texture_memory"),
                (6, "cbu"),
                (7, "sram"),
            ] {
                let driver = backend_with(Q::MemoryErrors(kind, counter, place), &[42]);
                let field = format!("ecc.errors.{kind_name}.{counter_name}.{place_name}");
                assert_eq!(render_cells(&driver, &field), "42", "{field}");
            }
            let driver = backend_with(Q::TotalEccErrors(kind, counter), &[43]);
            assert_eq!(
                render_cells(
                    &driver,
                    &format!("ecc.errors.{kind_name}.{counter_name}.total")
                ),
                "43"
            );
        }
    }
}

#[test]
fn each_field_shows_its_own_reading() {
    for (query, numbers, field, cell) in [
        (
            Q::PciInfo,
            &[0x1A, 0x2B, 0x3C, 0x4D, 0x5E, 6, 7][..],
            "pci.domain",
            "0x001A",
        ),
        (
            Q::PciInfo,
            &[0x1A, 0x2B, 0x3C, 0x4D, 0x5E, 6, 7],
            "pci.bus",
            "0x2B",
        ),
        (
            Q::PciInfo,
            &[0x1A, 0x2B, 0x3C, 0x4D, 0x5E, 6, 7],
            "pci.device",
            "0x3C",
        ),
        (
            Q::PciInfo,
            &[0x1A, 0x2B, 0x3C, 0x4D, 0x5E, 6, 7],
            "pci.device_id",
            "0x0000004D",
        ),
        (Q::PcieGeneration, &[1], "pcie.link.gen.current", "1"),
        (Q::PcieGeneration, &[1], "pcie.link.gen.gpucurrent", "1"),
        (Q::MaxPcieGeneration, &[2], "pcie.link.gen.max", "2"),
        (Q::GpuMaxPcieGeneration, &[3], "pcie.link.gen.gpumax", "3"),
        (Q::PcieWidth, &[8], "pcie.link.width.current", "8"),
        (Q::MaxPcieWidth, &[16], "pcie.link.width.max", "16"),
        (Q::EncoderUtilization, &[1, 2], "utilization.encoder", "1 %"),
        (Q::DecoderUtilization, &[3, 2], "utilization.decoder", "3 %"),
        (Q::JpgUtilization, &[4, 2], "utilization.jpeg", "4 %"),
        (Q::OfaUtilization, &[5, 2], "utilization.ofa", "5 %"),
        (
            Q::EncoderStats,
            &[6, 7, 8],
            "encoder.stats.sessionCount",
            "6",
        ),
        (Q::EncoderStats, &[6, 7, 8], "encoder.stats.averageFps", "7"),
        (
            Q::EncoderStats,
            &[6, 7, 8],
            "encoder.stats.averageLatency",
            "8",
        ),
        (
            Q::ProtectedMemory,
            &[3 << 20, 2 << 20, 1 << 20],
            "protected_memory.total",
            "3 MiB",
        ),
        (
            Q::ProtectedMemory,
            &[3 << 20, 2 << 20, 1 << 20],
            "protected_memory.free",
            "2 MiB",
        ),
        (
            Q::ProtectedMemory,
            &[3 << 20, 2 << 20, 1 << 20],
            "protected_memory.used",
            "1 MiB",
        ),
        (Q::Clock(0), &[10], "clocks.gr", "10 MHz"),
        (Q::Clock(1), &[11], "clocks.sm", "11 MHz"),
        (Q::Clock(2), &[12], "clocks.mem", "12 MHz"),
        (Q::Clock(3), &[13], "clocks.video", "13 MHz"),
        (Q::MaxClock(0), &[14], "clocks.max.gr", "14 MHz"),
        (Q::MaxClock(1), &[15], "clocks.max.sm", "15 MHz"),
        (Q::MaxClock(2), &[16], "clocks.max.mem", "16 MHz"),
        (
            Q::ApplicationsClock(0),
            &[17],
            "clocks.applications.gr",
            "17 MHz",
        ),
        (
            Q::ApplicationsClock(2),
            &[18],
            "clocks.applications.mem",
            "18 MHz",
        ),
        (
            Q::DefaultApplicationsClock(0),
            &[19],
            "clocks.default_applications.gr",
            "19 MHz",
        ),
        (
            Q::DefaultApplicationsClock(2),
            &[20],
            "clocks.default_applications.mem",
            "20 MHz",
        ),
        (
            Q::Field(76, 0),
            &[21_999],
            "clocks_event_reasons_counters.sync_boost",
            "21 us",
        ),
        (
            Q::Field(269, 0),
            &[22_000],
            "clocks_event_reasons_counters.sw_thermal_slowdown",
            "22 us",
        ),
        (
            Q::Field(270, 0),
            &[23_000],
            "clocks_event_reasons_counters.hw_thermal_slowdown",
            "23 us",
        ),
        (
            Q::Field(271, 0),
            &[24_000],
            "clocks_event_reasons_counters.hw_power_brake_slowdown",
            "24 us",
        ),
        (
            Q::PowerLimit,
            &[25_000],
            "gpu.power.requested_limit",
            "25.00 W",
        ),
        (
            Q::EnforcedPowerLimit,
            &[26_000],
            "gpu.power.current_limit",
            "26.00 W",
        ),
        (
            Q::DefaultPowerLimit,
            &[27_000],
            "gpu.power.default_limit",
            "27.00 W",
        ),
        (
            Q::Field(185, 0),
            &[28_000],
            "gpu.power.draw.average",
            "28.00 W",
        ),
        (
            Q::Field(186, 0),
            &[29_000],
            "gpu.power.draw.instant",
            "29.00 W",
        ),
        (
            Q::Field(186, 1),
            &[30_000],
            "module.power.draw.instant",
            "30.00 W",
        ),
        (
            Q::Field(276, 0),
            &[31],
            "power_smoothing.secondary_power_floor",
            "31.00 W",
        ),
        (
            Q::Field(277, 0),
            &[32],
            "power_smoothing.min_primary_floor_activation_offset",
            "32.00 W",
        ),
        (
            Q::Field(278, 0),
            &[33],
            "power_smoothing.min_primary_floor_activation_point",
            "33.00 W",
        ),
        (
            Q::Field(281, 5),
            &[34],
            "power_smoothing.curr_profile.secondary_power_floor",
            "34.00 W",
        ),
        (
            Q::Field(283, 5),
            &[35],
            "power_smoothing.curr_profile.primary_floor_tar_window_multiplier",
            "35",
        ),
        (
            Q::Field(284, 5),
            &[36],
            "power_smoothing.curr_profile.primary_floor_act_offset",
            "36.00 W",
        ),
        (
            Q::Field(285, 0),
            &[37],
            "power_smoothing.admin_override.secondary_power_floor",
            "37.00 W",
        ),
        (
            Q::Field(288, 0),
            &[38],
            "power_smoothing.admin_override.primary_floor_act_offset",
            "38.00 W",
        ),
        (
            Q::RowRemapperHistogram,
            &[1, 2, 3, 4, 5],
            "remapped_rows.histogram.partial",
            "3",
        ),
        (
            Q::RowRemapperHistogram,
            &[1, 2, 3, 4, 5],
            "remapped_rows.histogram.low",
            "4",
        ),
        (
            Q::RowRemapperHistogram,
            &[1, 2, 3, 4, 5],
            "remapped_rows.histogram.none",
            "5",
        ),
        (Q::RetiredPagesPending, &[1], "retired_pages.pending", "Yes"),
        (Q::C2cMode, &[1], "c2c.mode", "Enabled"),
        (Q::GspFirmwareMode, &[0, 1], "gsp.mode.current", "Disabled"),
        (Q::GspFirmwareMode, &[0, 1], "gsp.mode.default", "Enabled"),
        (
            Q::VgpuCapability(2),
            &[1],
            "vgpu_device_capability.heterogeneous_timeSlice_sizes",
            "Supported",
        ),
        (
            Q::VgpuCapability(9),
            &[1],
            "vgpu_device_capability.homogeneous_placements",
            "Supported",
        ),
        (
            Q::VgpuCapability(10),
            &[1],
            "vgpu_device_capability.mig_timeSlicing",
            "Supported",
        ),
    ] {
        assert_eq!(
            render_cells(&backend_with(query, numbers), field),
            cell,
            "{field}"
        );
    }
}

#[test]
fn settings_are_shown_as_words() {
    for (query, number, field, word) in [
        (Q::ComputeMode, 1, "compute_mode", "Exclusive_Thread"),
        (Q::ComputeMode, 2, "compute_mode", "Prohibited"),
        (Q::ComputeMode, 3, "compute_mode", "Exclusive_Process"),
        (Q::AddressingMode, 1, "addressing_mode", "HMM"),
        (Q::AddressingMode, 2, "addressing_mode", "ATS"),
        (Q::DriverModel, 1, "driver_model.current", "TCC"),
        (Q::GpuOperationMode, 0, "gom.current", "All On"),
        (
            Q::GpuOperationMode,
            2,
            "gpu_operation_mode.current",
            "Low Double Precision",
        ),
        (Q::Field(230, 0), 2, "gpu_recovery_action", "Reboot"),
        (
            Q::Field(230, 0),
            4,
            "gpu_recovery_action",
            "Drain and Reset",
        ),
        (
            Q::Field(230, 0),
            99,
            "gpu_recovery_action",
            "[Unknown Error]",
        ),
        (
            Q::VgpuCapability(1),
            1,
            "vgpu_device_capability.heterogeneous_timeSlice_profile",
            "Supported",
        ),
        (
            Q::VgpuCapability(0),
            0,
            "vgpu_device_capability.fractional_multiVgpu",
            "Not Supported",
        ),
        (
            Q::VgpuCapability(11),
            0,
            "vgpu_device_capability.mig_timeSlicing_mode",
            "Disabled",
        ),
        (Q::MigMode, 1, "mig.mode.current", "Enabled"),
        (Q::DisplayMode, 0, "display_attached", "No"),
    ] {
        assert_eq!(
            render_cells(&backend_with(query, &[number]), field),
            word,
            "{field} {number}"
        );
    }
    let pending = backend_with(Q::MigMode, &[0, 1])
        .with_numbers(0, Q::DramEncryptionMode, &[0, 1])
        .with_numbers(0, Q::EccMode, &[1, 0]);
    assert_eq!(
        render_cells(
            &pending,
            "mig.mode.pending,dramEncryption.mode.pending,ecc.mode.pending"
        ),
        "Enabled, Enabled, Disabled"
    );
}

#[test]
fn inforom_validity_is_shown_as_word() {
    let answered = |answer| {
        render_cells(
            &ScriptedBackend::default().with_answer(
                Subject::from_gpu(0),
                Q::InforomIsValid,
                answer,
            ),
            "inforom.checksum_validation",
        )
    };
    assert_eq!(answered(Ok(Value::Numbers(Vec::new()))), "valid");
    assert_eq!(answered(Err(Code::CORRUPTED_INFOROM)), "invalid");
    assert_eq!(answered(Err(Code::NOT_SUPPORTED)), "[N/A]");
}

#[test]
fn missing_memory_temperature_has_no_brackets() {
    assert_eq!(
        render_cells(
            &ScriptedBackend::default(),
            "temperature.memory,temperature.gpu"
        ),
        "N/A, [N/A]"
    );
    let lost = ScriptedBackend::default().with_answer(
        Subject::from_gpu(0),
        Q::Field(82, 0),
        Err(Code::GPU_IS_LOST),
    );
    assert_eq!(render_cells(&lost, "temperature.memory"), "[GPU is lost]");
}

#[test]
fn module_power_and_smoothing_are_shown() {
    let driver = backend_with(Q::Field(185, 1), &[512_340])
        .with_numbers(0, Q::Field(192, 1), &[1_000_000])
        .with_numbers(0, Q::Field(190, 1), &[900_000])
        .with_numbers(0, Q::Field(189, 1), &[800_000])
        .with_numbers(0, Q::Field(187, 1), &[300_000])
        .with_numbers(0, Q::Field(188, 1), &[1_200_000])
        .with_answer(
            Subject::from_gpu(0),
            Q::Field(275, 0),
            Ok(Value::Reals(vec![437.5])),
        )
        .with_numbers(0, Q::Field(279, 0), &[20])
        .with_numbers(0, Q::Field(280, 0), &[1])
        .with_numbers(0, Q::Field(282, 5), &[3])
        .with_numbers(0, Q::Field(286, 0), &[4])
        .with_numbers(0, Q::Field(287, 0), &[i128::from(u32::MAX)]);
    let module = "module.power.draw.average,module.power.limit,module.enforced.power.limit,\
             module.power.default_limit,module.power.min_limit,module.power.max_limit";
    assert_eq!(
        render_cells(&driver, module),
        "512.34 W, 1000.00 W, 900.00 W, 800.00 W, 300.00 W, 1200.00 W"
    );
    let smoothing = "power_smoothing.delayed_power_smoothing_supported,power_smoothing.primary_power_floor,\
             power_smoothing.window_multiplier,\
             power_smoothing.curr_profile.primary_floor_act_window_multiplier,\
             power_smoothing.admin_override.primary_floor_act_window_multiplier,\
             power_smoothing.admin_override.primary_floor_tar_window_multiplier";
    assert_eq!(
        render_cells(&driver, smoothing),
        "Yes, 437.50 W, 20 ms, 3, 4, [N/A]"
    );
}

/// The expected headings are those of nvidia-smi 610.
#[test]
fn fields_newer_than_580_are_shown() {
    let heading_and_cell = |driver: &ScriptedBackend, field: &str| {
        let shown = render_query(driver, &[0], QueryKind::Gpu, field, "csv");
        shown.strip_suffix('\n').unwrap().replace('\n', ": ")
    };
    let version = Ok(Value::Text("610.57.04".to_owned()));
    let driver = ScriptedBackend::default().with_system_answer(SystemQuery::DriverVersion, version);
    assert_eq!(
        heading_and_cell(&driver, "kmd_version"),
        "kmd_version: 610.57.04"
    );
    assert_eq!(
        render_cells(&driver, "power.management"),
        "[Requested functionality has been deprecated]"
    );
    for (query, number, expected) in [
        (Q::Field(274, 0), 100, "edpp_multiplier [%]: 100.00 %"),
        (
            Q::TimeRun,
            15_811_200,
            "bbx.time_run [seconds]: 15811200 seconds",
        ),
        (Q::Field(190, 3), 500_000, "gpu.base.current [W]: 500.00 W"),
        (
            Q::Field(192, 3),
            510_000,
            "gpu.base.requested [W]: 510.00 W",
        ),
        (Q::Field(189, 3), 520_000, "gpu.base.default [W]: 520.00 W"),
        (Q::Field(187, 3), 530_000, "gpu.base.min [W]: 530.00 W"),
        (Q::Field(188, 3), 540_000, "gpu.base.max [W]: 540.00 W"),
        (Q::Field(255, 0), 1, "power_smoothing.tmp_floor [W]: 1.00 W"),
        (Q::Field(254, 0), 2, "power_smoothing.tmp_ceil [W]: 2.00 W"),
        (
            Q::Field(258, 0),
            3,
            "power_smoothing.hw_lifetime_remaining_percent [%]: 3.00 %",
        ),
        (Q::Field(251, 0), 1, "power_smoothing.enabled: Yes"),
        (
            Q::Field(300, 0),
            1,
            "power_smoothing.soc_power_smoothing_enabled: Enabled",
        ),
        (Q::Field(252, 0), 4, "power_smoothing.priv_level: 4"),
        (
            Q::Field(253, 0),
            0,
            "power_smoothing.imm_ramp_down: Disabled",
        ),
        (
            Q::Field(256, 0),
            5,
            "power_smoothing.max_percent_tmp_floor [%]: 5.00 %",
        ),
        (
            Q::Field(257, 0),
            6,
            "power_smoothing.min_percent_tmp_floor [%]: 6.00 %",
        ),
        (
            Q::Field(259, 0),
            7,
            "power_smoothing.num_preset_profiles: 7",
        ),
        (
            Q::Field(260, 5),
            8,
            "power_smoothing.curr_profile.percent_tmp_floor [%]: 8.00 %",
        ),
        (
            Q::Field(261, 5),
            9_500,
            "power_smoothing.curr_profile.ramp_up_rate [W/s]: 9.50 W/s",
        ),
        (
            Q::Field(262, 5),
            10_500,
            "power_smoothing.curr_profile.ramp_down_rate [W/s]: 10.50 W/s",
        ),
        (
            Q::Field(263, 5),
            11,
            "power_smoothing.curr_profile.ramp_down_hysteresis [ms]: 11 ms",
        ),
        (Q::Field(264, 0), 12, "power_smoothing.active_profile: 12"),
        (
            Q::Field(265, 0),
            13,
            "power_smoothing.admin_override.percent_tmp_floor [%]: 13.00 %",
        ),
        (
            Q::Field(266, 0),
            14_500,
            "power_smoothing.admin_override.ramp_up_rate [W/s]: 14.50 W/s",
        ),
        (
            Q::Field(267, 0),
            15_500,
            "power_smoothing.admin_override.ramp_down_rate [W/s]: 15.50 W/s",
        ),
        (
            Q::Field(268, 0),
            16,
            "power_smoothing.admin_override.ramp_down_hysteresis [ms]: 16 ms",
        ),
    ] {
        let (field, _) = expected.split_once([':', ' ']).unwrap();
        assert_eq!(
            heading_and_cell(&backend_with(query, &[number]), field),
            expected
        );
    }
    let unset = backend_with(Q::Field(265, 0), &[i128::from(u32::MAX)]).with_numbers(
        0,
        Q::Field(285, 0),
        &[i128::from(u32::MAX)],
    );
    let overrides = "power_smoothing.admin_override.percent_tmp_floor,power_smoothing.admin_override.secondary_power_floor";
    assert_eq!(render_cells(&unset, overrides), "[N/A], [N/A]");
}

const FABRIC_FIELDS: &str = "fabric.state,fabric.status,fabric.cliqueId,fabric.clusterUuid";
const HEALTH_FIELDS: &str = "fabric.health.summary,fabric.health.bandwidth,fabric.health.route_recovery_in_progress,\
             fabric.health.route_unhealthy,fabric.health.access_timeout_recovery,\
             fabric.health.incorrect_configuration,fabric.health.partition_assigned";

#[test]
fn missing_fabric_readings_have_no_brackets() {
    let fabric =
        |numbers: &[i128]| render_cells(&backend_with(Q::FabricInfo, numbers), FABRIC_FIELDS);
    let uuid = [0x9c6f_5af3_53bf_49b5, i128::from(0xa436_b667_66c4_13c3_u64)];
    assert_eq!(
        render_cells(&ScriptedBackend::default(), FABRIC_FIELDS),
        "N/A, N/A, N/A, N/A"
    );
    assert_eq!(fabric(&[0, 0, 0, 0, 0, 0, 0]), "N/A, N/A, N/A, N/A");
    assert_eq!(fabric(&[1, 0, 0, 0, 0, 0, 0]), "Not Started, N/A, N/A, N/A");
    assert_eq!(fabric(&[2, 0, 0, 0, 0, 0, 0]), "In Progress, N/A, N/A, N/A");
    assert_eq!(
        fabric(&[3, 0, 4026, 0, 0, uuid[0], uuid[1]]),
        "Completed, Success, 4026, 9c6f5af3-53bf-49b5-a436-b66766c413c3"
    );
    assert_eq!(
        fabric(&[3, 23, 0, 0, 0, 0, 0]),
        "Completed, Insufficient Resources, N/A, N/A"
    );
}

#[test]
fn fabric_health_fields_require_health_summary() {
    let health = |mask, summary| {
        render_cells(
            &backend_with(Q::FabricInfo, &[3, 0, 0, mask, summary, 0, 0]),
            HEALTH_FIELDS,
        )
    };
    assert_eq!(
        health(0b0001_1010_1010, 0),
        "N/A, N/A, N/A, N/A, N/A, N/A, N/A"
    );
    assert_eq!(
        health(0b01_0001_1010_1010, 1),
        "Healthy, Full, False, False, False, None, True"
    );
    assert_eq!(
        health(0b0100_0101_0101, 2),
        "Unhealthy, Degraded, True, True, True, No Partition, N/A"
    );
    assert_eq!(
        health(0b01, 3),
        "Limited Capacity, Degraded, N/A, N/A, N/A, N/A, N/A"
    );
}

#[test]
fn fabric_conditions_are_distinct() {
    for (mask, words) in [
        (0x001, "Degraded, N/A, N/A, N/A, N/A, N/A"),
        (0x004, "N/A, True, N/A, N/A, N/A, N/A"),
        (0x010, "N/A, N/A, True, N/A, N/A, N/A"),
        (0x040, "N/A, N/A, N/A, True, N/A, N/A"),
        (0x200, "N/A, N/A, N/A, N/A, Incorrect SystemGuid, N/A"),
        (0x1000, "N/A, N/A, N/A, N/A, N/A, True"),
    ] {
        let driver = backend_with(Q::FabricInfo, &[3, 0, 0, mask, 2, 0, 0]);
        assert_eq!(
            render_cells(&driver, HEALTH_FIELDS),
            format!("Unhealthy, {words}"),
            "{mask:#x}"
        );
    }
}

#[test]
fn rack_serial_and_position_fields_are_shown() {
    let serial = *b"1821124220001\0\0\0";
    let half = |bytes: &[u8]| i128::from(u64::from_be_bytes(bytes.try_into().unwrap()));
    let driver = backend_with(
        Q::PlatformInfo,
        &[
            0x034c_4931_ff7d_1c4f,
            0,
            half(&serial[..8]),
            half(&serial[8..]),
            17,
            9,
            1,
            1,
            3,
        ],
    )
    .with_numbers(0, Q::ModuleId, &[3]);
    let fields = "platform.chassis_serial_number,platform.slot_number,platform.tray_index,platform.host_id,\
         platform.peer_type,platform.module_id,platform.gpu_fabric_guid";
    assert_eq!(
        render_cells(&driver, fields),
        "1821124220001, 17, 9, 1, Switch Connected, 3, 0x034C4931FF7D1C4F"
    );
}
