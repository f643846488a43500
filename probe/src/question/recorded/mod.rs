//! Answers out of what a collector has read, without the driver.
//!
//! What the records do not hold is not answered at all: [`Recorded::about`] gives `None`, and whoever asks may ask the
//! driver itself.

mod device;
mod number;
mod processes;

use std::{collections::HashMap, fs, path::PathBuf};

use self::number::text;
use super::{Answer, Code, Question, Sheet, Subject, SystemQuestion, Value};
use crate::model::{Gpu, GpuDetails, GpuSample, Health, Inventory, Sample};

/// What a collector has read of one moment.
pub struct Recorded {
    inventory: Inventory,
    gpus: HashMap<u32, Device>,
    proc_root: PathBuf,
}

/// All that is known of one GPU.
struct Device {
    identity: Gpu,
    sample: GpuSample,
    details: Option<GpuDetails>,
    answers: HashMap<Question, Answer>,
}

impl Recorded {
    /// Puts the records of one moment together.
    pub fn new(inventory: Inventory, sample: Sample, details: Vec<GpuDetails>, sheets: Vec<Sheet>) -> Self {
        let mut details: HashMap<u32, GpuDetails> = details.into_iter().map(|own| (own.index, own)).collect();
        let mut answers: HashMap<u32, Sheet> = sheets.into_iter().map(|own| (own.index, own)).collect();
        let mut samples: HashMap<u32, GpuSample> = sample.gpus.into_iter().map(|own| (own.index, own)).collect();
        let gpus = inventory.gpus.iter().filter_map(|gpu| {
            let index = gpu.index;
            let device = Device {
                identity: gpu.clone(),
                sample: samples.remove(&index)?,
                details: details.remove(&index),
                answers: answers.remove(&index).map(|sheet| sheet.answers.into_iter().collect()).unwrap_or_default(),
            };
            Some((index, device))
        });
        Self { gpus: gpus.collect(), inventory, proc_root: "/proc".into() }
    }

    /// Answers a question about the machine, or does not know.
    pub fn system(&self, question: SystemQuestion) -> Option<Answer> {
        let platform = &self.inventory.platform;
        match question {
            SystemQuestion::DriverVersion => Some(text(&platform.driver_version)),
            SystemQuestion::NvmlVersion => Some(text(&platform.nvml_version)),
            SystemQuestion::CudaVersion => {
                let version = platform.cuda_version.value()?;
                let (major, minor) = version.split_once('.')?;
                Some(Ok(Value::number(1000 * major.parse::<i32>().ok()? + 10 * minor.parse::<i32>().ok()?)))
            }
            SystemQuestion::DeviceCount => Some(Ok(Value::number(self.inventory.gpus.len() as u32))),
            SystemQuestion::ProcessName(pid) => Some(self.process_name(pid)),
            _ => None,
        }
    }

    /// Answers a question about a GPU, or does not know.
    pub fn about(&self, subject: Subject, question: Question) -> Option<Answer> {
        let device = self.gpus.get(&subject.gpu)?;
        if let Health::Lost { .. } = device.sample.health {
            return Some(Err(Code::GPU_IS_LOST));
        }
        if subject.mig.is_some() {
            return None;
        }
        device.answer(question).or_else(|| device.answers.get(&question).cloned())
    }

    /// The first word of the command line, as the driver's own function gives it.
    fn process_name(&self, pid: u32) -> Answer {
        let line = fs::read(self.proc_root.join(pid.to_string()).join("cmdline")).map_err(|_| Code::NOT_FOUND)?;
        let name = line.split(|byte| *byte == 0).next().unwrap_or_default();
        Ok(Value::Text(String::from_utf8_lossy(name).into_owned()))
    }
}
