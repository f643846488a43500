//! Streams, which execute operations in order. A call returns only after its operations have
//! finished.

use std::{ptr, rc::Rc, time::Instant};

use super::{
    api::Handle, device::Context, driver::CudaError, memory::DeviceMemory, module::Kernel,
    queue::Queue,
};

/// The value of `CU_STREAM_NON_BLOCKING`: the stream does not wait for the default stream.
const NON_BLOCKING: u32 = 1;

/// A stream, and two events that are used to time its operations.
pub(crate) struct Stream {
    begin: Event,
    end: Event,
    pub(super) context: Rc<Context>,
    pub(super) handle: Handle,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Elapsed {
    /// The time in microseconds between the events before and after the operations, measured by the
    /// device's clock.
    pub device_us: f64,
    /// The time in microseconds from before the first call until all operations were finished,
    /// measured by the host's clock.
    pub host_us: f64,
}

impl Stream {
    pub(crate) fn new(context: &Rc<Context>) -> Result<Self, CudaError> {
        let (begin, end) = (Event::new(context)?, Event::new(context)?);
        let mut handle = ptr::null_mut();
        // SAFETY: the pointer outlives the call, and the context is current.
        let code = unsafe { (context.driver().api.cuStreamCreate)(&raw mut handle, NON_BLOCKING) };
        context.driver().check_result(code, "make a stream")?;
        Ok(Self {
            begin,
            end,
            context: Rc::clone(context),
            handle,
        })
    }

    /// Executes the operations that `work` adds to the queue, and waits until they have finished.
    /// Returns the time measured by the host's clock, in microseconds.
    pub(crate) fn run<'scope>(
        &self,
        work: impl FnOnce(&Queue<'_, 'scope>) -> Result<(), CudaError>,
    ) -> Result<f64, CudaError> {
        // Operations that were started are waited for even after an error, because the device may
        // be writing to the caller's memory.
        let waiting = WaitOnDrop(self);
        let begun = Instant::now();
        work(&Queue::new(self))?;
        self.wait_until_idle()?;
        let host_us = begun.elapsed().as_secs_f64() * 1e6;
        std::mem::forget(waiting);
        Ok(host_us)
    }

    /// Executes operations as [`run`](Self::run) does, and also returns the time measured by the
    /// device's clock.
    pub(crate) fn run_timed<'scope>(
        &self,
        work: impl FnOnce(&Queue<'_, 'scope>) -> Result<(), CudaError>,
    ) -> Result<Elapsed, CudaError> {
        let host_us = self.run(|queue| {
            self.record_event(&self.begin)?;
            work(queue)?;
            self.record_event(&self.end)
        })?;
        Ok(Elapsed {
            device_us: self.begin.microseconds_until(&self.end)?,
            host_us,
        })
    }

    /// Executes operations in two streams at the same time, and returns the time from the start of
    /// the first operation until the end of the last.
    pub(crate) fn run_timed_on_both<'scope>(
        &self,
        other: &Self,
        work: impl FnOnce(&Queue<'_, 'scope>, &Queue<'_, 'scope>) -> Result<(), CudaError>,
    ) -> Result<Elapsed, CudaError> {
        self.run_timed(|queue| {
            let waiting = WaitOnDrop(other);
            other.wait_for_event(&self.begin)?;
            work(queue, &Queue::new(other))?;
            other.record_event(&other.end)?;
            self.wait_for_event(&other.end)?;
            // This stream waits for the other stream, and the caller waits for this one. So the
            // other stream need not be waited for here.
            std::mem::forget(waiting);
            Ok(())
        })
    }

    pub(super) fn record_event(&self, event: &Event) -> Result<(), CudaError> {
        let driver = self.context.driver();
        // SAFETY: the driver created both handles, and both belong to this context.
        driver.check_result(
            unsafe { (driver.api.cuEventRecord)(event.handle, self.handle) },
            "record an event",
        )
    }

    /// Makes later operations of this stream wait for the event.
    fn wait_for_event(&self, event: &Event) -> Result<(), CudaError> {
        let driver = self.context.driver();
        // SAFETY: the driver created both handles.
        driver.check_result(
            unsafe { (driver.api.cuStreamWaitEvent)(self.handle, event.handle, 0) },
            "wait for an event",
        )
    }

    fn wait_until_idle(&self) -> Result<(), CudaError> {
        let driver = self.context.driver();
        // SAFETY: the driver created the handle.
        let code = unsafe { (driver.api.cuStreamSynchronize)(self.handle) };
        driver.check_result(
            code,
            format!("finish the work on GPU {}", self.context.device.index),
        )
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: the driver created the handle. It is released only here, when the stream has no
        // work left.
        unsafe { (self.context.driver().api.cuStreamDestroy_v2)(self.handle) };
    }
}

