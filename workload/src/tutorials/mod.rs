//! Tutorial benchmarks: small programs from tutorials in all their variants, with the times of
//! other frameworks for comparison.
//!
//! - A [`Case`] is one program. [`cases`] contains the table of all cases.
//! - [`programs`] contains the programs that are not workloads of the catalog.

mod cases;
mod programs;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::{
    bench::{self, ExecutionPlace, WorkloadRequest},
    catalogue,
    error::RunError,
    frameworks::Frameworks,
    gpu::Gpu,
    info::Cpu,
    measure::{MeasureLimits, MeasureProgress},
    protocol::{
        Amount, Backend, Dtype, Engine, FrameworkTime, Phase, Report, TutorialReport,
        VariantOutcome,
    },
};

pub use self::cases::CASES;

pub(crate) struct TutorialPlaces<'a> {
    /// The GPU for variants that need one. If this is `None`, these variants are skipped.
    pub(crate) gpu: Option<&'a Gpu>,
    pub(crate) cpu: &'a Cpu,
    /// The backend whose variants are run, or `None` for both backends.
    pub(crate) only: Option<Backend>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct RunOptions {
    pub(crate) limits: MeasureLimits,
    /// Whether small sizes are used. The resulting times are not compared with those of other
    /// frameworks.
    pub(crate) quick: bool,
}

/// Returns the variants of these cases that run on the selected backend, in order.
pub(crate) fn list_variants_on_backend<'a>(
    cases: &'a [&'static Case],
    only: Option<Backend>,
) -> impl Iterator<Item = (&'static Case, &'static Variant)> + 'a {
    let all = cases
        .iter()
        .flat_map(|case| case.variants.iter().map(move |variant| (*case, variant)));
    all.filter(move |(_, variant)| only.is_none_or(|backend| backend == variant.backend))
}

/// Runs cases, and reports the result of each variant immediately. If `interrupted` is set, no
/// further variants run.
pub(crate) fn run_cases(
    cases: &[&'static Case],
    places: &TutorialPlaces<'_>,
    how: RunOptions,
    mut frameworks: Option<&mut Frameworks<'_>>,
    report: &mut dyn FnMut(Report),
    interrupted: &AtomicBool,
) -> Result<(), RunError> {
    for (step, (case, variant)) in list_variants_on_backend(cases, places.only).enumerate() {
        if interrupted.load(Relaxed) {
            break;
        }
        let id = format!("{} {}", case.id, variant.name);
        let mut tell = |now: MeasureProgress| report(now.into_report(step, &id, variant.backend));
        let (found, lost) = match run_variant(variant, places, how, &mut tell, interrupted) {
            Ok(found) => (found, None),
            Err(error) => {
                let refused = matches!(error, RunError::TooLarge { .. });
                (
                    VariantOutcome::Failed {
                        error: error.to_string(),
                        refused,
                    },
                    Some(error),
                )
            }
        };
        let beside = match (&mut frameworks, &found) {
            (Some(frameworks), VariantOutcome::Measured { outcome }) if !outcome.partial => {
                let mut tell = |name: &str| {
                    let id = format!("{id} in {name}");
                    report(MeasureProgress::Phase(Phase::Measuring).into_report(
                        step,
                        &id,
                        variant.backend,
                    ));
                };
                frameworks.run_frameworks(outcome, places.gpu, &how.limits, &mut tell)
            }
            _ => Vec::new(),
        };
        let share_of_framework = time_relative_to_framework(&found, variant, how);
        let tutorial = Box::new(TutorialReport {
            case: case.id.into(),
            title: case.title.into(),
            teaches: case.teaches.into(),
            variant: variant.name.into(),
            backend: variant.backend,
            found,
            framework: variant
                .framework
                .map(|FrameworkMeasurement { name, us, on }| FrameworkTime {
                    name: name.into(),
                    us,
                    on: on.text().into(),
                    measured: MEASUREMENT_MONTH.into(),
                    same_device: on.is_available(places),
                }),
            share_of_framework,
            beside,
        });
        report(Report::Tutorial { tutorial });
        if let Some(error @ RunError::Cuda(_)) = lost {
            return Err(error);
        }
    }
    Ok(())
}

fn run_variant(
    variant: &Variant,
    places: &TutorialPlaces<'_>,
    how: RunOptions,
    tell: &mut dyn FnMut(MeasureProgress),
    interrupted: &AtomicBool,
) -> Result<VariantOutcome, RunError> {
    let (id, dtype, n) = match variant.program {
        VariantProgram::Custom(show) => {
            return places.gpu.map_or_else(
                || Ok(VariantOutcome::new_skipped_without_gpu()),
                |gpu| show(gpu, places.cpu, how.quick),
            );
        }
        VariantProgram::Workload {
            id,
            dtype,
            n,
            quick_n,
        } => (id, dtype, if how.quick { quick_n } else { n }),
    };
    let workload = catalogue::find_workload(id).expect("the catalog contains the workload");
    let place = match (variant.backend, places.gpu) {
        (Backend::Cpu, _) => ExecutionPlace::Cpu(places.cpu),
        (Backend::Cuda, Some(gpu)) => ExecutionPlace::Cuda(gpu),
        (Backend::Cuda, None) => return Ok(VariantOutcome::new_skipped_without_gpu()),
    };
    let request = WorkloadRequest {
        dtype: Some(dtype),
        amount: Amount::from_size(n, workload.about.extent),
        engine: Engine::Own,
        limits: how.limits,
    };
    match bench::run_workload(workload, &place, places.cpu, &request, interrupted, tell) {
        Ok(outcome) => Ok(VariantOutcome::Measured {
            outcome: Box::new(outcome),
        }),
        Err(RunError::TooFewGpus { needed, found, .. }) => Ok(VariantOutcome::Skipped {
            reason: format!("this variant needs {needed} GPUs (found: {found})"),
        }),
        Err(error) => Err(error),
    }
}

fn time_relative_to_framework(
    found: &VariantOutcome,
    variant: &Variant,
    how: RunOptions,
) -> Option<f64> {
    let framework = variant.framework.as_ref().filter(|_| !how.quick)?;
    let VariantOutcome::Measured { outcome } = found else {
        return None;
    };
    Some(outcome.host_time.as_ref()?.median_us / framework.us)
}

/// A small program from tutorials, with all its variants.
pub struct Case {
    /// The case's name, from `a` to `k5`.
    pub id: &'static str,
    /// A title of a few words.
    pub title: &'static str,
    /// The lesson of the case, in one sentence.
    pub teaches: &'static str,
    /// The different ways in which the program can be run.
    pub variants: &'static [Variant],
}

/// One way in which the program of a case can be run.
pub struct Variant {
    /// The variant's name, such as `pinned copies`.
    pub name: &'static str,
    pub backend: Backend,
    /// The time of another framework; `None` if it has not been measured.
    pub(crate) framework: Option<FrameworkMeasurement>,
    program: VariantProgram,
}

/// The month in which the times of all frameworks were measured.
const MEASUREMENT_MONTH: &str = "2026-11";

/// The GPU of the machine on which the frameworks' times were measured.
const MEASURED_GPU: &str = "H200";
/// The number of CPU cores of the machine on which the frameworks' times were measured.
const MEASURED_CORES: usize = 16;

/// The time of another framework, measured by the host's clock and including all overhead.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct FrameworkMeasurement {
    /// The framework's name, such as `CuPy`.
    pub name: &'static str,
    pub(crate) us: f64,
    pub(crate) on: MeasuredDevice,
}

