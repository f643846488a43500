//! The placement of a job: GPUs that no other run uses and that no other user computes on, or the
//! CPU.

use std::{
    env,
    fs::File,
    path::{Path, PathBuf},
    sync::Arc,
};

use gpumon_probe::{
    model::{Gpu as ListedGpu, GpuName, Vendor, normal_bus_id},
    vendor::ReadDepth,
};

use super::{JobFailure, ReadDriver, Reporter, readings::Readings};
use crate::{
    cuda::{CudaError, Device, Driver},
    gpu::Gpu,
    info::Cpu,
    lock_file::{self, FOLDERS, Taken, VARIABLE, write_note},
    protocol::{BackendChoice, DeviceName, Report, Topic, Where, exit_code::NO_GPU},
};

/// The name of these locks. `gpumon wait` uses another name, because the command that it starts may
/// be a run.
const LOCK: &str = "gpumon-run";

pub(super) struct Placement {
    /// GPUs, in CUDA's order.
    pub(super) gpus: Vec<ReservedGpu>,
    pub(super) runs_on_cpu: bool,
    pub(super) cpu: Cpu,
    pub(super) readings: Readings,
    pub(super) note: Option<String>,
    /// The locks of additional GPUs that work together with these.
    beside: Vec<File>,
}

/// A GPU that is reserved for this run.
pub(super) struct ReservedGpu {
    pub(super) device: Device,
    /// Whether another user computes on the GPU.
    pub(super) is_shared: bool,
    /// Whether another user computes on a GPU that works together with this one.
    has_shared_neighbors: bool,
    /// The lock, which is released when the file is closed.
    _lock: File,
}

impl ReservedGpu {
    pub(super) fn open(&self) -> Result<Gpu, CudaError> {
        let mut gpu = Gpu::open(&self.device)?;
        gpu.is_shared = self.is_shared;
        gpu.has_shared_neighbors = self.has_shared_neighbors;
        Ok(gpu)
    }
}

impl Placement {
    /// Reserves the GPUs that a job requests. `needs_gpu` is whether it cannot run on a CPU. A job
    /// that names a GPU runs there or fails.
    pub(super) fn take(
        place: &Where,
        needs_gpu: bool,
        driver: &Arc<dyn ReadDriver>,
    ) -> Result<Self, JobFailure> {
        let mut placement = Self {
            gpus: Vec::new(),
            runs_on_cpu: false,
            cpu: Cpu::this(),
            readings: Readings::none(),
            note: None,
            beside: Vec::new(),
        };
        let needs_gpu = needs_gpu || place.backend == BackendChoice::Cuda || place.device.is_some();
        let devices = match place.backend {
            BackendChoice::Cpu => Vec::new(),
            _ => match Driver::load().and_then(Driver::devices) {
                Ok(devices) => {
                    choose_devices(place.device.as_deref().unwrap_or("0"), devices, driver)?
                }
                Err(error) if needs_gpu => {
                    if let Some(name) = &place.device {
                        find_gpu(name, driver)?;
                    }
                    return Err(JobFailure::no_gpu(error));
                }
                Err(error) => {
                    placement.note = Some(format!("{error}; this runs on the CPU"));
                    Vec::new()
                }
            },
        };
        placement.runs_on_cpu = match place.backend {
            BackendChoice::Cuda => false,
            BackendChoice::Auto => devices.is_empty(),
            BackendChoice::Cpu | BackendChoice::Both => true,
        };
        let folder = lock_folder()?;
        let locks = devices
            .iter()
            .map(|device| lock(&folder, device))
            .collect::<Result<Vec<_>, _>>()?;
        // Reading starts before this process itself appears on the GPUs.
        placement.readings = readings_of(driver, &devices);
        for (device, lock) in devices.into_iter().zip(locks) {
            let is_shared = check_others(&placement.readings, &device, place.share)?;
            placement.gpus.push(ReservedGpu {
                device,
                is_shared,
                has_shared_neighbors: false,
                _lock: lock,
            });
        }
        Ok(placement)
    }

