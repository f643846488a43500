//! Which job is meant, and where it was.

use std::collections::BTreeSet;

use gpumon_history::jobs::JobSpan;
use gpumon_probe::{
    model::{JobKind, now_ms},
    units::duration,
    untrusted::escaped,
};
use strsim::jaro_winkler;

use crate::{
    exit::{Failure, usage},
    past::PastArgs,
};

/// So many others are named in an error.
const NAMED: usize = 5;

/// A job with all that is known of where it was.
#[derive(Debug)]
pub(crate) struct FoundJob {
    pub(crate) kind: JobKind,
    /// As people call it.
    pub(crate) label: String,
    pub(crate) user: Option<String>,
    /// The newest first.
    pub(crate) spans: Vec<JobSpan>,
    /// Who was on the same devices at the same time.
    pub(crate) others: BTreeSet<String>,
}

impl FoundJob {
    /// From when to when it was on any GPU.
    pub(crate) fn times_ms(&self) -> (u64, u64) {
        let from_ms = self
            .spans
            .iter()
            .map(|span| span.from_ms)
            .min()
            .unwrap_or(0);
        (
            from_ms,
            self.spans.iter().map(|span| span.to_ms).max().unwrap_or(0),
        )
    }
}

/// The one job that is called so.
pub(crate) fn find(id: &str, past: &PastArgs) -> Result<FoundJob, Failure> {
    let all = past.list_jobs(None)?;
    let mut called: Vec<JobSpan> = all
        .iter()
        .filter(|span| span.is_called(id))
        .cloned()
        .collect();
    if called.is_empty() {
        // One of those for which a list of all has no room.
        called = past.list_jobs(Some(id))?;
    }
    choose(id, called, all, now_ms(), past.cure()).map_err(|why| usage!(why))
}

fn choose(
    id: &str,
    called: Vec<JobSpan>,
    all: Vec<JobSpan>,
    now_ms: u64,
    cure: &str,
) -> Result<FoundJob, String> {
    let Some(first) = called.first().cloned() else {
        return Err(unknown(id, &all, now_ms, cure));
    };
    // Whoever types an id means no name.
    let exact: Vec<_> = called
        .iter()
        .filter(|span| span.id == id)
        .cloned()
        .collect();
    let (first, called) = exact
        .first()
        .cloned()
        .map_or((first, called), |first| (first, exact));
    let different: BTreeSet<_> = called
        .iter()
        .filter(|span| !span.is_same_job(&first))
        .map(full_label)
        .collect();
    if !different.is_empty() {
        let mut names: Vec<_> = [full_label(&first)].into_iter().chain(different).collect();
        names.truncate(NAMED);
        return Err(format!(
            "'{id}' matches several jobs: name one of {}",
            names.join(", ")
        ));
    }
    let (spans, rest): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|span| span.is_same_job(&first));
    let spans = if spans.is_empty() { called } else { spans };
    let is_beside = |other: &&JobSpan| {
        let at_once = |span: &JobSpan| {
            span.uuid == other.uuid && span.from_ms < other.to_ms && other.from_ms < span.to_ms
        };
        spans.iter().any(at_once)
    };
    let others = rest.iter().filter(is_beside).map(label_with_user).collect();
    let known = |what: fn(&JobSpan) -> Option<&String>| spans.iter().find_map(what).cloned();
    let newest = spans
        .iter()
        .find(|span| span.name.is_some())
        .unwrap_or(&first);
    Ok(FoundJob {
        kind: first.kind,
        label: label(newest),
        user: known(|span| span.user.as_ref()),
        others,
        spans,
    })
}

fn unknown(id: &str, all: &[JobSpan], now_ms: u64, cure: &str) -> String {
    let mut known: Vec<&JobSpan> = Vec::new();
    for span in all {
        if !known.iter().any(|other| other.is_same_job(span)) {
            known.push(span);
        }
    }
    if known.is_empty() {
        return format!("there is no job '{id}': none has been seen on a GPU; {cure}");
    }
    // Nearest first; those that are as near, as they were seen last.
    let distance = |span: &&JobSpan| {
        let names = [
            Some(span.id.as_str()),
            span.name.as_deref(),
            span.name
                .as_deref()
                .and_then(|name| name.rsplit('/').next()),
        ];
        let nearest = names
            .into_iter()
            .flatten()
            .map(|name| jaro_winkler(name, id))
            .fold(0.0, f64::max);
        ((1.0 - nearest) * 1000.0) as u64
    };
    known.sort_by_key(distance);
    let oldest_ms = all.iter().map(|span| span.from_ms).min().unwrap_or(now_ms);
    let names: Vec<_> = known
        .iter()
        .take(NAMED)
        .map(|span| label_with_user(span))
        .collect();
    let reach = duration(now_ms.saturating_sub(oldest_ms));
    format!(
        "there is no job '{id}' among those of the last {reach}: the nearest by name: {}; {cure}",
        names.join(", ")
    )
}

