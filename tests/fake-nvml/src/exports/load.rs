//! Utilisation.

use std::ffi::c_uint;

use nvml_wrapper_sys::bindings::{
    nvmlDevice_t, nvmlEncoderQueryType_enum_NVML_ENCODER_QUERY_H264 as H264, nvmlEncoderSessionInfo_t,
    nvmlFBCSessionInfo_t, nvmlFBCStats_t, nvmlReturn_t, nvmlUtilization_t,
};

use super::{mig::refuse_divided, one_value};
use crate::{
    call::device,
    out::{put, put_list},
};

/// Over how long the driver averages the video engines, in microseconds.
const VIDEO_PERIOD_US: c_uint = 166_666;

one_value! {
    fn nvmlDeviceGetUtilizationRates(nvmlUtilization_t) = |gpu| {
        refuse_divided(gpu)?;
        let state = gpu.state();
        Ok(nvmlUtilization_t { gpu: state.gpu_percent, memory: state.memory_percent })
    };
    // Nobody captures what is on a screen.
    fn nvmlDeviceGetFBCStats(nvmlFBCStats_t) = |_| Ok(nvmlFBCStats_t { sessionsCount: 0, averageFPS: 0, averageLatency: 0 });
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

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetEncoderSessions(
    handle: nvmlDevice_t,
    count: *mut c_uint,
    sessions: *mut nvmlEncoderSessionInfo_t,
) -> nvmlReturn_t {
    device("nvmlDeviceGetEncoderSessions", handle, |gpu| {
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
        let streams = if state.encoder_percent > 0 { vec![session] } else { Vec::new() };
        // SAFETY: NVML's contract: `count` may be read and written, and `sessions` is null or has room for so many.
        unsafe { put_list(sessions, count, streams) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nvmlDeviceGetFBCSessions(
    handle: nvmlDevice_t,
    count: *mut c_uint,
    sessions: *mut nvmlFBCSessionInfo_t,
) -> nvmlReturn_t {
    // SAFETY: NVML's contract: `count` may be read and written, and `sessions` is null or has room for so many.
    device("nvmlDeviceGetFBCSessions", handle, |_| unsafe { put_list(sessions, count, Vec::new()) })
}

/// Exports functions that ask how much an engine was used, and over how long.
macro_rules! engine {
    ($(fn $name:ident = $field:ident;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(
            handle: nvmlDevice_t,
            utilization: *mut c_uint,
            period_us: *mut c_uint,
        ) -> nvmlReturn_t {
            device(stringify!($name), handle, |gpu| {
                refuse_divided(gpu)?;
                // SAFETY: NVML's contract: each pointer is null or may be written.
                unsafe { put(utilization, gpu.state().$field).and_then(|()| put(period_us, VIDEO_PERIOD_US)) }
            })
        }
    )*};
}

engine! {
    fn nvmlDeviceGetEncoderUtilization = encoder_percent;
    fn nvmlDeviceGetDecoderUtilization = decoder_percent;
    fn nvmlDeviceGetJpgUtilization = jpeg_percent;
    fn nvmlDeviceGetOfaUtilization = ofa_percent;
}
