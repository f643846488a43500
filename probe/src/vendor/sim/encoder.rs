//! Video streams that processes encode.

use serde::Deserialize;

/// A video stream that a process encodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncoderSession {
    /// Its format.
    pub codec: VideoCodec,
    /// The width, in pixels.
    pub width: u32,
    /// The height, in pixels.
    pub height: u32,
    /// The average number of frames per second.
    pub fps: u32,
    /// The average time to encode a frame, in microseconds.
    pub latency_us: u32,
}

/// The format of an encoded video. Its value is the `nvmlEncoderType_t`.
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
