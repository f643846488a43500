//! `gpumon man`: generates manual pages from the same definitions as the help.

use std::{
    env, fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use anyhow::Context;
use clap_mangen::{
    Man,
    roff::{Inline, Roff, bold, italic, roman},
};
use gpumon_probe::safe_file;
use gpumon_smi::{
    Arity,
    cli_spec::{self, CommandSpec, OptionSpec, ValueHint, list_commands},
};
use jiff::Timestamp;

use crate::{
    exit::{Result, usage},
    suggest::suggest_word,
    terminal::output::print_raw,
};

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
pub(crate) fn run(gpumon: clap::Command, args: &ManArgs) -> Result {
    let all = list_all_commands(gpumon);
    if let Some(folder) = &args.out {
        return Ok(write_all_pages(&all, folder)?);
    }
    let page = match &args.command {
        None => &all[0],
        Some(name) => find_command(&all, name)?,
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

fn find_command<'a>(all: &'a [clap::Command], name: &str) -> Result<&'a clap::Command> {
    // `name` is a page name without the prefix, such as `alerts-check`.
    let name_of = |command| page_name(command).trim_start_matches("gpumon-");
    let names = || all.iter().map(name_of);
    let found = all.iter().find(|command| name_of(command) == name);
    found.ok_or_else(|| {
        let others = format!(
            "the commands are {}",
            names().collect::<Vec<_>>().join(", ")
        );
        usage!(
            "unknown command '{name}': {}",
            suggest_word(name, names(), &others)
        )
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
    let page = Man::new(prepare_command_for_page(command));
    let mut title = Roff::new();
    let (date, source) = (
        find_page_date(),
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
        add_smi_sections(&mut rest);
    }
    let notes = command
        .get_after_long_help()
        .or_else(|| command.get_after_help());
    if let Some(notes) = notes {
        add_notes(&mut rest, &notes.to_string());
    }
    add_see_also(&mut rest, page_name(command));
    rest.to_writer(&mut text)?;
    // An empty line already separates the paragraphs. Formatters warn about line breaks next to an
    // empty line.
    Ok(String::from_utf8_lossy(&text).replace(".br\n\n.br\n", "\n"))
}

/// Returns the command with two changes for its manual page. First, the usage line is replaced by
/// that of the help, which does not list the options. Second, the first sentence of the description
/// is removed, because the page's name section already contains it.
fn prepare_command_for_page(command: &clap::Command) -> clap::Command {
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

// Sections that follow the options in a manual page.

/// Adds the notes from the end of a command's help, without reflowing them.
fn add_notes(page: &mut Roff, text: &str) {
    page.control("SH", ["NOTES"]);
    page.control("nf", []);
    for line in text.lines() {
        page.text([roman(line)]);
    }
    page.control("fi", []);
}

/// Adds the section with related manual pages.
fn add_see_also(page: &mut Roff, own: &str) {
    page.control("SH", ["SEE ALSO"]);
    let mut words: Vec<Inline> = Vec::new();
    if own != "gpumon" {
        words.extend([bold("gpumon"), roman("(1), ")]);
    }
    words.extend([bold("nvidia-smi"), roman("(1)")]);
    page.text(words);
}

/// Returns the date for manual pages, such as `2026-01-31`. The date comes from `SOURCE_DATE_EPOCH`
/// for reproducible builds, otherwise from the program file.
fn find_page_date() -> String {
    let named = env::var("SOURCE_DATE_EPOCH")
        .ok()
        .and_then(|seconds| Timestamp::from_second(seconds.parse().ok()?).ok());
    let modified = || env::current_exe().ok()?.metadata().ok()?.modified().ok();
    let built = named
        .or_else(|| Timestamp::try_from(modified()?).ok())
        .unwrap_or_default();
    built.strftime("%Y-%m-%d").to_string()
}

fn add_paragraph(page: &mut Roff, text: &str) {
    if !text.trim().is_empty() {
        page.text([roman(text.trim())]);
    }
}

// The sections of the manual page of `gpumon smi`: the options of nvidia-smi and of each of its
// commands.

/// Adds sections for nvidia-smi's options, for each of its commands, and for the fields of each
/// query.
fn add_smi_sections(page: &mut Roff) {
    let commands = list_commands();
    for command in &commands {
        if command.name == "smi" {
            page.control("SH", ["ARGUMENTS OF NVIDIA-SMI"]);
        } else {
            page.control(
                "SH",
                [format!("GPUMON SMI {}", command.name.to_uppercase()).as_str()],
            );
            add_paragraph(page, &format!("{}.", command.about));
        }
        command
            .options
            .iter()
            .for_each(|option| add_option(page, option));
    }
    add_query_fields(page, &commands[0]);
}

/// Adds an option with its description and values. The fields of queries are in a separate section.
fn add_option(page: &mut Roff, option: &OptionSpec) {
    page.control("TP", []);
    let mut term: Vec<Inline> = Vec::new();
    for (place, spelling) in option.spellings.iter().enumerate() {
        term.extend((place > 0).then(|| roman(", ")));
        term.push(bold(*spelling));
    }
    match option.arity {
        Arity::None => {}
        Arity::Required => term.extend([roman(" "), italic("VALUE")]),
        Arity::Optional => term.extend([roman(" ["), italic("VALUE"), roman("]")]),
    }
    page.text(term);
    add_paragraph(page, &format!("{}.", option.about));
    let has_section = !cli_spec::list_fields(&option.spellings).is_empty();
    match &option.values {
        ValueHint::One(words) => add_paragraph(page, &format!("One of: {}.", words.join(", "))),
        ValueHint::Commas(words) if !has_section => {
            add_paragraph(page, &format!("They are: {}.", words.join(", ")));
        }
        ValueHint::Letters(letters) => {
            add_paragraph(page, &format!("Any of the letters {}.", letters.join(", ")));
        }
        ValueHint::Any | ValueHint::File | ValueHint::Commas(_) => {}
    }
}

fn add_query_fields(page: &mut Roff, itself: &CommandSpec) {
    for option in &itself.options {
        let fields = cli_spec::list_fields(&option.spellings);
        let (false, Some(switch)) = (fields.is_empty(), option.spellings.first()) else {
            continue;
        };
        page.control("SH", [format!("FIELDS OF {switch}").as_str()]);
        for field in fields {
            page.control("TP", []);
            page.text([bold(field.names.join(", "))]);
            field
                .about
                .lines()
                .for_each(|line| add_paragraph(page, line));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manual_page_has_smi_options_values_and_fields() {
        let mut page = Roff::new();
        add_smi_sections(&mut page);
        let text = page.render();
        for reported in [
            ".SH \"ARGUMENTS OF NVIDIA-SMI\"",
            "\\fB\\-q\\fR, \\fB\\-\\-query\\fR\n",
            "\\fB\\-d\\fR, \\fB\\-\\-display\\fR \\fIVALUE\\fR",
            "They are: MEMORY, UTILIZATION, ECC,",
            ".SH \"GPUMON SMI DMON\"",
            "Any of the letters p, u, c, v, m, e, t.",
            "One of: r, w, n, a, p.",
            ".SH \"FIELDS OF --query-gpu\"",
            "\\fBclocks.current.graphics, clocks.gr\\fR",
        ] {
            assert!(text.contains(reported), "{reported} is not in\n{text}");
        }
        assert!(
            !text.contains("\\fB\\-\\-power\\-limit"),
            "what is refused is not told"
        );
    }
}