/// The device on which a framework's time was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MeasuredDevice {
    Gpu,
    /// One CPU core of the machine with the GPU.
    OneCore,
    AllCores,
}

impl MeasuredDevice {
    fn text(self) -> String {
        match self {
            Self::Gpu => format!("an {MEASURED_GPU}"),
            Self::OneCore => format!("1 core of a machine with an {MEASURED_GPU}"),
            Self::AllCores => format!("{MEASURED_CORES} cores of a machine with an {MEASURED_GPU}"),
        }
    }

    /// Returns `true` if this machine has a device of this kind.
    fn is_available(self, places: &TutorialPlaces<'_>) -> bool {
        let has_gpu = places
            .gpu
            .is_some_and(|gpu| gpu.device().name.contains(MEASURED_GPU));
        has_gpu && (self != Self::AllCores || rayon::current_num_threads() == MEASURED_CORES)
    }
}

/// A function that demonstrates something on a GPU. If the last argument is `true`, small sizes are
/// used.
type ShowFunction = fn(&Gpu, &Cpu, bool) -> Result<VariantOutcome, RunError>;

enum VariantProgram {
    Workload {
        id: &'static str,
        dtype: Dtype,
        n: u64,
        /// The size of the workload in quick measurements.
        quick_n: u64,
    },
    /// A program that is not a workload, for example one that requests more memory than exists.
    Custom(ShowFunction),
}

impl Variant {
    const fn new_on_cuda(
        name: &'static str,
        id: &'static str,
        dtype: Dtype,
        n: u64,
        quick_n: u64,
    ) -> Self {
        Self::new(
            name,
            VariantProgram::Workload {
                id,
                dtype,
                n,
                quick_n,
            },
        )
    }

    const fn new(name: &'static str, program: VariantProgram) -> Self {
        Self {
            name,
            backend: Backend::Cuda,
            framework: None,
            program,
        }
    }

    const fn new_on_cpu(
        name: &'static str,
        id: &'static str,
        dtype: Dtype,
        n: u64,
        quick_n: u64,
    ) -> Self {
        Self {
            backend: Backend::Cpu,
            ..Self::new_on_cuda(name, id, dtype, n, quick_n)
        }
    }

    const fn new_shown_on_gpu(name: &'static str, show: ShowFunction) -> Self {
        Self::new(name, VariantProgram::Custom(show))
    }

