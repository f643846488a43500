//! `gpumon usage`: prints energy and GPU time by owner, since the server's start or in a given span
//! of time.

use std::ops::Range;

use anyhow::{Context, anyhow};
use gpumon_probe::{
    model::{Job, JobKind, now_ms},
    units::format_duration,
    untrusted::escape_untrusted,
    usage::{Joules, OwnerUsage, PERIOD_MS, Usage},
};
use jiff::tz::TimeZone;

use crate::{
    describe::NotebookNames,
    exit::{Result, usage},
    past_readings::PastArgs,
    terminal::{
        columns::{Column, Columns, format_number, terminal_columns},
        output::{print, print_raw},
        units::{ABSENT, format_energy, format_energy_with_cost},
    },
    time_spans::{TimeReference, TypedTime, TypedTimeSpan, format_time},
};

/// Print energy and GPU time by owner, since the server's start or in a span of time
///
/// An owner is a user and, if known, the notebook, batch job, pod, container or service that the
/// processes belong to. Idle power is included: while one owner alone holds a GPU, all of its
/// energy counts as theirs, exactly. If several owners hold it, the energy is estimated by SM
/// share, with a range: at least the energy above idle power while no other owner's kernels ran, at
/// most all energy of the GPU.
#[derive(Debug, clap::Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct UsageArgs {
    /// Start of the span: a date, a time of day or both, or a time before now, such as -7d; by
    /// default, the server's start, or with --until as far back as usage is recorded
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    since: Option<TypedTime>,

    /// End of the span (exclusive), in the formats of --since; by default, now. The span is
    /// extended to whole quarters of an hour
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    until: Option<TypedTime>,

    /// Print the usage as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    past: PastArgs,
}

const NOTES: &str = "\
Examples:
  gpumon usage
      Print a table, sorted by energy. GPU hours count every GPU that an owner holds; active hours
      count the time in which the owner's kernels ran.
  gpumon usage --since -7d
  gpumon usage --since 2026-11-16 --until 2026-11-23
      Print who used how much in the last seven days, and in one week.
  gpumon usage --json | jq '.owners[] | [.user, .job.id, .joules.estimate]'
      Print the energy of each owner in joules.

Environment:
  GPUMON_CONTROL  default of --control

Exit codes: 0 success, 1 no server, request refused, or no usage recorded for the requested time, 2 invalid argument";

/// If the bounds of a range differ by at most this fraction, the range is shown as an exact number.
const EXACT_TOLERANCE: f64 = 1e-3;

const COLUMNS: [Column; 6] = [
    Column::new_left_aligned("User", 0),
    Column::new_left_aligned("Job", 0),
    Column::new_right_aligned("GPU hours", 0),
    Column::new_right_aligned("Active hours", 2),
    Column::new_right_aligned("Energy", 0),
    Column::new_left_aligned("Range", 1),
];

const SECONDS_PER_HOUR: f64 = 3_600.0;

pub(crate) fn run(args: &UsageArgs) -> Result {
    let reference = TimeReference::from_now(now_ms());
    let UsageAnswer { json, usage, span } =
        UsageAnswer::new(&args.past, args.since, args.until, &reference)?;
    if args.json {
        // Printing the raw reply keeps fields that a newer server adds.
        return print_raw(&format!("{}\n", json.trim()));
    }
    print(&format_report(
        &usage,
        span.as_ref(),
        &reference.zone,
        terminal_columns(),
    ))
}

/// The usage by owner, as received and parsed.
pub(crate) struct UsageAnswer {
    json: String,
    pub(crate) usage: Usage,
    /// The requested span; `None` for the time since the server's start.
    span: Option<Range<u64>>,
}

impl UsageAnswer {
    /// Requests the usage in a span of time, or since the server's start if neither `since` nor
    /// `until` is given.
    ///
    /// # Errors
    /// Returns an error if neither a server nor a data directory can be read, or if no usage is
    /// recorded for the span.
    pub(crate) fn new(
        past: &PastArgs,
        since: Option<TypedTime>,
        until: Option<TypedTime>,
        reference: &TimeReference,
    ) -> Result<Self> {
        let has_span = since.is_some() || until.is_some();
        let span = has_span
            .then(|| TypedTimeSpan::new(since, until).resolve(reference))
            .transpose()
            .map_err(|why| usage!(why))?;
        let json = past.fetch_usage(span.as_ref())?;
        let usage: Usage = serde_json::from_str(&json)
            .context("the server runs a different version of gpumon; restart the server")?;
        if span.is_some() || usage.oldest_ms.is_some() {
            let end_ms = span.as_ref().map_or(reference.end_ms, |span| span.end);
            check_usage_is_recorded(
                &usage,
                end_ms,
                past.describe_missing_history_fix(),
                &reference.zone,
            )?;
        }
        Ok(Self { json, usage, span })
    }
}

