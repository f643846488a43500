//! Tests of every field for an H200 under load with driver 580.

use super::*;

/// The expected output, with the name, the heading, and the cell of each field.
const EXPECTED: &str = include_str!("h200.txt");

#[test]
fn h200_fields_match_nvidia_smi() {
    let board = h200_backend();
    for line in EXPECTED.lines() {
        let mut parts = line.split(" |").map(str::trim_start);
        let (name, heading, cell) = (
            parts.next().unwrap(),
            parts.next().unwrap(),
            parts.next().unwrap(),
        );
        assert_eq!(
            render_query(&board, &[0], QueryKind::Gpu, name, "csv"),
            format!("{heading}\n{cell}\n"),
            "{name}"
        );
    }
    assert_eq!(EXPECTED.lines().count(), 256);
}

#[test]
fn nounits_option_keeps_unavailable_value_in_brackets() {
    let fields = "memory.used,clocks.sm,power.draw,fan.speed,temperature.gpu,utilization.gpu";
    assert_eq!(
        render_query(&h200_backend(), &[0], QueryKind::Gpu, fields, "csv,nounits"),
        "memory.used [MiB], clocks.current.sm [MHz], power.draw [W], fan.speed [%], \
         temperature.gpu, utilization.gpu [%]\n7477, 1500, 692.18, [N/A], 53, 99\n"
    );
}

/// Returns a backend with the NVML answers of an H200. All other queries return “not supported”.
fn h200_backend() -> ScriptedBackend {
    use Query as Q;
    let mut board = ScriptedBackend::default()
        .with_system_answer(
            SystemQuery::DriverVersion,
            Ok(Value::Text("580.159.04".to_owned())),
        )
        .with_text(0, Q::Name, "NVIDIA H200")
        .with_text(0, Q::Serial, "1650000000001")
        .with_text(0, Q::Uuid, "GPU-11111111-2222-3333-4444-555555555555")
        .with_text(0, Q::BusId, "00000000:00:06.0")
        .with_text(0, Q::VbiosVersion, "96.00.A5.00.1A")
        .with_text(0, Q::InforomImageVersion, "G520.0282.02.02")
        .with_text(0, Q::InforomVersion(0), "2.1")
        .with_text(0, Q::InforomVersion(1), "7.16");
    for (query, numbers) in [
        (Q::PciInfo, &[0, 0, 6, 0x2335_10DE, 0x18BF_10DE, 3, 2][..]),
        (Q::PcieGeneration, &[5]),
        (Q::MaxPcieGeneration, &[5]),
        (Q::GpuMaxPcieGeneration, &[5]),
        (Q::PcieWidth, &[16]),
        (Q::MaxPcieWidth, &[16]),
        (Q::DisplayMode, &[1]),
        (Q::DisplayActive, &[0]),
        (Q::PersistenceMode, &[1]),
        (Q::AddressingMode, &[0]),
        (Q::AccountingMode, &[0]),
        (Q::AccountingBufferSize, &[4000]),
        (Q::InforomIsValid, &[]),
        (Q::Field(230, 0), &[0]),
        (Q::PerformanceState, &[0]),
        (Q::SupportedThrottleReasons, &[0x1FF]),
        (Q::ThrottleReasons, &[4]),
        (Q::Field(74, 0), &[10_280_059_904]),
        (Q::Field(76, 0), &[0]),
        (Q::Field(269, 0), &[0]),
        (Q::Field(270, 0), &[0]),
        (Q::Field(271, 0), &[0]),
        (
            Q::MemoryInfo,
            &[150_754_820_096, 644_939_776, 142_270_267_392, 7_839_612_928],
        ),
        (Q::ComputeMode, &[0]),
        (Q::ComputeCapability, &[9, 0]),
        (Q::UtilizationRates, &[99, 23]),
        (Q::EncoderUtilization, &[0, 100_000]),
        (Q::DecoderUtilization, &[0, 100_000]),
        (Q::JpgUtilization, &[0, 100_000]),
        (Q::OfaUtilization, &[0, 100_000]),
        (Q::EncoderStats, &[0, 0, 0]),
        (Q::EccMode, &[1, 1]),
        (Q::SramEccErrors, &[0; 12]),
        (Q::RemappedRowsV2, &[0; 6]),
        (Q::RemappedRows, &[0; 4]),
        (Q::RowRemapperHistogram, &[3072, 0, 0, 0, 0]),
        (Q::Temperature, &[53]),
        (Q::MarginTemperature, &[30]),
        (Q::Field(82, 0), &[41]),
        (Q::PowerManagementMode, &[1]),
        (Q::PowerUsage, &[692_180]),
        (Q::Field(185, 0), &[692_180]),
        (Q::Field(186, 0), &[672_390]),
        (Q::PowerLimit, &[700_000]),
        (Q::EnforcedPowerLimit, &[700_000]),
        (Q::DefaultPowerLimit, &[700_000]),
        (Q::PowerLimitConstraints, &[200_000, 700_000]),
        (Q::Clock(0), &[1500]),
        (Q::Clock(1), &[1500]),
        (Q::Clock(2), &[3201]),
        (Q::Clock(3), &[1530]),
        (Q::MigMode, &[0, 0]),
        (Q::GspFirmwareMode, &[1, 1]),
        (Q::C2cMode, &[0]),
        (Q::ProtectedMemory, &[0, 0, 0]),
        (Q::FabricInfo, &[3, 0, 0, 0, 0, 0, 0]),
        (Q::PlatformInfo, &[0, 0, 0, 0, 0, 0, 1, 0, 2]),
        (Q::ModuleId, &[2]),
    ] {
        board = board.with_numbers(0, query, numbers);
    }
    for (clock, mhz) in [(0, 1980), (1, 1980), (2, 3201)] {
        board = board
            .with_numbers(0, Q::ApplicationsClock(clock), &[mhz])
            .with_numbers(0, Q::DefaultApplicationsClock(clock), &[mhz])
            .with_numbers(0, Q::MaxClock(clock), &[mhz]);
    }
    for (kind, counter) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        board = board
            .with_numbers(0, Q::TotalEccErrors(kind, counter), &[0])
            .with_numbers(0, Q::MemoryErrors(kind, counter, 2), &[0])
            .with_numbers(0, Q::MemoryErrors(kind, counter, 7), &[0]);
    }
    board
}
