//! The plan of a benchmark, which contains the requested workloads. It can only be created if these
//! workloads support the requested parameters.

use super::{JobFailure, select_items};
use crate::{
    catalogue::{self, matmul},
    error::RunError,
    protocol::{Amount, Backend, BackendChoice, BenchJob, Dtype, Extent, Shape},
    workload::Workload,
};

/// The workloads of a benchmark: the named workloads, or all of them.
pub(super) struct BenchPlan {
    /// The steps of an exact list of workloads, each with the UUID of its GPU.
    works: Vec<(String, Step)>,
    pub(super) workloads: Vec<&'static Workload>,
    /// Whether any of the named workloads runs only on a GPU.
    pub(super) needs_gpu: bool,
    dtype: Option<Dtype>,
    size: Option<Amount>,
    pub(super) is_named: bool,
}

/// A workload with one of its types, and a size.
#[derive(Clone, Copy)]
pub(super) struct Step {
    pub(super) workload: &'static Workload,
    /// The type of the elements, or `None` for the workload's usual type.
    pub(super) dtype: Option<Dtype>,
    /// The size, or `None` for the workload's usual size.
    pub(super) amount: Option<Amount>,
    /// Whether no type was requested and the workload runs several types by default, with one step
    /// for each. Types that the GPU does not support are skipped.
    pub(super) is_one_of_all: bool,
}

/// Returns the steps of a workload. The requested type, `asked`, is ignored if the workload does
/// not support it.
fn steps_of_workload(
    workload: &'static Workload,
    backend: Backend,
    asked: Option<Dtype>,
    amount: Option<Amount>,
) -> Vec<Step> {
    let about = &workload.about;
    let step = |dtype, is_one_of_all| Step {
        workload,
        dtype,
        amount,
        is_one_of_all,
    };
    match asked {
        Some(dtype) => vec![step(
            Some(dtype).filter(|dtype| about.dtypes.contains(dtype)),
            false,
        )],
        None => match workload.program.default_types(backend) {
            Some(types) => types.iter().map(|dtype| step(Some(*dtype), true)).collect(),
            None => vec![step(None, false)],
        },
    }
}

impl BenchPlan {
    pub(super) fn new(job: &BenchJob) -> Result<Self, JobFailure> {
        if !job.works.is_empty() {
            return Self::from_listed_work(job);
        }
        let mut workloads = find_workloads(&job.ids)?;
        check_type_and_size(job, &workloads)?;
        if let Some(shape) = job.shape {
            workloads = vec![workload_with_shape(job, shape, &workloads)?];
        }
        let is_named = !job.ids.is_empty() || job.pairs;
        if job.pairs && job.ids.is_empty() {
            workloads.retain(|workload| workload.program.gpu_count() > 1);
        }
        let alone = workloads
            .iter()
            .find(|workload| workload.program.gpu_count() < 2);
        if let (true, Some(workload)) = (job.pairs, alone) {
            let id = workload.about.id;
            return Err(JobFailure::usage_error(format!(
                "'{id}' runs on one GPU and not between two: leave out --pairs"
            )));
        }
        let gpu_only = workloads
            .iter()
            .find(|workload| !workload.about.runs_on(Backend::Cpu));
        if let (BackendChoice::Cpu, true, Some(workload)) = (job.place.backend, is_named, gpu_only)
        {
            return Err(JobFailure::usage_error(RunError::NotThere {
                id: workload.about.id,
                backend: Backend::Cpu,
            }));
        }
        let needs_gpu = is_named && gpu_only.is_some();
        Ok(Self {
            works: Vec::new(),
            workloads,
            needs_gpu,
            dtype: job.dtype,
            size: job.size,
            is_named,
        })
    }

