//! Tests of the filter with the cases in `fleet/filter-cases.json`, which are also used in the web
//! page's tests.

use std::collections::BTreeMap;

use gpumon_fleet::{
    Rows, Summary,
    model::{Fleet, UTILIZATION},
};
use serde::Deserialize;

use super::{
    filter::Filter,
    nodes::{Sort, list_nodes},
};

#[derive(Deserialize)]
struct Cases {
    fleet: Fleet,
    means: Means,
    filters: Vec<FilterCase>,
    mistakes: Vec<Mistake>,
    selections: Vec<Selection>,
}

/// The mean utilization of each node and of the fleet, in percent; `None` if no GPU of the node
/// reports it.
#[derive(Deserialize)]
struct Means {
    nodes: BTreeMap<String, Option<f64>>,
    fleet: f64,
}

#[derive(Deserialize)]
struct FilterCase {
    typed: String,
    /// The visible rows, or `None` if all are visible.
    rows: Option<Vec<usize>>,
}

#[derive(Deserialize)]
struct Mistake {
    typed: String,
    error: String,
}

/// The expected readings of all GPUs that match a filter.
#[derive(Deserialize)]
struct Selection {
    typed: String,
    gpus: u32,
    readings: BTreeMap<String, Option<f64>>,
    partial: Vec<String>,
}

fn read_cases() -> Cases {
    serde_json::from_str(include_str!("../../../fleet/filter-cases.json")).unwrap()
}

#[test]
fn filters_match_same_rows_as_web_page() {
    let Cases { fleet, filters, .. } = read_cases();
    let rows = Rows::new(&fleet);
    let mut wrong = Vec::new();
    for FilterCase {
        typed,
        rows: expected,
    } in filters
    {
        let shown = Filter::parse(&typed).map(|filter| {
            let shown = filter.select_rows(&rows);
            shown.map(|shown| rows.select_rows(Some(&shown)).collect::<Vec<_>>())
        });
        if shown != Ok(expected.clone()) {
            wrong.push(format!("{typed}: {shown:?} instead of {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn invalid_filter_reports_mistake() {
    for Mistake { typed, error } in read_cases().mistakes {
        assert_eq!(Filter::parse(&typed).unwrap_err(), error, "{typed}");
    }
}

#[test]
fn mean_utilization_ignores_gpus_without_reading() {
    let Cases { fleet, means, .. } = read_cases();
    let rows = Rows::new(&fleet);
    let lines = list_nodes(&rows, None, Sort::Name);
    let found = lines
        .iter()
        .map(|line| (line.safe_name(), line.sum.value(UTILIZATION)))
        .collect();
    assert_eq!(means.nodes, found);
    let all = Summary::new(&rows, rows.select_rows(None));
    assert_eq!(all.value(UTILIZATION), Some(means.fleet));
}

#[test]
fn sums_of_selection_match_web_page() {
    let Cases {
        fleet, selections, ..
    } = read_cases();
    let rows = Rows::new(&fleet);
    for selection in selections {
        let shown = Filter::parse(&selection.typed).unwrap().select_rows(&rows);
        let sum = Summary::new(&rows, rows.select_rows(shown.as_deref()));
        assert_eq!(sum.gpus, selection.gpus, "{}", selection.typed);
        for (id, value) in &selection.readings {
            let is_partial = selection.partial.contains(id);
            assert_eq!(
                (sum.value(id), sum.is_partial(id)),
                (*value, is_partial),
                "{} {id}",
                selection.typed
            );
        }
    }
}