    /// Reserves additional GPUs for workloads that need several: those that follow the first one,
    /// where GPU 0 follows the last. The total is at most `gpus`. Returns the number of GPUs after
    /// that.
    pub(super) fn add_neighbors(
        &mut self,
        gpus: usize,
        place: &Where,
        driver: &Arc<dyn ReadDriver>,
    ) -> Result<usize, JobFailure> {
        let Some(first) = self.gpus.first() else {
            return Ok(0);
        };
        let devices = first
            .device
            .driver()
            .devices()
            .map_err(JobFailure::no_gpu)?;
        let (before, behind) = devices.split_at(first.device.index as usize);
        let behind: Vec<_> = behind
            .iter()
            .skip(1)
            .chain(before)
            .take(gpus - 1)
            .cloned()
            .collect();
        let readings = readings_of(driver, &behind);
        let folder = lock_folder()?;
        let mut has_shared_neighbors = false;
        for device in behind
            .iter()
            .filter(|device| self.gpus.iter().all(|held| held.device.uuid != device.uuid))
        {
            has_shared_neighbors |= check_others(&readings, device, place.share)?;
            self.beside.push(lock(&folder, device)?);
        }
        self.gpus
            .iter_mut()
            .for_each(|held| held.has_shared_neighbors |= has_shared_neighbors);
        Ok(1 + behind.len())
    }

    pub(super) fn names(&self) -> Vec<DeviceName> {
        let gpus = self.gpus.iter().map(|held| (&held.device).into());
        gpus.chain(self.runs_on_cpu.then(|| (&self.cpu).into()))
            .collect()
    }

    /// Reports that the work begins, and why it runs on these devices.
    pub(super) fn begin(&self, title: String, steps: usize, report: &mut Reporter<'_>) {
        report(Report::Begun {
            title,
            devices: self.names(),
            steps,
        });
        if let Some(note) = &self.note {
            report(Report::Said {
                topic: Topic::Step,
                text: note.clone(),
            });
        }
    }
}

fn readings_of(driver: &Arc<dyn ReadDriver>, devices: &[Device]) -> Readings {
    Readings::start(
        driver,
        devices.iter().map(|device| device.uuid.clone()).collect(),
        ReadDepth::Metered,
    )
}

/// Returns whether another user computes on a device. This is an error unless the device may be
/// shared.
fn check_others(readings: &Readings, device: &Device, may_share: bool) -> Result<bool, JobFailure> {
    let others = readings.foreign_processes(&device.uuid);
    if others.is_empty() || may_share {
        return Ok(!others.is_empty());
    }
    let verb = if others.is_anybody_listed() {
        "is"
    } else {
        "may be"
    };
    Err(JobFailure::refused(format!(
        "GPU {} {verb} in use by others: {others}; wait for a free one (`gpumon wait`), choose another with --device, or, \
         where the command has --share, run beside them with a quarter of the free memory at most",
        device.index
    )))
}

fn lock_folder() -> Result<PathBuf, JobFailure> {
    let named = env::var_os(VARIABLE)
        .filter(|folder| !folder.is_empty())
        .map(PathBuf::from);
    let why = || {
        format!(
            "no folder for locks: neither {} is open to all users; name one in {VARIABLE}",
            FOLDERS.join(" nor ")
        )
    };
    named
        .or_else(lock_file::shared_folder)
        .ok_or_else(|| JobFailure::failed(why()))
}

/// Locks a device, so that two runs do not affect each other's measurements.
fn lock(folder: &Path, device: &Device) -> Result<File, JobFailure> {
    let path = lock_file::path(folder, LOCK, &device.uuid);
    let cannot = |error: std::io::Error| {
        let path = path.display();
        JobFailure::failed(format!(
            "cannot lock {path}: remove it, or name another folder in {VARIABLE}: {error}"
        ))
    };
    match lock_file::take(&path).map_err(cannot)? {
        Taken::Mine(mut file, _) => {
            write_note(&mut file, &std::process::id().to_string()).map_err(cannot)?;
            Ok(file)
        }
        Taken::Theirs(note) => {
            let who = note
                .trim()
                .parse::<u32>()
                .map_or("another process".to_owned(), |pid| format!("process {pid}"));
            Err(JobFailure::refused(format!(
                "{who} already runs a workload on GPU {}: wait for its end, or choose another with --device",
                device.index
            )))
        }
    }
}

