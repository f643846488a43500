//! The seeds: small programs that tutorials show, each in all its variants, beside the times that frameworks take.
//!
//! - [`rows`] is the table of them, and [`row`] what stands in it.
//! - [`devices`], [`memory`] and [`pair`] do what is no workload of the catalogue.

mod devices;
mod memory;
mod pair;
mod row;
mod rows;

use std::{
    borrow::Cow,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

use serde::{Deserialize, Serialize};

use self::row::What;
pub use self::{
    row::{Framework, Row, Variant},
    rows::ROWS,
};
use crate::{
    bench::{self, Amount, Place, Request},
    catalogue,
    error::RunError,
    gpu::Gpu,
    info::Cpu,
    measure::{Limits, Now},
    outcome::Outcome,
    workload::{Backend, Engine, Extent},
};

/// Where rows run.
pub struct Places<'a> {
    /// The GPU of those variants that need one; without it they are skipped.
    pub gpu: Option<&'a Gpu>,
    /// The CPU.
    pub cpu: &'a Cpu,
    /// Of which variants: those of a GPU, those of the CPU, or both where it names none.
    pub only: Option<Backend>,
}

/// How rows run.
#[derive(Debug, Clone, Copy)]
pub struct How {
    /// How long to measure each variant.
    pub limits: Limits,
    /// Whether small sizes will do. Their times are not compared with a framework's.
    pub quick: bool,
}

/// What a variant has shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SeedReport {
    /// The row.
    pub row: Cow<'static, str>,
    /// What that is about.
    pub title: Cow<'static, str>,
    /// What one learns from it.
    pub teaches: Cow<'static, str>,
    /// The variant.
    pub variant: Cow<'static, str>,
    /// Where it runs.
    pub backend: Backend,
    /// What came of it.
    #[serde(flatten)]
    pub found: Found,
    /// What a framework takes for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub framework: Option<FrameworkTime>,
    /// The time of this as a share of the framework's, both by the host's clock; none where there is nothing to compare.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_of_framework: Option<f64>,
}

/// What a framework takes, as [`Framework`] has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FrameworkTime {
    /// As `CuPy`.
    pub name: Cow<'static, str>,
    /// How long, in us.
    pub us: f64,
    /// On what that was measured.
    pub on: Cow<'static, str>,
}

/// What came of a variant, told apart by `found`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "found", rename_all = "snake_case")]
pub enum Found {
    /// It was measured and verified.
    Measured {
        /// What it has shown.
        outcome: Box<Outcome>,
    },
    /// It is told in words.
    Shown {
        /// Whether it is as it should be.
        ok: bool,
        /// What there is to say.
        text: String,
    },
    /// It does not run here.
    Skipped {
        /// Why.
        reason: String,
    },
    /// It did not come to its end.
    Failed {
        /// Why, and what to do.
        error: String,
        /// Whether it was refused since it would have taken too much.
        refused: bool,
    },
}

/// What there is to say while rows run.
pub enum News {
    /// What a variant does now.
    Now {
        /// Which it is, counted from 0 over all that run.
        step: usize,
        /// Its row.
        row: &'static Row,
        /// It.
        variant: &'static Variant,
        /// What it does.
        now: Now,
    },
    /// What a variant has shown.
    Found(Box<SeedReport>),
}

/// What comes of what is no workload.
pub(crate) enum Told {
    Shown { ok: bool, text: String },
    Skipped(String),
}

impl Told {
    fn no_gpu() -> Self {
        Self::Skipped("there is no GPU".to_owned())
    }

    fn missing(id: &str) -> Self {
        Self::Skipped(format!("there is no workload '{id}'"))
    }
}

impl From<Told> for Found {
    fn from(told: Told) -> Self {
        match told {
            Told::Shown { ok, text } => Self::Shown { ok, text },
            Told::Skipped(reason) => Self::Skipped { reason },
        }
    }
}

impl SeedReport {
    /// Whether something was checked and is not as it should be.
    pub fn is_wrong(&self) -> bool {
        match &self.found {
            Found::Measured { outcome } => outcome.verify.wrong > 0 || !outcome.verify.ok && !outcome.partial,
            Found::Shown { ok, .. } => !ok,
            Found::Skipped { .. } | Found::Failed { .. } => false,
        }
    }
}

/// The row of this name.
pub fn find(id: &str) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.id == id)
}

/// The variants of rows that run there, in their order.
pub fn steps<'a>(
    rows: &'a [&'static Row],
    only: Option<Backend>,
) -> impl Iterator<Item = (&'static Row, &'static Variant)> + 'a {
    let all = rows.iter().flat_map(|row| row.variants.iter().map(move |variant| (*row, variant)));
    all.filter(move |(_, variant)| only.is_none_or(|backend| backend == variant.backend))
}

