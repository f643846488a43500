//! Streams and events. Work in a stream is complete as soon as the call that starts it returns,
//! except for kernels that wait.

use std::{
    ffi::{c_int, c_uint},
    thread,
    time::Instant,
};

use super::{Handle, graph::Stream, write_value};
use crate::{
    code::{Code, to_return_code},
    state::state,
};

/// The time at which an event was last recorded.
type Event = Option<Instant>;

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamCreate(stream: *mut Handle, _flags: c_uint) -> c_int {
    let made: Box<Stream> = Box::default();
    // SAFETY: the caller passes a pointer that is null or valid for writes.
    to_return_code(
        state()
            .check_usable()
            .and_then(|()| unsafe { write_value(stream, Box::into_raw(made).cast()) }),
    )
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamDestroy_v2(stream: Handle) -> c_int {
    if stream.is_null() {
        return Code::INVALID_HANDLE.0;
    }
    // The stream is only destroyed after its work is complete.
    let code = wait_for_stream(stream);
    // SAFETY: the stream came from `cuStreamCreate`, and the caller destroys it once.
    drop(unsafe { Box::from_raw(stream.cast::<Stream>()) });
    code
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamSynchronize(stream: Handle) -> c_int {
    wait_for_stream(stream)
}

/// Waits for a stream without holding the state's lock.
fn wait_for_stream(stream: Handle) -> c_int {
    let busy_until = state().streams.busy_until(stream.addr());
    thread::sleep(busy_until.map_or_else(Default::default, |end| {
        end.saturating_duration_since(Instant::now())
    }));
    let mut state = state();
    to_return_code(
        state
            .check_usable()
            .map(|()| state.finish_stream(stream.addr())),
    )
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamWaitEvent(_: Handle, _event: Handle, _flags: c_uint) -> c_int {
    to_return_code(state().check_usable())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuEventCreate(event: *mut Handle, _flags: c_uint) -> c_int {
    let made: Box<Event> = Box::default();
    // SAFETY: the caller passes a pointer that is null or valid for writes.
    to_return_code(
        state()
            .check_usable()
            .and_then(|()| unsafe { write_value(event, Box::into_raw(made).cast()) }),
    )
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuEventDestroy_v2(event: Handle) -> c_int {
    if event.is_null() {
        return Code::INVALID_HANDLE.0;
    }
    // SAFETY: the event came from `cuEventCreate`, and the caller destroys it once.
    drop(unsafe { Box::from_raw(event.cast::<Event>()) });
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuEventRecord(event: Handle, stream: Handle) -> c_int {
    let state = state();
    let now = Instant::now();
    // The event occurs when the stream has reached it.
    let at = state
        .streams
        .busy_until(stream.addr())
        .map_or(now, |end| end.max(now));
    // SAFETY: the event came from `cuEventCreate`.
    to_return_code(
        state
            .check_usable()
            .map(|()| unsafe { event.cast::<Event>().write(Some(at)) }),
    )
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuEventSynchronize(event: Handle) -> c_int {
    // SAFETY: the event came from `cuEventCreate`.
    let at = unsafe { event.cast::<Event>().read() };
    let known = state().check_usable().and(at.ok_or(Code::INVALID_HANDLE));
    to_return_code(known.map(|at| thread::sleep(at.saturating_duration_since(Instant::now()))))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuEventElapsedTime(ms: *mut f32, begin: Handle, end: Handle) -> c_int {
    // SAFETY: both events came from `cuEventCreate`.
    let (begin, end) = unsafe { (begin.cast::<Event>().read(), end.cast::<Event>().read()) };
    let elapsed = begin
        .zip(end)
        .ok_or(Code::INVALID_HANDLE)
        .map(|(begin, end)| end.duration_since(begin));
    // SAFETY: the caller passes a pointer that is null or valid for writes.
    to_return_code(
        state()
            .check_usable()
            .and(elapsed)
            .and_then(|elapsed| unsafe { write_value(ms, elapsed.as_secs_f32() * 1e3) }),
    )
}
