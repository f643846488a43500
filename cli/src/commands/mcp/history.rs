//! MCP tools for history: metrics over time, and usage by owner.

use std::{collections::BTreeSet, mem, ops::Range};

use anyhow::anyhow;
use gpumon_history::{
    jobs::is_job_named,
    span::{HistorySpan, Metric, MetricSelection, Series, round_to_four_digits},
};
use gpumon_probe::{
    model::{
        GpuName, Job, Reading,
        fields::{GPU_FIELDS, Kind, OVERVIEW},
        now_ms,
    },
    stat::Window,
    usage::{OwnerUsage, Usage},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use strsim::jaro_winkler;

use super::{Tool, ToolAnswer, sources::Sources};
use crate::{
    commands::{
        job::{self, MeasuredJob},
        usage::UsageAnswer as Usages,
    },
    exit::Result,
    past_readings::PastArgs,
    time_spans::TimeReference,
};

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct History {
    /// IDs of the fields, up to 8.
    #[schemars(length(min = 1, max = 8))]
    fields: Vec<String>,
    /// Start of the span: a date, a time of day or both in local time, such as 2026-11-23T20:00, or
    /// a time before now, such as -2h; -10m if omitted.
    since: Option<String>,
    /// End of the span (exclusive), in the formats of `since`; now if omitted.
    until: Option<String>,
    /// Only these GPUs, by index (0), vendor (amd:0), UUID or PCI bus ID; all GPUs if omitted.
    gpus: Option<Vec<GpuName>>,
    /// Maximum number of points; 60 if omitted.
    #[schemars(range(min = 1, max = MAX_POINTS))]
    points: Option<u64>,
}

const DEFAULT_SINCE: &str = "-10m";
const DEFAULT_POINTS: u64 = 60;
const MAX_POINTS: u64 = 500;
const MAX_FIELDS: usize = 8;

/// The maximum number of similar IDs suggested for an unknown ID.
const MAX_SUGGESTIONS: usize = 6;

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
            "Readings of GPUs, MIG devices and the host over a span of time: mean, minimum, \
             maximum and points. Use it for past readings, for trends, and to compare periods. \
             Needs a running gpumon server. Most used fields: {usual}; others: {}, \
             host.cpu.busy_percent, host.memory.used_bytes. Fields of MIG devices begin with \
             `mig.`. For an unknown ID, the error lists similar ones.",
            others.join(", ")
        )
    }

    fn run_tool(self, sources: &Sources) -> Result<ToolAnswer> {
        check_fields(&self.fields)?;
        let points = self.points.unwrap_or(DEFAULT_POINTS);
        if !(1..=MAX_POINTS).contains(&points) {
            return Err(anyhow!("points: {points} is not between 1 and {MAX_POINTS}").into());
        }
        let past = sources.history_source()?;
        let since = self.since.as_deref().unwrap_or(DEFAULT_SINCE);
        let span = super::parse_span(since, self.until.as_deref())?;
        let fields: Vec<&str> = self.fields.iter().map(String::as_str).collect();
        let mut answer = fetch_history(past, span, &fields, points)?;
        (answer.events, answer.conditions) = Default::default();
        if let Some(names) = &self.gpus {
            keep_gpus(&mut answer, &sources.find_indices(names)?)?;
        }
        if answer.gpus.is_empty() && answer.mig_devices.is_empty() && answer.host.is_empty() {
            return Err(anyhow!(
                "no values of {} are recorded for the requested time: choose other fields or a \
                 later time; {}",
                fields.join(", "),
                past.describe_missing_history_fix()
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
                let mut summary = summarize_series(id, series);
                (summary["uuid"], summary["gpu"]) = (json!(uuid), json!(index));
                summary
            })
            .collect();
        let own = json!({ "summary": summary, "simulated": sources.is_history_simulated() });
        let api = json!(answer);
        Ok(ToolAnswer { api, own })
    }
}

