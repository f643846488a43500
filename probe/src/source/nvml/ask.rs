//! Asking the driver, and not asking again what it does not have.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use nvml_wrapper::error::NvmlError;

use super::error::absence;
use crate::model::{Absence, Reading};

/// "Not supported" is no cheap answer (130 us for the fan of a board without one), and it can change with a driver
/// setting, so it is asked again only this often.
const ASK_AGAIN: Duration = Duration::from_mins(1);

/// Remembers what a device does not have, and notices when it is lost.
#[derive(Debug, Default)]
pub(super) struct Asker {
    unsupported: HashMap<&'static str, Instant>,
    lost: bool,
}

impl Asker {
    /// Calls the driver, unless it said lately that it does not have `what`.
    pub(super) fn ask<T>(&mut self, what: &'static str, call: impl FnOnce() -> Result<T, NvmlError>) -> Reading<T> {
        if self.unsupported.get(what).is_some_and(|asked| asked.elapsed() < ASK_AGAIN) {
            return Reading::Absent(Absence::NotSupported);
        }
        match call() {
            Ok(value) => {
                self.unsupported.remove(what);
                Reading::Now(value)
            }
            Err(error) => {
                let reason = absence(&error);
                match reason {
                    Absence::NotSupported => {
                        self.unsupported.insert(what, Instant::now());
                    }
                    Absence::GpuLost => self.lost = true,
                    _ => {}
                }
                Reading::Absent(reason)
            }
        }
    }

    /// Whether any answer since the last call of this function was that the GPU is lost.
    pub(super) fn take_lost(&mut self) -> bool {
        std::mem::take(&mut self.lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_supported_is_asked_once() {
        let mut asker = Asker::default();
        let mut calls = 0;
        for _ in 0..3 {
            let reading: Reading<u32> = asker.ask("fan", || {
                calls += 1;
                Err(NvmlError::NotSupported)
            });
            assert_eq!(reading, Reading::Absent(Absence::NotSupported));
        }
        assert_eq!(calls, 1);
    }

    #[test]
    fn a_passing_error_is_asked_again_and_a_lost_gpu_is_noticed_once() {
        let mut asker = Asker::default();
        assert_eq!(
            asker.ask::<u32>("power", || Err(NvmlError::Unknown)),
            Reading::Absent(Absence::DriverError { code: 999 })
        );
        assert_eq!(asker.ask("power", || Ok(7)), Reading::Now(7));
        assert!(!asker.take_lost());
        let _ = asker.ask::<u32>("power", || Err(NvmlError::GpuLost));
        assert!(asker.take_lost());
        assert!(!asker.take_lost());
    }
}
