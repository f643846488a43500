//! Fatal hardware errors, after which the driver's readings are meaningless.
//!
//! After a fatal error, the driver's function `read_sensor` returns success without a value for all
//! GPUs, until a reset succeeds (`amdgpu_ras_intr_triggered` in the kernel).

use std::{
    collections::HashSet,
    sync::{Mutex, PoisonError},
};

/// A text that occurs in all messages about fatal errors.
pub(super) const FATAL: &str = "ERREVENT_ATHUB_INTERRUPT";

/// The texts of messages about a successful reset. All parts of a message must occur in this order.
const RESET: [&[&str]; 3] = [
    &["GPU reset(", ") succeeded!"],
    &["GPU reset succeeded"],
    &["GPU reset end with ret = 0"],
];

/// The PCI bus IDs of the GPUs that have reported a fatal error since their last reset.
#[derive(Debug, Default)]
pub(super) struct FatalErrors(Mutex<HashSet<String>>);

impl FatalErrors {
    /// Updates the state with a driver message about a GPU.
    pub(super) fn follow(&self, bus_id: &str, message: &str) {
        let is_reset = || {
            RESET.iter().any(|parts| {
                let mut rest = Some(message);
                for part in *parts {
                    rest = rest.and_then(|rest| Some(rest.split_once(part)?.1));
                }
                rest.is_some()
            })
        };
        let mut gpus = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if message.contains(FATAL) {
            gpus.insert(bus_id.to_owned());
        } else if !gpus.is_empty() && is_reset() {
            gpus.remove(bus_id);
        }
    }

    /// Returns `true` if a GPU still needs a reset, so that no sensor can be trusted.
    pub(super) fn are_pending(&self) -> bool {
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
    fn reset_of_same_gpu_ends_distrust() {
        let (own, other) = ("00000000:03:00.0", "00000000:43:00.0");
        let errors = FatalErrors::default();
        let fatal = "uncorrectable hardware error(ERREVENT_ATHUB_INTERRUPT) detected!";
        for reset in [
            "GPU reset(2) succeeded!",
            "GPU reset succeeded, trying to resume",
            "GPU reset end with ret = 0",
        ] {
            errors.follow(own, "3 correctable hardware errors detected in umc block");
            assert!(!errors.are_pending());
            errors.follow(own, fatal);
            assert!(errors.are_pending());
            errors.follow(own, "GPU reset begin!");
            errors.follow(own, "GPU reset(2) failed");
            errors.follow(own, "GPU reset end with ret = -62");
            errors.follow(other, reset);
            assert!(errors.are_pending());
            errors.follow(own, reset);
            assert!(!errors.are_pending(), "{reset}");
        }
    }
}
