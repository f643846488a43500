//! Video streams that the GPU encodes.

use std::ffi::c_uint;

use gpumon_probe::vendor::sim::EncoderSession;

use crate::call::Gpu;

/// The stream of a busy encoder, if the scenario has no streams.
const DEFAULT_STREAM: EncoderSession = EncoderSession {
    fps: 30,
    latency_us: 5_000,
};

/// Returns the number of streams that the GPU encodes, their mean frames per second and their
/// mean latency.
pub(crate) fn encoder_stats(gpu: &Gpu) -> [c_uint; 3] {
    let state = gpu.state();
    let own = state.processes.iter();
    let mut streams: Vec<_> = own
        .flat_map(|process| process.encoder_sessions.iter().cloned())
        .collect();
    if streams.is_empty() && state.encoder_percent > 0 {
        streams.push(DEFAULT_STREAM);
    }
    let count = streams.len() as c_uint;
    let mean =
        |of: fn(&EncoderSession) -> c_uint| streams.iter().map(of).sum::<c_uint>() / count.max(1);
    [count, mean(|own| own.fps), mean(|own| own.latency_us)]
}
