//! Fatal hardware errors, after which the driver's readings are meaningless.
//!
//! After a fatal error, the kernel function `read_sensor` reports success without setting a value,
//! for all GPUs, until a reset succeeds (see `amdgpu_ras_intr_triggered` in the kernel).

use std::{
    collections::HashSet,
    sync::{Mutex, PoisonError},
};

/// A string that occurs in every message about a fatal error.
pub(super) const FATAL_TEXT: &str = "ERREVENT_ATHUB_INTERRUPT";

/// The strings in messages about a successful reset. A message must contain all strings of one
/// entry, in this order.
const RESET_TEXTS: [&[&str]; 3] = [
    &["GPU reset(", ") succeeded!"],
    &["GPU reset succeeded"],
    &["GPU reset end with ret = 0"],
];

/// The PCI bus IDs of the GPUs that have reported a fatal error since their last reset.
#[derive(Debug, Default)]
pub(super) struct FatalErrors(Mutex<HashSet<String>>);

impl FatalErrors {
    /// Updates the set of failed GPUs according to a driver message.
    pub(super) fn observe(&self, bus_id: &str, message: &str) {
        let is_reset = || {
            RESET_TEXTS.iter().any(|parts| {
                let mut rest = Some(message);
                for part in *parts {
                    rest = rest.and_then(|rest| Some(rest.split_once(part)?.1));
                }
                rest.is_some()
            })
        };
        let mut gpus = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if message.contains(FATAL_TEXT) {
            gpus.insert(bus_id.to_owned());
        } else if !gpus.is_empty() && is_reset() {
            gpus.remove(bus_id);
        }
    }

    /// Returns `true` if any GPU still needs a reset. Until then, no GPU's sensors can be trusted.
    pub(super) fn are_resets_pending(&self) -> bool {
        !self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reset_of_same_gpu_restores_trust() {
        let (own, other) = ("00000000:03:00.0", "00000000:43:00.0");
        let errors = FatalErrors::default();
        let fatal = "uncorrectable hardware error(ERREVENT_ATHUB_INTERRUPT) detected!";
        for reset in [
            "GPU reset(2) succeeded!",
            "GPU reset succeeded, trying to resume",
            "GPU reset end with ret = 0",
        ] {
            errors.observe(own, "3 correctable hardware errors detected in umc block");
            assert!(!errors.are_resets_pending());
            errors.observe(own, fatal);
            assert!(errors.are_resets_pending());
            errors.observe(own, "GPU reset begin!");
            errors.observe(own, "GPU reset(2) failed");
            errors.observe(own, "GPU reset end with ret = -62");
            errors.observe(other, reset);
            assert!(errors.are_resets_pending());
            errors.observe(own, reset);
            assert!(!errors.are_resets_pending(), "{reset}");
        }
    }
}