/// Keeps only the GPUs with the indices in `gpus`, and their MIG devices.
///
/// # Errors
/// Returns an error if the span lacks any of these GPUs.
fn keep_gpus(span: &mut HistorySpan, gpus: &[u32]) -> Result {
    let known: Vec<_> = span.gpus.iter().map(|gpu| gpu.index).collect();
    if let Some(index) = gpus.iter().find(|index| !known.contains(index)) {
        let known: Vec<_> = known.iter().map(ToString::to_string).collect();
        return Err(anyhow!(
            "GPU {index} reported none of the requested fields in the requested time; GPUs that \
             reported at least one of them: {}",
            known.join(", ")
        )
        .into());
    }
    let (kept, others): (Vec<_>, Vec<_>) = mem::take(&mut span.gpus)
        .into_iter()
        .partition(|gpu| gpus.contains(&gpu.index));
    span.gpus = kept;
    // MIG devices of unknown GPUs are kept.
    span.mig_devices.retain(|mig| {
        !others
            .iter()
            .any(|gpu| Some(&gpu.uuid) == mig.parent.as_ref())
    });
    Ok(())
}

/// Requests the part of the span that history covers, with at most `points` points.
fn fetch_history(
    past: &PastArgs,
    span: Range<u64>,
    fields: &[&str],
    points: u64,
) -> Result<HistorySpan> {
    let asked = |span: &Range<u64>| (span.end - span.start).div_ceil(points).max(1);
    let whole = past.fetch_history(&span, fields, Some(asked(&span)))?;
    let known = span.start.max(whole.oldest_ms)..span.end;
    // If history covers only part of the span, history is requested again for this part, because
    // the same number of points then gives a finer resolution.
    if known.is_empty() || asked(&known) >= asked(&span) {
        Ok(whole)
    } else {
        past.fetch_history(&known, fields, Some(asked(&known)))
    }
}

fn check_fields(fields: &[String]) -> Result {
    if fields.is_empty() || fields.len() > MAX_FIELDS {
        return Err(anyhow!(
            "fields: give 1 to {MAX_FIELDS} field IDs, such as {}",
            OVERVIEW[0]
        )
        .into());
    }
    let Some(wrong) = fields.iter().find(|field| Metric::find(field).is_none()) else {
        return Ok(());
    };
    let similar = suggest_ids(wrong, &MetricSelection::select_all().ids()).join(", ");
    Err(anyhow!("fields: there is no field '{wrong}'; similar ones are {similar}").into())
}

/// Returns the known IDs that are most similar to `id`. IDs that share a word with it come first.
fn suggest_ids<'a>(id: &str, known: &'a [String]) -> Vec<&'a str> {
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
    all.truncate(MAX_SUGGESTIONS);
    all
}

/// Returns the summary of a series, and reduces the series to one value per point. The value is the
/// mean for a gauge, and the last value for a counter or a state.
fn summarize_series(id: &str, series: &mut Series) -> Value {
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
        summary["mean"] = json!(round_to_four_digits(mean));
        for value in series.values.iter_mut().flatten() {
            *value = round_to_four_digits(*value);
        }
    }
    summary
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UsageOf {
    /// A login name, or the ID or name of a batch job, notebook, pod, container or service;
    /// everybody if omitted.
    who: Option<String>,
    /// Start of the span: a date, a time of day or both in local time, such as 2026-11-23T20:00, or
    /// a time before now, such as -7d; the server's start if omitted. Spans are extended to full
    /// quarters of an hour.
    since: Option<String>,
    /// End of the span (exclusive), in the formats of `since`; now if omitted.
    until: Option<String>,
}

/// The maximum number of owners in a response.
const MAX_OWNERS: usize = 50;

impl Tool for UsageOf {
    const NAME: &'static str = "gpu_usage";
    const TITLE: &'static str = "GPU time and energy by owner";
    const TYPE: &'static str = "Usage";
    const KEYS: &'static str = "\
        since_ms at_ms oldest_ms owners user gpu_seconds exclusive_seconds active_seconds joules \
        least most estimate unheld* job*";

    fn description() -> String {
        "GPU time and energy of users, batch jobs, notebooks, pods, containers and services, with \
         lower and upper bounds of the energy. If a job is selected, `job` reports how well the \
         job used its GPUs, with advice. Use it to find out who uses the most GPU time or energy, \
         or what a run cost; for a run, give its start and end. Needs a running gpumon server."
            .to_owned()
    }

