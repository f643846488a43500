//! What runs where.

use anyhow::anyhow;
use gpumon_workload::{
    Backend, Extent, Gpu, RunError, Workload, catalogue,
    cuda::{Device, Driver},
};

use super::{BackendChoice, BenchArgs};
use crate::{
    exit::{Failure, say},
    suggest::nearest,
};

/// There is no GPU or no driver.
const NO_GPU: u8 = 3;

/// What runs where.
pub(super) struct Plan {
    /// What was named, or everything.
    workloads: Vec<&'static dyn Workload>,
    /// The GPU; `None` where everything runs on the CPU.
    pub(super) gpu: Option<Gpu>,
    backend: BackendChoice,
}

impl Plan {
    pub(super) fn new(args: &BenchArgs) -> Result<Self, Failure> {
        let workloads = named(&args.ids)?;
        check_shape(args, &workloads)?;
        let lacks = |backend| workloads.iter().find(|workload| !workload.about().runs_on(backend));
        let is_named = !args.ids.is_empty();
        if let (BackendChoice::Cpu, true, Some(workload)) = (args.backend, is_named, lacks(Backend::Cpu)) {
            return Err(Failure::usage(RunError::NotThere { id: workload.about().id, backend: Backend::Cpu }));
        }
        let gpu = match args.backend {
            BackendChoice::Cpu => None,
            _ => match open(&args.device)? {
                Ok(gpu) => Some(gpu),
                Err(error) => {
                    let needs_gpu = is_named && lacks(Backend::Cpu).is_some();
                    if args.backend == BackendChoice::Cuda || needs_gpu {
                        return Err(Failure::with_code(error, NO_GPU));
                    }
                    say(&format!("{error}; this runs on the CPU"));
                    None
                }
            },
        };
        Ok(Self { workloads, gpu, backend: args.backend })
    }

    /// What runs where, one place after the other.
    pub(super) fn steps(&self) -> impl Iterator<Item = (&'static dyn Workload, Backend)> {
        let is_meant = |backend| match (backend, self.backend) {
            (Backend::Cuda, _) => self.gpu.is_some(),
            (Backend::Cpu, BackendChoice::Auto) => self.gpu.is_none(),
            (Backend::Cpu, choice) => choice != BackendChoice::Cuda,
        };
        let backends = [Backend::Cuda, Backend::Cpu].into_iter().filter(move |backend| is_meant(*backend));
        let steps = backends.flat_map(|backend| self.workloads.iter().map(move |workload| (*workload, backend)));
        steps.filter(|(workload, backend)| workload.about().runs_on(*backend))
    }
}

/// Each once, in the order in which they were named.
fn named(ids: &[String]) -> Result<Vec<&'static dyn Workload>, Failure> {
    if ids.is_empty() {
        return Ok(catalogue::all().to_vec());
    }
    let mut workloads: Vec<&'static dyn Workload> = Vec::new();
    for id in ids {
        let found = catalogue::find(id).ok_or_else(|| {
            let valid = catalogue::all().iter().map(|workload| workload.about().id);
            let cure =
                nearest(id, valid).map_or("see `gpumon bench list`".to_owned(), |id| format!("did you mean '{id}'?"));
            Failure::usage(anyhow!("unknown workload '{id}': {cure}"))
        })?;
        if !workloads.iter().any(|workload| workload.about().id == found.about().id) {
            workloads.push(found);
        }
    }
    Ok(workloads)
}

/// Type and size that were asked for have to be such as what was named can have.
fn check_shape(args: &BenchArgs, workloads: &[&'static dyn Workload]) -> Result<(), Failure> {
    let abouts = || workloads.iter().map(|workload| workload.about()).filter(|_| !args.ids.is_empty());
    if let Some(dtype) = args.dtype()
        && let Some(about) = abouts().find(|about| !about.dtypes.contains(&dtype))
    {
        return Err(Failure::usage(RunError::NoSuchType { id: about.id, dtype, valid: about.dtypes }));
    }
    match abouts().find(|about| args.size.is_some() && about.extent == Extent::Fixed) {
        Some(about) => Err(Failure::usage(anyhow!("'{}' has no size: leave out --size", about.id))),
        None => Ok(()),
    }
}

/// The GPU of this name; inside, the reason why there is none at all.
fn open(name: &str) -> Result<Result<Gpu, RunError>, Failure> {
    let devices = match Driver::load().and_then(Driver::devices) {
        Ok(devices) => devices,
        Err(error) => return Ok(Err(error.into())),
    };
    let device = find(name, &devices).map_err(|error| Failure::usage(anyhow!(error)))?;
    Ok(Gpu::open(device).map_err(RunError::from))
}

/// By CUDA's index, or by as much of the UUID as tells it from the others.
fn find<'a>(name: &str, devices: &'a [Device]) -> Result<&'a Device, String> {
    let by_index = || devices.iter().find(|device| name.parse() == Ok(device.index));
    let mut by_uuid = devices.iter().filter(|device| {
        let begins = device.uuid.get(..name.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(name));
        begins && name.len() > "GPU-".len()
    });
    if let Some(device) = by_index().or_else(|| by_uuid.next().filter(|_| by_uuid.next().is_none())) {
        return Ok(device);
    }
    let there_are = match devices {
        [_] => "there is only 0".to_owned(),
        devices => format!("there are 0 to {}", devices.len() - 1),
    };
    Err(format!("no GPU '{name}': {there_are}; see `gpumon info`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_once_and_a_slip_is_answered() {
        let ids = |words: &[&str]| {
            let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
            named(&words).map(|found| found.iter().map(|workload| workload.about().id).collect::<Vec<_>>())
        };
        assert_eq!(ids(&["triad", "copy", "triad"]).unwrap(), ["triad", "copy"]);
        assert_eq!(ids(&[]).unwrap().len(), catalogue::all().len());
        assert!(ids(&["traid"]).unwrap_err().message().unwrap().contains("did you mean 'triad'?"));
        assert!(ids(&["frobnicate"]).unwrap_err().message().unwrap().contains("gpumon bench list"));
    }
}
