//! `gpumon usage`: who used how much energy and GPU time since the server's start.

use std::io::Write;

use anyhow::{Context, anyhow};
use gpumon_probe::{
    model::{Job, JobKind},
    units::duration,
    untrusted::escaped,
    usage::{Joules, OwnerUsage, Usage},
};
use unicode_width::UnicodeWidthStr;

use crate::{
    exit::Failure,
    local::ServerArgs,
    run::columns::{Align, Column, Columns, NONE, number, terminal_columns},
    table::units::energy,
};

/// Print energy and GPU time by owner since the server's start
///
/// An owner is a user and, where there is one, the notebook, Slurm job, pod, container or service that the processes
/// belong to. Idle power counts: while one owner alone holds a GPU, all that it draws is theirs, and exact. Where several
/// owners hold it, the range is from what it drew beyond idle power while no other owner's kernels ran to all that it
/// drew, and the energy is an estimate by SM share.
#[derive(Debug, clap::Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct UsageArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    server: ServerArgs,
}

const NOTES: &str = "\
Examples:
  gpumon usage
      Print a table, sorted by energy. GPU hours count every GPU that an owner holds, active hours the time in which
      their kernels ran.
  gpumon usage --json | jq '.owners[] | [.user, .job.id, .joules.estimate]'
      Print the energy of each owner in joules.

Environment:
  GPUMON_CONTROL  default of --control

Exit codes: 0 success, 1 no server or refused by it, 2 invalid argument";

/// Bounds that differ by less are those of an exact number.
const EXACT: f64 = 1e-3;

const SECONDS_PER_HOUR: f64 = 3_600.0;

pub(crate) fn run(args: &UsageArgs) -> Result<(), Failure> {
    let server = args.server.connect().map_err(anyhow::Error::from)?;
    let at = server.path.display().to_string();
    let answer = server
        .ask("GET", "/api/v1/usage")
        .with_context(|| format!("the server at {at} does not answer; restart it"))?;
    match answer.status {
        200 => {}
        404 => {
            return Err(anyhow!("the server at {at} is older than this gpumon and adds up no usage; restart it").into());
        }
        _ => return Err(anyhow!("the server at {at} refuses: {}", answer.body.trim()).into()),
    }
    let mut out = anstream::stdout();
    if args.json {
        // As it came: what a newer server adds is not lost.
        writeln!(out, "{}", answer.body.trim())?;
    } else {
        let usage: Usage = serde_json::from_str(&answer.body)
            .with_context(|| format!("the server at {at} is of another version; restart it"))?;
        out.write_all(text(&usage, terminal_columns()).as_bytes())?;
    }
    out.flush()?;
    Ok(())
}

fn text(usage: &Usage, terminal: Option<usize>) -> String {
    let mut rows: Vec<[String; 6]> = usage.owners.iter().map(row).collect();
    if usage.unheld.gpu_seconds > 0.0 {
        let joules = usage.unheld.joules;
        let (hours, none) = (hours(usage.unheld.gpu_seconds), NONE.to_owned());
        rows.push([none.clone(), "no process".to_owned(), hours, none.clone(), energy(joules), none]);
    }
    let width =
        |at: usize, heading: &str| rows.iter().map(|row| row[at].width()).max().unwrap_or(0).max(heading.width());
    let column =
        |at, heading, align: fn(usize) -> Align, rank| Column { heading, align: align(width(at, heading)), rank };
    let all = [
        column(0, "User", Align::Left, 0),
        column(1, "Job", Align::Left, 0),
        column(2, "GPU hours", Align::Right, 0),
        column(3, "Active hours", Align::Right, 2),
        column(4, "Energy", Align::Right, 0),
        column(5, "Range", Align::Left, 1),
    ];
    let columns = Columns::new(&all, terminal);
    let watched = duration(usage.at_ms.saturating_sub(usage.since_ms));
    let mut text = format!("Since the server's first sample, {watched} ago:\n{}\n", columns.headings());
    for row in &rows {
        text += &columns.line(row);
        text.push('\n');
    }
    if rows.is_empty() {
        text += "Nothing yet: usage is added up from the second sample on.\n";
    }
    text
}

