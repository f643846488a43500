//! Streams, which execute operations in order. A call returns when its operations are done.

use std::{ptr, rc::Rc, time::Instant};

use super::{
    api::Handle, context::Context, error::CudaError, memory::DeviceMemory, module::Kernel,
    queue::Queue,
};

/// The value of `CU_STREAM_NON_BLOCKING`, for a stream that does not wait for the default stream.
const NON_BLOCKING: u32 = 1;

/// A stream with two events that time its operations.
pub(crate) struct Stream {
    begin: Event,
    end: Event,
    pub(super) context: Rc<Context>,
    pub(super) handle: Handle,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Elapsed {
    /// The time between two events around the operations, by the device's clock.
    pub device_us: f64,
    /// The time from before the first call until all operations were done, by the host's clock.
    pub host_us: f64,
}

impl Stream {
    pub(super) fn new(context: &Rc<Context>) -> Result<Self, CudaError> {
        let (begin, end) = (Event::new(context)?, Event::new(context)?);
        let mut handle = ptr::null_mut();
        // SAFETY: the pointer outlives the call, and the context is current.
        let code = unsafe { (context.driver().api.cuStreamCreate)(&raw mut handle, NON_BLOCKING) };
        context.driver().done(code, "make a stream")?;
        Ok(Self {
            begin,
            end,
            context: Rc::clone(context),
            handle,
        })
    }

    /// Executes the operations that `work` adds to the queue, and waits for them. Returns the
    /// host's time in microseconds.
    pub(crate) fn run<'scope>(
        &self,
        work: impl FnOnce(&Queue<'_, 'scope>) -> Result<(), CudaError>,
    ) -> Result<f64, CudaError> {
        // Operations that were started are waited for even after an error, because the device may
        // be writing to the caller's memory.
        let waiting = Waiting(self);
        let begun = Instant::now();
        work(&Queue::new(self))?;
        self.wait()?;
        let host_us = begun.elapsed().as_secs_f64() * 1e6;
        std::mem::forget(waiting);
        Ok(host_us)
    }

    /// Executes operations like [`run`](Self::run), and also returns the device's time.
    pub(crate) fn time<'scope>(
        &self,
        work: impl FnOnce(&Queue<'_, 'scope>) -> Result<(), CudaError>,
    ) -> Result<Elapsed, CudaError> {
        let host_us = self.run(|queue| {
            self.record(&self.begin)?;
            work(queue)?;
            self.record(&self.end)
        })?;
        Ok(Elapsed {
            device_us: self.begin.until_us(&self.end)?,
            host_us,
        })
    }

    /// Executes operations in two streams at once, and returns the time from the start of the first
    /// until the end of the last.
    pub(crate) fn time_both<'scope>(
        &self,
        other: &Self,
        work: impl FnOnce(&Queue<'_, 'scope>, &Queue<'_, 'scope>) -> Result<(), CudaError>,
    ) -> Result<Elapsed, CudaError> {
        self.time(|queue| {
            let waiting = Waiting(other);
            other.hold_until(&self.begin)?;
            work(queue, &Queue::new(other))?;
            other.record(&other.end)?;
            self.hold_until(&other.end)?;
            // This stream waits for the other one, so the caller only has to wait for this one.
            std::mem::forget(waiting);
            Ok(())
        })
    }

    pub(super) fn record(&self, event: &Event) -> Result<(), CudaError> {
        let driver = self.context.driver();
        // SAFETY: both handles are the driver's, and belong to this context.
        driver.done(
            unsafe { (driver.api.cuEventRecord)(event.handle, self.handle) },
            "record an event",
        )
    }

    /// Makes later operations wait until the event has happened.
    fn hold_until(&self, event: &Event) -> Result<(), CudaError> {
        let driver = self.context.driver();
        // SAFETY: both handles are the driver's.
        driver.done(
            unsafe { (driver.api.cuStreamWaitEvent)(self.handle, event.handle, 0) },
            "wait for an event",
        )
    }

    fn wait(&self) -> Result<(), CudaError> {
        let driver = self.context.driver();
        // SAFETY: the handle is the driver's.
        let code = unsafe { (driver.api.cuStreamSynchronize)(self.handle) };
        driver.done(
            code,
            format!("finish the work on GPU {}", self.context.device.index),
        )
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: the driver created the handle, and it is released only here, without work in it.
        unsafe { (self.context.driver().api.cuStreamDestroy_v2)(self.handle) };
    }
}

struct Waiting<'stream>(&'stream Stream);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        // The caller returns the error that came first.
        let _ = self.0.wait();
    }
}

pub(super) struct Event {
    context: Rc<Context>,
    pub(super) handle: Handle,
}

