//! Exit codes of the process that works, which `Report::Ended` carries, too.

/// A result is wrong, or could not be had.
pub const FAILED: u8 = 1;
/// The job asks for what cannot be.
pub const USAGE: u8 = 2;
/// There is no GPU or no driver.
pub const NO_GPU: u8 = 3;
/// Refused, for the sake of other users of the machine.
pub const REFUSED: u8 = 5;
/// Canceled, as shells count SIGINT.
pub const INTERRUPTED: u8 = 130;
