//! Exit codes of the worker process. `Report::Ended` also contains them.

/// A result is wrong or could not be determined.
pub const FAILED: u8 = 1;
/// The job requests something impossible.
pub const USAGE: u8 = 2;
/// There is no GPU or no driver.
pub const NO_GPU: u8 = 3;
/// The job was refused to protect other users of the machine.
pub const REFUSED: u8 = 5;
/// The job was canceled. Shells use this code for SIGINT.
pub const INTERRUPTED: u8 = 130;
