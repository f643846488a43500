//! Video streams that processes encode.

use serde::Deserialize;

/// A video stream that a process encodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncoderSession {
    /// Its format.
    pub codec: VideoCodec,
    /// Pixels in a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// Frames per second, on average.
    pub fps: u32,
    /// Time to encode a frame, on average, in microseconds.
    pub latency_us: u32,
}

/// The format of an encoded video, with its `nvmlEncoderType_t`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VideoCodec {
    /// H.264.
    H264 = 0,
    /// H.265.
    Hevc = 1,
    /// AV1.
    Av1 = 2,
}