/// Runs rows, and tells what each variant has shown as soon as it has. Who sets `interrupted` ends it with the variant
/// that runs.
///
/// # Errors
/// Where the driver fails: nothing that follows would come to its end. What failed was told before.
pub fn run(
    rows: &[&'static Row],
    places: &Places<'_>,
    how: How,
    tell: &mut dyn FnMut(News),
    interrupted: &AtomicBool,
) -> Result<(), RunError> {
    for (step, (row, variant)) in steps(rows, places.only).enumerate() {
        if interrupted.load(Relaxed) {
            break;
        }
        let (found, lost) =
            match show(variant, places, how, &mut |now| tell(News::Now { step, row, variant, now }), interrupted) {
                Ok(found) => (found, None),
                Err(error) => {
                    let refused = matches!(error, RunError::TooLarge { .. });
                    (Found::Failed { error: error.to_string(), refused }, Some(error))
                }
            };
        let share_of_framework = share(&found, variant, how);
        tell(News::Found(Box::new(SeedReport {
            row: row.id.into(),
            title: row.title.into(),
            teaches: row.teaches.into(),
            variant: variant.name.into(),
            backend: variant.backend,
            found,
            framework: variant.framework.map(|Framework { name, us, on }| FrameworkTime {
                name: name.into(),
                us,
                on: on.into(),
            }),
            share_of_framework,
        })));
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
    let (id, dtype, n) = match variant.what {
        What::Special(show) => return show(places, how.quick).map(Found::from),
        What::Workload { id, dtype, n, quick_n } => (id, dtype, if how.quick { quick_n } else { n }),
    };
    let Some(workload) = catalogue::find(id) else { return Ok(Told::missing(id).into()) };
    let place = match (variant.backend, places.gpu) {
        (Backend::Cpu, _) => Place::Cpu(places.cpu),
        (Backend::Cuda, Some(gpu)) => Place::Cuda(gpu),
        (Backend::Cuda, None) => return Ok(Told::no_gpu().into()),
    };
    let amount = if workload.about().extent == Extent::Times { Amount::Times(n) } else { Amount::Count(n) };
    let request = Request { dtype: Some(dtype), amount: Some(amount), engine: Engine::Own, limits: how.limits };
    match bench::run(workload, &place, places.cpu, &request, interrupted, tell) {
        Ok(outcome) => Ok(Found::Measured { outcome: Box::new(outcome) }),
        Err(RunError::TooFewGpus { needed, found, .. }) => {
            Ok(Found::Skipped { reason: format!("it needs {needed} GPUs, and there is {found}") })
        }
        Err(error) => Err(error),
    }
}

fn share(found: &Found, variant: &Variant, how: How) -> Option<f64> {
    let framework = variant.framework.as_ref().filter(|_| !how.quick)?;
    let Found::Measured { outcome } = found else { return None };
    Some(outcome.host_time.as_ref()?.median_us / framework.us)
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, time::Duration};

    use super::*;

    const QUICK: How =
        How { limits: Limits { warm_up: Duration::ZERO, least: Duration::ZERO, time: Duration::ZERO }, quick: true };

    #[test]
    fn rows_have_names_sentences_and_variants_that_can_be() {
        let ids: Vec<_> = ROWS.iter().map(|row| row.id).collect();
        let wanted = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k1", "k2", "k3", "k4", "k5"];
        assert_eq!(ids, wanted);
        for row in ROWS {
            assert!(row.teaches.ends_with('.') && !row.title.ends_with('.'), "{}", row.id);
            let names: BTreeSet<_> = row.variants.iter().map(|variant| (variant.name, variant.backend as u8)).collect();
            assert_eq!(names.len(), row.variants.len(), "{}", row.id);
            for variant in row.variants {
                let What::Workload { id, dtype, quick_n, n } = variant.what else { continue };
                assert!(quick_n > 0 && quick_n <= n, "{} {}", row.id, variant.name);
                let Some(workload) = catalogue::find(id) else { continue };
                let about = workload.about();
                assert!(about.runs_on(variant.backend), "{} {}", row.id, variant.name);
                assert!(about.usual_dtype() == dtype || about.dtypes.contains(&dtype), "{} {id}", row.id);
            }
        }
    }

    #[test]
    fn without_a_gpu_the_rest_is_right_and_says_what_is_missing() {
        let cpu = Cpu::this();
        let places = Places { gpu: None, cpu: &cpu, only: None };
        let rows: Vec<_> = ROWS.iter().collect();
        let mut told = Vec::new();
        let tell = &mut |news| {
            if let News::Found(report) = news {
                told.push(report);
            }
        };
        run(&rows, &places, QUICK, tell, &AtomicBool::new(false)).unwrap();
        assert_eq!(told.len(), ROWS.iter().map(|row| row.variants.len()).sum::<usize>());
        for report in &told {
            let name = format!("{} {}", report.row, report.variant);
            match (&report.found, report.backend) {
                (Found::Measured { outcome }, Backend::Cpu) => assert!(outcome.verify.ok, "{name}: {outcome:?}"),
                (Found::Skipped { reason }, _) => assert!(reason.starts_with("there is no"), "{name}: {reason}"),
                (found, _) => panic!("{name}: {found:?}"),
            }
            assert_eq!(report.share_of_framework, None, "{name}: other sizes are no comparison");
        }
    }

    #[test]
    fn full_sizes_are_compared_and_what_is_interrupted_ends() {
        let cpu = Cpu::this();
        let places = Places { gpu: None, cpu: &cpu, only: Some(Backend::Cpu) };
        let (flag, mut told) = (AtomicBool::new(false), Vec::new());
        let tell = &mut |news| {
            let News::Found(report) = news else { return };
            flag.store(told.len() == 1, Relaxed);
            told.push(report);
        };
        run(&[find("c").unwrap(), find("i").unwrap()], &places, How { quick: false, ..QUICK }, tell, &flag).unwrap();
        assert_eq!(
            told.iter().map(|report| report.variant.as_ref()).collect::<Vec<_>>(),
            ["all threads", "one thread"]
        );
        let (share, framework) = (told[1].share_of_framework.unwrap(), told[1].framework.as_ref().unwrap());
        let Found::Measured { outcome } = &told[1].found else { panic!("it was measured") };
        assert!((share * framework.us - outcome.host_time.as_ref().unwrap().median_us).abs() < 1e-6);
        assert!(find("z").is_none());
    }
}
