//! Graphs: many things that a device does one after the other, begun by a single call.

use std::{ptr, rc::Rc};

use super::{
    api::Handle, context::Context, error::CudaError, memory::DeviceMemory, module::Kernel,
    queue::Queue, stream::Stream,
};

/// `CU_STREAM_CAPTURE_MODE_THREAD_LOCAL`: other threads may do what would spoil a capture.
const THREAD_LOCAL: i32 = 1;

/// What was put into a stream's queue, to be started as often as one likes. It owns the memory and the kernels that it
/// uses, since it knows them by their addresses.
pub(crate) struct Graph {
    context: Rc<Context>,
    pub(super) handle: Handle,
    memory: Vec<DeviceMemory>,
    /// Never asked for again, but alive.
    _kernels: Vec<Kernel>,
}

impl Graph {
    /// Whether the driver has graphs.
    pub(crate) fn is_known(stream: &Stream) -> bool {
        stream
            .context
            .driver()
            .api
            .cuGraphInstantiateWithFlags
            .is_some()
    }

    /// Makes a graph of what `work` puts into the queue, which is not done now. It owns all of that: the memory and the
    /// kernels that `work` is given.
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
        // SAFETY: the handle came from the driver and is given back once, before what it uses; nothing of it runs any
        // more, since a stream waits for what it was given.
        unsafe { (self.context.driver().api.cuGraphExecDestroy)(self.handle) };
    }
}

/// What graphs that run are made of; they do not need it afterwards.
struct Template<'context> {
    context: &'context Rc<Context>,
    handle: Handle,
}

impl Drop for Template<'_> {
    fn drop(&mut self) {
        if !self.handle.is_null() {
            // SAFETY: the handle came from the driver and is given back once.
            unsafe { (self.context.driver().api.cuGraphDestroy)(self.handle) };
        }
    }
}
