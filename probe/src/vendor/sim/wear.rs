//! The past errors of a simulated GPU, and the repairs.

use crate::model::{RecoveryAction, RemappedRows, RetiredPages, SpareRows};

use super::{
    GpuIdentity,
    scenario::{Curve, GpuSettings},
};

/// The number of memory banks of an H200.
const BANKS: u32 = 3_072;

/// The errors and repairs of a GPU up to one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Wear {
    /// The memory errors since the driver was loaded.
    pub ecc_volatile: EccErrors,
    /// The memory errors since the board was made.
    pub ecc_aggregate: EccErrors,
    /// The rows that were replaced, or `None` for boards that retire pages.
    pub remapped_rows: Option<RemappedRows>,
    /// The pages that were retired, or `None` for boards that remap rows.
    pub retired_pages: Option<RetiredPages>,
    /// The action that the driver recommends.
    pub recovery_action: RecoveryAction,
    /// The number of PCIe packets that were sent again.
    pub pcie_replays: u64,
}

/// The numbers of memory errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EccErrors {
    /// The errors that the hardware corrected.
    pub corrected: u64,
    /// The errors that could not be corrected.
    pub uncorrected: u64,
}

impl EccErrors {
    /// Returns the errors in caches and registers. The others are in device memory.
    #[must_use]
    pub fn sram(self) -> Self {
        Self {
            corrected: self.corrected / 5,
            uncorrected: self.uncorrected / 5,
        }
    }

    /// Returns the errors in device memory.
    #[must_use]
    pub fn device_memory(self) -> Self {
        let sram = self.sram();
        Self {
            corrected: self.corrected - sram.corrected,
            uncorrected: self.uncorrected - sram.uncorrected,
        }
    }
}

impl Wear {
    /// Computes the errors and repairs. `left` is the factor for counters, which is 1 unless they
    /// run backwards.
    pub(super) fn new(
        identity: &GpuIdentity,
        own: Option<&GpuSettings>,
        seconds: f64,
        left: f64,
    ) -> Self {
        let counts = |pick: fn(&GpuSettings) -> Option<&Curve<_>>| {
            own.and_then(pick)
                .map_or(0, |curve| (curve.at(seconds) * left) as u64)
        };
        let ecc_volatile = EccErrors {
            corrected: counts(|own| own.ecc_corrected.as_ref()),
            uncorrected: counts(|own| own.ecc_uncorrected.as_ref()),
        };
        let remapped_rows = remapped(identity, own);
        // Each replaced row had an error before the driver was loaded.
        let before = remapped_rows.map_or(EccErrors::default(), |rows| EccErrors {
            corrected: rows.correctable.into(),
            uncorrected: rows.uncorrectable.into(),
        });
        Self {
            ecc_volatile,
            ecc_aggregate: EccErrors {
                corrected: ecc_volatile.corrected + before.corrected,
                uncorrected: ecc_volatile.uncorrected + before.uncorrected,
            },
            remapped_rows,
            retired_pages: retired(identity, own),
            recovery_action: own
                .and_then(|own| own.recovery_action.as_ref())
                .map_or(RecoveryAction::None, |steps| *steps.at(seconds)),
            pcie_replays: counts(|own| own.pcie_replays.as_ref()),
        }
    }
}

fn remapped(identity: &GpuIdentity, own: Option<&GpuSettings>) -> Option<RemappedRows> {
    (identity.ecc && identity.architecture.remaps_rows()).then(|| {
        let rows = own.and_then(|own| own.remapped_rows).unwrap_or_default();
        let used = (rows.correctable + rows.uncorrectable).min(BANKS);
        let none = u32::from(rows.failed).min(used);
        let spare = SpareRows {
            max: BANKS - used,
            high: used - none,
            partial: 0,
            low: 0,
            none,
        };
        RemappedRows {
            correctable: rows.correctable,
            uncorrectable: rows.uncorrectable,
            pending: rows.pending,
            failed: rows.failed,
            spare: Some(spare),
        }
    })
}

fn retired(identity: &GpuIdentity, own: Option<&GpuSettings>) -> Option<RetiredPages> {
    let pages = own.and_then(|own| own.retired_pages);
    (pages.is_some() || identity.ecc && !identity.architecture.remaps_rows()).then(|| {
        let pages = pages.unwrap_or_default();
        RetiredPages {
            single_bit: pages.single_bit,
            double_bit: pages.double_bit,
            pending: pages.pending,
        }
    })
}