    /// Adds the time of a framework on a GPU for comparison.
    const fn with_framework(self, name: &'static str, us: f64) -> Self {
        self.with_framework_on_device(name, us, MeasuredDevice::Gpu)
    }

    /// Adds the time of another framework on a CPU, for comparison.
    const fn with_framework_on_device(
        self,
        name: &'static str,
        us: f64,
        on: MeasuredDevice,
    ) -> Self {
        Self {
            framework: Some(FrameworkMeasurement { name, us, on }),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, time::Duration};

    use super::*;

    fn find_case(id: &str) -> Option<&'static Case> {
        CASES.iter().find(|case| case.id == id)
    }

    const QUICK_OPTIONS: RunOptions = RunOptions {
        limits: MeasureLimits {
            warm_up: Duration::ZERO,
            least: Duration::ZERO,
            time: Duration::ZERO,
        },
        quick: true,
    };

    #[test]
    fn cases_have_valid_names_texts_and_variants() {
        let ids: Vec<_> = CASES.iter().map(|case| case.id).collect();
        let wanted = [
            "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k1", "k2", "k3", "k4", "k5",
        ];
        assert_eq!(ids, wanted);
        for case in CASES {
            assert!(
                case.teaches.ends_with('.') && !case.title.ends_with('.'),
                "{}",
                case.id
            );
            let names: BTreeSet<_> = case
                .variants
                .iter()
                .map(|variant| (variant.name, variant.backend as u8))
                .collect();
            assert_eq!(names.len(), case.variants.len(), "{}", case.id);
            for variant in case.variants {
                let VariantProgram::Workload {
                    id,
                    dtype,
                    quick_n,
                    n,
                } = variant.program
                else {
                    continue;
                };
                assert!(quick_n > 0 && quick_n <= n, "{} {}", case.id, variant.name);
                let about = &catalogue::find_workload(id).unwrap().about;
                assert!(
                    about.runs_on(variant.backend),
                    "{} {}",
                    case.id,
                    variant.name
                );
                assert!(
                    about.usual_dtype() == dtype || about.dtypes.contains(&dtype),
                    "{} {id}",
                    case.id
                );
            }
        }
    }

    #[test]
    fn missing_gpu_skips_only_gpu_tutorial_variants() {
        let cpu = Cpu::read();
        let places = TutorialPlaces {
            gpu: None,
            cpu: &cpu,
            only: None,
        };
        let cases: Vec<_> = CASES.iter().collect();
        let mut reported = Vec::new();
        let report = &mut |report| {
            if let Report::Tutorial { tutorial } = report {
                reported.push(tutorial);
            }
        };
        run_cases(
            &cases,
            &places,
            QUICK_OPTIONS,
            None,
            report,
            &AtomicBool::new(false),
        )
        .unwrap();
        assert_eq!(
            reported.len(),
            CASES.iter().map(|case| case.variants.len()).sum::<usize>()
        );
        for report in &reported {
            let name = format!("{} {}", report.case, report.variant);
            match (&report.found, report.backend) {
                (VariantOutcome::Measured { outcome }, Backend::Cpu) => {
                    assert!(outcome.verify.ok, "{name}: {outcome:?}");
                }
                (VariantOutcome::Skipped { reason }, _) => {
                    assert!(reason.starts_with("there is no"), "{name}: {reason}");
                }
                (found, _) => panic!("{name}: {found:?}"),
            }
            assert_eq!(
                report.share_of_framework, None,
                "{name}: other sizes are no comparison"
            );
        }
    }

    #[test]
    fn full_size_tutorials_run_until_interrupted() {
        let cpu = Cpu::read();
        let places = TutorialPlaces {
            gpu: None,
            cpu: &cpu,
            only: Some(Backend::Cpu),
        };
        let (flag, mut reported) = (AtomicBool::new(false), Vec::new());
        let report = &mut |report| {
            let Report::Tutorial { tutorial } = report else {
                return;
            };
            flag.store(reported.len() == 1, Relaxed);
            reported.push(tutorial);
        };
        run_cases(
            &[find_case("c").unwrap(), find_case("i").unwrap()],
            &places,
            RunOptions {
                quick: false,
                ..QUICK_OPTIONS
            },
            None,
            report,
            &flag,
        )
        .unwrap();
        assert_eq!(
            reported
                .iter()
                .map(|report| report.variant.as_ref())
                .collect::<Vec<_>>(),
            ["all threads", "one thread"]
        );
        let (share, framework) = (
            reported[1].share_of_framework.unwrap(),
            reported[1].framework.as_ref().unwrap(),
        );
        assert!(!framework.same_device, "there is no H200 here");
        let VariantOutcome::Measured { outcome } = &reported[1].found else {
            panic!("it was measured")
        };
        assert!(
            (share * framework.us - outcome.host_time.as_ref().unwrap().median_us).abs() < 1e-6
        );
        assert!(find_case("z").is_none());
    }
}
