//! The second process on a device: a child that requests memory on command, and reports the result.
//! It ends with its parent, because its standard input ends.

use std::{
    ffi::OsString,
    io::{self, BufRead, Write},
    os::unix::process::CommandExt,
    process::{self, ChildStdin, Stdio},
    sync::mpsc::{Receiver, TryRecvError},
};

use gpumon_probe::child;
use serde::{Deserialize, Serialize};

use super::{device::Second, stop::Stop};
use crate::{
    cuda::{CudaError, Driver, FreeMemory},
    gpu::Gpu,
    memory_budget::MemoryBudget,
    parent::{LineTooLong, split_lines},
};

#[derive(Debug, Serialize, Deserialize)]
struct Ask {
    bytes: u64,
    /// Whether to request the memory only if enough stays free for others.
    is_to_fit: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Answer {
    /// The free memory before the request.
    pub(super) free_bytes: u64,
    /// The driver's error if the request failed.
    pub(super) refusal: Option<String>,
    /// Whether the request failed for lack of memory.
    pub(super) is_out_of_memory: bool,
}

impl Answer {
    pub(super) fn new(
        memory: FreeMemory,
        bytes: u64,
        is_to_fit: bool,
        allocate: impl FnOnce() -> Result<(), CudaError>,
    ) -> Self {
        let budget = MemoryBudget::for_gpu(0, memory, 0);
        let free_bytes = memory.free_bytes;
        if is_to_fit && bytes > budget.usable_bytes() {
            let refusal =
                Some("it would have left too little to others, and did not ask".to_owned());
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

/// Runs as the second process on the device with this UUID, until standard input ends.
///
/// # Errors
/// Returns a message if the device cannot be used, or if a request cannot be answered.
pub fn work(uuid: &str) -> Result<(), String> {
    let devices = Driver::load()
        .and_then(Driver::devices)
        .map_err(|error| error.to_string())?;
    let device = devices
        .iter()
        .find(|device| device.uuid == uuid)
        .ok_or_else(|| format!("there is no GPU {uuid}"))?;
    let gpu = Gpu::open(device).map_err(|error| error.to_string())?;
    for line in io::stdin().lock().lines() {
        let line = line.map_err(|error| error.to_string())?;
        let ask: Ask = serde_json::from_str(&line).map_err(|error| error.to_string())?;
        let memory = gpu.context.memory().map_err(|error| error.to_string())?;
        let answer = Answer::new(memory, ask.bytes, ask.is_to_fit, || {
            gpu.context.allocate(ask.bytes).map(drop)
        });
        let text = serde_json::to_string(&answer).map_err(|error| error.to_string())?;
        writeln!(io::stdout(), "{text}").map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// The second process as seen by its parent. It ends when this is dropped.
pub(super) struct Child {
    process: process::Child,
    /// The requests; `None` after the process was asked to end.
    asks: Option<ChildStdin>,
    /// The lines that the process writes. The channel ends with the process.
    answers: Receiver<Result<String, LineTooLong>>,
}

impl Child {
    pub(super) fn start(command: &[OsString], uuid: &str) -> Result<Self, Stop> {
        let [program, arguments @ ..] = command else {
            return Err(Stop::Second(
                "cannot be started: this program was not told how".to_owned(),
            ));
        };
        let mut command = child::command(program);
        // Signals of the terminal are for the parent, so the child gets its own process group. The
        // parent ends it.
        command
            .args(arguments)
            .arg(uuid)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0);
        let mut child = command
            .spawn()
            .map_err(|error| Stop::Second(format!("does not start: {error}")))?;
        Ok(Self {
            asks: child.stdin.take(),
            answers: split_lines(child.stdout.take()),
            process: child,
        })
    }
}

impl Second for Child {
    fn pid(&self) -> Option<u32> {
        Some(self.process.id())
    }

    fn ask(
        &mut self,
        bytes: u64,
        is_to_fit: bool,
        look: &mut dyn FnMut() -> Result<(), Stop>,
    ) -> Result<Answer, Stop> {
        let failed =
            |error: &dyn std::fmt::Display| Stop::Second(format!("does not answer: {error}"));
        let ask =
            serde_json::to_string(&Ask { bytes, is_to_fit }).map_err(|error| failed(&error))?;
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
                    return Err(failed(&"it has ended, and said why above"));
                }
            }
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        drop(self.asks.take());
        // A process that is stuck in the driver is killed.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
