//! A field over time.

use std::{collections::BTreeSet, ops::Range};

use anyhow::anyhow;
use gpumon_history::{
    span::{DeviceSpan, HistorySpan, Series},
    wanted::{Wanted, mig_id, of_mig, rounded},
};
use gpumon_probe::model::{
    fields::{Field, GPU_FIELDS, HOST_FIELDS, Kind, OVERVIEW},
    now_ms,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strsim::jaro_winkler;

use super::{sources::Sources, tool::Tool};
use crate::{
    commands::show::csv::time,
    exit::Failure,
    moment::{Beside, MomentSpan},
    past::PastArgs,
};

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct History {
    /// Ids of the fields, up to 8.
    #[schemars(length(min = 1, max = 8))]
    fields: Vec<String>,
    /// First moment: a date, a time of day or both in local time, as 2026-11-23T20:00, or a time before now, as -2h; -10m
    /// if omitted.
    since: Option<String>,
    /// First moment that is left out, in the same forms; now if omitted.
    until: Option<String>,
    /// Only these GPUs, by index; all of them if omitted.
    gpus: Option<Vec<u32>>,
    /// At most so many points; 60 if omitted.
    #[schemars(range(min = 1, max = MOST_POINTS))]
    points: Option<u64>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct HistoryAnswer {
    /// The first moment that is answered, in UTC: later than asked where less is known.
    from: String,
    to: String,
    /// Since when anything is known.
    known_since: String,
    /// Whether no GPU is behind the readings, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    simulated: Option<bool>,
    /// When each point begins, in UTC.
    times: Vec<String>,
    /// The time of a point.
    seconds_per_point: f64,
    series: Vec<SeriesAnswer>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct SeriesAnswer {
    /// The id, which ends in the unit.
    field: String,
    /// What it is, and what it is not.
    meaning: &'static str,
    /// The GPU, by index; absent of the host, and of a MIG device whose GPU is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu: Option<u32>,
    /// Of a MIG device.
    #[serde(skip_serializing_if = "Option::is_none")]
    mig_uuid: Option<String>,
    /// Of a gauge, over the whole span.
    #[serde(skip_serializing_if = "Option::is_none")]
    mean: Option<f64>,
    min: Option<f64>,
    max: Option<f64>,
    last: Option<f64>,
    /// One for each of `times`: the mean of a gauge, the last of a counter or a state; null where nothing is known.
    values: Vec<Option<f64>>,
}

const USUAL_SINCE: &str = "-10m";
const USUAL_POINTS: u64 = 60;
const MOST_POINTS: u64 = 500;
const MOST_FIELDS: usize = 8;

/// So many ids are named in the place of a wrong one.
const NAMED: usize = 6;

impl Tool for History {
    const NAME: &'static str = "gpu_history";
    const TITLE: &'static str = "Readings over time";
    type Answer = HistoryAnswer;

    fn description() -> String {
        let usual = OVERVIEW.join(", ");
        let others: Vec<_> = GPU_FIELDS
            .iter()
            .filter(|field| field.chart.is_some() && !OVERVIEW.contains(&field.id))
            .map(|field| field.id)
            .collect();
        format!(
            "How readings of GPUs, MIG devices and the host went in a span of time: mean, minimum, maximum and points. \
             Use it for what happened earlier, for trends, and to compare times. Needs a running gpumon server. Most \
             used fields: {usual}; others: {}, host.cpu.busy_percent, host.memory.used_bytes. Those of MIG devices begin \
             with `mig.`. A wrong id is answered with similar ones.",
            others.join(", ")
        )
    }

    fn answer(self, sources: &Sources) -> Result<HistoryAnswer, Failure> {
        check(&self.fields)?;
        let points = self.points.unwrap_or(USUAL_POINTS);
        if !(1..=MOST_POINTS).contains(&points) {
            return Err(anyhow!("points: {points} is not 1 to {MOST_POINTS}").into());
        }
        let past = sources.past()?;
        let span = span(
            self.since.as_deref().unwrap_or(USUAL_SINCE),
            self.until.as_deref(),
        )?;
        let fields: Vec<&str> = self.fields.iter().map(String::as_str).collect();
        let answer = ask(past, span, &fields, points)?;
        let gpus = self.gpus.as_deref();
        if let Some(index) = gpus
            .into_iter()
            .flatten()
            .find(|index| !answer.gpus.iter().any(|gpu| gpu.index == **index))
        {
            let known: Vec<_> = answer
                .gpus
                .iter()
                .map(|gpu| gpu.index.to_string())
                .collect();
            return Err(anyhow!(
                "no GPU {index} told any of these fields in that time; there are {}",
                known.join(", ")
            )
            .into());
        }
        let series: Vec<_> = fields
            .iter()
            .flat_map(|id| of_field(id, &answer, gpus))
            .collect();
        if series.is_empty() {
            return Err(anyhow!(
                "nothing is known of {} in that time: name other fields, or a later time; {}",
                fields.join(", "),
                past.cure()
            )
            .into());
        }
        Ok(HistoryAnswer {
            from: time(answer.from_ms),
            to: time(answer.to_ms),
            known_since: time(answer.oldest_ms),
            simulated: sources.is_past_simulated(),
            times: answer.times_ms.iter().map(|at_ms| time(*at_ms)).collect(),
            seconds_per_point: answer.resolution_ms as f64 / 1000.0,
            series,
        })
    }
}

/// A span as it was typed.
pub(super) fn span(since: &str, until: Option<&str>) -> Result<Range<u64>, Failure> {
    let moment =
        |name: &str, text: &str| text.parse().map_err(|why: String| anyhow!("{name}: {why}"));
    let until = until.map(|until| moment("until", until)).transpose()?;
    let span =
        MomentSpan::new(Some(moment("since", since)?), until).resolve(&Beside::now(now_ms()));
    Ok(span.map_err(|why| anyhow!(why))?)
}

/// In at most so many points, whatever of the span is known.
fn ask(
    past: &PastArgs,
    span: Range<u64>,
    fields: &[&str],
    points: u64,
) -> Result<HistorySpan, Failure> {
    let asked = |span: &Range<u64>| (span.end - span.start).div_ceil(points).max(1);
    let whole = past.ask(&span, fields, Some(asked(&span)))?;
    let known = span.start.max(whole.oldest_ms)..span.end;
    // Where less is known, it fits in finer points.
    if known.is_empty() || asked(&known) >= asked(&span) {
        Ok(whole)
    } else {
        past.ask(&known, fields, Some(asked(&known)))
    }
}

fn check(fields: &[String]) -> Result<(), Failure> {
    if fields.is_empty() || fields.len() > MOST_FIELDS {
        return Err(anyhow!("fields: give 1 to {MOST_FIELDS} ids, as {}", OVERVIEW[0]).into());
    }
    let known = Wanted::all().ids();
    let Some(wrong) = fields.iter().find(|field| !known.contains(field)) else {
        return Ok(());
    };
    let similar = similar(wrong, &known).join(", ");
    Err(anyhow!("fields: there is no field '{wrong}'; similar ones are {similar}").into())
}

/// The known ids that are most like it: those that share a part of it first.
fn similar<'a>(id: &str, known: &'a [String]) -> Vec<&'a str> {
    let parts = |id: &str| {
        id.to_lowercase()
            .split(['.', '_', ' ', '-'])
            .map(str::to_owned)
            .collect::<BTreeSet<_>>()
    };
    let asked = parts(id);
    let likeness =
        |other: &str| asked.intersection(&parts(other)).count() as f64 + jaro_winkler(id, other);
    let mut all: Vec<&str> = known.iter().map(String::as_str).collect();
    all.sort_by(|one, other| likeness(other).total_cmp(&likeness(one)));
    all.truncate(NAMED);
    all
}

fn of_field(id: &str, span: &HistorySpan, gpus: Option<&[u32]>) -> Vec<SeriesAnswer> {
    let is_wanted = |gpu: &DeviceSpan| gpus.is_none_or(|gpus| gpus.contains(&gpu.index));
    if let Some(field) = HOST_FIELDS.iter().find(|field| field.id == id) {
        return span
            .host
            .get(id)
            .map(|series| of_series(field, id, series, None, None))
            .into_iter()
            .collect();
    }
    if let Some(field) = of_mig().find(|field| mig_id(field.id) == id) {
        let parent = |mig: &DeviceSpan| {
            span.gpus
                .iter()
                .find(|gpu| Some(&gpu.uuid) == mig.parent.as_ref())
        };
        let of_wanted = span
            .mig_devices
            .iter()
            .filter(|mig| parent(mig).is_none_or(is_wanted));
        return of_wanted
            .filter_map(|mig| {
                let gpu = parent(mig).map(|gpu| gpu.index);
                Some(of_series(
                    field,
                    id,
                    mig.metrics.get(id)?,
                    gpu,
                    Some(mig.uuid.clone()),
                ))
            })
            .collect();
    }
    let Some(field) = GPU_FIELDS.iter().find(|field| field.id == id) else {
        return Vec::new();
    };
    let of_wanted = span.gpus.iter().filter(|gpu| is_wanted(gpu));
    of_wanted
        .filter_map(|gpu| {
            Some(of_series(
                field,
                id,
                gpu.metrics.get(id)?,
                Some(gpu.index),
                None,
            ))
        })
        .collect()
}

fn of_series<S>(
    field: &Field<S>,
    id: &str,
    series: &Series,
    gpu: Option<u32>,
    mig_uuid: Option<String>,
) -> SeriesAnswer {
    let known = |values: &Option<Vec<Option<f64>>>| -> Vec<f64> {
        values
            .as_ref()
            .unwrap_or(&series.values)
            .iter()
            .flatten()
            .copied()
            .collect()
    };
    let values: Vec<f64> = series.values.iter().flatten().copied().collect();
    let is_gauge = field.kind == Kind::Gauge;
    let mean = (is_gauge && !values.is_empty())
        .then(|| rounded(values.iter().sum::<f64>() / values.len() as f64));
    SeriesAnswer {
        field: id.to_owned(),
        meaning: field.help,
        gpu,
        mig_uuid,
        mean,
        min: known(&series.min).into_iter().reduce(f64::min),
        max: known(&series.max).into_iter().reduce(f64::max),
        last: values.last().copied(),
        values: series
            .values
            .iter()
            .map(|value| value.map(|value| if is_gauge { rounded(value) } else { value }))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_id_is_answered_with_similar_ones() {
        let known = Wanted::all().ids();
        for (wrong, meant) in [
            ("power", "power.draw_watts"),
            ("power.drwa_watts", "power.draw_watts"),
            ("gpu_utilization", "utilization.gpu_percent"),
            ("memory_used", "memory.used_bytes"),
            ("temperature", "temperature.gpu_celsius"),
            ("cpu", "host.cpu.busy_percent"),
        ] {
            assert!(
                similar(wrong, &known).contains(&meant),
                "{wrong}: {:?}",
                similar(wrong, &known)
            );
        }
        let refused = check(&["power".to_owned()]).unwrap_err().message().unwrap();
        assert!(
            refused.contains("no field 'power'") && refused.contains("power.draw_watts"),
            "{refused}"
        );
        assert!(check(&[]).is_err() && check(&vec![OVERVIEW[0].to_owned(); 9]).is_err());
    }

    #[test]
    fn a_counter_has_no_mean_and_a_gauge_the_extremes_of_its_points() {
        let field = |id: &str| GPU_FIELDS.iter().find(|field| field.id == id).unwrap();
        let values = vec![Some(1.0), None, Some(3.0)];
        let series = Series {
            values,
            min: Some(vec![Some(0.5), None, Some(2.0)]),
            max: Some(vec![Some(2.0), None, Some(9.0)]),
        };
        let gauge = of_series(
            field("power.draw_watts"),
            "power.draw_watts",
            &series,
            Some(0),
            None,
        );
        assert_eq!(
            (gauge.mean, gauge.min, gauge.max, gauge.last),
            (Some(2.0), Some(0.5), Some(9.0), Some(3.0))
        );
        let series = Series {
            min: None,
            max: None,
            ..series
        };
        let counter = of_series(
            field("power.energy_joules_total"),
            "power.energy_joules_total",
            &series,
            Some(0),
            None,
        );
        assert_eq!(
            (counter.mean, counter.min, counter.max, counter.values.len()),
            (None, Some(1.0), Some(3.0), 3)
        );
    }
}
