//! What users, jobs, notebooks and pods used.

use std::collections::BTreeSet;

use anyhow::anyhow;
use gpumon_history::jobs::is_job_called;
use gpumon_probe::{
    model::{Job, Reading, now_ms},
    usage::{OwnerUsage, Usage},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{Answer, Tool, sources::Sources};
use crate::{
    commands::{
        job::{self, Measured},
        usage::Answer as Usages,
    },
    exit::Result,
    moment::Beside,
    past::PastArgs,
};

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UsageOf {
    /// A login name, or the ID or name of a batch job, notebook, pod, container or service; everybody if omitted.
    who: Option<String>,
    /// First moment: a date, a time of day or both in local time, as 2026-11-23T20:00, or a time before now, as -7d; the
    /// server's start if omitted. Spans are rounded to the quarters of an hour around them.
    since: Option<String>,
    /// First moment that is left out, in the same forms; now if omitted.
    until: Option<String>,
}

/// The most owners in an answer.
const MOST: usize = 50;

impl Tool for UsageOf {
    const NAME: &'static str = "gpu_usage";
    const TITLE: &'static str = "GPU time and energy by owner";
    const TYPE: &'static str = "Usage";
    const KEYS: &'static str = "\
        since_ms at_ms oldest_ms owners user gpu_seconds exclusive_seconds active_seconds joules \
        least most estimate unheld* job*";

    fn description() -> String {
        "How much GPU time and energy users, batch jobs, notebooks, pods, containers and services \
         used, with the bounds within which energy is known; `job` says of a named job how well \
         it used its GPUs, with advice. Use it for what something cost, for a run also by its \
         times, and for who uses the most. Needs a running gpumon server."
            .to_owned()
    }

    fn find_answer(self, sources: &Sources) -> Result<Answer> {
        let past = sources.past()?;
        let since = self.since.as_deref();
        let since = since
            .map(|text| super::parse_moment("since", text))
            .transpose()?;
        let until = self.until.as_deref();
        let until = until
            .map(|text| super::parse_moment("until", text))
            .transpose()?;
        let usage = Usages::new(past, since, until, &Beside::now(now_ms()))?.usage;
        let mut answer = self.select(usage, past)?;
        answer.own["simulated"] = json!(sources.is_past_simulated());
        Ok(answer)
    }
}

impl UsageOf {
    /// Selects the owners that were asked for, and adds their sum.
    fn select(&self, mut usage: Usage, past: &PastArgs) -> Result<Answer> {
        let called = self.who.as_deref().map(str::trim);
        let called = called.filter(|name| !name.is_empty());
        let users: BTreeSet<_> = usage
            .owners
            .iter()
            .filter_map(|owner| owner.user.clone())
            .collect();
        usage
            .owners
            .retain(|owner| called.is_none_or(|name| is_called(owner, name)));
        let job = match called {
            Some(name) if !users.contains(name) => {
                let found = job::find(name, past);
                match found.and_then(|job| Ok((Measured::new(&job, past)?, job))) {
                    Ok((measured, job)) => Some(job::as_json(&job, &measured)),
                    // Its usage is known even if nothing else is.
                    Err(_) if !usage.owners.is_empty() => None,
                    Err(failure) => {
                        let users: Vec<_> = users.into_iter().take(MOST).collect();
                        let why = failure.message().unwrap_or_default();
                        return Err(anyhow!(
                            "{why}; there is no user of that name, either: there are {}",
                            users.join(", ")
                        )
                        .into());
                    }
                }
            }
            _ => None,
        };
        let mut total = OwnerUsage::default();
        usage.owners.iter().for_each(|owner| total.add(owner));
        let own = json!({
            "total": total,
            "owners_omitted": usage.owners.len().saturating_sub(MOST),
        });
        usage.owners.truncate(MOST);
        let mut api = json!(usage);
        if let Some(job) = job {
            api["job"] = job;
        }
        Ok(Answer { api, own })
    }
}

/// Returns `true` if people call the owner by this: a user, or what the processes are of.
fn is_called(owner: &OwnerUsage, name: &str) -> bool {
    let is_job = |job: &Job| {
        let path = job.path.as_ref().and_then(Reading::value);
        is_job_called(job.kind, &job.id, path.or(job.name.as_ref()), name)
    };
    owner.user.as_deref() == Some(name) || owner.job.as_ref().is_some_and(is_job)
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use gpumon_history::database::Database;
    use gpumon_probe::{model::JobKind, usage::Joules};
    use serde_json::Value;

    use super::{super::answer::select_keys, *};

    #[derive(Debug, Parser)]
    struct Typed {
        #[command(flatten)]
        past: PastArgs,
    }

    /// Two GPU hours, of which an hour was alone, and a notebook's as much again.
    fn usage() -> Usage {
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

    fn of(who: Option<&str>) -> Result<Value, String> {
        let folder = tempfile::tempdir().unwrap();
        Database::open(folder.path()).unwrap();
        let past = Typed::parse_from(["mcp", "--data-dir", folder.path().to_str().unwrap()]).past;
        let tool = UsageOf {
            who: who.map(str::to_owned),
            ..UsageOf::default()
        };
        let answer = tool
            .select(usage(), &past)
            .map_err(|failure| failure.message().unwrap())?;
        let mut selected = select_keys(answer.api, UsageOf::KEYS);
        selected["total"] = answer.own["total"].clone();
        Ok(selected)
    }

    #[test]
    fn usage_is_summed_with_bounds() {
        let all = of(None).unwrap();
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
    fn unknown_owner_is_refused_with_known_ones() {
        for (who, user) in [
            ("ana", "ana"),
            ("bob", "bob"),
            ("train.ipynb", "bob"),
            (" 0123456789", "bob"),
        ] {
            let of_one = of(Some(who)).unwrap();
            assert_eq!(
                of_one["owners"].as_array().unwrap().len(),
                1,
                "{who}: {of_one}"
            );
            assert_eq!(of_one["owners"][0]["untrusted"]["user"], user, "{who}");
            assert_eq!(of_one["total"]["gpu_seconds"], 7_200.0, "{who}");
        }
        let nobody = of(Some("carol")).unwrap_err();
        assert!(
            nobody.contains("there is no job 'carol'") && nobody.contains("there are ana, bob"),
            "{nobody}"
        );
    }
}
