//! The clocks of an H200.

/// The maximum clock of the multiprocessors.
pub const MAX_SM_MHZ: u32 = 1_980;

/// The clock of the memory, which is constant.
pub const MEMORY_MHZ: u32 = 3_201;

/// The maximum clock of the video engines.
pub const MAX_VIDEO_MHZ: u32 = 1_545;

/// The clock without processes on the GPU.
pub(super) const RESTING_MHZ: u32 = 345;