impl Event {
    pub(super) fn new(context: &Rc<Context>) -> Result<Self, CudaError> {
        let mut handle = ptr::null_mut();
        // SAFETY: the pointer outlives the call, and the context is current.
        context.driver().done(
            unsafe { (context.driver().api.cuEventCreate)(&raw mut handle, 0) },
            "make an event",
        )?;
        Ok(Self {
            context: Rc::clone(context),
            handle,
        })
    }

    /// Waits until the event has happened.
    pub(super) fn wait(&self) -> Result<(), CudaError> {
        let driver = self.context.driver();
        // SAFETY: the event is the driver's.
        driver.done(
            unsafe { (driver.api.cuEventSynchronize)(self.handle) },
            "wait for a copy",
        )
    }

    /// Returns the time in microseconds to a later event, when both have happened.
    fn until_us(&self, later: &Self) -> Result<f64, CudaError> {
        let driver = self.context.driver();
        let mut ms = 0.0;
        // SAFETY: the number outlives the call; the events are the driver's.
        let code =
            unsafe { (driver.api.cuEventElapsedTime)(&raw mut ms, self.handle, later.handle) };
        driver.done(code, "read the time between two events")?;
        Ok(f64::from(ms) * 1e3)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: the driver created the handle, and it is released only here.
        unsafe { (self.context.driver().api.cuEventDestroy_v2)(self.handle) };
    }
}

/// The value of `CU_STREAM_CAPTURE_MODE_THREAD_LOCAL`: other threads may use functions that are
/// forbidden during a capture.
const THREAD_LOCAL: i32 = 1;

/// The operations of a queue, which can be launched any number of times. A graph owns the memory
/// and the kernels that it uses, because it contains their addresses.
pub(crate) struct Graph {
    context: Rc<Context>,
    pub(super) handle: Handle,
    memory: Vec<DeviceMemory>,
    /// The kernels, which are not used again but must stay alive.
    _kernels: Vec<Kernel>,
}

impl Graph {
    /// Returns `true` if the driver supports graphs.
    pub(crate) fn is_known(stream: &Stream) -> bool {
        stream
            .context
            .driver()
            .api
            .cuGraphInstantiateWithFlags
            .is_some()
    }

    /// Records the operations that `work` adds to the queue without executing them. The graph owns
    /// the memory and the kernels that are passed to `work`.
    pub(crate) fn capture(
        stream: &Stream,
        memory: Vec<DeviceMemory>,
        kernels: Vec<Kernel>,
        work: impl for<'held> FnOnce(
            &Queue<'_, 'held>,
            &'held [DeviceMemory],
            &'held [Kernel],
        ) -> Result<(), CudaError>,
    ) -> Result<Self, CudaError> {
        let driver = stream.context.driver();
        let Some(instantiate) = driver.api.cuGraphInstantiateWithFlags else {
            let error = driver.error(CudaError::NOT_SUPPORTED, "make a graph");
            return Err(CudaError {
                text: "graphs need a driver for CUDA 11.4 or newer".to_owned(),
                ..error
            });
        };
        // SAFETY: the handle is the driver's.
        let code = unsafe { (driver.api.cuStreamBeginCapture_v2)(stream.handle, THREAD_LOCAL) };
        driver.done(code, "begin a graph")?;
        let worked = work(&Queue::new(stream), &memory, &kernels);
        let mut template = ptr::null_mut();
        // SAFETY: the pointer outlives the call, which ends the capture even if `work` failed.
        let code = unsafe { (driver.api.cuStreamEndCapture)(stream.handle, &raw mut template) };
        let template = Template {
            context: &stream.context,
            handle: template,
        };
        worked?;
        driver.done(code, "end a graph")?;
        let mut handle = ptr::null_mut();
        // SAFETY: the pointer outlives the call, and the template is the driver's.
        let code = unsafe { instantiate(&raw mut handle, template.handle, 0) };
        driver.done(
            code,
            format!("make a graph for GPU {}", stream.context.device.index),
        )?;
        Ok(Self {
            context: Rc::clone(&stream.context),
            handle,
            memory,
            _kernels: kernels,
        })
    }

    pub(crate) fn memory(&self) -> &[DeviceMemory] {
        &self.memory
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: the driver created the handle, and it is released only here, before the memory
        // that it uses. It does not run now, because a stream waits for its graphs.
        unsafe { (self.context.driver().api.cuGraphExecDestroy)(self.handle) };
    }
}

/// The template of executable graphs, which they do not need afterward.
struct Template<'context> {
    context: &'context Rc<Context>,
    handle: Handle,
}

impl Drop for Template<'_> {
    fn drop(&mut self) {
        if !self.handle.is_null() {
            // SAFETY: the driver created the handle, and it is released only here.
            unsafe { (self.context.driver().api.cuGraphDestroy)(self.handle) };
        }
    }
}
