//! What can be run, for those who choose.

use gpumon_probe::model::RunKind;
use gpumon_workload::{
    catalogue,
    oom::{self, Scenario},
    protocol::Backend,
    tutorials::{CASES, Case},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// `GET /api/v1/catalogue`: all that can be run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Catalogue {
    /// In the order in which they are listed.
    pub entries: Vec<CatalogueEntry>,
}

/// Something that can be run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
pub struct CatalogueEntry {
    /// The kind of the job that runs it.
    pub kind: RunKind,
    /// Its name in a job: of a workload, a case or a scenario.
    pub id: String,
    /// What it is called in a list, as `triad`.
    pub title: String,
    /// What it does, in a sentence.
    pub does: String,
    /// What one learns from it, in a sentence.
    pub teaches: String,
    /// Whether it runs on a CPU, too.
    pub on_cpu: bool,
}

impl Catalogue {
    /// All that the runner has.
    pub fn from_runner() -> Self {
        let workloads = catalogue::all().map(|about| CatalogueEntry {
            kind: RunKind::Bench,
            id: about.id.to_owned(),
            title: about.id.to_owned(),
            does: about.does.to_owned(),
            teaches: about.teaches.to_owned(),
            on_cpu: about.runs_on(Backend::Cpu),
        });
        let entries = workloads
            .chain([burn()])
            .chain(CASES.iter().map(tutorial))
            .chain(oom::all().iter().copied().map(demonstration));
        let entries = entries.chain([selftest()]);
        Self { entries: entries.collect() }
    }
}

fn tutorial(case: &Case) -> CatalogueEntry {
    CatalogueEntry {
        kind: RunKind::Tutorials,
        id: case.id.to_owned(),
        title: format!("{}: {}", case.id, case.title),
        does: format!("{}, in all its variants.", case.title),
        teaches: case.teaches.to_owned(),
        on_cpu: case.variants.iter().any(|variant| variant.backend == Backend::Cpu),
    }
}

fn demonstration(scenario: &Scenario) -> CatalogueEntry {
    CatalogueEntry {
        kind: RunKind::Oom,
        id: scenario.id.to_owned(),
        title: scenario.title.to_owned(),
        does: scenario.shows.to_owned(),
        teaches: scenario.lesson.to_owned(),
        on_cpu: true,
    }
}

fn selftest() -> CatalogueEntry {
    CatalogueEntry {
        kind: RunKind::Selftest,
        id: "selftest".to_owned(),
        title: "selftest".to_owned(),
        does: "Runs known loads on the GPU and compares the readings with them.".to_owned(),
        teaches: "Which of the readings shown here are correct.".to_owned(),
        on_cpu: false,
    }
}

fn burn() -> CatalogueEntry {
    CatalogueEntry {
        kind: RunKind::Burn,
        id: "burn".to_owned(),
        title: "burn".to_owned(),
        does: "Stress test: multiplies matrices for a minute and verifies every result.".to_owned(),
        teaches: "Power, temperature and computation errors under full load.".to_owned(),
        on_cpu: true,
    }
}
