//! `gpumon man`: generates manual pages from the same definitions as the help.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow};
use clap_mangen::{Man, roff::Roff};
use gpumon_probe::safe_file;

use crate::{exit::Failure, man, suggest::find_nearest, terminal::output::print_raw};

/// Print the manual pages of gpumon
///
/// Packages install the pages for man(1): one for gpumon and one for each command. The pages are in
/// roff format.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ManArgs {
    /// Command to print the page of; by default, gpumon itself
    #[arg(value_name = "COMMAND", conflicts_with = "out")]
    command: Option<String>,

    /// Write all pages to this folder, which is created if missing
    #[arg(long, value_name = "FOLDER", value_hint = clap::ValueHint::DirPath)]
    out: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  gpumon man wait | man -l -
      View the page of gpumon wait.
  gpumon man --out ~/.local/share/man/man1
      Install all pages for this user.";

/// Prints or writes manual pages. `gpumon` is the definition of the whole command line.
pub(crate) fn run(gpumon: clap::Command, args: &ManArgs) -> Result<(), Failure> {
    let all = list_all_commands(gpumon);
    if let Some(folder) = &args.out {
        return Ok(write_all_pages(&all, folder)?);
    }
    let page = match &args.command {
        None => &all[0],
        Some(name) => find_command(&all, name).map_err(Failure::usage)?,
    };
    print_raw(&render_page(page)?)
}

/// Returns gpumon itself, followed by each visible command and its subcommands.
fn list_all_commands(gpumon: clap::Command) -> Vec<clap::Command> {
    let mut gpumon = gpumon.disable_help_subcommand(true);
    gpumon.build();
    let shown = |command: &clap::Command| -> Vec<clap::Command> {
        command
            .get_subcommands()
            .filter(|command| !command.is_hide_set())
            .cloned()
            .collect()
    };
    let commands = shown(&gpumon).into_iter().flat_map(|command| {
        let actions = shown(&command);
        std::iter::once(command).chain(actions)
    });
    let commands: Vec<_> = commands.collect();
    std::iter::once(gpumon).chain(commands).collect()
}

fn find_command<'a>(all: &'a [clap::Command], name: &str) -> anyhow::Result<&'a clap::Command> {
    // `name` is a page name without the prefix, such as `alerts-check`.
    let name_of = |command| page_name(command).trim_start_matches("gpumon-");
    let names = || all.iter().map(name_of);
    let found = all.iter().find(|command| name_of(command) == name);
    found.ok_or_else(|| match find_nearest(name, names()) {
        Some(meant) => anyhow!("unknown command '{name}': did you mean '{meant}'?"),
        None => anyhow!(
            "unknown command '{name}': the commands are {}",
            names().collect::<Vec<_>>().join(", ")
        ),
    })
}

fn write_all_pages(all: &[clap::Command], folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder)
        .with_context(|| format!("cannot create the folder {}", folder.display()))?;
    for command in all {
        let path = folder.join(format!("{}.1", page_name(command)));
        safe_file::create_empty(&path)
            .and_then(|mut file| file.write_all(render_page(command)?.as_bytes()))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// Returns the name of a page, such as `gpumon-wait`.
fn page_name(command: &clap::Command) -> &str {
    command
        .get_display_name()
        .unwrap_or_else(|| command.get_name())
}

fn render_page(command: &clap::Command) -> io::Result<String> {
    let page = Man::new(to_page_command(command));
    let mut title = Roff::new();
    let (date, source) = (
        man::find_page_date(),
        format!("gpumon {}", env!("CARGO_PKG_VERSION")),
    );
    title.control(
        "TH",
        [
            page_name(command).to_uppercase().as_str(),
            "1",
            &date,
            &source,
            "gpumon manual",
        ],
    );
    let mut text = Vec::new();
    title.to_writer(&mut text)?;
    page.render_name_section(&mut text)?;
    page.render_synopsis_section(&mut text)?;
    page.render_description_section(&mut text)?;
    page.render_options_section(&mut text)?;
    if command
        .get_subcommands()
        .any(|command| !command.is_hide_set())
    {
        page.render_subcommands_section(&mut text)?;
    }
    let mut rest = Roff::new();
    if command.get_name() == "smi" {
        man::add_smi_sections(&mut rest);
    }
    let notes = command
        .get_after_long_help()
        .or_else(|| command.get_after_help());
    if let Some(notes) = notes {
        man::add_notes(&mut rest, &notes.to_string());
    }
    man::add_see_also(&mut rest, page_name(command));
    rest.to_writer(&mut text)?;
    // An empty line already separates the paragraphs. Formatters warn about line breaks next to an
    // empty line.
    Ok(String::from_utf8_lossy(&text).replace(".br\n\n.br\n", "\n"))
}

/// Returns the command with two changes for its page. The usage line is the one from the help,
/// which does not list the options. The description's first sentence is removed, because it is
/// already in the page's name section.
fn to_page_command(command: &clap::Command) -> clap::Command {
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").to_owned();
    let command = command
        .clone()
        .override_usage(usage)
        .subcommand_help_heading("COMMANDS");
    let long = command.get_long_about().map(ToString::to_string);
    match long.as_deref().and_then(|long| long.split_once("\n\n")) {
        Some((_, description)) => command.clone().long_about(description.to_owned()),
        None => command,
    }
}
