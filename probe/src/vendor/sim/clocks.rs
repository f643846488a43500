//! The clocks of an H200.

/// The highest clock of the streaming multiprocessors of an H200.
pub const MAX_SM_MHZ: u32 = 1_980;

/// The clock of an H200's memory; it does not move.
pub const MEMORY_MHZ: u32 = 3_201;

/// The highest clock of an H200's video engines.
pub const MAX_VIDEO_MHZ: u32 = 1_545;

/// The clock of an H200 that nobody holds.
pub(super) const RESTING_MHZ: u32 = 345;
