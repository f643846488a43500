//! The second process on a device: a child process that requests memory on command, and reports the
//! results. When its parent ends, its standard input is closed, and it exits.

use std::{
    ffi::OsString,
    io::{self, BufRead, Write},
    os::unix::process::CommandExt,
    process::{self, ChildStdin, Stdio},
    sync::mpsc::{Receiver, TryRecvError},
};

use gpumon_probe::child;
use serde::{Deserialize, Serialize};

use super::device::{DemoError, SecondProcess};
use crate::{
    cuda::{CudaError, Driver, FreeMemory},
    gpu::Gpu,
    memory_budget::MemoryBudget,
    parent::{LineTooLong, read_lines_on_thread},
};

#[derive(Debug, Serialize, Deserialize)]
struct MemoryRequest {
    bytes: u64,
    /// Whether the memory is only requested if enough stays free for other processes.
    is_to_fit: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MemoryResponse {
    /// The free memory in bytes before the request.
    pub(super) free_bytes: u64,
    /// The driver's error if the request failed.
    pub(super) refusal: Option<String>,
    /// Whether the request failed for lack of memory.
    pub(super) is_out_of_memory: bool,
}

impl MemoryResponse {
    pub(super) fn new(
        memory: FreeMemory,
        bytes: u64,
        is_to_fit: bool,
        allocate: impl FnOnce() -> Result<(), CudaError>,
    ) -> Self {
        let budget = MemoryBudget::for_gpu(0, memory, 0);
        let free_bytes = memory.free_bytes;
        if is_to_fit && bytes > budget.usable_bytes() {
            let refusal = Some(
                "the request was not sent to the driver, because it would have left too little \
                 memory for others"
                    .to_owned(),
            );
            return Self {
                free_bytes,
                refusal,
                is_out_of_memory: false,
            };
        }
        let error = allocate().err();
        let is_out_of_memory = error.as_ref().is_some_and(CudaError::is_out_of_memory);
        Self {
            free_bytes,
            refusal: error.map(|error| error.to_string()),
            is_out_of_memory,
        }
    }
}

/// Runs this process as the second process on the device with this UUID, until standard input is
/// closed.
///
/// # Errors
/// Returns a message if the device cannot be used, or if a response cannot be written.
pub fn serve_requests(uuid: &str) -> Result<(), String> {
    let devices = Driver::load()
        .and_then(Driver::list_devices)
        .map_err(|error| error.to_string())?;
    let device = devices
        .iter()
        .find(|device| device.uuid == uuid)
        .ok_or_else(|| format!("there is no GPU {uuid}"))?;
    let gpu = Gpu::open(device).map_err(|error| error.to_string())?;
    for line in io::stdin().lock().lines() {
        let line = line.map_err(|error| error.to_string())?;
        let ask: MemoryRequest = serde_json::from_str(&line).map_err(|error| error.to_string())?;
        let memory = gpu
            .context
            .read_free_memory()
            .map_err(|error| error.to_string())?;
        let answer = MemoryResponse::new(memory, ask.bytes, ask.is_to_fit, || {
            gpu.context.allocate(ask.bytes).map(drop)
        });
        let text = serde_json::to_string(&answer).map_err(|error| error.to_string())?;
        writeln!(io::stdout(), "{text}").map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// The second process, as seen by its parent. The process is ended when this is dropped.
pub(super) struct SecondChild {
    process: process::Child,
    /// The pipe for requests; `None` after the process was asked to exit.
    asks: Option<ChildStdin>,
    /// The lines that the process writes. The channel is closed when the process ends.
    answers: Receiver<Result<String, LineTooLong>>,
}

impl SecondChild {
    pub(super) fn start(command: &[OsString], uuid: &str) -> Result<Self, DemoError> {
        let [program, arguments @ ..] = command else {
            return Err(DemoError::Second(
                "cannot be started: its command is missing".to_owned(),
            ));
        };
        let mut command = child::new_command(program);
        // The child gets a separate process group, so that signals of the terminal only reach the
        // parent, which then ends the child.
        command
            .args(arguments)
            .arg(uuid)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0);
        let mut child = command
            .spawn()
            .map_err(|error| DemoError::Second(format!("does not start: {error}")))?;
        Ok(Self {
            asks: child.stdin.take(),
            answers: read_lines_on_thread(child.stdout.take()),
            process: child,
        })
    }
}

impl SecondProcess for SecondChild {
    fn pid(&self) -> Option<u32> {
        Some(self.process.id())
    }

    fn request_memory(
        &mut self,
        bytes: u64,
        is_to_fit: bool,
        look: &mut dyn FnMut() -> Result<(), DemoError>,
    ) -> Result<MemoryResponse, DemoError> {
        let failed =
            |error: &dyn std::fmt::Display| DemoError::Second(format!("does not respond: {error}"));
        let ask = serde_json::to_string(&MemoryRequest { bytes, is_to_fit })
            .map_err(|error| failed(&error))?;
        if let Some(asks) = &mut self.asks {
            writeln!(asks, "{ask}").map_err(|error| failed(&error))?;
        }
        loop {
            match self.answers.try_recv() {
                Ok(line) => {
                    let line = line.map_err(|error| failed(&error))?;
                    return serde_json::from_str(&line).map_err(|error| failed(&error));
                }
                Err(TryRecvError::Empty) => look()?,
                Err(TryRecvError::Disconnected) => {
                    return Err(failed(
                        &"the process has ended; see its error message above",
                    ));
                }
            }
        }
    }
}

impl Drop for SecondChild {
    fn drop(&mut self) {
        drop(self.asks.take());
        // The process may be stuck in the driver, so it is killed instead of waiting for its exit.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
