//! The columns that are queried from nvidia-smi, the model's fields that they set, and the parsing
//! of their cells.

use gpumon_probe::{
    model::{
        Absence, ComputeMode, Gpu, GpuDetails, GpuSample, Health, Mode, Reading, RecoveryAction,
        RemappedRows, RetiredPages, ThrottleReason,
    },
    owner::clean_name,
};

/// The parsed values of one nvidia-smi row, which describes one GPU.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) gpu: Gpu,
    pub(super) sample: GpuSample,
    pub(super) details: GpuDetails,
    /// The number of GPUs in the host, as this row reports it.
    pub(super) count: Option<u32>,
    pub(super) driver_version: Reading<String>,
    /// The current and pending ECC mode, and the current and pending MIG mode. Each pair is
    /// combined into one value of the model.
    modes: [Reading<bool>; 4],
    pages: [Reading<u32>; 2],
    pages_pending: Reading<bool>,
    rows: [Reading<u32>; 2],
    rows_are: [Reading<bool>; 2],
}

pub(super) type CellSetter = fn(&mut Row, Cell<'_>);

/// The queried columns, by their names in `nvidia-smi --help-query-gpu`. If older drivers use
/// another name for a column, the older name is listed before the newer one. A driver that supports
/// both names reports the same value for both.
pub(super) const COLUMNS: &[(&str, CellSetter)] = &[
    ("index", |row, cell| {
        if let Reading::Now(index) = cell.parse_small_number() {
            row.gpu.index = index;
        }
    }),
    ("count", |row, cell| {
        row.count = cell.parse_small_number().value().copied();
    }),
    ("uuid", |row, cell| {
        row.gpu.uuid = cell.text().ok().map(clean_name);
    }),
    ("name", |row, cell| row.gpu.name = parse_text(cell)),
    ("pci.bus_id", |row, cell| {
        row.gpu.pci_bus_id = parse_text(cell);
    }),
    ("driver_version", |row, cell| {
        row.driver_version = parse_text(cell);
    }),
    ("serial", |row, cell| {
        row.gpu.board.serial = parse_text(cell);
    }),
    ("vbios_version", |row, cell| {
        row.gpu.board.vbios_version = parse_text(cell);
    }),
    ("compute_cap", |row, cell| {
        row.gpu.board.compute_capability = parse_text(cell);
    }),
    ("pcie.link.gen.max", |row, cell| {
        row.gpu.board.pcie_max_generation = cell.parse_small_number();
    }),
    ("pcie.link.width.max", |row, cell| {
        row.gpu.board.pcie_max_width = cell.parse_small_number();
    }),
    ("clocks.max.graphics", |row, cell| {
        row.gpu.board.max_clocks.graphics_mhz = cell.parse_small_number();
    }),
    ("clocks.max.sm", |row, cell| {
        row.gpu.board.max_clocks.sm_mhz = cell.parse_small_number();
    }),
    ("clocks.max.memory", |row, cell| {
        row.gpu.board.max_clocks.memory_mhz = cell.parse_small_number();
    }),
    ("power.default_limit", |row, cell| {
        row.gpu.board.power_limits.default_watts = cell.parse_number();
    }),
    ("power.min_limit", |row, cell| {
        row.gpu.board.power_limits.min_watts = cell.parse_number();
    }),
    ("power.max_limit", |row, cell| {
        row.gpu.board.power_limits.max_watts = cell.parse_number();
    }),
    ("utilization.gpu", |row, cell| {
        row.sample.utilization.gpu_percent = cell.parse_number();
    }),
    ("utilization.memory", |row, cell| {
        row.sample.utilization.memory_percent = cell.parse_number();
    }),
    ("utilization.encoder", |row, cell| {
        row.sample.utilization.encoder_percent = cell.parse_number();
    }),
    ("utilization.decoder", |row, cell| {
        row.sample.utilization.decoder_percent = cell.parse_number();
    }),
    ("utilization.jpeg", |row, cell| {
        row.sample.utilization.jpeg_percent = cell.parse_number();
    }),
    ("utilization.ofa", |row, cell| {
        row.sample.utilization.ofa_percent = cell.parse_number();
    }),
    ("memory.total", |row, cell| {
        row.sample.memory.total_bytes = cell.parse_mebibytes();
    }),
    ("memory.reserved", |row, cell| {
        row.sample.memory.reserved_bytes = cell.parse_mebibytes();
    }),
    ("memory.used", |row, cell| {
        row.sample.memory.used_bytes = cell.parse_mebibytes();
    }),
    ("memory.free", |row, cell| {
        row.sample.memory.free_bytes = cell.parse_mebibytes();
    }),
    ("power.draw", |row, cell| {
        row.sample.power.draw_watts = cell.parse_number();
    }),
    ("power.draw.instant", |row, cell| {
        row.sample.power.instant_watts = cell.parse_number();
    }),
    ("power.draw.average", |row, cell| {
        row.sample.power.average_watts = cell.parse_number();
    }),
    ("enforced.power.limit", |row, cell| {
        row.sample.power.limit_watts = cell.parse_number();
    }),
    ("temperature.gpu", |row, cell| {
        row.sample.temperature.gpu_celsius = cell.parse_number();
    }),
    ("temperature.memory", |row, cell| {
        row.sample.temperature.memory_celsius = cell.parse_number();
    }),
    ("temperature.gpu.tlimit", |row, cell| {
        row.sample.temperature.margin_celsius = cell.parse_number();
    }),
    ("clocks.current.graphics", |row, cell| {
        row.sample.clocks.graphics_mhz = cell.parse_small_number();
    }),
    ("clocks.current.sm", |row, cell| {
        row.sample.clocks.sm_mhz = cell.parse_small_number();
    }),
    ("clocks.current.memory", |row, cell| {
        row.sample.clocks.memory_mhz = cell.parse_small_number();
    }),
    ("clocks.current.video", |row, cell| {
        row.sample.clocks.video_mhz = cell.parse_small_number();
    }),
    ("pstate", |row, cell| {
        row.sample.performance_state = parse_performance_state(cell);
    }),
    ("clocks_throttle_reasons.active", |row, cell| {
        row.sample.throttle_reasons = cell.parse_mask().map(ThrottleReason::from_nvml_mask);
    }),
    ("clocks_event_reasons.active", |row, cell| {
        row.sample.throttle_reasons = cell.parse_mask().map(ThrottleReason::from_nvml_mask);
    }),
    ("pcie.link.gen.current", |row, cell| {
        row.sample.pcie.generation = cell.parse_small_number();
    }),
    ("pcie.link.gen.gpucurrent", |row, cell| {
        row.sample.pcie.generation = cell.parse_small_number();
    }),
    ("pcie.link.width.current", |row, cell| {
        row.sample.pcie.width = cell.parse_small_number();
    }),
    ("fan.speed", |row, cell| {
        row.sample.fan_percent = cell.parse_number();
    }),
    ("persistence_mode", |row, cell| {
        row.details.modes.persistence = parse_enabled(cell);
    }),
    ("accounting.mode", |row, cell| {
        row.details.modes.accounting = parse_enabled(cell);
    }),
    ("display_active", |row, cell| {
        row.details.modes.display_active = parse_enabled(cell);
    }),
    ("compute_mode", |row, cell| {
        row.details.modes.compute = cell.text().and_then(parse_compute_mode).into();
    }),
    ("ecc.mode.current", |row, cell| {
        row.modes[0] = parse_enabled(cell);
    }),
    ("ecc.mode.pending", |row, cell| {
        row.modes[1] = parse_enabled(cell);
    }),
    ("mig.mode.current", |row, cell| {
        row.modes[2] = parse_enabled(cell);
    }),
    ("mig.mode.pending", |row, cell| {
        row.modes[3] = parse_enabled(cell);
    }),
    ("clocks.applications.graphics", |row, cell| {
        row.details.application_clocks.graphics_mhz = cell.parse_small_number();
    }),
    ("clocks.applications.memory", |row, cell| {
        row.details.application_clocks.memory_mhz = cell.parse_small_number();
    }),
    ("power.limit", |row, cell| {
        row.details.requested_power_limit_watts = cell.parse_number();
    }),
    ("ecc.errors.corrected.volatile.total", |row, cell| {
        row.details.ecc.volatile.corrected_total = cell.parse_whole_number();
    }),
    ("ecc.errors.uncorrected.volatile.total", |row, cell| {
        row.details.ecc.volatile.uncorrected_total = cell.parse_whole_number();
    }),
    ("ecc.errors.corrected.aggregate.total", |row, cell| {
        row.details.ecc.aggregate.corrected_total = cell.parse_whole_number();
    }),
    ("ecc.errors.uncorrected.aggregate.total", |row, cell| {
        row.details.ecc.aggregate.uncorrected_total = cell.parse_whole_number();
    }),
    ("retired_pages.single_bit_ecc.count", |row, cell| {
        row.pages[0] = cell.parse_small_number();
    }),
    ("retired_pages.double_bit.count", |row, cell| {
        row.pages[1] = cell.parse_small_number();
    }),
    ("retired_pages.pending", |row, cell| {
        row.pages_pending = cell.parse_choice("Yes", "No");
    }),
    ("remapped_rows.correctable", |row, cell| {
        row.rows[0] = cell.parse_small_number();
    }),
    ("remapped_rows.uncorrectable", |row, cell| {
        row.rows[1] = cell.parse_small_number();
    }),
    ("remapped_rows.pending", |row, cell| {
        row.rows_are[0] = parse_bool(cell);
    }),
    ("remapped_rows.failure", |row, cell| {
        row.rows_are[1] = parse_bool(cell);
    }),
    ("gpu_recovery_action", |row, cell| {
        row.details.recovery_action = cell.text().and_then(parse_recovery_action).into();
    }),
];

impl Row {
    /// Parses a CSV line with the given columns. Returns `None` if the line does not match them.
    pub(super) fn parse(line: &str, columns: &[CellSetter], at_ms: u64) -> Option<Self> {
        let cells: Vec<_> = line.split(", ").collect();
        if cells.len() != columns.len() {
            return None;
        }
        let not_reported = Absence::NeedsGpumon;
        let mut row = Self {
            gpu: Gpu::new_unidentified(u32::MAX, &not_reported),
            sample: GpuSample::new_absent(0, None, at_ms, Health::Ok, &not_reported),
            details: GpuDetails::new_absent(0, None, at_ms, &not_reported),
            count: None,
            driver_version: Reading::Absent(Absence::Unknown),
            modes: [const { Reading::Absent(Absence::NeedsGpumon) }; 4],
            pages: [const { Reading::Absent(Absence::NeedsGpumon) }; 2],
            pages_pending: Reading::Absent(Absence::NeedsGpumon),
            rows: [const { Reading::Absent(Absence::NeedsGpumon) }; 2],
            rows_are: [const { Reading::Absent(Absence::NeedsGpumon) }; 2],
        };
        for (set, cell) in columns.iter().zip(cells) {
            set(&mut row, Cell(cell));
        }
        row.combine_values();
        (row.gpu.index != u32::MAX).then_some(row)
    }

    /// Combines the values of several columns that form one value in the model.
    fn combine_values(&mut self) {
        let Self {
            gpu,
            sample,
            details,
            modes,
            pages,
            pages_pending,
            rows,
            rows_are,
            ..
        } = self;
        (sample.index, details.index) = (gpu.index, gpu.index);
        (sample.uuid, details.uuid) = (gpu.uuid.clone(), gpu.uuid.clone());
        let [ecc, ecc_pending, mig, mig_pending] = modes;
        let mode = |current: &Reading<bool>, pending: &Reading<bool>| {
            let pending = pending.value().copied();
            current.clone().map(|current| Mode {
                current,
                pending: pending.unwrap_or(current),
            })
        };
        (details.modes.ecc, details.modes.mig) = (mode(ecc, ecc_pending), mode(mig, mig_pending));
        if let Reading::Now(false) = mig {
            sample.mig_devices = Reading::Now(Vec::new());
        }
        details.retired_pages = pages[0].clone().map(|single_bit| RetiredPages {
            single_bit,
            double_bit: pages[1].value().copied().unwrap_or(0),
            pending: pages_pending.value().copied().unwrap_or(false),
        });
        details.remapped_rows = rows[0].clone().map(|correctable| RemappedRows {
            correctable,
            uncorrectable: rows[1].value().copied().unwrap_or(0),
            pending: rows_are[0].value().copied().unwrap_or(false),
            failed: rows_are[1].value().copied().unwrap_or(false),
            spare: None,
        });
    }
}

fn parse_text(cell: Cell<'_>) -> Reading<String> {
    cell.text().map(clean_name).into()
}

fn parse_enabled(cell: Cell<'_>) -> Reading<bool> {
    cell.parse_choice("Enabled", "Disabled")
}

/// Parses a boolean, which drivers write as `0` or `1`, or as `No` or `Yes`.
fn parse_bool(cell: Cell<'_>) -> Reading<bool> {
    let truth = |text: &str| match text {
        "0" | "No" => Ok(false),
        "1" | "Yes" => Ok(true),
        _ => Err(Absence::Unknown),
    };
    cell.text().and_then(truth).into()
}

fn parse_performance_state(cell: Cell<'_>) -> Reading<u8> {
    let state = |text: &str| {
        let number = text
            .strip_prefix('P')
            .and_then(|number| number.parse().ok());
        number.filter(|state| *state < 16).ok_or(Absence::Unknown)
    };
    cell.text().and_then(state).into()
}

fn parse_compute_mode(text: &str) -> Result<ComputeMode, Absence> {
    match text {
        "Default" => Ok(ComputeMode::Default),
        "Exclusive_Process" => Ok(ComputeMode::ExclusiveProcess),
        "Prohibited" => Ok(ComputeMode::Prohibited),
        _ => Err(Absence::Unknown),
    }
}

fn parse_recovery_action(text: &str) -> Result<RecoveryAction, Absence> {
    match text {
        "None" => Ok(RecoveryAction::None),
        "Reset" => Ok(RecoveryAction::GpuReset),
        "Reboot" => Ok(RecoveryAction::NodeReboot),
        "Drain P2P" => Ok(RecoveryAction::DrainP2p),
        "Drain and Reset" => Ok(RecoveryAction::DrainAndReset),
        _ => Err(Absence::Unknown),
    }
}

const MIB: u64 = 1 << 20;

/// One cell of a row in nvidia-smi's CSV output.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cell<'a>(pub(super) &'a str);

impl<'a> Cell<'a> {
    /// Returns the cell's text.
    ///
    /// # Errors
    /// Returns the reason for the absence if the cell contains no value.
    pub(super) fn text(self) -> Result<&'a str, Absence> {
        let text = self.0.trim();
        let reported = text
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
            .unwrap_or(text);
        match reported {
            "N/A" | "Not Supported" | "Not Available" => Err(Absence::NotSupported),
            _ if reported.ends_with("has been deprecated") => Err(Absence::NotSupported),
            "Insufficient Permissions" => Err(Absence::NoPermission),
            "Not Found" => Err(Absence::NotInProc),
            "GPU is lost" | "GPU requires reset" => Err(Absence::GpuLost),
            "" | "ERR!" | "Unknown" | "Unknown Error" => Err(Absence::Unknown),
            // Any other text in brackets, which newer drivers may write, also means that there is
            // no value.
            _ if reported.len() < text.len() => Err(Absence::Unknown),
            text => Ok(text),
        }
    }

    /// Parses a number, ignoring its unit.
    pub(super) fn parse_number(self) -> Reading<f64> {
        let number = |text: &str| {
            let number = text
                .split(' ')
                .next()
                .and_then(|number| number.parse::<f64>().ok());
            number
                .filter(|number| number.is_finite())
                .ok_or(Absence::Unknown)
        };
        self.text().and_then(number).into()
    }

    pub(super) fn parse_whole_number(self) -> Reading<u64> {
        match self.parse_number() {
            Reading::Now(number) if number >= 0.0 && number <= u64::MAX as f64 => {
                Reading::Now(number as u64)
            }
            Reading::Absent(reason) => Reading::Absent(reason),
            _ => Reading::Absent(Absence::Unknown),
        }
    }

    /// Parses a whole number of at most 32 bits.
    pub(super) fn parse_small_number(self) -> Reading<u32> {
        match self.parse_whole_number() {
            Reading::Now(number) => u32::try_from(number).map_err(|_| Absence::Unknown).into(),
            other => other.map(|_| 0),
        }
    }

    /// Parses an amount of memory in MiB and returns it in bytes.
    pub(super) fn parse_mebibytes(self) -> Reading<u64> {
        match self.parse_whole_number() {
            Reading::Now(number) => number.checked_mul(MIB).ok_or(Absence::Unknown).into(),
            other => other,
        }
    }

    /// Returns `true` if the cell contains `yes`, and `false` if it contains `no`.
    pub(super) fn parse_choice(self, yes: &str, no: &str) -> Reading<bool> {
        let truth = |text: &str| match text {
            text if text == yes => Ok(true),
            text if text == no => Ok(false),
            _ => Err(Absence::Unknown),
        };
        self.text().and_then(truth).into()
    }

    /// Parses a bit mask such as `0x0000000000000004`.
    pub(super) fn parse_mask(self) -> Reading<u64> {
        let mask = |text: &str| {
            let digits = text.strip_prefix("0x").ok_or(Absence::Unknown)?;
            u64::from_str_radix(digits, 16).map_err(|_| Absence::Unknown)
        };
        self.text().and_then(mask).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_nvidia_smi_value_has_absence_reason() {
        for (text, reason) in [
            ("[N/A]", Absence::NotSupported),
            ("N/A", Absence::NotSupported),
            ("[Not Supported]", Absence::NotSupported),
            (
                " [Requested functionality has been deprecated] ",
                Absence::NotSupported,
            ),
            ("[Insufficient Permissions]", Absence::NoPermission),
            ("[GPU is lost]", Absence::GpuLost),
            ("[GPU requires reset]", Absence::GpuLost),
            ("[Unknown Error]", Absence::Unknown),
            ("ERR!", Absence::Unknown),
            ("[Something new]", Absence::Unknown),
            ("", Absence::Unknown),
            ("nan", Absence::Unknown),
            ("1e999", Absence::Unknown),
            ("P0", Absence::Unknown),
        ] {
            assert_eq!(Cell(text).parse_number(), Reading::Absent(reason), "{text}");
        }
    }

    #[test]
    fn values_are_converted_to_units() {
        assert_eq!(Cell(" 71.15").parse_number(), Reading::Now(71.15));
        assert_eq!(Cell("71.15 W").parse_number(), Reading::Now(71.15));
        assert_eq!(Cell("81559").parse_mebibytes(), Reading::Now(81_559 * MIB));
        assert_eq!(
            Cell("99999999999999999").parse_mebibytes(),
            Reading::Absent(Absence::Unknown)
        );
        assert_eq!(
            Cell("-1").parse_whole_number(),
            Reading::Absent(Absence::Unknown)
        );
        assert_eq!(
            Cell("4294967296").parse_small_number(),
            Reading::Absent(Absence::Unknown)
        );
        assert_eq!(Cell("0x0000000000000004").parse_mask(), Reading::Now(4));
        assert_eq!(
            Cell("Enabled").parse_choice("Enabled", "Disabled"),
            Reading::Now(true)
        );
        assert_eq!(
            Cell("Maybe").parse_choice("Enabled", "Disabled"),
            Reading::Absent(Absence::Unknown)
        );
    }
}
