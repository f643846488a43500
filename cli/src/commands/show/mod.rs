//! `gpumon` without a command: shows the state of the GPUs once or repeatedly.

pub(crate) mod csv;
mod watch;

use std::time::Duration;

use gpumon_probe::{owner::CommandLines, vendor::ReadDepth};

use self::{
    csv::{RowKind, SelectedColumns},
    watch::{Message, SnapshotFeed},
};
use crate::{
    config::ResolvedArguments,
    describe::{Thresholds, format_unlisted_processes},
    exit::{Result, print_message, usage},
    local_server::ServerArgs,
    options::{ShownGpus, ShownProcesses, SourceArgs},
    snapshot::{Snapshot, SnapshotContents, SourceSelection},
    table::{self, ColumnWidths, ShortPart, View},
    terminal::{
        Layout,
        output::{print_json, print_raw},
        screen::{Color, Screen},
    },
    top,
};

// Each field is an independent switch of the command line.
#[allow(clippy::struct_excessive_bools)]
#[derive(Debug, clap::Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    gpus: ShownGpus,

    /// List only the processes of this user
    #[arg(long, value_name = "USER", conflicts_with = "json")]
    user: Option<String>,

    #[command(flatten)]
    processes_shown: ShownProcesses,

    /// Refresh interval in seconds, 0.1 to 3600 (1 if omitted); a terminal is updated in place
    #[arg(
        long, num_args = 0..=1, default_missing_value = "1", value_name = "SECONDS",
        value_parser = parse_seconds
    )]
    watch: Option<Duration>,

    /// Print one line per GPU with the memory of each process, like gpustat; --short=command,pid
    /// adds more
    #[arg(
        long, value_name = "PARTS", num_args = 0.., require_equals = true, value_delimiter = ',',
        value_enum
    )]
    short: Option<Vec<ShortPart>>,

    /// Add a line with the mean utilization and the sums of memory, power and energy over all GPUs
    /// shown
    #[arg(long, conflicts_with_all = ["json", "csv"])]
    total: bool,

    /// Print one sample as JSON, in the format of /api/v1/snapshot; see `gpumon schema`
    #[arg(long, conflicts_with_all = [
        "short", "processes", "columns", "pids", "compute", "graphics"
    ])]
    json: bool,

    /// Print comma-separated values, one row per GPU; units are in the column names
    #[arg(long, conflicts_with_all = ["short", "json"])]
    csv: bool,

    /// With --csv, print one row per process
    #[arg(long, requires = "csv")]
    processes: bool,

    /// With --csv, print only these columns, comma-separated, in this order; `help` lists them
    #[arg(long, requires = "csv", value_name = "NAMES")]
    columns: Option<String>,

    #[command(flatten)]
    server: ServerArgs,

    /// When to use colors
    #[arg(long, value_enum, default_value_t = Color::Auto, value_name = "WHEN")]
    color: Color,
}

impl ShowArgs {
    /// Returns the first typed option that applies only to `gpumon` without a command. If the user
    /// typed a command's name after it, the option would have no effect.
    pub(crate) fn find_typed_option(&self) -> Option<&'static str> {
        let own = [
            ("--user", self.user.is_some()),
            ("--watch", self.watch.is_some()),
            ("--short", self.short.is_some()),
            ("--total", self.total),
            ("--json", self.json),
            ("--csv", self.csv),
            ("--control", self.server.is_typed()),
            ("--color", !matches!(self.color, Color::Auto)),
        ];
        let typed = own
            .into_iter()
            .find_map(|(name, is_typed)| is_typed.then_some(name));
        self.gpus
            .find_typed_option()
            .or(self.processes_shown.find_typed_option())
            .or(typed)
    }
}

/// Returns the thresholds from the settings of `gpumon top`. Invalid thresholds are reported and
/// replaced by the defaults.
fn read_thresholds(resolved: &ResolvedArguments) -> Thresholds {
    resolved
        .remarks
        .iter()
        .for_each(|remark| print_message(remark));
    top::settings::read_thresholds(resolved)
}

