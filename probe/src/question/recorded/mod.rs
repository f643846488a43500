//! Answers out of what a collector has read, without the driver.
//!
//! What the records do not hold is not answered at all: [`Recorded::about`] gives `None`, and whoever asks may ask the
//! driver itself.

mod device;
mod number;
mod processes;

use std::{collections::HashMap, path::PathBuf};

use self::number::text;
use super::{Answer, Code, Question, Sheet, Subject, SystemQuestion, Value};
use crate::{
    bounded,
    model::{Gpu, GpuDetails, GpuSample, Health, Inventory, Sample, SourceKind},
    source::host_link,
};

/// What a collector has read of one moment.
pub struct Recorded {
    inventory: Inventory,
    gpus: HashMap<u32, Device>,
    proc_root: PathBuf,
    sys_root: PathBuf,
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
        Self { gpus: gpus.collect(), inventory, proc_root: "/proc".into(), sys_root: "/sys".into() }
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
            // What only a driver that hosts virtual GPUs can do; others do not host any GPU's.
            SystemQuestion::VgpuDriverCapability(_) => {
                let hosts = |device: &Device| !matches!(device.answers.get(&Question::HostVgpuMode), Some(Err(_)));
                (!self.gpus.values().any(hosts)).then_some(Err(Code::NOT_SUPPORTED))
            }
            _ => None,
        }
    }

    /// Whether these GPUs are simulated.
    pub fn is_simulated(&self) -> bool {
        self.inventory.platform.source == SourceKind::Simulated
    }

    /// The GPUs whose driver does not return, by index.
    pub fn hung(&self) -> Vec<u32> {
        let is_hung = |device: &&Device| matches!(device.sample.health, Health::Hung { .. });
        self.gpus.values().filter(is_hung).map(|device| device.identity.index).collect()
    }

    /// Answers a question about a GPU, or does not know.
    pub fn about(&self, subject: Subject, question: Question) -> Option<Answer> {
        let device = self.gpus.get(&subject.gpu)?;
        if let Health::Lost { .. } = device.sample.health {
            return Some(Err(Code::GPU_IS_LOST));
        }
        if question == Question::HostMaxPcieGeneration {
            return Some(self.host_max_pcie_generation(device));
        }
        let lasting = || device.lasting(question).filter(|_| subject.mig.is_none());
        match device.sample.health {
            // The last values are old, and the driver would not answer whoever asked it instead.
            Health::Hung { .. } => Some(lasting().unwrap_or(Err(Code::TIMEOUT))),
            // The driver wakes it for whoever asks, as nvidia-smi does.
            Health::Asleep { .. } => lasting(),
            _ if subject.mig.is_some() => None,
            _ => device.answer(question),
        }
    }

    /// What the system tells, as whoever asks the driver is told too. A simulated GPU is in no slot of this machine.
    fn host_max_pcie_generation(&self, device: &Device) -> Answer {
        match self.inventory.platform.source {
            SourceKind::Simulated => Err(Code::NOT_SUPPORTED),
            SourceKind::Nvml => {
                let bus_id = text(&device.identity.pci_bus_id)?;
                host_link::max_generation(&self.sys_root, bus_id.text().unwrap_or_default())
            }
        }
    }

    /// The first word of the command line, as the driver's own function gives it.
    fn process_name(&self, pid: u32) -> Answer {
        let file = self.proc_root.join(pid.to_string()).join("cmdline");
        let line = bounded::read(file, bounded::COMMAND_LINE).map_err(|_| Code::NOT_FOUND)?;
        let name = line.split(|byte| *byte == 0).next().unwrap_or_default();
        Ok(Value::Text(String::from_utf8_lossy(name).into_owned()))
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink, sync::Arc, time::Duration};

    use super::*;
    use crate::{
        model::Reading,
        owner::CommandLines,
        sampler::{self, Moment, Options},
        source::SourceChoice,
    };

    /// One GPU at this place on the bus, in a machine whose system is described below `sys_root`.
    fn recorded(source: SourceKind, bus_id: &str, sys_root: PathBuf) -> Recorded {
        let simulated = Arc::from(SourceChoice::Sim(1).open(None).unwrap());
        let options = Options::new(Duration::from_secs(1), CommandLines::All);
        let Moment { mut inventory, sample, .. } = sampler::once(&simulated, &options).unwrap();
        inventory.platform.source = source;
        inventory.gpus[0].pci_bus_id = Reading::Now(bus_id.to_owned());
        Recorded { sys_root, ..Recorded::new(inventory, sample, Vec::new(), Vec::new()) }
    }

    #[test]
    fn the_system_is_asked_about_the_port_above_a_gpu_but_not_above_a_simulated_one() {
        let root = std::env::temp_dir().join(format!("gpumon-sys-{}-recorded", std::process::id()));
        let (port, known) = (root.join("devices/pci0000:3a/0000:3a:01.0"), root.join("bus/pci/devices"));
        fs::create_dir_all(port.join("0000:3b:00.0")).unwrap();
        fs::create_dir_all(&known).unwrap();
        fs::write(port.join("max_link_speed"), "32.0 GT/s PCIe\n").unwrap();
        symlink(port.join("0000:3b:00.0"), known.join("0000:3b:00.0")).unwrap();
        let asked = |source, bus_id| {
            recorded(source, bus_id, root.clone()).about(Subject::gpu(0), Question::HostMaxPcieGeneration)
        };
        assert_eq!(asked(SourceKind::Nvml, "00000000:3B:00.0"), Some(Ok(Value::number(5))));
        assert_eq!(asked(SourceKind::Nvml, "00000000:3C:00.0"), Some(Err(Code::NOT_SUPPORTED)));
        assert_eq!(asked(SourceKind::Simulated, "00000000:3B:00.0"), Some(Err(Code::NOT_SUPPORTED)));
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_gpu_that_hangs_is_known_by_name_and_by_nothing_that_changes() {
        let mut own = recorded(SourceKind::Nvml, "00000000:3B:00.0", "/nowhere".into());
        let gpu = own.gpus.get_mut(&0).unwrap();
        gpu.answers = [(Question::Brand, Ok(Value::number(14))), (Question::EncoderStats, Ok(Value::number(1)))].into();
        let ask = |own: &Recorded, question| own.about(Subject::gpu(0), question);
        assert!(matches!(ask(&own, Question::UtilizationRates), Some(Ok(_))));
        assert_eq!(ask(&own, Question::EncoderStats), Some(Ok(Value::number(1))));

        own.gpus.get_mut(&0).unwrap().sample.health = Health::Hung { since_ms: 1 };
        assert!(matches!(ask(&own, Question::Name), Some(Ok(_))));
        assert_eq!(ask(&own, Question::Brand), Some(Ok(Value::number(14))));
        for question in [Question::UtilizationRates, Question::EncoderStats, Question::BridgeChips] {
            assert_eq!(ask(&own, question), Some(Err(Code::TIMEOUT)), "{question:?}");
        }
        assert_eq!(own.about(Subject::mig(0, 0), Question::Name), Some(Err(Code::TIMEOUT)));

        // A laptop's GPU is woken by whoever asks.
        own.gpus.get_mut(&0).unwrap().sample.health = Health::Asleep { since_ms: 1 };
        assert!(matches!(ask(&own, Question::Name), Some(Ok(_))));
        assert_eq!(ask(&own, Question::UtilizationRates), None);
    }
}