    fn run_tool(self, sources: &Sources) -> Result<ToolAnswer> {
        let past = sources.history_source()?;
        let since = super::parse_time("since", self.since.as_deref())?;
        let until = super::parse_time("until", self.until.as_deref())?;
        let usage = Usages::new(past, since, until, &TimeReference::from_now(now_ms()))?.usage;
        let mut answer = self.select_usage(usage, past)?;
        answer.own["simulated"] = json!(sources.is_history_simulated());
        Ok(answer)
    }
}

impl UsageOf {
    /// Returns the usage of the selected owners and the total.
    fn select_usage(&self, mut usage: Usage, past: &PastArgs) -> Result<ToolAnswer> {
        let called = self.who.as_deref().map(str::trim);
        let called = called.filter(|name| !name.is_empty());
        let users: BTreeSet<_> = usage
            .owners
            .iter()
            .filter_map(|owner| owner.user.clone())
            .collect();
        usage
            .owners
            .retain(|owner| called.is_none_or(|name| has_name(owner, name)));
        let job = match called {
            Some(name) if !users.contains(name) => {
                let found = job::find_job(name, past);
                match found.and_then(|job| Ok((MeasuredJob::new(&job, past)?, job))) {
                    Ok((measured, job)) => Some(job::to_json(&job, &measured)),
                    // If the job's report fails, the usage is still returned.
                    Err(_) if !usage.owners.is_empty() => None,
                    Err(failure) => {
                        let known: Vec<_> = users.into_iter().take(MAX_OWNERS).collect();
                        let known = match &known[..] {
                            [] => "none".to_owned(),
                            known => known.join(", "),
                        };
                        let why = failure.message().unwrap_or_default();
                        return Err(
                            anyhow!("there is no user '{name}' (users: {known}); {why}").into()
                        );
                    }
                }
            }
            _ => None,
        };
        let mut total = OwnerUsage::default();
        usage.owners.iter().for_each(|owner| total.add(owner));
        let own = json!({
            "total": total,
            "owners_omitted": usage.owners.len().saturating_sub(MAX_OWNERS),
        });
        usage.owners.truncate(MAX_OWNERS);
        let mut api = json!(usage);
        if let Some(job) = job {
            api["job"] = job;
        }
        Ok(ToolAnswer { api, own })
    }
}

