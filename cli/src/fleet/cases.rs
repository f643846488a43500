//! Tests with the cases of `tests/fleet-cases.json`, which the page is also tested with.

use std::collections::BTreeMap;

use gpumon_fleet::model::Fleet;
use serde::Deserialize;

use super::{
    filter::Filter,
    nodes::{Sort, nodes},
    rows::Rows,
    totals::Totals,
};

#[derive(Deserialize)]
struct Cases {
    fleet: Fleet,
    means: Means,
    filters: Vec<FilterCase>,
    mistakes: Vec<Mistake>,
}

/// Mean utilization in percent; `None` if no GPU reports it.
#[derive(Deserialize)]
struct Means {
    nodes: BTreeMap<String, Option<f64>>,
    fleet: f64,
}

#[derive(Deserialize)]
struct FilterCase {
    typed: String,
    /// The rows that are shown; `None` if all are.
    rows: Option<Vec<usize>>,
}

#[derive(Deserialize)]
struct Mistake {
    typed: String,
    words: String,
}

fn cases() -> Cases {
    serde_json::from_str(include_str!("../../../tests/fleet-cases.json")).unwrap()
}

#[test]
fn filters_match_same_rows_as_page() {
    let Cases { fleet, filters, .. } = cases();
    let rows = Rows::new(&fleet);
    let mut wrong = Vec::new();
    for FilterCase {
        typed,
        rows: expected,
    } in filters
    {
        let shown = Filter::parse(&typed).map(|filter| {
            filter.shown(&rows).map(|shown| {
                (0..shown.len())
                    .filter(|row| shown[*row])
                    .collect::<Vec<_>>()
            })
        });
        if shown != Ok(expected.clone()) {
            wrong.push(format!("{typed}: {shown:?} instead of {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn invalid_filters_say_what_is_wrong() {
    for Mistake { typed, words } in cases().mistakes {
        let error = Filter::parse(&typed).unwrap_err();
        assert!(error.contains(&words), "{typed}: {error}");
    }
}

#[test]
fn mean_utilization_ignores_gpus_without_reading() {
    let Cases { fleet, means, .. } = cases();
    let rows = Rows::new(&fleet);
    let sums = nodes(&rows, None, Sort::Name);
    let found = sums
        .iter()
        .map(|sum| (fleet.nodes.name[sum.node].clone(), sum.utilization))
        .collect();
    assert_eq!(means.nodes, found);
    assert_eq!(Totals::new(&rows, None).utilization, Some(means.fleet));
}
