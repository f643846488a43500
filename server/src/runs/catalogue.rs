//! What can be run, for those who choose.

use gpumon_probe::model::RunKind;
use gpumon_workload::{
    Backend, catalogue,
    oom::{self, Scenario},
    seeds::{ROWS, Row},
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
    /// Its name in a job: of a workload, a row or a scenario.
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
    /// What the runner has.
    pub fn of_the_runner() -> Self {
        let workloads = catalogue::all().iter().map(|workload| {
            let about = workload.about();
            CatalogueEntry {
                kind: RunKind::Bench,
                id: about.id.to_owned(),
                title: about.id.to_owned(),
                does: about.does.to_owned(),
                teaches: about.teaches.to_owned(),
                on_cpu: about.runs_on(Backend::Cpu),
            }
        });
        let entries = workloads.chain([burn()]).chain(ROWS.iter().map(row)).chain(oom::all().iter().map(demonstration));
        let entries = entries.chain([selftest()]);
        Self { entries: entries.collect() }
    }
}

fn row(row: &Row) -> CatalogueEntry {
    CatalogueEntry {
        kind: RunKind::Seeds,
        id: row.id.to_owned(),
        title: format!("{}: {}", row.id, row.title),
        does: format!("{}, in all its variants.", row.title),
        teaches: row.teaches.to_owned(),
        on_cpu: row.variants.iter().any(|variant| variant.backend == Backend::Cpu),
    }
}

fn demonstration(scenario: &&dyn Scenario) -> CatalogueEntry {
    let about = scenario.about();
    CatalogueEntry {
        kind: RunKind::Oom,
        id: about.id.to_owned(),
        title: about.title.to_owned(),
        does: about.shows.to_owned(),
        teaches: about.lesson.to_owned(),
        on_cpu: true,
    }
}

fn selftest() -> CatalogueEntry {
    CatalogueEntry {
        kind: RunKind::Selftest,
        id: "selftest".to_owned(),
        title: "selftest".to_owned(),
        does: "Puts known loads on the GPU, and checks what is reported of them.".to_owned(),
        teaches: "Which of the numbers shown here are what the GPU really does.".to_owned(),
        on_cpu: false,
    }
}

fn burn() -> CatalogueEntry {
    CatalogueEntry {
        kind: RunKind::Burn,
        id: "burn".to_owned(),
        title: "burn".to_owned(),
        does: "Multiplies matrices as fast as it can for a minute, and checks every result.".to_owned(),
        teaches: "What the GPU draws and how warm it gets under full load, and whether it computes right then."
            .to_owned(),
        on_cpu: true,
    }
}
