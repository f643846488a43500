//! The clock speeds of a simulated H200.

/// The maximum clock of the multiprocessors, in MHz.
pub const MAX_SM_MHZ: u32 = 1_980;

/// The memory clock, which is constant, in MHz.
pub const MEMORY_MHZ: u32 = 3_201;

/// The maximum clock of the video engines, in MHz.
pub const MAX_VIDEO_MHZ: u32 = 1_545;

/// The multiprocessors' clock when no process uses the GPU, in MHz.
pub(super) const IDLE_SM_MHZ: u32 = 345;