pub(crate) fn label(span: &JobSpan) -> String {
    let short = span.id.chars().take(12).collect::<String>();
    if let Some(system) = span.kind.batch_system() {
        return format!("{system} job {}", span.id);
    }
    match (span.kind, &span.name) {
        (JobKind::Pod, name) => format!("pod {}", name.as_ref().unwrap_or(&span.id)),
        (JobKind::Notebook, Some(path)) => format!("notebook {path}"),
        (JobKind::Notebook, None) => format!("notebook {short}"),
        (JobKind::Container, _) => format!("container {short}"),
        (_, _) => span.id.clone(),
    }
}

fn full_label(span: &JobSpan) -> String {
    format!(
        "{} ({})",
        escaped(&span.id),
        escaped(&label_with_user(span))
    )
}

fn label_with_user(span: &JobSpan) -> String {
    let user = span
        .user
        .as_ref()
        .map_or_else(String::new, |user| format!(" of {user}"));
    label(span) + &user
}

#[cfg(test)]
mod tests {
    use super::*;

    const CURE: &str = "keep more";

    fn span(kind: JobKind, id: &str, name: Option<&str>, uuid: &str, times: (u64, u64)) -> JobSpan {
        let [id, uuid] = [id, uuid].map(str::to_owned);
        let (name, user) = (name.map(str::to_owned), Some("ana".to_owned()));
        JobSpan {
            kind,
            id,
            name,
            user,
            uuid,
            from_ms: times.0,
            to_ms: times.1,
            private: false,
        }
    }

    fn all() -> Vec<JobSpan> {
        vec![
            span(JobKind::Slurm, "88123", None, "GPU-0", (50_000, 90_000)),
            span(JobKind::Slurm, "88123", None, "GPU-1", (50_000, 80_000)),
            span(JobKind::Slurm, "88124", None, "GPU-1", (70_000, 95_000)),
            span(JobKind::Slurm, "7", None, "GPU-1", (10_000, 40_000)),
            span(
                JobKind::Pod,
                "aaaa-bbbb",
                Some("research/train-0"),
                "GPU-2",
                (20_000, 30_000),
            ),
            span(
                JobKind::Pod,
                "research/train-0",
                Some("research/train-0"),
                "GPU-2",
                (10_000, 30_000),
            ),
            span(
                JobKind::Pod,
                "cccc-dddd",
                Some("web/train-0"),
                "GPU-3",
                (10_000, 20_000),
            ),
            span(
                JobKind::Notebook,
                "0123456789",
                Some("/home/ana/train.ipynb"),
                "GPU-4",
                (0, 5_000),
            ),
            span(
                JobKind::Service,
                "ollama.service",
                None,
                "GPU-5",
                (0, 5_000),
            ),
        ]
    }

    fn found(id: &str) -> Result<FoundJob, String> {
        let called = all()
            .into_iter()
            .filter(|span| span.is_called(id))
            .collect();
        choose(id, called, all(), 100_000, CURE)
    }

    #[test]
    fn a_job_is_found_by_what_people_call_it_on_all_its_gpus_with_who_was_beside_it() {
        let slurm = found("88123").unwrap();
        assert_eq!(
            (slurm.label.as_str(), slurm.spans.len(), slurm.times_ms()),
            ("Slurm job 88123", 2, (50_000, 90_000))
        );
        assert_eq!(
            slurm.others.iter().map(String::as_str).collect::<Vec<_>>(),
            ["Slurm job 88124 of ana"]
        );
        for id in ["research/train-0", "aaaa-bbbb", "aaaa-bb"] {
            let pod = found(id).unwrap();
            assert_eq!(
                (pod.label.as_str(), pod.spans.len(), pod.others.len()),
                ("pod research/train-0", 2, 0),
                "{id}"
            );
        }
        for (id, label) in [
            ("train.ipynb", "notebook /home/ana/train.ipynb"),
            ("ollama", "ollama.service"),
            ("012345", "notebook /home/ana/train.ipynb"),
        ] {
            assert_eq!(found(id).unwrap().label, label);
        }
    }

    #[test]
    fn what_is_no_job_or_several_is_refused_with_those_that_there_are() {
        let several = found("train-0").unwrap_err();
        assert!(
            several.starts_with("'train-0' matches several jobs: name one of")
                && several.contains("cccc-dddd"),
            "{several}"
        );
        let near = found("88125").unwrap_err();
        let start = "there is no job '88125' among those of the last 1 min: the nearest by name: Slurm job 8812";
        assert!(
            near.starts_with(start) && near.ends_with("; keep more"),
            "{near}"
        );
        assert!(found("8812").is_err(), "a number is whole");
        let none = choose("1", Vec::new(), Vec::new(), 5, CURE).unwrap_err();
        assert_eq!(
            none,
            "there is no job '1': none has been seen on a GPU; keep more"
        );
    }
}