/// Returns `true` if `name` is the name of the owner's user or job.
fn has_name(owner: &OwnerUsage, name: &str) -> bool {
    let is_job = |job: &Job| {
        let path = job.path.as_ref().and_then(Reading::value);
        is_job_named(job.kind, &job.id, path.or(job.name.as_ref()), name)
    };
    owner.user.as_deref() == Some(name) || owner.job.as_ref().is_some_and(is_job)
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use gpumon_history::database::Database;
    use gpumon_probe::{model::JobKind, usage::Joules};
    use serde_json::Value;

    use super::super::select_keys;

    use super::*;

    #[test]
    fn unknown_id_error_suggests_similar_ids() {
        let known = MetricSelection::select_all().ids();
        for (wrong, meant) in [
            ("power", "power.draw_watts"),
            ("power.drwa_watts", "power.draw_watts"),
            ("gpu_utilization", "utilization.gpu_percent"),
            ("memory_used", "memory.used_bytes"),
            ("temperature", "temperature.gpu_celsius"),
            ("cpu", "host.cpu.busy_percent"),
        ] {
            assert!(
                suggest_ids(wrong, &known).contains(&meant),
                "{wrong}: {:?}",
                suggest_ids(wrong, &known)
            );
        }
        let refused = check_fields(&["power".to_owned()])
            .unwrap_err()
            .message()
            .unwrap();
        assert!(
            refused.contains("no field 'power'") && refused.contains("power.draw_watts"),
            "{refused}"
        );
        assert!(
            check_fields(&[]).is_err() && check_fields(&vec![OVERVIEW[0].to_owned(); 9]).is_err()
        );
    }

    #[test]
    fn only_gauges_have_mean_in_summary() {
        let values = vec![Some(1.0), None, Some(3.0)];
        let series = Series {
            values,
            min: Some(vec![Some(0.5), None, Some(2.0)]),
            max: Some(vec![Some(2.0), None, Some(9.0)]),
        };
        let gauge = summarize_series("power.draw_watts", &mut series.clone());
        let (mean, min) = (&gauge["mean"], &gauge["min"]);
        assert_eq!((mean, min), (&json!(2.0), &json!(0.5)));
        assert_eq!((&gauge["max"], &gauge["last"]), (&json!(9.0), &json!(3.0)));
        let mut series = Series {
            min: None,
            max: None,
            ..series
        };
        let counter = summarize_series("power.energy_joules_total", &mut series);
        let (min, max) = (&counter["min"], &counter["max"]);
        assert_eq!((min, max), (&json!(1.0), &json!(3.0)));
        assert!(counter["mean"].is_null() && series.values.len() == 3);
    }

    #[derive(Debug, Parser)]
    struct ParsedArgs {
        #[command(flatten)]
        past: PastArgs,
    }

    /// Returns the usage of two owners, a user and a notebook. Each used two GPU hours, one of them
    /// exclusively.
    fn make_usage() -> Usage {
        let owner = |user: &str, job, [least, estimate, most]: [f64; 3]| OwnerUsage {
            user: Some(user.to_owned()),
            job,
            gpu_seconds: 7_200.0,
            exclusive_seconds: 3_600.0,
            active_seconds: 1_800.0,
            joules: Some(Joules {
                least,
                most,
                estimate,
            }),
        };
        let path = Some(Reading::Now("/home/bob/train.ipynb".to_owned()));
        let notebook = Job {
            kind: JobKind::Notebook,
            id: "0123456789".to_owned(),
            path,
            name: None,
            private: false,
        };
        let owners = vec![
            owner("ana", None, [3_600.0, 7_200.0, 10_800.0]),
            owner("bob", Some(notebook), [3_600.0; 3]),
        ];
        Usage {
            owners,
            ..Usage::default()
        }
    }

    fn select_owners(who: Option<&str>) -> Result<Value, String> {
        let folder = tempfile::tempdir().unwrap();
        Database::open(folder.path()).unwrap();
        let past =
            ParsedArgs::parse_from(["mcp", "--data-dir", folder.path().to_str().unwrap()]).past;
        let tool = UsageOf {
            who: who.map(str::to_owned),
            ..UsageOf::default()
        };
        let answer = tool
            .select_usage(make_usage(), &past)
            .map_err(|failure| failure.message().unwrap())?;
        let mut selected = select_keys(answer.api, UsageOf::KEYS);
        selected["total"] = answer.own["total"].clone();
        Ok(selected)
    }

    #[test]
    fn usage_total_has_energy_bounds() {
        let all = select_owners(None).unwrap();
        assert_eq!(all["owners"].as_array().unwrap().len(), 2, "{all}");
        assert_eq!(
            (
                &all["total"]["gpu_seconds"],
                &all["total"]["active_seconds"]
            ),
            (&json!(14_400.0), &json!(3_600.0))
        );
        let joules = json!({"least": 7_200.0, "estimate": 10_800.0, "most": 14_400.0});
        assert_eq!(all["total"]["joules"], joules);
    }

    #[test]
    fn unknown_owner_error_lists_recorded_owners() {
        for (who, user) in [
            ("ana", "ana"),
            ("bob", "bob"),
            ("train.ipynb", "bob"),
            (" 0123456789", "bob"),
        ] {
            let of_one = select_owners(Some(who)).unwrap();
            assert_eq!(
                of_one["owners"].as_array().unwrap().len(),
                1,
                "{who}: {of_one}"
            );
            assert_eq!(of_one["owners"][0]["untrusted"]["user"], user, "{who}");
            assert_eq!(of_one["total"]["gpu_seconds"], 7_200.0, "{who}");
        }
        let nobody = select_owners(Some("carol")).unwrap_err();
        assert!(
            nobody
                .starts_with("there is no user 'carol' (users: ana, bob); there is no job 'carol'"),
            "{nobody}"
        );
    }
}