/// The output format and the selection of processes.
struct OutputOptions<'a> {
    kind: OutputKind<'a>,
    total: bool,
    listed: ShownProcesses,
}

enum OutputKind<'a> {
    Table(Thresholds),
    Short(&'a [ShortPart]),
    Json,
    Csv(SelectedColumns),
}

pub(crate) fn run(source: &SourceArgs, args: &ShowArgs, resolved: &ResolvedArguments) -> Result {
    let rows = if args.processes {
        RowKind::Processes
    } else {
        RowKind::Gpus
    };
    if args.columns.as_deref() == Some(csv::HELP) {
        return print_raw(&csv::format_help(rows));
    }
    let mut listed = args.processes_shown.clone();
    listed.user.clone_from(&args.user);
    let kind = match &args.short {
        _ if args.json => OutputKind::Json,
        Some(parts) => OutputKind::Short(parts),
        None if args.csv => {
            let csv = SelectedColumns::new(rows, args.columns.as_deref());
            OutputKind::Csv(csv.map_err(|error| usage!(error))?)
        }
        None => OutputKind::Table(read_thresholds(resolved)),
    };
    let form = OutputOptions {
        kind,
        total: args.total,
        listed,
    };
    // The flags `--no-daemon` and `--control` conflict with each other. A variable that names a
    // server does not conflict with `--no-daemon`, because the variable applies to all commands.
    if source.no_daemon && args.server.is_typed() {
        return Err(usage!(
            "--no-daemon and --control contradict each other: use only one of them"
        ));
    }
    let at = SourceSelection {
        source,
        server: &args.server,
        commands: CommandLines::All,
    };
    match args.watch {
        None => show_once(at, &form, args),
        Some(interval) => show_repeatedly(at, &form, args, interval),
    }
}

fn show_once(at: SourceSelection<'_>, form: &OutputOptions<'_>, args: &ShowArgs) -> Result {
    let mut snapshot = Snapshot::take(at, form.required_contents(), form.required_depth())?;
    select_gpus(&mut snapshot, &args.gpus)?;
    let mut screen = Screen::new(args.color, false);
    form.print_snapshot(snapshot, &mut screen, true)
}

fn show_repeatedly(
    at: SourceSelection<'_>,
    form: &OutputOptions<'_>,
    args: &ShowArgs,
    interval: Duration,
) -> Result {
    let mut screen = Screen::new(args.color, form.can_be_redrawn());
    let feed = SnapshotFeed::start(at, form.required_contents(), interval)?;
    // The handlers are needed only if the output is redrawn on a terminal. Otherwise, the default
    // handling of signals is sufficient.
    if screen.is_renewed {
        feed.install_signal_handlers()?;
    }
    let (mut last, mut kept) = (None, ColumnWidths::default());
    let mut is_first = true;
    let ended = loop {
        match feed.next() {
            Message::Snapshot(mut snapshot) => {
                select_gpus(&mut snapshot, &args.gpus)?;
                if screen.is_renewed {
                    screen.show(&form.render(&snapshot, screen.layout(), Some(&mut kept)))?;
                    last = Some(snapshot);
                } else {
                    form.print_snapshot(*snapshot, &mut screen, is_first)?;
                }
                is_first = false;
            }
            Message::Resized => {
                if let Some(snapshot) = &last {
                    screen.show(&form.render(snapshot, screen.layout(), Some(&mut kept)))?;
                }
            }
            Message::ServerEnded => feed.start_sampling()?,
            Message::Stop => break Ok(()),
            Message::Failed(failure) => break Err(failure),
        }
    };
    screen.finish_updates()?;
    ended
}

