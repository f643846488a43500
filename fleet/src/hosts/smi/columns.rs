//! The queried columns, and their fields in the model.

use gpumon_probe::{
    model::{
        Absence, ComputeMode, Gpu, GpuDetails, GpuSample, Health, Mode, Reading, RecoveryAction,
        RemappedRows, RetiredPages, ThrottleReason,
    },
    owner::clean_name,
};

use super::cell::Cell;

/// All of nvidia-smi's values for one GPU.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) gpu: Gpu,
    pub(super) sample: GpuSample,
    pub(super) details: GpuDetails,
    /// The number of GPUs.
    pub(super) count: Option<u32>,
    pub(super) driver_version: Reading<String>,
    /// Values that form one value in the model together.
    modes: [Reading<bool>; 4],
    pages: [Reading<u32>; 2],
    pages_pending: Reading<bool>,
    rows: [Reading<u32>; 2],
    rows_are: [Reading<bool>; 2],
}

pub(super) type Set = fn(&mut Row, Cell<'_>);

/// Columns by their names in `nvidia-smi --help-query-gpu`. If older drivers have another name,
/// both are listed, the newer one last. Drivers that know both give the same value for both.
pub(super) const COLUMNS: &[(&str, Set)] = &[
    ("index", |row, cell| {
        if let Reading::Now(index) = cell.small() {
            row.gpu.index = index;
        }
    }),
    ("count", |row, cell| {
        row.count = cell.small().value().copied();
    }),
    ("uuid", |row, cell| {
        row.gpu.uuid = cell.text().ok().map(clean_name);
    }),
    ("name", |row, cell| row.gpu.name = text(cell)),
    ("pci.bus_id", |row, cell| row.gpu.pci_bus_id = text(cell)),
    ("driver_version", |row, cell| {
        row.driver_version = text(cell);
    }),
    ("serial", |row, cell| row.gpu.board.serial = text(cell)),
    ("vbios_version", |row, cell| {
        row.gpu.board.vbios_version = text(cell);
    }),
    ("compute_cap", |row, cell| {
        row.gpu.board.compute_capability = text(cell);
    }),
    ("pcie.link.gen.max", |row, cell| {
        row.gpu.board.pcie_max_generation = cell.small();
    }),
    ("pcie.link.width.max", |row, cell| {
        row.gpu.board.pcie_max_width = cell.small();
    }),
    ("clocks.max.graphics", |row, cell| {
        row.gpu.board.max_clocks.graphics_mhz = cell.small();
    }),
    ("clocks.max.sm", |row, cell| {
        row.gpu.board.max_clocks.sm_mhz = cell.small();
    }),
    ("clocks.max.memory", |row, cell| {
        row.gpu.board.max_clocks.memory_mhz = cell.small();
    }),
    ("power.default_limit", |row, cell| {
        row.gpu.board.power_limits.default_watts = cell.number();
    }),
    ("power.min_limit", |row, cell| {
        row.gpu.board.power_limits.min_watts = cell.number();
    }),
    ("power.max_limit", |row, cell| {
        row.gpu.board.power_limits.max_watts = cell.number();
    }),
    ("utilization.gpu", |row, cell| {
        row.sample.utilization.gpu_percent = cell.number();
    }),
    ("utilization.memory", |row, cell| {
        row.sample.utilization.memory_percent = cell.number();
    }),
    ("utilization.encoder", |row, cell| {
        row.sample.utilization.encoder_percent = cell.number();
    }),
    ("utilization.decoder", |row, cell| {
        row.sample.utilization.decoder_percent = cell.number();
    }),
    ("utilization.jpeg", |row, cell| {
        row.sample.utilization.jpeg_percent = cell.number();
    }),
    ("utilization.ofa", |row, cell| {
        row.sample.utilization.ofa_percent = cell.number();
    }),
    ("memory.total", |row, cell| {
        row.sample.memory.total_bytes = cell.mebibytes();
    }),
    ("memory.reserved", |row, cell| {
        row.sample.memory.reserved_bytes = cell.mebibytes();
    }),
    ("memory.used", |row, cell| {
        row.sample.memory.used_bytes = cell.mebibytes();
    }),
    ("memory.free", |row, cell| {
        row.sample.memory.free_bytes = cell.mebibytes();
    }),
    ("power.draw", |row, cell| {
        row.sample.power.draw_watts = cell.number();
    }),
    ("power.draw.instant", |row, cell| {
        row.sample.power.instant_watts = cell.number();
    }),
    ("power.draw.average", |row, cell| {
        row.sample.power.average_watts = cell.number();
    }),
    ("enforced.power.limit", |row, cell| {
        row.sample.power.limit_watts = cell.number();
    }),
    ("temperature.gpu", |row, cell| {
        row.sample.temperature.gpu_celsius = cell.number();
    }),
    ("temperature.memory", |row, cell| {
        row.sample.temperature.memory_celsius = cell.number();
    }),
    ("temperature.gpu.tlimit", |row, cell| {
        row.sample.temperature.margin_celsius = cell.number();
    }),
    ("clocks.current.graphics", |row, cell| {
        row.sample.clocks.graphics_mhz = cell.small();
    }),
    ("clocks.current.sm", |row, cell| {
        row.sample.clocks.sm_mhz = cell.small();
    }),
    ("clocks.current.memory", |row, cell| {
        row.sample.clocks.memory_mhz = cell.small();
    }),
    ("clocks.current.video", |row, cell| {
        row.sample.clocks.video_mhz = cell.small();
    }),
    ("pstate", |row, cell| {
        row.sample.performance_state = performance_state(cell);
    }),
    ("clocks_throttle_reasons.active", |row, cell| {
        row.sample.throttle_reasons = cell.mask().map(ThrottleReason::from_nvml_mask);
    }),
    ("clocks_event_reasons.active", |row, cell| {
        row.sample.throttle_reasons = cell.mask().map(ThrottleReason::from_nvml_mask);
    }),
    ("pcie.link.gen.current", |row, cell| {
        row.sample.pcie.generation = cell.small();
    }),
    ("pcie.link.gen.gpucurrent", |row, cell| {
        row.sample.pcie.generation = cell.small();
    }),
    ("pcie.link.width.current", |row, cell| {
        row.sample.pcie.width = cell.small();
    }),
    ("fan.speed", |row, cell| {
        row.sample.fan_percent = cell.number();
    }),
    ("persistence_mode", |row, cell| {
        row.details.modes.persistence = enabled(cell);
    }),
    ("accounting.mode", |row, cell| {
        row.details.modes.accounting = enabled(cell);
    }),
    ("display_active", |row, cell| {
        row.details.modes.display_active = enabled(cell);
    }),
    ("compute_mode", |row, cell| {
        row.details.modes.compute = cell.text().and_then(compute_mode).into();
    }),
    ("ecc.mode.current", |row, cell| row.modes[0] = enabled(cell)),
    ("ecc.mode.pending", |row, cell| row.modes[1] = enabled(cell)),
    ("mig.mode.current", |row, cell| row.modes[2] = enabled(cell)),
    ("mig.mode.pending", |row, cell| row.modes[3] = enabled(cell)),
    ("clocks.applications.graphics", |row, cell| {
        row.details.application_clocks.graphics_mhz = cell.small();
    }),
    ("clocks.applications.memory", |row, cell| {
        row.details.application_clocks.memory_mhz = cell.small();
    }),
    ("power.limit", |row, cell| {
        row.details.requested_power_limit_watts = cell.number();
    }),
    ("ecc.errors.corrected.volatile.total", |row, cell| {
        row.details.ecc.volatile.corrected_total = cell.whole();
    }),
    ("ecc.errors.uncorrected.volatile.total", |row, cell| {
        row.details.ecc.volatile.uncorrected_total = cell.whole();
    }),
    ("ecc.errors.corrected.aggregate.total", |row, cell| {
        row.details.ecc.aggregate.corrected_total = cell.whole();
    }),
    ("ecc.errors.uncorrected.aggregate.total", |row, cell| {
        row.details.ecc.aggregate.uncorrected_total = cell.whole();
    }),
    ("retired_pages.single_bit_ecc.count", |row, cell| {
        row.pages[0] = cell.small();
    }),
    ("retired_pages.double_bit.count", |row, cell| {
        row.pages[1] = cell.small();
    }),
    ("retired_pages.pending", |row, cell| {
        row.pages_pending = cell.is("Yes", "No");
    }),
    ("remapped_rows.correctable", |row, cell| {
        row.rows[0] = cell.small();
    }),
    ("remapped_rows.uncorrectable", |row, cell| {
        row.rows[1] = cell.small();
    }),
    ("remapped_rows.pending", |row, cell| {
        row.rows_are[0] = yes(cell);
    }),
    ("remapped_rows.failure", |row, cell| {
        row.rows_are[1] = yes(cell);
    }),
    ("gpu_recovery_action", |row, cell| {
        row.details.recovery_action = cell.text().and_then(recovery).into();
    }),
];

impl Row {
    /// Parses a line with these columns. Returns `None` if the line is not a row of them.
    pub(super) fn parse(line: &str, columns: &[Set], at_ms: u64) -> Option<Self> {
        let cells: Vec<_> = line.split(", ").collect();
        if cells.len() != columns.len() {
            return None;
        }
        let not_told = Absence::NeedsGpumon;
        let mut row = Self {
            gpu: Gpu::unidentified(u32::MAX, &not_told),
            sample: GpuSample::absent(0, None, at_ms, Health::Ok, &not_told),
            details: GpuDetails::absent(0, None, at_ms, &not_told),
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
        row.finish();
        (row.gpu.index != u32::MAX).then_some(row)
    }

    /// Combines values that form one value in the model.
    fn finish(&mut self) {
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

fn text(cell: Cell<'_>) -> Reading<String> {
    cell.text().map(clean_name).into()
}

fn enabled(cell: Cell<'_>) -> Reading<bool> {
    cell.is("Enabled", "Disabled")
}

/// Parses a boolean. Drivers write `0`, `1` or `Yes`, `No`.
fn yes(cell: Cell<'_>) -> Reading<bool> {
    let truth = |text: &str| match text {
        "0" | "No" => Ok(false),
        "1" | "Yes" => Ok(true),
        _ => Err(Absence::Unknown),
    };
    cell.text().and_then(truth).into()
}

fn performance_state(cell: Cell<'_>) -> Reading<u8> {
    let state = |text: &str| {
        let number = text
            .strip_prefix('P')
            .and_then(|number| number.parse().ok());
        number.filter(|state| *state < 16).ok_or(Absence::Unknown)
    };
    cell.text().and_then(state).into()
}

fn compute_mode(text: &str) -> Result<ComputeMode, Absence> {
    match text {
        "Default" => Ok(ComputeMode::Default),
        "Exclusive_Process" => Ok(ComputeMode::ExclusiveProcess),
        "Prohibited" => Ok(ComputeMode::Prohibited),
        _ => Err(Absence::Unknown),
    }
}

fn recovery(text: &str) -> Result<RecoveryAction, Absence> {
    match text {
        "None" => Ok(RecoveryAction::None),
        "Reset" => Ok(RecoveryAction::GpuReset),
        "Reboot" => Ok(RecoveryAction::NodeReboot),
        "Drain P2P" => Ok(RecoveryAction::DrainP2p),
        "Drain and Reset" => Ok(RecoveryAction::DrainAndReset),
        _ => Err(Absence::Unknown),
    }
}