/// Returns an error if no usage is recorded for a span that ends at `end_ms`.
fn check_usage_is_recorded(usage: &Usage, end_ms: u64, cure: &str, zone: &TimeZone) -> Result {
    let Some(oldest_ms) = usage.oldest_ms else {
        return Err(anyhow!(
            "the server is older than this gpumon and does not support spans of time; restart the \
             server"
        )
        .into());
    };
    // These cases are not errors. For example, a server that has just started has no usage yet.
    if usage.since_ms < usage.at_ms || usage.at_ms == oldest_ms || oldest_ms == 0 {
        return Ok(());
    }
    let [end, oldest] = [end_ms, oldest_ms].map(|ms| format_time(ms, zone));
    if oldest_ms < end_ms {
        return Err(anyhow!(
            "no usage is recorded for the requested time: no server has run since then; give an \
             earlier time"
        )
        .into());
    }
    Err(anyhow!(
        "no usage is recorded before {end}: the recording starts at {oldest}; give a later time, \
         or {cure}"
    )
    .into())
}

/// Returns the heading, which states the time that the usage covers.
fn format_heading(usage: &Usage, span: Option<&Range<u64>>, zone: &TimeZone) -> String {
    let Usage {
        since_ms, at_ms, ..
    } = *usage;
    let time = format_duration(at_ms.saturating_sub(since_ms));
    if usage.oldest_ms.is_none() {
        return format!("Since the server's first sample, {time} ago:");
    }
    let [since, until] = [since_ms, at_ms].map(|ms| format_time(ms, zone));
    let is_cut = span.is_some_and(|span| span.start > 0 && since_ms >= span.start + PERIOD_MS);
    let is_cut = if is_cut {
        "; no earlier usage is recorded"
    } else {
        ""
    };
    format!("{since} to {until}, {time}{is_cut}:")
}

fn format_report(
    usage: &Usage,
    span: Option<&Range<u64>>,
    zone: &TimeZone,
    terminal: Option<usize>,
) -> String {
    let names = NotebookNames::new(
        usage
            .owners
            .iter()
            .filter_map(|owner| find_notebook_path(owner.job.as_ref()?)),
    );
    let mut rows: Vec<[String; COLUMNS.len()]> = usage
        .owners
        .iter()
        .map(|owner| format_row(owner, &names))
        .collect();
    if usage.unheld.gpu_seconds > 0.0 {
        let joules = usage.unheld.joules;
        let (hours, none) = (format_hours(usage.unheld.gpu_seconds), ABSENT.to_owned());
        rows.push([
            none.clone(),
            "no process".to_owned(),
            hours,
            none.clone(),
            format_energy_with_cost(joules),
            none,
        ]);
    }
    let columns = Columns::new(&COLUMNS, &rows, terminal);
    let mut text = format_heading(usage, span, zone) + "\n" + &columns.format_rows(&rows);
    if rows.is_empty() {
        text += "No usage yet: usage is counted from the second sample on.\n";
    }
    text
}

fn format_row(usage: &OwnerUsage, names: &NotebookNames) -> [String; COLUMNS.len()] {
    let user = usage
        .user
        .as_deref()
        .map_or_else(|| "unknown".to_owned(), escape_untrusted);
    let job = usage.job.as_ref().map_or_else(
        || ABSENT.to_owned(),
        |job| escape_untrusted(&format_label(job, names)),
    );
    let (drawn, range) = match usage.joules {
        None => (ABSENT.to_owned(), ABSENT.to_owned()),
        Some(Joules { least, most, .. }) if most - least <= most * EXACT_TOLERANCE => {
            (format_energy_with_cost(most), "exact".to_owned())
        }
        Some(Joules {
            least,
            most,
            estimate,
        }) => (
            format!("~{}", format_energy_with_cost(estimate)),
            format!("{} to {}", format_energy(least), format_energy(most)),
        ),
    };
    [
        user,
        job,
        format_hours(usage.gpu_seconds),
        format_hours(usage.active_seconds),
        drawn,
        range,
    ]
}

fn format_hours(seconds: f64) -> String {
    format_number(seconds / SECONDS_PER_HOUR, 3)
}

fn find_notebook_path(job: &Job) -> Option<&str> {
    job.path
        .as_ref()?
        .value()
        .map(String::as_str)
        .filter(|path| !path.is_empty())
}

/// Returns a notebook's name, or the kind and the ID of another job.
fn format_label(job: &Job, names: &NotebookNames) -> String {
    let short = job.id.chars().take(12).collect::<String>();
    match job.kind {
        JobKind::Notebook => {
            let name = find_notebook_path(job).and_then(|path| names.find_by_path(path));
            name.map_or_else(|| format!("notebook {short}"), ToOwned::to_owned)
        }
        JobKind::Slurm | JobKind::Pbs | JobKind::Lsf => {
            format!("{} {}", job.kind.json_name(), job.id)
        }
        JobKind::Pod => format!("pod {}", job.name.as_deref().unwrap_or(&job.id)),
        JobKind::Container => format!("container {short}"),
        JobKind::Service => job.id.clone(),
    }
}

#[cfg(test)]
mod tests {
    use gpumon_probe::{model::Reading, usage::UnheldUsage};