struct WaitOnDrop<'stream>(&'stream Stream);

impl Drop for WaitOnDrop<'_> {
    fn drop(&mut self) {
        // This error can be ignored, because the caller returns the error that occurred first.
        let _ = self.0.wait_until_idle();
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
        context.driver().check_result(
            unsafe { (context.driver().api.cuEventCreate)(&raw mut handle, 0) },
            "create an event",
        )?;
        Ok(Self {
            context: Rc::clone(context),
            handle,
        })
    }

    /// Waits until the event has occurred.
    pub(super) fn wait_until_reached(&self) -> Result<(), CudaError> {
        let driver = self.context.driver();
        // SAFETY: the driver created the event.
        driver.check_result(
            unsafe { (driver.api.cuEventSynchronize)(self.handle) },
            "wait for a copy",
        )
    }

    /// Returns the time in microseconds from this event until a later event. Both must have
    /// occurred.
    fn microseconds_until(&self, later: &Self) -> Result<f64, CudaError> {
        let driver = self.context.driver();
        let mut ms = 0.0;
        // SAFETY: the variable outlives the call, and the driver created both events.
        let code =
            unsafe { (driver.api.cuEventElapsedTime)(&raw mut ms, self.handle, later.handle) };
        driver.check_result(code, "read the time between two events")?;
        Ok(f64::from(ms) * 1e3)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: the driver created the handle. It is released only here.
        unsafe { (self.context.driver().api.cuEventDestroy_v2)(self.handle) };
    }
}

/// The value of `CU_STREAM_CAPTURE_MODE_THREAD_LOCAL`: during a capture, other threads may call
/// functions that this thread may not call.
const THREAD_LOCAL: i32 = 1;

/// A sequence of operations that can be launched any number of times. A graph owns the memory and
/// the kernels that it uses, because it contains their addresses.
pub(crate) struct Graph {
    context: Rc<Context>,
    pub(super) handle: Handle,
    memory: Vec<DeviceMemory>,
    /// The kernels. They are not called again, but must stay loaded.
    _kernels: Vec<Kernel>,
}

impl Graph {
    /// Returns `true` if the driver supports graphs.
    pub(crate) fn is_supported(stream: &Stream) -> bool {
        stream
            .context
            .driver()
            .api
            .cuGraphInstantiateWithFlags
            .is_some()
    }

    /// Records the operations that `work` adds to the queue, without executing them. The graph
    /// takes ownership of the memory and the kernels that are passed to `work`.
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
            let error = driver.make_error(CudaError::NOT_SUPPORTED, "make a graph");
            return Err(CudaError {
                text: "graphs need a driver for CUDA 11.4 or newer".to_owned(),
                ..error
            });
        };
        // SAFETY: the driver created the handle.
        let code = unsafe { (driver.api.cuStreamBeginCapture_v2)(stream.handle, THREAD_LOCAL) };
        driver.check_result(code, "begin a graph")?;
        let worked = work(&Queue::new(stream), &memory, &kernels);
        let mut template = ptr::null_mut();
        // SAFETY: the pointer outlives the call. The call ends the capture even if `work` failed.
        let code = unsafe { (driver.api.cuStreamEndCapture)(stream.handle, &raw mut template) };
        let template = Template {
            context: &stream.context,
            handle: template,
        };
        worked?;
        driver.check_result(code, "end a graph")?;
        let mut handle = ptr::null_mut();
        // SAFETY: the pointer outlives the call, and the driver created the template.
        let code = unsafe { instantiate(&raw mut handle, template.handle, 0) };
        driver.check_result(
            code,
            format!("create a graph for GPU {}", stream.context.device.index),
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
        // SAFETY: the driver created the handle. It is released only here, before the memory that
        // the graph uses. The graph is not running, because a stream waits for its graphs.
        unsafe { (self.context.driver().api.cuGraphExecDestroy)(self.handle) };
    }
}

/// The template from which executable graphs are created. It is not needed after that.
struct Template<'context> {
    context: &'context Rc<Context>,
    handle: Handle,
}

impl Drop for Template<'_> {
    fn drop(&mut self) {
        if !self.handle.is_null() {
            // SAFETY: the driver created the handle. It is released only here.
            unsafe { (self.context.driver().api.cuGraphDestroy)(self.handle) };
        }
    }
}