    fn from_listed_work(job: &BenchJob) -> Result<Self, JobFailure> {
        let is_asked_otherwise = !job.ids.is_empty()
            || job.dtype.is_some()
            || job.size.is_some()
            || job.shape.is_some()
            || job.pairs;
        if is_asked_otherwise || job.place.backend != BackendChoice::Cuda {
            return Err(JobFailure::usage_error(
                "`works` specifies workloads, types and sizes itself, and requires the backend \
                 cuda: leave out `ids`, `dtype`, `size`, `shape` and `pairs`, and set \
                 `backend` in `where` to `cuda`",
            ));
        }
        let ids: Vec<_> = job.works.iter().map(|work| work.id.clone()).collect();
        let workloads = find_workloads(&ids)?;
        if let Some(workload) = workloads
            .iter()
            .find(|workload| workload.program.gpu_count() > 1)
        {
            let id = workload.about.id;
            return Err(JobFailure::usage_error(format!(
                "'{id}' runs between GPUs: choose workloads that run on one GPU"
            )));
        }
        let works = job.works.iter().filter_map(|work| {
            let workload = *workloads
                .iter()
                .find(|workload| workload.about.id == work.id)?;
            let amount = Amount::from_size(work.n, workload.about.extent);
            Some((
                work.gpu.clone(),
                Step {
                    workload,
                    dtype: Some(work.dtype),
                    amount,
                    is_one_of_all: false,
                },
            ))
        });
        let works = works.collect();
        Ok(Self {
            works,
            workloads,
            needs_gpu: true,
            dtype: None,
            size: None,
            is_named: true,
        })
    }

    /// Returns the steps for the GPU with the UUID `gpu`, or for the CPU if `gpu` is `None`.
    /// Workloads that need more than `gpus` GPUs are left out, unless they were named.
    pub(super) fn steps_on(&self, gpu: Option<&str>, gpus: usize) -> impl Iterator<Item = Step> {
        let backend = if gpu.is_some() {
            Backend::Cuda
        } else {
            Backend::Cpu
        };
        let works = self
            .works
            .iter()
            .filter(move |(uuid, _)| Some(uuid.as_str()) == gpu)
            .map(|(_, step)| *step);
        let is_named = self.is_named;
        let there = self.workloads.iter().copied().filter(move |workload| {
            let has_enough =
                is_named || backend == Backend::Cpu || workload.program.gpu_count() <= gpus;
            self.works.is_empty() && workload.about.runs_on(backend) && has_enough
        });
        works.chain(
            there.flat_map(move |workload| {
                steps_of_workload(workload, backend, self.dtype, self.size)
            }),
        )
    }

    /// Returns the largest number of GPUs that any workload needs.
    pub(super) fn max_gpus(&self) -> usize {
        self.workloads
            .iter()
            .map(|workload| workload.program.gpu_count())
            .max()
            .unwrap_or(1)
    }

    pub(super) fn title(&self, job: &BenchJob) -> String {
        if !self.is_named {
            return "every workload".to_owned();
        }
        let names = self
            .workloads
            .iter()
            .map(|workload| workload.about.id)
            .collect::<Vec<_>>()
            .join(", ");
        if job.pairs {
            format!("{names} between all GPUs")
        } else {
            names
        }
    }
}

/// Returns the named workloads, or all workloads if none is named.
fn find_workloads(ids: &[String]) -> Result<Vec<&'static Workload>, JobFailure> {
    let id = |workload: &Workload| workload.about.id;
    select_items(
        ids,
        catalogue::WORKLOADS,
        id,
        "workload",
        "see `gpumon bench list`",
    )
}

