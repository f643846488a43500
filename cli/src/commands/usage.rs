//! `gpumon usage`: prints energy and GPU time by owner, since the server's start or in a time span.

use std::ops::Range;

use anyhow::{Context, anyhow};
use gpumon_probe::{
    model::{Job, JobKind, now_ms},
    units::duration,
    untrusted::escaped,
    usage::{Joules, OwnerUsage, PERIOD_MS, Usage},
};
use jiff::tz::TimeZone;

use crate::{
    describe::NotebookNames,
    exit::{Result, usage},
    moment::{Beside, Moment, MomentSpan, shown},
    past::PastArgs,
    terminal::{
        columns::{Column, Columns, format_number, terminal_columns},
        output::{print, print_raw},
        units::{ABSENT, energy, priced_energy},
    },
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
    since: Option<Moment>,

    /// End of the span, which is not included, in the same forms; by default, now. The span is
    /// extended to whole quarters of an hour
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    until: Option<Moment>,

    /// Print the usage as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    past: PastArgs,
}

const NOTES: &str = "\
Examples:
  gpumon usage
      Print a table, sorted by energy. GPU hours count every GPU that an owner holds, active hours the time in which
      their kernels ran.
  gpumon usage --since -7d
  gpumon usage --since 2026-11-16 --until 2026-11-23
      Print who used how much in the last seven days, and in one week.
  gpumon usage --json | jq '.owners[] | [.user, .job.id, .joules.estimate]'
      Print the energy of each owner in joules.

Environment:
  GPUMON_CONTROL  default of --control

Exit codes: 0 success, 1 no server, refused by it, or nothing known of that time, 2 invalid argument";

/// The relative difference of bounds up to which a number counts as exact.
const EXACT: f64 = 1e-3;

const COLUMNS: [Column; 6] = [
    Column::align_left("User", 0),
    Column::align_left("Job", 0),
    Column::align_right("GPU hours", 0),
    Column::align_right("Active hours", 2),
    Column::align_right("Energy", 0),
    Column::align_left("Range", 1),
];

const SECONDS_PER_HOUR: f64 = 3_600.0;

pub(crate) fn run(args: &UsageArgs) -> Result {
    let beside = Beside::now(now_ms());
    let Answer { json, usage, span } = Answer::new(&args.past, args.since, args.until, &beside)?;
    if args.json {
        // The raw reply keeps fields that a newer server adds.
        return print_raw(&format!("{}\n", json.trim()));
    }
    print(&text(
        &usage,
        span.as_ref(),
        &beside.zone,
        terminal_columns(),
    ))
}

/// The usage by owner.
pub(crate) struct Answer {
    json: String,
    pub(crate) usage: Usage,
    /// The requested span; `None` for the time since the server's start.
    span: Option<Range<u64>>,
}

impl Answer {
    /// Requests the usage in a time span, or since the server's start if no limit is given.
    ///
    /// # Errors
    /// Returns an error if neither a server nor a data directory can be read, or if nothing is
    /// recorded for that time.
    pub(crate) fn new(
        past: &PastArgs,
        since: Option<Moment>,
        until: Option<Moment>,
        beside: &Beside,
    ) -> Result<Self> {
        let has_span = since.is_some() || until.is_some();
        let span = MomentSpan::new(since, until).resolve(beside);
        let span = if has_span {
            Some(span.map_err(|why| usage!(why))?)
        } else {
            None
        };
        let json = past.usage(span.as_ref())?;
        let usage: Usage =
            serde_json::from_str(&json).context("the server is of another version; restart it")?;
        if span.is_some() || usage.oldest_ms.is_some() {
            let end_ms = span.as_ref().map_or(beside.end_ms, |span| span.end);
            check(&usage, end_ms, past.cure(), &beside.zone)?;
        }
        Ok(Self { json, usage, span })
    }
}

/// Checks that usage is recorded for a span that ends at `end_ms`.
fn check(usage: &Usage, end_ms: u64, cure: &str, zone: &TimeZone) -> Result {
    let Some(oldest_ms) = usage.oldest_ms else {
        return Err(anyhow!(
            "the server is older than this gpumon and knows no spans of time; restart it"
        )
        .into());
    };
    // A server that has just started has no usage yet, and that is no error.
    if usage.since_ms < usage.at_ms || usage.at_ms == oldest_ms || oldest_ms == 0 {
        return Ok(());
    }
    let [end, oldest] = [end_ms, oldest_ms].map(|ms| shown(ms, zone));
    if oldest_ms < end_ms {
        return Err(anyhow!(
            "no usage is recorded for that time: no server has run since; give an earlier time"
        )
        .into());
    }
    Err(anyhow!("nothing is known before {end}: usage is recorded since {oldest}; give a later time, or {cure}").into())
}

/// Returns the heading with the time that the usage covers.
fn heading(usage: &Usage, span: Option<&Range<u64>>, zone: &TimeZone) -> String {
    let Usage {
        since_ms, at_ms, ..
    } = *usage;
    let time = duration(at_ms.saturating_sub(since_ms));
    if usage.oldest_ms.is_none() {
        return format!("Since the server's first sample, {time} ago:");
    }
    let [since, until] = [since_ms, at_ms].map(|ms| shown(ms, zone));
    let is_cut = span.is_some_and(|span| span.start > 0 && since_ms >= span.start + PERIOD_MS);
    let is_cut = if is_cut {
        "; nothing is known before"
    } else {
        ""
    };
    format!("{since} to {until}, {time}{is_cut}:")
}

