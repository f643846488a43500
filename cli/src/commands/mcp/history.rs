//! A field over time.

use std::{collections::BTreeSet, mem, ops::Range};

use anyhow::anyhow;
use gpumon_history::{
    span::{HistorySpan, Series},
    wanted::{Metric, Wanted, rounded},
};
use gpumon_probe::{
    model::{
        GpuName,
        fields::{GPU_FIELDS, Kind, OVERVIEW},
    },
    stat::Window,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use strsim::jaro_winkler;

use super::{Answer, Tool, sources::Sources};
use crate::{exit::Result, past::PastArgs};

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
    /// Only these GPUs, by index (0), vendor (amd:0), UUID or PCI bus ID; all of them if omitted.
    gpus: Option<Vec<GpuName>>,
    /// At most so many points; 60 if omitted.
    #[schemars(range(min = 1, max = MOST_POINTS))]
    points: Option<u64>,
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
    const TYPE: &'static str = "HistorySpan";
    const KEYS: &'static str = "\
        from_ms to_ms resolution_ms oldest_ms storage* times_ms gpus mig_devices uuid \
        index name parent metrics* host*";

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

    fn find_answer(self, sources: &Sources) -> Result<Answer> {
        check(&self.fields)?;
        let points = self.points.unwrap_or(USUAL_POINTS);
        if !(1..=MOST_POINTS).contains(&points) {
            return Err(anyhow!("points: {points} is not 1 to {MOST_POINTS}").into());
        }
        let past = sources.past()?;
        let since = self.since.as_deref().unwrap_or(USUAL_SINCE);
        let span = super::parse_span(since, self.until.as_deref())?;
        let fields: Vec<&str> = self.fields.iter().map(String::as_str).collect();
        let mut answer = ask(past, span, &fields, points)?;
        (answer.events, answer.conditions) = Default::default();
        if let Some(names) = &self.gpus {
            keep_gpus(&mut answer, &sources.find_indices(names)?)?;
        }
        if answer.gpus.is_empty() && answer.mig_devices.is_empty() && answer.host.is_empty() {
            return Err(anyhow!(
                "nothing is known of {} in that time: name other fields, or a later time; {}",
                fields.join(", "),
                past.cure()
            )
            .into());
        }
        let devices = answer.gpus.iter_mut().chain(&mut answer.mig_devices);
        let of_devices = devices.flat_map(|device| {
            let (uuid, index) = (&device.uuid, device.index);
            let of_device = device.metrics.iter_mut();
            of_device.map(move |(id, series)| (id, series, Some((uuid, index)).unzip()))
        });
        let of_host = answer.host.iter_mut();
        let of_host = of_host.map(|(id, series)| (id, series, (None, None)));
        let summary: Vec<_> = of_devices
            .chain(of_host)
            .map(|(id, series, (uuid, index))| {
                let mut summary = sum_up(id, series);
                (summary["uuid"], summary["gpu"]) = (json!(uuid), json!(index));
                summary
            })
            .collect();
        let own = json!({ "summary": summary, "simulated": sources.is_past_simulated() });
        let api = json!(answer);
        Ok(Answer { api, own })
    }
}

/// Keeps only GPUs with these indices, and their MIG devices.
fn keep_gpus(span: &mut HistorySpan, gpus: &[u32]) -> Result {
    let known: Vec<_> = span.gpus.iter().map(|gpu| gpu.index).collect();
    if let Some(index) = gpus.iter().find(|index| !known.contains(index)) {
        let known: Vec<_> = known.iter().map(ToString::to_string).collect();
        return Err(anyhow!(
            "no GPU {index} told any of these fields in that time; there are {}",
            known.join(", ")
        )
        .into());
    }
    let (kept, others): (Vec<_>, Vec<_>) = mem::take(&mut span.gpus)
        .into_iter()
        .partition(|gpu| gpus.contains(&gpu.index));
    span.gpus = kept;
    // A MIG device stays if its GPU is unknown.
    span.mig_devices.retain(|mig| {
        !others
            .iter()
            .any(|gpu| Some(&gpu.uuid) == mig.parent.as_ref())
    });
    Ok(())
}

/// In at most so many points, whatever of the span is known.
fn ask(past: &PastArgs, span: Range<u64>, fields: &[&str], points: u64) -> Result<HistorySpan> {
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

fn check(fields: &[String]) -> Result {
    if fields.is_empty() || fields.len() > MOST_FIELDS {
        return Err(anyhow!("fields: give 1 to {MOST_FIELDS} ids, as {}", OVERVIEW[0]).into());
    }
    let Some(wrong) = fields.iter().find(|field| Metric::find(field).is_none()) else {
        return Ok(());
    };
    let similar = similar(wrong, &Wanted::all().ids()).join(", ");
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

/// Returns the summary of a series, which keeps one value for each point: the mean of a gauge, the
/// last of a counter or a state.
fn sum_up(id: &str, series: &mut Series) -> Value {
    let window = |values: &[Option<f64>]| values.iter().flatten().copied().collect::<Window>();
    let values = window(&series.values);
    let [min, max] = [series.min.take(), series.max.take()]
        .map(|extremes| extremes.map_or(values, |extremes| window(&extremes)).stat());
    let (kind, meaning) = Metric::find(id)
        .map(|metric| (metric.kind, metric.help))
        .unzip();
    let mut summary = json!({
        "field": id,
        "meaning": meaning,
        "min": min.map(|stat| stat.min),
        "max": max.map(|stat| stat.max),
        "last": values.last(),
    });
    if let (Some(Kind::Gauge), Some(mean)) = (kind, values.mean()) {
        summary["mean"] = json!(rounded(mean));
        for value in series.values.iter_mut().flatten() {
            *value = rounded(*value);
        }
    }
    summary
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
    fn only_gauges_have_mean_in_summary() {
        let values = vec![Some(1.0), None, Some(3.0)];
        let series = Series {
            values,
            min: Some(vec![Some(0.5), None, Some(2.0)]),
            max: Some(vec![Some(2.0), None, Some(9.0)]),
        };
        let gauge = sum_up("power.draw_watts", &mut series.clone());
        let (mean, min) = (&gauge["mean"], &gauge["min"]);
        assert_eq!((mean, min), (&json!(2.0), &json!(0.5)));
        assert_eq!((&gauge["max"], &gauge["last"]), (&json!(9.0), &json!(3.0)));
        let mut series = Series {
            min: None,
            max: None,
            ..series
        };
        let counter = sum_up("power.energy_joules_total", &mut series);
        let (min, max) = (&counter["min"], &counter["max"]);
        assert_eq!((min, max), (&json!(1.0), &json!(3.0)));
        assert!(counter["mean"].is_null() && series.values.len() == 3);
    }
}