/// Checks that the named workloads support the requested type and size.
fn check_type_and_size(job: &BenchJob, workloads: &[&'static Workload]) -> Result<(), JobFailure> {
    let abouts = || {
        workloads
            .iter()
            .map(|workload| &workload.about)
            .filter(|_| !job.ids.is_empty())
    };
    if let Some(dtype) = job.dtype
        && let Some(about) = abouts().find(|about| !about.dtypes.contains(&dtype))
    {
        return Err(JobFailure::usage_error(RunError::NoSuchType {
            id: about.id,
            dtype,
            valid: about.dtypes,
        }));
    }
    match abouts()
        .find(|about| job.size.is_some() && matches!(about.extent, Extent::Fixed | Extent::Times))
    {
        Some(about) => Err(JobFailure::usage_error(format!(
            "'{}' has no adjustable size: leave out --size",
            about.id
        ))),
        None => Ok(()),
    }
}

/// Returns the workload for a matrix product of the requested shape. Only `matmul` can have a
/// shape.
fn workload_with_shape(
    job: &BenchJob,
    shape: Shape,
    workloads: &[&'static Workload],
) -> Result<&'static Workload, JobFailure> {
    let ids: Vec<_> = workloads.iter().map(|workload| workload.about.id).collect();
    if ids != [matmul::ID] {
        return Err(JobFailure::usage_error(
            "--shape is available only for matmul: run `gpumon bench matmul --shape MxNxK`"
                .to_owned(),
        ));
    }
    if !shape.has_valid_dimensions() || job.size.is_some() {
        return Err(JobFailure::usage_error(
            "--shape takes sides of 1 to 2147483647, and cannot be combined with --size".to_owned(),
        ));
    }
    if job.place.backend == BackendChoice::Both {
        return Err(JobFailure::usage_error(
            "matmul --shape runs only on a GPU: leave out --backend".to_owned(),
        ));
    }
    Ok(matmul::leak_workload_for_shape(shape))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{BenchWork, Where};

    #[test]
    fn workload_runs_in_every_type_by_default() {
        let count = |id, backend, asked| {
            steps_of_workload(catalogue::find_workload(id).unwrap(), backend, asked, None).len()
        };
        let matmul = catalogue::find_workload("matmul").unwrap();
        assert_eq!(
            count("matmul", Backend::Cuda, None),
            matmul.about.dtypes.len()
        );
        assert_eq!(
            count("matmul", Backend::Cpu, None),
            matmul.types_on(Backend::Cpu).len()
        );
        assert_eq!(
            [
                count("matmul", Backend::Cuda, Some(Dtype::Bf16)),
                count("copy", Backend::Cuda, None)
            ],
            [1, 1]
        );
    }

    #[test]
    fn only_listed_work_is_run() {
        let work = |id: &str, dtype, n, gpu: &str| BenchWork {
            id: id.to_owned(),
            dtype,
            n,
            gpu: gpu.to_owned(),
        };
        let works = vec![
            work("copy", Dtype::Fp64, 7, "GPU-a"),
            work("matmul", Dtype::Bf16, 64, "GPU-b"),
        ];
        let place = Where {
            backend: BackendChoice::Cuda,
            ..Where::default()
        };
        let job = BenchJob {
            works,
            place,
            ..BenchJob::default()
        };
        let plan = BenchPlan::new(&job).unwrap();
        let on = |gpu| {
            plan.steps_on(gpu, 2)
                .map(|step| (step.workload.about.id, step.dtype, step.amount))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            on(Some("GPU-a")),
            [("copy", Some(Dtype::Fp64), Some(Amount::Count(7)))]
        );
        assert_eq!(
            on(Some("GPU-b")),
            [("matmul", Some(Dtype::Bf16), Some(Amount::Count(64)))]
        );
        assert_eq!((on(Some("GPU-c")).len(), on(None).len()), (0, 0));
        let refused = |job: &BenchJob| {
            BenchPlan::new(job)
                .err()
                .map(|error| error.message)
                .unwrap_or_default()
        };
        for other in [
            BenchJob {
                ids: vec!["copy".to_owned()],
                ..job.clone()
            },
            BenchJob {
                size: Some(Amount::Count(5)),
                ..job.clone()
            },
            BenchJob {
                place: Where::default(),
                ..job.clone()
            },
        ] {
            assert!(
                refused(&other).contains("leave out `ids`, `dtype`, `size`, `shape` and `pairs`"),
                "{other:?}"
            );
        }
        let between = BenchJob {
            works: vec![work("peer", Dtype::Fp32, 7, "GPU-a")],
            ..job
        };
        assert!(refused(&between).contains("'peer' runs between GPUs"));
    }

    #[test]
    fn repeated_names_count_once_and_typos_get_suggestion() {
        let ids = |words: &[&str]| {
            let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
            find_workloads(&words).map(|found| {
                found
                    .iter()
                    .map(|workload| workload.about.id)
                    .collect::<Vec<_>>()
            })
        };
        assert_eq!(ids(&["triad", "copy", "triad"]).unwrap(), ["triad", "copy"]);
        assert_eq!(ids(&[]).unwrap().len(), catalogue::WORKLOADS.len());
        assert!(
            ids(&["traid"])
                .unwrap_err()
                .message
                .contains("did you mean 'triad'?")
        );
        assert!(
            ids(&["frobnicate"])
                .unwrap_err()
                .message
                .contains("gpumon bench list")
        );
    }
}
