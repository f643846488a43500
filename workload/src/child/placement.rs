//! The placement of a job: on GPUs that no other run uses and on which no other user computes, or
//! on the CPU.

use std::{
    env,
    fs::File,
    path::{Path, PathBuf},
    sync::Arc,
};

use gpumon_probe::{
    model::{Gpu as ListedGpu, GpuName, Vendor, normalize_bus_id},
    vendor::ReadDepth,
};

use super::{DriverReader, JobFailure, Reporter, readings::GpuReadings};
use crate::{
    cuda::{CudaError, Device, Driver},
    gpu::Gpu,
    info::Cpu,
    lock_file::{self, FOLDER_VARIABLE, LOCK_FOLDERS, LockResult, write_lock_text},
    protocol::{BackendChoice, DeviceName, Report, Topic, Where, report::EXIT_NO_GPU},
};

/// The name of the lock files for runs. `gpumon wait` uses another name: it starts a command while
/// it holds its own lock, and this command may be a run.
const LOCK_NAME: &str = "gpumon-run";

pub(super) struct Placement {
    /// The reserved GPUs, in CUDA's order.
    pub(super) gpus: Vec<ReservedGpu>,
    pub(super) runs_on_cpu: bool,
    pub(super) cpu: Cpu,
    pub(super) readings: GpuReadings,
    pub(super) note: Option<String>,
    /// The locks of the additional GPUs that were reserved by `reserve_neighbor_gpus`.
    beside: Vec<File>,
}

/// A GPU that is reserved for this run.
pub(super) struct ReservedGpu {
    pub(super) device: Device,
    /// Whether another user is computing on this GPU.
    pub(super) is_shared: bool,
    /// Whether another user is computing on one of the additional GPUs.
    has_shared_neighbors: bool,
    /// The lock file. The lock is released when the file is closed.
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
    /// Reserves the GPUs that a job requests. `needs_gpu` must be set if the job cannot run on a
    /// CPU. If a job names a GPU, it runs on that GPU or fails.
    pub(super) fn reserve_gpus(
        place: &Where,
        needs_gpu: bool,
        driver: &Arc<dyn DriverReader>,
    ) -> Result<Self, JobFailure> {
        let mut placement = Self {
            gpus: Vec::new(),
            runs_on_cpu: false,
            cpu: Cpu::read(),
            readings: GpuReadings::empty(),
            note: None,
            beside: Vec::new(),
        };
        let needs_gpu = needs_gpu || place.backend == BackendChoice::Cuda || place.device.is_some();
        let devices = match place.backend {
            BackendChoice::Cpu => Vec::new(),
            _ => match Driver::load().and_then(Driver::list_devices) {
                Ok(devices) => {
                    choose_devices(place.device.as_deref().unwrap_or("0"), devices, driver)?
                }
                Err(error) if needs_gpu => {
                    if let Some(name) = &place.device {
                        find_gpu(name, driver)?;
                    }
                    return Err(JobFailure::no_gpu_error(error));
                }
                Err(error) => {
                    placement.note = Some(format!("{error}; using the CPU instead"));
                    Vec::new()
                }
            },
        };
        placement.runs_on_cpu = match place.backend {
            BackendChoice::Cuda => false,
            BackendChoice::Auto => devices.is_empty(),
            BackendChoice::Cpu | BackendChoice::Both => true,
        };
        let folder = find_lock_folder()?;
        let locks = devices
            .iter()
            .map(|device| lock_device(&folder, device))
            .collect::<Result<Vec<_>, _>>()?;
        // Reading starts before this process itself uses the GPUs, so that this process can be
        // distinguished from others.
        placement.readings = start_readings(driver, &devices);
        for (device, lock) in devices.into_iter().zip(locks) {
            let is_shared = detect_other_users(&placement.readings, &device, place.share)?;
            placement.gpus.push(ReservedGpu {
                device,
                is_shared,
                has_shared_neighbors: false,
                _lock: lock,
            });
        }
        Ok(placement)
    }

    /// Reserves additional GPUs for workloads that need several. These GPUs follow the first
    /// reserved GPU in CUDA's order, in which the last GPU is followed by GPU 0. Returns the total
    /// number of reserved GPUs, which is at most `gpus`.
    pub(super) fn reserve_neighbor_gpus(
        &mut self,
        gpus: usize,
        place: &Where,
        driver: &Arc<dyn DriverReader>,
    ) -> Result<usize, JobFailure> {
        let Some(first) = self.gpus.first() else {
            return Ok(0);
        };
        let devices = first
            .device
            .driver()
            .list_devices()
            .map_err(JobFailure::no_gpu_error)?;
        let (before, behind) = devices.split_at(first.device.index as usize);
        let behind: Vec<_> = behind
            .iter()
            .skip(1)
            .chain(before)
            .take(gpus - 1)
            .cloned()
            .collect();
        let readings = start_readings(driver, &behind);
        let folder = find_lock_folder()?;
        let mut has_shared_neighbors = false;
        for device in behind
            .iter()
            .filter(|device| self.gpus.iter().all(|held| held.device.uuid != device.uuid))
        {
            has_shared_neighbors |= detect_other_users(&readings, device, place.share)?;
            self.beside.push(lock_device(&folder, device)?);
        }
        self.gpus
            .iter_mut()
            .for_each(|held| held.has_shared_neighbors |= has_shared_neighbors);
        Ok(1 + behind.len())
    }

    pub(super) fn device_names(&self) -> Vec<DeviceName> {
        let gpus = self.gpus.iter().map(|held| (&held.device).into());
        gpus.chain(self.runs_on_cpu.then(|| (&self.cpu).into()))
            .collect()
    }

