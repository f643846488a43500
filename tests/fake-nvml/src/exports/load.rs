//! Utilization.

use std::ffi::c_uint;

use gpumon_probe::vendor::sim::GpuState;
use nvml_wrapper_sys::bindings::{
    nvmlDevice_t, nvmlEncoderQueryType_enum_NVML_ENCODER_QUERY_H264 as H264, nvmlEncoderSessionInfo_t,
    nvmlFBCSessionInfo_t, nvmlFBCStats_t, nvmlReturn_t, nvmlUtilization_t,
};

use super::{exports, mig::refuse_divided};
use crate::{
    call::{Gpu, device},
    code::Code,
    out::put,
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

/// A stream that is encoded, as a program would: 30 frames per second, each within 5 ms.
const STREAM_FPS: c_uint = 30;
const STREAM_LATENCY_US: c_uint = 5_000;

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetEncoderStats(
    handle: nvmlDevice_t,
    sessions: *mut c_uint,
    average_fps: *mut c_uint,
    average_latency_us: *mut c_uint,
) -> nvmlReturn_t {
    device("nvmlDeviceGetEncoderStats", handle, |gpu| {
        let streams = c_uint::from(gpu.state().encoder_percent > 0);
        // SAFETY: NVML's contract: each pointer is null or may be written.
        unsafe {
            put(sessions, streams)?;
            put(average_fps, streams * STREAM_FPS)?;
            put(average_latency_us, streams * STREAM_LATENCY_US)
        }
    })
}

exports! {
    fn nvmlDeviceGetEncoderSessions(device |gpu|) -> [nvmlEncoderSessionInfo_t] {
        let state = gpu.state();
        let session = nvmlEncoderSessionInfo_t {
            sessionId: 1,
            pid: state.processes.first().map_or(0, |process| process.pid),
            vgpuInstance: 0,
            codecType: H264,
            hResolution: 1920,
            vResolution: 1080,
            averageFps: STREAM_FPS,
            averageLatency: STREAM_LATENCY_US,
        };
        Ok(if state.encoder_percent > 0 { vec![session] } else { Vec::new() })
    }
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