fn text(
    usage: &Usage,
    span: Option<&Range<u64>>,
    zone: &TimeZone,
    terminal: Option<usize>,
) -> String {
    let names = NotebookNames::new(
        usage
            .owners
            .iter()
            .filter_map(|owner| path_of(owner.job.as_ref()?)),
    );
    let mut rows: Vec<[String; COLUMNS.len()]> = usage
        .owners
        .iter()
        .map(|owner| row(owner, &names))
        .collect();
    if usage.unheld.gpu_seconds > 0.0 {
        let joules = usage.unheld.joules;
        let (hours, none) = (hours(usage.unheld.gpu_seconds), ABSENT.to_owned());
        rows.push([
            none.clone(),
            "no process".to_owned(),
            hours,
            none.clone(),
            priced_energy(joules),
            none,
        ]);
    }
    let columns = Columns::new(&COLUMNS, &rows, terminal);
    let mut text = heading(usage, span, zone) + "\n" + &columns.format_rows(&rows);
    if rows.is_empty() {
        text += "Nothing yet: usage is added up from the second sample on.\n";
    }
    text
}

fn row(usage: &OwnerUsage, names: &NotebookNames) -> [String; COLUMNS.len()] {
    let user = usage
        .user
        .as_deref()
        .map_or_else(|| "unknown".to_owned(), escaped);
    let job = usage
        .job
        .as_ref()
        .map_or_else(|| ABSENT.to_owned(), |job| escaped(&label(job, names)));
    let (drawn, range) = match usage.joules {
        None => (ABSENT.to_owned(), ABSENT.to_owned()),
        Some(Joules { least, most, .. }) if most - least <= most * EXACT => {
            (priced_energy(most), "exact".to_owned())
        }
        Some(Joules {
            least,
            most,
            estimate,
        }) => (
            format!("~{}", priced_energy(estimate)),
            format!("{} to {}", energy(least), energy(most)),
        ),
    };
    [
        user,
        job,
        hours(usage.gpu_seconds),
        hours(usage.active_seconds),
        drawn,
        range,
    ]
}

fn hours(seconds: f64) -> String {
    format_number(seconds / SECONDS_PER_HOUR, 3)
}

fn path_of(job: &Job) -> Option<&str> {
    job.path
        .as_ref()?
        .value()
        .map(String::as_str)
        .filter(|path| !path.is_empty())
}

/// Returns the name of a notebook, or the kind and ID of another job.
fn label(job: &Job, names: &NotebookNames) -> String {
    let short = job.id.chars().take(12).collect::<String>();
    match job.kind {
        JobKind::Notebook => {
            let name = path_of(job).and_then(|path| names.of_path(path));
            name.map_or_else(|| format!("notebook {short}"), ToOwned::to_owned)
        }
        JobKind::Slurm | JobKind::Pbs | JobKind::Lsf => format!("{} {}", job.kind.word(), job.id),
        JobKind::Pod => format!("pod {}", job.name.as_deref().unwrap_or(&job.id)),
        JobKind::Container => format!("container {short}"),
        JobKind::Service => job.id.clone(),
    }
}

#[cfg(test)]
mod tests {
    use gpumon_probe::{model::Reading, usage::UnheldUsage};

    use super::*;
    use crate::terminal::snapshot::compare_report;

    fn owner(
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

    fn usage() -> Usage {
        let mut notebook = owner(
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
                owner(
                    Some("ana"),
                    Some((JobKind::Slurm, "88123")),
                    Some([3.6e6, 3.6e6, 3.6e6]),
                ),
                owner(None, None, Some([0.0, 7.2e5, 1.8e6])),
                notebook,
                hidden,
                owner(
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
    fn notebooks_of_same_name_differ_in_usage() {
        let mut usage = usage();
        usage.owners = [
            "/home/bob/first/train.ipynb",
            "/home/bob/second/train.ipynb",
        ]
        .map(|path| {
            let mut owner = owner(Some("bob"), Some((JobKind::Notebook, "k")), None);
            owner.job.as_mut().unwrap().path = Some(Reading::Now(path.to_owned()));
            owner
        })
        .into();
        let text = text(&usage, None, &TimeZone::UTC, None);
        assert!(
            text.contains("first/train.ipynb ") && text.contains("second/train.ipynb "),
            "{text}"
        );
    }

    #[test]
    fn table_matches_its_snapshot() {
        compare_report("usage", |terminal| {
            text(&usage(), None, &TimeZone::UTC, terminal)
        });
        assert!(
            text(&Usage::default(), None, &TimeZone::UTC, None)
                .ends_with("Nothing yet: usage is added up from the second sample on.\n")
        );
    }

    #[test]
    fn a_span_is_told_as_far_as_it_is_known_and_with_the_cure_where_it_is_not() {
        let at = |text: &str| {
            text.parse::<jiff::Timestamp>()
                .unwrap()
                .as_millisecond()
                .cast_unsigned()
        };
        let (begin, end) = (at("2026-11-16T00:00:00Z"), at("2026-11-23T00:00:00Z"));
        let first = |usage: &Usage| heading(usage, Some(&(begin..end)), &TimeZone::UTC);
        let whole = Usage {
            since_ms: begin,
            at_ms: end,
            oldest_ms: Some(5),
            ..usage()
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
            "2026-11-20 00:00:00 to 2026-11-23 00:00:00, 3 days; nothing is known before:"
        );
        let checked = |usage: &Usage| {
            let checked = check(usage, end, "keep more", &TimeZone::UTC);
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
            checked(&later).contains("usage is recorded since 2026-11-24 08:15:00"),
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
            .contains("restart it")
        );
    }
}
