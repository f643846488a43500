//! Tutorial benchmarks: small programs from tutorials, in all their variants, with the times of
//! frameworks for comparison.
//!
//! - [`cases`] is the table of cases, and [`case`] defines its types.
//! - [`programs`] has the programs that are not workloads of the catalogue.

mod case;
mod cases;
mod programs;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use self::case::{Framework, MEASURED, Program};
pub use self::{
    case::{Case, Variant},
    cases::CASES,
};
use crate::{
    bench::{self, Place, Request},
    beside::Frameworks,
    catalogue,
    error::RunError,
    gpu::Gpu,
    info::Cpu,
    measure::{Limits, Now},
    protocol::{Amount, Backend, Engine, Found, FrameworkTime, Phase, Report, TutorialReport},
};

pub(crate) struct Places<'a> {
    /// The GPU for variants that need one. Without it, these variants are skipped.
    pub(crate) gpu: Option<&'a Gpu>,
    pub(crate) cpu: &'a Cpu,
    /// The backend of the variants to run; `None` for both.
    pub(crate) only: Option<Backend>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct How {
    pub(crate) limits: Limits,
    /// Whether to use small sizes. Their times are not compared with those of a framework.
    pub(crate) quick: bool,
}

/// Returns the variants of cases that run on this backend, in their order.
pub(crate) fn steps<'a>(
    cases: &'a [&'static Case],
    only: Option<Backend>,
) -> impl Iterator<Item = (&'static Case, &'static Variant)> + 'a {
    let all = cases
        .iter()
        .flat_map(|case| case.variants.iter().map(move |variant| (*case, variant)));
    all.filter(move |(_, variant)| only.is_none_or(|backend| backend == variant.backend))
}

/// Runs cases, and reports the result of each variant at once. Setting `interrupted` stops after
/// the current variant.
pub(crate) fn run(
    cases: &[&'static Case],
    places: &Places<'_>,
    how: How,
    mut frameworks: Option<&mut Frameworks<'_>>,
    report: &mut dyn FnMut(Report),
    interrupted: &AtomicBool,
) -> Result<(), RunError> {
    for (step, (case, variant)) in steps(cases, places.only).enumerate() {
        if interrupted.load(Relaxed) {
            break;
        }
        let id = format!("{} {}", case.id, variant.name);
        let mut tell = |now: Now| report(now.into_report(step, &id, variant.backend));
        let (found, lost) = match show(variant, places, how, &mut tell, interrupted) {
            Ok(found) => (found, None),
            Err(error) => {
                let refused = matches!(error, RunError::TooLarge { .. });
                (
                    Found::Failed {
                        error: error.to_string(),
                        refused,
                    },
                    Some(error),
                )
            }
        };
        let beside = match (&mut frameworks, &found) {
            (Some(frameworks), Found::Measured { outcome }) if !outcome.partial => {
                let mut tell = |name: &str| {
                    let id = format!("{id} beside {name}");
                    report(Now::Phase(Phase::Measuring).into_report(step, &id, variant.backend));
                };
                frameworks.run(outcome, places.gpu, &how.limits, &mut tell)
            }
            _ => Vec::new(),
        };
        let share_of_framework = share(&found, variant, how);
        let tutorial = Box::new(TutorialReport {
            case: case.id.into(),
            title: case.title.into(),
            teaches: case.teaches.into(),
            variant: variant.name.into(),
            backend: variant.backend,
            found,
            framework: variant
                .framework
                .map(|Framework { name, us, on }| FrameworkTime {
                    name: name.into(),
                    us,
                    on: on.text().into(),
                    measured: MEASURED.into(),
                    same_device: on.is_here(places),
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

fn show(
    variant: &Variant,
    places: &Places<'_>,
    how: How,
    tell: &mut dyn FnMut(Now),
    interrupted: &AtomicBool,
) -> Result<Found, RunError> {
    let (id, dtype, n) = match variant.program {
        Program::Custom(show) => {
            return places.gpu.map_or_else(
                || Ok(Found::no_gpu()),
                |gpu| show(gpu, places.cpu, how.quick),
            );
        }
        Program::Workload {
            id,
            dtype,
            n,
            quick_n,
        } => (id, dtype, if how.quick { quick_n } else { n }),
    };
    let Some(workload) = catalogue::find(id) else {
        return Ok(Found::missing(id));
    };
    let place = match (variant.backend, places.gpu) {
        (Backend::Cpu, _) => Place::Cpu(places.cpu),
        (Backend::Cuda, Some(gpu)) => Place::Cuda(gpu),
        (Backend::Cuda, None) => return Ok(Found::no_gpu()),
    };
    let request = Request {
        dtype: Some(dtype),
        amount: Amount::of(n, workload.about.extent),
        engine: Engine::Own,
        limits: how.limits,
    };
    match bench::run(workload, &place, places.cpu, &request, interrupted, tell) {
        Ok(outcome) => Ok(Found::Measured {
            outcome: Box::new(outcome),
        }),
        Err(RunError::TooFewGpus { needed, found, .. }) => Ok(Found::Skipped {
            reason: format!("it needs {needed} GPUs, and there is {found}"),
        }),
        Err(error) => Err(error),
    }
}

fn share(found: &Found, variant: &Variant, how: How) -> Option<f64> {
    let framework = variant.framework.as_ref().filter(|_| !how.quick)?;
    let Found::Measured { outcome } = found else {
        return None;
    };
    Some(outcome.host_time.as_ref()?.median_us / framework.us)
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, time::Duration};

    use super::*;

    fn find(id: &str) -> Option<&'static Case> {
        CASES.iter().find(|case| case.id == id)
    }

    const QUICK: How = How {
        limits: Limits {
            warm_up: Duration::ZERO,
            least: Duration::ZERO,
            time: Duration::ZERO,
        },
        quick: true,
    };

    #[test]
    fn cases_have_names_sentences_and_variants_that_can_be() {
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
                let Program::Workload {
                    id,
                    dtype,
                    quick_n,
                    n,
                } = variant.program
                else {
                    continue;
                };
                assert!(quick_n > 0 && quick_n <= n, "{} {}", case.id, variant.name);
                let Some(workload) = catalogue::find(id) else {
                    continue;
                };
                let about = &workload.about;
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
    fn without_a_gpu_the_rest_is_right_and_says_what_is_missing() {
        let cpu = Cpu::this();
        let places = Places {
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
        run(
            &cases,
            &places,
            QUICK,
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
                (Found::Measured { outcome }, Backend::Cpu) => {
                    assert!(outcome.verify.ok, "{name}: {outcome:?}");
                }
                (Found::Skipped { reason }, _) => {
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
    fn full_sizes_are_compared_and_what_is_interrupted_ends() {
        let cpu = Cpu::this();
        let places = Places {
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
        run(
            &[find("c").unwrap(), find("i").unwrap()],
            &places,
            How {
                quick: false,
                ..QUICK
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
        let Found::Measured { outcome } = &reported[1].found else {
            panic!("it was measured")
        };
        assert!(
            (share * framework.us - outcome.host_time.as_ref().unwrap().median_us).abs() < 1e-6
        );
        assert!(find("z").is_none());
    }
}