    /// Reports that the job begins, and why it runs on these devices.
    pub(super) fn report_start(&self, title: String, steps: usize, report: &mut Reporter<'_>) {
        report(Report::Begun {
            title,
            devices: self.device_names(),
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

fn start_readings(driver: &Arc<dyn DriverReader>, devices: &[Device]) -> GpuReadings {
    GpuReadings::start(
        driver,
        devices.iter().map(|device| device.uuid.clone()).collect(),
        ReadDepth::Metered,
    )
}

/// Returns `true` if another user is computing on a device. Unless the device may be shared, this
/// is an error.
fn detect_other_users(
    readings: &GpuReadings,
    device: &Device,
    may_share: bool,
) -> Result<bool, JobFailure> {
    let others = readings.processes_of_other_users(&device.uuid);
    if others.is_empty() || may_share {
        return Ok(!others.is_empty());
    }
    let verb = if others.has_listed_processes() {
        "is"
    } else {
        "may be"
    };
    Err(JobFailure::refusal(format!(
        "GPU {} {verb} in use by others: {others}; wait for a free GPU (`gpumon wait`), choose \
         another GPU with --device, or, if the command supports --share, share the GPU and use at \
         most a quarter of its free memory",
        device.index
    )))
}

fn find_lock_folder() -> Result<PathBuf, JobFailure> {
    let named = env::var_os(FOLDER_VARIABLE)
        .filter(|folder| !folder.is_empty())
        .map(PathBuf::from);
    let why = || {
        format!(
            "no folder for lock files: neither {} can be written to by all users; set \
             {FOLDER_VARIABLE} to a folder that all users can write to",
            LOCK_FOLDERS.join(" nor ")
        )
    };
    named
        .or_else(lock_file::find_shared_lock_folder)
        .ok_or_else(|| JobFailure::general_error(why()))
}

/// Locks a device, so that no other run affects its measurements.
fn lock_device(folder: &Path, device: &Device) -> Result<File, JobFailure> {
    let path = lock_file::lock_path(folder, LOCK_NAME, &device.uuid);
    let cannot = |error: std::io::Error| {
        let path = path.display();
        JobFailure::general_error(format!(
            "cannot lock {path}: remove the file, or set {FOLDER_VARIABLE} to another folder: \
             {error}"
        ))
    };
    match lock_file::try_lock(&path).map_err(cannot)? {
        LockResult::Mine(mut file, _) => {
            write_lock_text(&mut file, &std::process::id().to_string()).map_err(cannot)?;
            Ok(file)
        }
        LockResult::Theirs(note) => {
            let owner = note
                .trim()
                .parse::<u32>()
                .map_or("another process".to_owned(), |pid| format!("process {pid}"));
            Err(JobFailure::refusal(format!(
                "{owner} already runs a workload on GPU {}: wait until it ends, or choose another \
                 GPU with --device",
                device.index
            )))
        }
    }
}

/// Returns the device with this name, or all devices if the name is `all`. The name can be CUDA's
/// index, or any other name of a GPU.
fn choose_devices(
    name: &str,
    devices: Vec<Device>,
    driver: &Arc<dyn DriverReader>,
) -> Result<Vec<Device>, JobFailure> {
    if name == "all" {
        return Ok(devices);
    }
    if let Some(device) = find_cuda_device(name, &devices) {
        return Ok(vec![device.clone()]);
    }
    let available = match &devices[..] {
        [_] => "only 0 is available".to_owned(),
        devices => format!("0 to {} are available", devices.len() - 1),
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
                "GPU '{name}' is not visible to CUDA: check CUDA_VISIBLE_DEVICES, or see `gpumon \
                 info`"
            ),
            EXIT_NO_GPU,
        )),
        (None, None) => Err(JobFailure::new(
            format!("there is no GPU '{name}': {available}; see `gpumon info`"),
            EXIT_NO_GPU,
        )),
    }
}

/// Finds a device by a name that CUDA knows: its index, the beginning of its UUID, or its PCI bus
/// ID. Returns `None` if several devices match.
fn find_cuda_device<'a>(name: &str, devices: &'a [Device]) -> Option<&'a Device> {
    let bus_id = |device: &Device| normalize_bus_id(&device.pci_bus_id);
    let has_name = |device: &&Device| match name.parse() {
        Ok(GpuName::Index(index)) => device.index == index,
        Ok(GpuName::BusId(id)) => bus_id(device) == Some(id),
        Ok(GpuName::OfVendor(..)) => false,
        // UUIDs are compared as text, because those of MIG devices have another form.
        Ok(GpuName::Uuid(_)) | Err(_) => device
            .uuid
            .get(..name.len())
            .is_some_and(|begin| begin.eq_ignore_ascii_case(name) && name.len() > "GPU-".len()),
    };
    let mut found = devices.iter().filter(has_name);
    found.next().filter(|_| found.next().is_none())
}

/// Finds a GPU by a name that CUDA does not know. Returns `None` if there is no such GPU.
///
/// # Errors
/// Returns an error if the GPU is not an NVIDIA GPU.
fn find_gpu(name: &str, driver: &Arc<dyn DriverReader>) -> Result<Option<ListedGpu>, JobFailure> {
    let refuse = |what: String| {
        let why = "workloads run only on NVIDIA GPUs and on the CPU (--backend cpu)";
        JobFailure::new(format!("'{name}' is {what}: {why}"), EXIT_NO_GPU)
    };
    let known = match name.parse() {
        Ok(GpuName::OfVendor(vendor, _)) if vendor != Vendor::Nvidia => {
            return Err(refuse(format!("a GPU of {}", vendor.name())));
        }
        // Indices are not looked up here, because CUDA numbers the GPUs in its own order.
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
