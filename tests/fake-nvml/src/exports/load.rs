//! The video streams that are encoded.

use std::ffi::c_uint;

use gpumon_probe::vendor::sim::{EncoderSession, ProcessState, VideoCodec};
use nvml_wrapper_sys::bindings::{nvmlDevice_t, nvmlEncoderSessionInfo_t, nvmlReturn_t};

use crate::{
    call::{Gpu, device},
    given,
    out::{put, put_list},
};

/// The stream of a busy encoder if the scenario has none.
const USUAL_STREAM: EncoderSession = EncoderSession {
    codec: VideoCodec::H264,
    width: 1920,
    height: 1080,
    fps: 30,
    latency_us: 5_000,
};

/// Returns the streams that the GPU encodes.
fn encoder_streams(gpu: &Gpu) -> Vec<nvmlEncoderSessionInfo_t> {
    let state = gpu.state();
    let of_process = |process: &ProcessState| {
        let pid = process.pid;
        process
            .encoder_sessions
            .iter()
            .cloned()
            .map(move |own| (pid, own))
            .collect::<Vec<_>>()
    };
    let mut streams: Vec<_> = state.processes.iter().flat_map(of_process).collect();
    if streams.is_empty() && state.encoder_percent > 0 {
        streams.push((
            state.processes.first().map_or(0, |process| process.pid),
            USUAL_STREAM,
        ));
    }
    let info =
        |(session, (pid, own)): (c_uint, (c_uint, EncoderSession))| nvmlEncoderSessionInfo_t {
            sessionId: session,
            pid,
            vgpuInstance: 0,
            codecType: own.codec as c_uint,
            hResolution: own.width,
            vResolution: own.height,
            averageFps: own.fps,
            averageLatency: own.latency_us,
        };
    (1..).zip(streams).map(info).collect()
}

/// Returns the number of streams, their mean frames per second and their mean latency.
pub(crate) fn encoder_stats(gpu: &Gpu) -> [c_uint; 3] {
    let streams = encoder_streams(gpu);
    let mean = |of: fn(&nvmlEncoderSessionInfo_t) -> c_uint| {
        streams.iter().map(of).sum::<c_uint>() / (streams.len() as c_uint).max(1)
    };
    let count = streams.len() as c_uint;
    [
        count,
        mean(|own| own.averageFps),
        mean(|own| own.averageLatency),
    ]
}

/// Returns the number of streams, without an error, if the caller provides no room for them.
#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetEncoderSessions(
    handle: nvmlDevice_t,
    count: *mut c_uint,
    infos: *mut nvmlEncoderSessionInfo_t,
) -> nvmlReturn_t {
    device("nvmlDeviceGetEncoderSessions", handle, |gpu| {
        let answer = given::device("nvmlDeviceGetEncoderSessions", handle, &[]);
        let streams = given::list_or(answer, || Ok(encoder_streams(gpu)))?;
        // SAFETY: By NVML's contract, `count` may be read and written, and `infos` is null or has
        // room for `count` items.
        unsafe {
            match count.as_ref() {
                Some(0) => put(count, streams.len() as c_uint),
                _ => put_list(infos, count, streams),
            }
        }
    })
}