fn row(usage: &OwnerUsage) -> [String; 6] {
    let user = usage.user.as_deref().map_or_else(|| "unknown".to_owned(), escaped);
    let job = usage.job.as_ref().map_or_else(|| NONE.to_owned(), |job| escaped(&label(job)));
    let (drawn, range) = match usage.joules {
        None => (NONE.to_owned(), NONE.to_owned()),
        Some(Joules { least, most, .. }) if most - least <= most * EXACT => (energy(most), "exact".to_owned()),
        Some(Joules { least, most, estimate }) => {
            (format!("~{}", energy(estimate)), format!("{} to {}", energy(least), energy(most)))
        }
    };
    [user, job, hours(usage.gpu_seconds), hours(usage.active_seconds), drawn, range]
}

fn hours(seconds: f64) -> String {
    number(seconds / SECONDS_PER_HOUR, 3)
}

/// The last part of a notebook's path, else what it is with its id.
fn label(job: &Job) -> String {
    let short = job.id.chars().take(12).collect::<String>();
    match job.kind {
        JobKind::Notebook => {
            let path = job.path.as_ref().and_then(|path| path.value());
            let name = path.and_then(|path| path.rsplit('/').next()).filter(|name| !name.is_empty());
            name.map_or_else(|| format!("notebook {short}"), ToOwned::to_owned)
        }
        JobKind::Slurm => format!("slurm {}", job.id),
        JobKind::Pod => format!("pod {}", job.name.as_deref().unwrap_or(&job.id)),
        JobKind::Container => format!("container {short}"),
        JobKind::Service => job.id.clone(),
    }
}

#[cfg(test)]
mod tests {
    use gpumon_probe::{model::Reading, usage::UnheldUsage};

    use super::*;

    fn owner(user: Option<&str>, job: Option<(JobKind, &str)>, joules: Option<[f64; 3]>) -> OwnerUsage {
        OwnerUsage {
            user: user.map(ToOwned::to_owned),
            job: job.map(|(kind, id)| Job { kind, id: id.to_owned(), path: None, name: None }),
            gpu_seconds: 5_400.0,
            exclusive_seconds: 0.0,
            active_seconds: 60.0,
            joules: joules.map(|[least, estimate, most]| Joules { least, most, estimate }),
        }
    }

    fn usage() -> Usage {
        let mut notebook = owner(Some("bob\x1b[2J"), Some((JobKind::Notebook, "0123456789abcdef")), None);
        let hidden = notebook.clone();
        notebook.job.as_mut().unwrap().path = Some(Reading::Now("work/train.ipynb".to_owned()));
        Usage {
            since_ms: 1_000,
            at_ms: 12_601_000,
            owners: vec![
                owner(Some("ana"), Some((JobKind::Slurm, "88123")), Some([3.6e6, 3.6e6, 3.6e6])),
                owner(None, None, Some([0.0, 7.2e5, 1.8e6])),
                notebook,
                hidden,
                owner(Some("root"), Some((JobKind::Container, &"ab".repeat(32))), Some([0.0; 3])),
            ],
            unheld: UnheldUsage { gpu_seconds: 36.0, joules: 3_600.0 },
        }
    }

    #[test]
    fn each_owner_has_a_line_with_its_energy_and_how_well_that_is_known() {
        let text = text(&usage(), None);
        assert_eq!(text.lines().count(), 8, "{text}");
        let words = |line: usize| text.lines().nth(line).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words(0), "Since the server's first sample, 3.5 h ago:");
        assert_eq!(words(1), "User Job GPU hours Active hours Energy Range");
        assert_eq!(words(2), "ana slurm 88123 1.50 0.017 1.00 kWh exact");
        assert_eq!(words(3), "unknown - 1.50 0.017 ~200 Wh 0.00 Wh to 500 Wh");
        assert!(words(4).contains("train.ipynb 1.50 0.017 - -") && !text.contains('\x1b'), "{text}");
        assert!(words(5).contains("notebook 0123456789ab"), "{text}");
        assert!(words(6).starts_with("root container abababababab 1.50"), "{text}");
        assert_eq!(words(7), "- no process 0.010 - 1.00 Wh -");
    }

    #[test]
    fn a_narrow_terminal_loses_columns_and_a_server_that_has_just_begun_says_so() {
        let narrow = text(&usage(), Some(60));
        assert!(!narrow.contains("Active hours") && narrow.contains("Energy"), "{narrow}");
        assert!(text(&Usage::default(), None).ends_with("Nothing yet: usage is added up from the second sample on.\n"));
    }
}