/// Returns all devices, or the one with this name: CUDA's index, or another name of a GPU.
fn choose_devices(
    name: &str,
    devices: Vec<Device>,
    driver: &Arc<dyn ReadDriver>,
) -> Result<Vec<Device>, JobFailure> {
    if name == "all" {
        return Ok(devices);
    }
    if let Some(device) = find_device(name, &devices) {
        return Ok(vec![device.clone()]);
    }
    let there_are = match &devices[..] {
        [_] => "there is only 0".to_owned(),
        devices => format!("there are 0 to {}", devices.len() - 1),
    };
    let other_name = find_gpu(name, driver)?;
    let is_it = |device: &&Device| {
        other_name
            .as_ref()
            .is_some_and(|gpu| gpu.uuid.as_ref() == Some(&device.uuid))
    };
    match (devices.iter().find(is_it), &other_name) {
        (Some(device), _) => Ok(vec![device.clone()]),
        (None, Some(_)) => Err(JobFailure::new(
            format!(
                "CUDA does not show GPU '{name}': check CUDA_VISIBLE_DEVICES, or see `gpumon info`"
            ),
            NO_GPU,
        )),
        (None, None) => Err(JobFailure::new(
            format!("no GPU '{name}': {there_are}; see `gpumon info`"),
            NO_GPU,
        )),
    }
}

/// Finds a device by a name that CUDA knows: its index, the beginning of its UUID, or its PCI bus
/// ID.
fn find_device<'a>(name: &str, devices: &'a [Device]) -> Option<&'a Device> {
    let bus_id = |device: &Device| normal_bus_id(&device.pci_bus_id);
    let has_name = |device: &&Device| match name.parse() {
        Ok(GpuName::Index(index)) => device.index == index,
        Ok(GpuName::BusId(id)) => bus_id(device) == Some(id),
        Ok(GpuName::OfVendor(..)) => false,
        // A MIG device has another kind of UUID.
        Ok(GpuName::Uuid(_)) | Err(_) => device
            .uuid
            .get(..name.len())
            .is_some_and(|begin| begin.eq_ignore_ascii_case(name) && name.len() > "GPU-".len()),
    };
    let mut found = devices.iter().filter(has_name);
    found.next().filter(|_| found.next().is_none())
}

/// Finds a GPU by a name that CUDA does not know; returns `None` if there is none.
///
/// # Errors
/// Returns an error if the GPU is not one of NVIDIA.
fn find_gpu(name: &str, driver: &Arc<dyn ReadDriver>) -> Result<Option<ListedGpu>, JobFailure> {
    let refuse = |what: String| {
        let why = "workloads run on NVIDIA's GPUs and on the CPU (--backend cpu)";
        JobFailure::new(format!("'{name}' is {what}: {why}"), NO_GPU)
    };
    let known = match name.parse() {
        Ok(GpuName::OfVendor(vendor, _)) if vendor != Vendor::Nvidia => {
            return Err(refuse(format!("a GPU of {}", vendor.name())));
        }
        // CUDA has its own order of indices.
        Ok(GpuName::Index(_)) | Err(_) => None,
        Ok(name) => driver
            .list_gpus()
            .into_iter()
            .find(|gpu| name.is_name_of(gpu)),
    };
    match known {
        Some(gpu) if gpu.vendor != Vendor::Nvidia => {
            let model = gpu.name.value().map_or(gpu.vendor.name(), String::as_str);
            Err(refuse(model.to_owned()))
        }
        known => Ok(known),
    }
}
