//! The catalog of all workloads, for clients that start runs.

use gpumon_probe::model::RunKind;
use gpumon_workload::{catalogue, oom, protocol::Backend, tutorials::CASES};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// The response of `GET /api/v1/catalogue`: everything that can be run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
pub struct Catalogue {
    /// The entries in display order.
    pub entries: Vec<CatalogueEntry>,
    /// The reason why the client may not start runs; `null` if the client has permission.
    pub refusal: Option<String>,
}

/// A workload, case or scenario that can be run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS, JsonSchema)]
pub struct CatalogueEntry {
    /// The kind of job that runs the entry.
    pub kind: RunKind,
    /// The name of the workload, case or scenario in a job.
    pub id: String,
    /// The name shown in a list, such as `triad`.
    pub title: String,
    /// A sentence that describes what the entry does.
    pub does: String,
    /// A sentence that describes what the entry teaches.
    pub teaches: String,
    /// Whether the entry can also run on a CPU.
    pub on_cpu: bool,
}

impl Catalogue {
    /// Creates the catalog of everything that can be run.
    pub(super) fn new(refusal: Option<String>) -> Self {
        let workloads = catalogue::list_workloads().map(|about| {
            make_entry(
                RunKind::Bench,
                about.id,
                about.id,
                about.does,
                about.teaches,
                about.runs_on(Backend::Cpu),
            )
        });
        let burn = make_entry(
            RunKind::Burn,
            "burn",
            "burn",
            "Stress test: multiplies matrices for a minute and verifies every result.",
            "Shows power, temperature and computation errors under full load.",
            true,
        );
        let tutorials = CASES.iter().map(|case| {
            let on_cpu = case
                .variants
                .iter()
                .any(|variant| variant.backend == Backend::Cpu);
            let (title, does) = (
                format!("{}: {}", case.id, case.title),
                format!("{}, in all its variants.", case.title),
            );
            make_entry(
                RunKind::Tutorials,
                case.id,
                &title,
                &does,
                case.teaches,
                on_cpu,
            )
        });
        let demonstrations = oom::list_scenarios().iter().map(|scenario| {
            make_entry(
                RunKind::Oom,
                scenario.id,
                scenario.title,
                scenario.shows,
                scenario.lesson,
                true,
            )
        });
        let selftest = make_entry(
            RunKind::Selftest,
            "selftest",
            "selftest",
            "Runs known loads on the GPU and compares gpumon's readings with the expected values.",
            "Shows which of gpumon's readings are correct.",
            false,
        );
        let entries = workloads
            .chain([burn])
            .chain(tutorials)
            .chain(demonstrations)
            .chain([selftest]);
        Self {
            entries: entries.collect(),
            refusal,
        }
    }
}

fn make_entry(
    kind: RunKind,
    id: &str,
    title: &str,
    does: &str,
    teaches: &str,
    on_cpu: bool,
) -> CatalogueEntry {
    let [id, title, does, teaches] = [id, title, does, teaches].map(str::to_owned);
    CatalogueEntry {
        kind,
        id,
        title,
        does,
        teaches,
        on_cpu,
    }
}