    use super::*;
    use crate::terminal::snapshot::assert_report_matches_snapshot;

    fn make_owner(
        user: Option<&str>,
        job: Option<(JobKind, &str)>,
        joules: Option<[f64; 3]>,
    ) -> OwnerUsage {
        OwnerUsage {
            user: user.map(ToOwned::to_owned),
            job: job.map(|(kind, id)| Job {
                kind,
                id: id.to_owned(),
                path: None,
                name: None,
                private: false,
            }),
            gpu_seconds: 5_400.0,
            exclusive_seconds: 0.0,
            active_seconds: 60.0,
            joules: joules.map(|[least, estimate, most]| Joules {
                least,
                most,
                estimate,
            }),
        }
    }

    fn make_usage() -> Usage {
        let mut notebook = make_owner(
            Some("bob\x1b[2J"),
            Some((JobKind::Notebook, "0123456789abcdef")),
            None,
        );
        let hidden = notebook.clone();
        notebook.job.as_mut().unwrap().path = Some(Reading::Now("work/train.ipynb".to_owned()));
        Usage {
            since_ms: 1_000,
            at_ms: 12_601_000,
            owners: vec![
                make_owner(
                    Some("ana"),
                    Some((JobKind::Slurm, "88123")),
                    Some([3.6e6, 3.6e6, 3.6e6]),
                ),
                make_owner(None, None, Some([0.0, 7.2e5, 1.8e6])),
                notebook,
                hidden,
                make_owner(
                    Some("root"),
                    Some((JobKind::Container, &"ab".repeat(32))),
                    Some([0.0; 3]),
                ),
            ],
            unheld: UnheldUsage {
                gpu_seconds: 36.0,
                joules: 3_600.0,
            },
            oldest_ms: None,
        }
    }

    #[test]
    fn notebooks_with_same_name_are_distinguished_in_usage() {
        let mut usage = make_usage();
        usage.owners = [
            "/home/bob/first/train.ipynb",
            "/home/bob/second/train.ipynb",
        ]
        .map(|path| {
            let mut owner = make_owner(Some("bob"), Some((JobKind::Notebook, "k")), None);
            owner.job.as_mut().unwrap().path = Some(Reading::Now(path.to_owned()));
            owner
        })
        .into();
        let text = format_report(&usage, None, &TimeZone::UTC, None);
        assert!(
            text.contains("first/train.ipynb ") && text.contains("second/train.ipynb "),
            "{text}"
        );
    }

    #[test]
    fn table_matches_its_snapshot() {
        assert_report_matches_snapshot("usage", |terminal| {
            format_report(&make_usage(), None, &TimeZone::UTC, terminal)
        });
        assert!(
            format_report(&Usage::default(), None, &TimeZone::UTC, None)
                .ends_with("No usage yet: usage is counted from the second sample on.\n")
        );
    }

    #[test]
    fn error_for_unrecorded_span_names_start_of_recording() {
        let at = |text: &str| {
            text.parse::<jiff::Timestamp>()
                .unwrap()
                .as_millisecond()
                .cast_unsigned()
        };
        let (begin, end) = (at("2026-11-16T00:00:00Z"), at("2026-11-23T00:00:00Z"));
        let first = |usage: &Usage| format_heading(usage, Some(&(begin..end)), &TimeZone::UTC);
        let whole = Usage {
            since_ms: begin,
            at_ms: end,
            oldest_ms: Some(5),
            ..make_usage()
        };
        assert_eq!(
            first(&whole),
            "2026-11-16 00:00:00 to 2026-11-23 00:00:00, 7 days:"
        );
        let since_ms = at("2026-11-20T00:00:00Z");
        let cut = Usage {
            since_ms,
            oldest_ms: Some(since_ms),
            ..whole.clone()
        };
        assert_eq!(
            first(&cut),
            "2026-11-20 00:00:00 to 2026-11-23 00:00:00, 3 days; no earlier usage is recorded:"
        );
        let checked = |usage: &Usage| {
            let checked = check_usage_is_recorded(usage, end, "keep more", &TimeZone::UTC);
            checked
                .err()
                .map(|failure| format!("{failure:?}"))
                .unwrap_or_default()
        };
        assert_eq!(checked(&cut), "");
        let later = Usage {
            since_ms: end,
            oldest_ms: Some(at("2026-11-24T08:15:00Z")),
            ..whole.clone()
        };
        assert!(
            checked(&later).contains(
                "no usage is recorded before 2026-11-23 00:00:00: the recording starts at \
                 2026-11-24 08:15:00; give a later time, or keep more"
            ),
            "{}",
            checked(&later)
        );
        let just_begun = Usage {
            since_ms: begin,
            at_ms: begin,
            oldest_ms: Some(begin),
            ..Usage::default()
        };
        assert_eq!(checked(&just_begun), "");
        assert!(
            checked(&Usage {
                oldest_ms: None,
                ..whole
            })
            .contains("restart the server")
        );
    }
}
