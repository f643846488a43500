//! Utilization.

use std::ffi::c_uint;

use gpumon_probe::vendor::sim::{EncoderSession, GpuState, ProcessState, VideoCodec};
use nvml_wrapper_sys::bindings::{
    nvmlDevice_t, nvmlEncoderSessionInfo_t, nvmlFBCSessionInfo_t, nvmlFBCStats_t, nvmlReturn_t,
    nvmlUtilization_t,
};

use super::{exports, mig::refuse_divided};
use crate::{
    call::{Gpu, device},
    code::Code,
    given,
    out::{put, put_list},
};

/// Over how long the driver averages the video engines, in microseconds.
const VIDEO_PERIOD_US: c_uint = 166_666;

exports! {
    fn nvmlDeviceGetUtilizationRates(device |gpu|) -> nvmlUtilization_t {
        refuse_divided(gpu)?;
        let state = gpu.state();
        Ok(nvmlUtilization_t { gpu: state.gpu_percent, memory: state.memory_percent })
    }
    // Nobody captures what is on a screen.
    fn nvmlDeviceGetFBCStats(device |_|) -> nvmlFBCStats_t {
        Ok(nvmlFBCStats_t { sessionsCount: 0, averageFPS: 0, averageLatency: 0 })
    }
}

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

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetEncoderStats(
    handle: nvmlDevice_t,
    sessions: *mut c_uint,
    average_fps: *mut c_uint,
    average_latency_us: *mut c_uint,
) -> nvmlReturn_t {
    device("nvmlDeviceGetEncoderStats", handle, |gpu| {
        let streams = encoder_streams(gpu);
        let mean = |of: fn(&nvmlEncoderSessionInfo_t) -> c_uint| {
            streams.iter().map(of).sum::<c_uint>() / (streams.len() as c_uint).max(1)
        };
        // SAFETY: NVML's contract: each pointer is null or may be written.
        unsafe {
            put(sessions, streams.len() as c_uint)?;
            put(average_fps, mean(|own| own.averageFps))?;
            put(average_latency_us, mean(|own| own.averageLatency))
        }
    })
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

exports! {
    fn nvmlDeviceGetFBCSessions(device |_|) -> [nvmlFBCSessionInfo_t] { Ok(Vec::new()) }
}

/// How much an engine was used, and over how long.
fn engine(gpu: &Gpu, percent: fn(&GpuState) -> u32) -> Result<(c_uint, c_uint), Code> {
    refuse_divided(gpu)?;
    Ok((percent(&gpu.state()), VIDEO_PERIOD_US))
}

exports! {
    fn nvmlDeviceGetEncoderUtilization(device |gpu|) -> (c_uint, c_uint) { engine(gpu, |state| state.encoder_percent) }
    fn nvmlDeviceGetDecoderUtilization(device |gpu|) -> (c_uint, c_uint) { engine(gpu, |state| state.decoder_percent) }
    fn nvmlDeviceGetJpgUtilization(device |gpu|) -> (c_uint, c_uint) { engine(gpu, |state| state.jpeg_percent) }
    fn nvmlDeviceGetOfaUtilization(device |gpu|) -> (c_uint, c_uint) { engine(gpu, |state| state.ofa_percent) }
}
