//! Asking the driver, and not asking again what it does not have.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use nvml_wrapper::error::NvmlError;

use super::error::absence;
use crate::{
    model::{Absence, Reading},
    source::DeviceError,
};

/// "Not supported" is no cheap answer (130 us for the fan of a board without one), and it can change with a driver
/// setting, so it is asked again only this often.
const ASK_AGAIN: Duration = Duration::from_mins(1);

/// `nvmlReturn_t` of a driver that was unloaded or replaced underneath the library.
const UNINITIALIZED: u32 = 1;
const DRIVER_NOT_LOADED: u32 = 9;
const VERSION_MISMATCH: u32 = 18;

/// Remembers what a device does not have, and notices when it is lost.
#[derive(Debug, Default)]
pub(super) struct Asker {
    unsupported: HashMap<&'static str, Instant>,
    votes: Votes,
}

/// What the calls since the last verdict said of the device as a whole.
#[derive(Debug, Default)]
struct Votes {
    answered: u32,
    lost: u32,
    gone: u32,
    /// The code of a driver that is no longer the one that the library was loaded for.
    code: u32,
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
                self.votes.answered += 1;
                Reading::Now(value)
            }
            Err(error) => {
                let reason = absence(&error);
                match reason {
                    Absence::NotSupported => {
                        self.unsupported.insert(what, Instant::now());
                    }
                    Absence::GpuLost => self.votes.lost += 1,
                    Absence::DriverError { code: code @ (UNINITIALIZED | DRIVER_NOT_LOADED | VERSION_MISMATCH) } => {
                        self.votes.gone += 1;
                        self.votes.code = code;
                    }
                    _ => {}
                }
                Reading::Absent(reason)
            }
        }
    }

    /// Whether most answers since the last call of this function were that the GPU or the driver is gone. A single
    /// function that says so has a defect of its own, and some are answered from memory for a while.
    pub(super) fn verdict(&mut self) -> Result<(), DeviceError> {
        let Votes { answered, lost, gone, code } = std::mem::take(&mut self.votes);
        if lost > answered {
            Err(DeviceError::Lost)
        } else if gone > answered {
            Err(DeviceError::DriverGone { code })
        } else {
            Ok(())
        }
    }

    /// Asks everything again: the device has been changed.
    pub(super) fn forget(&mut self) {
        self.unsupported.clear();
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
    fn a_passing_error_is_asked_again_and_what_is_gone_is_noticed_once() {
        let mut asker = Asker::default();
        assert_eq!(
            asker.ask::<u32>("power", || Err(NvmlError::Unknown)),
            Reading::Absent(Absence::DriverError { code: 999 })
        );
        assert_eq!(asker.ask("power", || Ok(7)), Reading::Now(7));
        assert_eq!(asker.verdict(), Ok(()));
        let _ = asker.ask::<u32>("power", || Err(NvmlError::GpuLost));
        assert_eq!(asker.verdict(), Err(DeviceError::Lost));
        assert_eq!(asker.verdict(), Ok(()));
        let _ = asker.ask::<u32>("power", || Err(NvmlError::LibRmVersionMismatch));
        assert_eq!(asker.verdict(), Err(DeviceError::DriverGone { code: VERSION_MISMATCH }));
        let _ = asker.ask::<u32>("energy", || Err(NvmlError::GpuLost));
        let _ = asker.ask("power", || Ok(7));
        assert_eq!(asker.verdict(), Ok(()), "one function alone has a defect of its own");
    }
}