impl OutputOptions<'_> {
    fn required_contents(&self) -> SnapshotContents {
        match self.kind {
            OutputKind::Table(_) => SnapshotContents::Past,
            OutputKind::Json => SnapshotContents::Everything,
            OutputKind::Short(_) | OutputKind::Csv(_) => SnapshotContents::Nothing,
        }
    }

    /// Returns the depth to which the GPUs must be read for this output. Totals contain counters,
    /// which require more than one sample.
    fn required_depth(&self) -> ReadDepth {
        match self.kind {
            OutputKind::Json => ReadDepth::Full,
            _ if self.total => ReadDepth::Metered,
            _ => ReadDepth::OneShot,
        }
    }

    /// Returns `true` if the output format is for people and can be redrawn in place.
    fn can_be_redrawn(&self) -> bool {
        matches!(self.kind, OutputKind::Table(_) | OutputKind::Short(_))
    }

    fn render(
        &self,
        snapshot: &Snapshot,
        layout: Layout,
        kept: Option<&mut ColumnWidths>,
    ) -> String {
        let view = |thresholds| View {
            with_total: self.total,
            listed: Some(&self.listed),
            ..snapshot.view(thresholds)
        };
        match self.kind {
            OutputKind::Short(parts) => {
                table::render_short(&view(Thresholds::default()), layout, parts)
            }
            OutputKind::Table(thresholds) => table::render(&view(thresholds), layout, kept),
            OutputKind::Json | OutputKind::Csv(_) => String::new(),
        }
    }

    /// Prints a snapshot. In CSV, only the first snapshot has a header.
    fn print_snapshot(
        &self,
        mut snapshot: Snapshot,
        screen: &mut Screen,
        is_first: bool,
    ) -> Result {
        match &self.kind {
            OutputKind::Json => print_json(&snapshot.into_frame()),
            OutputKind::Csv(csv) => {
                if csv.has_process_rows() {
                    for gpu in &mut snapshot.sample.gpus {
                        if let Some(processes) = gpu.processes.value_mut() {
                            processes.retain(|process| self.listed.is_shown(process));
                        }
                    }
                }
                let mut header = String::new();
                if is_first {
                    header = csv.format_header();
                    for gpu in &snapshot.sample.gpus {
                        if let Some(note) = format_unlisted_processes(gpu) {
                            print_message(&format!("GPU {}: {note}", gpu.index));
                        }
                    }
                }
                let Snapshot {
                    inventory, sample, ..
                } = snapshot;
                print_raw(&(header + &csv.format_rows(&inventory, &sample, csv::Format::Csv)))
            }
            OutputKind::Table(_) | OutputKind::Short(_) => {
                Ok(screen.show(&self.render(&snapshot, screen.layout(), None))?)
            }
        }
    }
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds = text
        .parse()
        .ok()
        .filter(|seconds| (0.1..=3600.0).contains(seconds));
    seconds
        .map(Duration::from_secs_f64)
        .ok_or_else(|| "expected a refresh interval from 0.1 to 3600 seconds".to_owned())
}

/// Removes all GPUs that are not selected.
fn select_gpus(snapshot: &mut Snapshot, shown: &ShownGpus) -> Result {
    let Some(wanted) = shown.find_indices(&snapshot.inventory.gpus)? else {
        return Ok(());
    };
    let is_wanted = |index: u32| wanted.contains(&index);
    snapshot.inventory.gpus.retain(|gpu| is_wanted(gpu.index));
    snapshot
        .inventory
        .topology
        .retain(|link| is_wanted(link.a) && is_wanted(link.b));
    snapshot.sample.gpus.retain(|gpu| is_wanted(gpu.index));
    snapshot
        .frame
        .details
        .retain(|details| is_wanted(details.index));
    snapshot
        .frame
        .events
        .retain(|event| event.gpu.as_ref().is_none_or(|gpu| is_wanted(gpu.index)));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refresh_interval_is_parsed_as_seconds() {
        assert_eq!(parse_seconds("0.5"), Ok(Duration::from_millis(500)));
        for text in ["", "0", "-1", "4000", "NaN", "inf", "1s"] {
            assert!(
                parse_seconds(text).unwrap_err().contains("0.1 to 3600"),
                "{text}"
            );
        }
    }
}
