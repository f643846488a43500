//! The simulated video streams that processes encode.

/// A video stream that a process is encoding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncoderSession {
    /// The average number of frames per second.
    pub fps: u32,
    /// The average time to encode a frame, in microseconds.
    pub latency_us: u32,
}
