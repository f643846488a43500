//! A stream: what is put into it is done in its order, and has been done when a call returns.

use std::{ptr, rc::Rc, time::Instant};

use super::{
    api::Handle, context::Context, error::CudaError, memory::DeviceMemory, module::Kernel,
    queue::Queue,
};

/// `CU_STREAM_NON_BLOCKING`: without waiting for the stream that everybody shares.
const NON_BLOCKING: u32 = 1;

/// A stream with the two events that time what is done in it.
pub(crate) struct Stream {
    begin: Event,
    end: Event,
    pub(super) context: Rc<Context>,
    pub(super) handle: Handle,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Elapsed {
    /// Between two events around it, by the device's clock.
    pub device_us: f64,
    /// From before the first call until all was done, by the host's clock.
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

    /// Does what `work` puts into the queue and waits until it is done. Returns the host's time for
    /// that, in us.
    pub(crate) fn run<'scope>(
        &self,
        work: impl FnOnce(&Queue<'_, 'scope>) -> Result<(), CudaError>,
    ) -> Result<f64, CudaError> {
        // What was begun is waited for, however this ends: the device may be writing what the
        // caller owns.
        let waiting = Waiting(self);
        let begun = Instant::now();
        work(&Queue::new(self))?;
        self.wait()?;
        let host_us = begun.elapsed().as_secs_f64() * 1e6;
        std::mem::forget(waiting);
        Ok(host_us)
    }

    /// The same with the device's own time beside it.
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

    /// The same in two streams at once: from before the first of both begins until the last of both
    /// has ended.
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
            // What this stream waits for has happened when it has.
            std::mem::forget(waiting);
            Ok(())
        })
    }

    pub(super) fn record(&self, event: &Event) -> Result<(), CudaError> {
        let driver = self.context.driver();
        // SAFETY: both handles are the driver's, of this context.
        driver.done(
            unsafe { (driver.api.cuEventRecord)(event.handle, self.handle) },
            "record an event",
        )
    }

    /// Lets what comes next begin only when this has happened.
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
        // The error that led here is the one to be told.
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

    /// Waits until it has happened.
    pub(super) fn wait(&self) -> Result<(), CudaError> {
        let driver = self.context.driver();
        // SAFETY: the event is the driver's.
        driver.done(
            unsafe { (driver.api.cuEventSynchronize)(self.handle) },
            "wait for a copy",
        )
    }

    /// The time from this to a later event, when both have happened.
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

/// `CU_STREAM_CAPTURE_MODE_THREAD_LOCAL`: other threads may do what would spoil a capture.
const THREAD_LOCAL: i32 = 1;

/// The content of a stream's queue, to be started as often as one likes. It owns the memory and
/// the kernels that it uses, since it knows them by their addresses.
pub(crate) struct Graph {
    context: Rc<Context>,
    pub(super) handle: Handle,
    memory: Vec<DeviceMemory>,
    /// Never asked for again, but alive.
    _kernels: Vec<Kernel>,
}

impl Graph {
    /// Returns whether the driver has graphs.
    pub(crate) fn is_known(stream: &Stream) -> bool {
        stream
            .context
            .driver()
            .api
            .cuGraphInstantiateWithFlags
            .is_some()
    }

    /// Makes a graph of what `work` puts into the queue, which is not done now. It owns all of
    /// that: the memory and the kernels that `work` is given.
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
        // SAFETY: the pointer outlives the call. It ends the capture whatever came of the work.
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

/// The template of graphs that run, which do not need it afterwards.
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
