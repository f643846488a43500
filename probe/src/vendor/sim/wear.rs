//! A simulated GPU's past errors and repairs.

use crate::model::{RecoveryAction, RemappedRows, RetiredPages, SpareRows};

use super::{
    GpuIdentity,
    scenario::{Curve, GpuSettings},
};

/// The number of memory banks in an H200.
const H200_BANKS: u32 = 3_072;

/// A GPU's errors and repairs up to a certain time.
#[derive(Debug, Clone, PartialEq)]
pub struct Wear {
    /// The memory errors since the driver was loaded.
    pub ecc_volatile: EccErrors,
    /// The memory errors since the board was made.
    pub ecc_aggregate: EccErrors,
    /// The memory rows that have been replaced, or `None` for boards that retire pages.
    pub remapped_rows: Option<RemappedRows>,
    /// The memory pages that have been retired, or `None` for boards that remap rows.
    pub retired_pages: Option<RetiredPages>,
    /// The recovery action that the driver recommends.
    pub recovery_action: RecoveryAction,
    /// The number of PCIe packets that were retransmitted.
    pub pcie_replays: u64,
}

/// Numbers of memory errors, by severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EccErrors {
    /// The number of errors that the hardware corrected.
    pub corrected: u64,
    /// The number of errors that could not be corrected.
    pub uncorrected: u64,
}

impl EccErrors {
    /// Returns the errors in caches and registers. All other errors are in device memory.
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
    /// Calculates the errors and repairs. Counters are multiplied by `left`, which is 1 unless a
    /// fault makes counters run backwards.
    pub(super) fn new(
        identity: &GpuIdentity,
        own: Option<&GpuSettings>,
        seconds: f64,
        left: f64,
    ) -> Self {
        let counts = |pick: fn(&GpuSettings) -> Option<&Curve<_>>| {
            own.and_then(pick)
                .map_or(0, |curve| (curve.value_at(seconds) * left) as u64)
        };
        let ecc_volatile = EccErrors {
            corrected: counts(|own| own.ecc_corrected.as_ref()),
            uncorrected: counts(|own| own.ecc_uncorrected.as_ref()),
        };
        let remapped_rows = make_remapped_rows(identity, own);
        // Each row was replaced because of an error, which happened before the driver was loaded.
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
            retired_pages: make_retired_pages(identity, own),
            recovery_action: own
                .and_then(|own| own.recovery_action.as_ref())
                .map_or(RecoveryAction::None, |steps| *steps.value_at(seconds)),
            pcie_replays: counts(|own| own.pcie_replays.as_ref()),
        }
    }
}

fn make_remapped_rows(identity: &GpuIdentity, own: Option<&GpuSettings>) -> Option<RemappedRows> {
    (identity.ecc && identity.architecture.remaps_rows()).then(|| {
        let rows = own.and_then(|own| own.remapped_rows).unwrap_or_default();
        let used = (rows.correctable + rows.uncorrectable).min(H200_BANKS);
        let none = u32::from(rows.failed).min(used);
        let spare = SpareRows {
            max: H200_BANKS - used,
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

fn make_retired_pages(identity: &GpuIdentity, own: Option<&GpuSettings>) -> Option<RetiredPages> {
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
