//! `gpumon config`: checks, shows and explains settings files.

use std::{
    env,
    ffi::OsString,
    fmt::Write as _,
    path::{Path, PathBuf},
};

use clap::Subcommand;
use gpumon_alerts::rules::AlertRules;
use gpumon_probe::untrusted::escape_untrusted;
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    command_definition,
    config::{
        self, EffectiveSetting, Keys, Origin, Refusal, TABLES, resolve_settings, user_settings_path,
    },
    exit::{Failure, Result, exit_with_refusal, print_message},
    options::SourceArgs,
    terminal::output::{print_json, print_raw, print_report},
};

/// Check and show settings, and print an example of a settings file
///
/// A settings file in TOML sets the same values as environment variables and options, by the same
/// names. Later sources override earlier ones: /etc/gpumon/config.toml,
/// `$XDG_CONFIG_HOME/gpumon/config.toml`, environment variables, options.
#[derive(Debug, clap::Args)]
#[command(after_long_help = NOTES, disable_help_subcommand = true)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    action: Action,
}

const NOTES: &str = "\
Examples:
  gpumon config check
      Check the system's and the user's settings files, and the alert file that they name.
  gpumon config show
      Print every setting with its value and origin.
  gpumon config show serve --interval-ms 500
      Print the settings of gpumon serve, including this option.
  gpumon config example > ~/.config/gpumon/config.toml
      Create a file with every key, commented out.

Environment:
  GPUMON_CONFIG  default of --config
  XDG_CONFIG_HOME  folder of the user's files, by default ~/.config

Files:
  /etc/gpumon/config.toml
      Settings for every user of this machine.
  $XDG_CONFIG_HOME/gpumon/config.toml
      Settings of the user, which override those of the machine.

Exit codes: 0 success, 1 error, 2 invalid argument or settings file";

#[derive(Debug, Subcommand)]
enum Action {
    /// Check settings files, and the alert file named in them
    Check {
        /// File to check instead of the usual settings files
        file: Option<PathBuf>,

        /// Print the mistakes as JSON
        #[arg(long)]
        json: bool,
    },
    /// Print every setting with its value and its origin
    Show {
        /// Print the settings as JSON
        #[arg(long)]
        json: bool,

        /// Print only the settings of this command, with its options
        #[arg(trailing_var_arg = true, value_name = "COMMAND")]
        command: Vec<OsString>,
    },
    /// Print a settings file with every key, its meaning and its default, commented out
    Example,
}

pub(crate) fn run(source: &SourceArgs, args: &ConfigArgs) -> Result {
    match &args.action {
        Action::Check { file, json } => {
            print_settings_check(file.as_deref().or(source.config.as_deref()), *json)
        }
        Action::Show { json, command } => show_settings(command, *json),
        Action::Example => print_raw(&format_example()),
    }
}

/// A mistake in a file, as printed.
#[derive(Debug, Serialize)]
struct Mistake {
    /// The path of the file; `null` if the mistake has no single location.
    file: Option<String>,
    line: Option<usize>,
    column: Option<usize>,
    message: String,
}

#[derive(Debug, Serialize)]
struct Report {
    /// The files that were checked.
    files: Vec<PathBuf>,
    mistakes: Vec<Mistake>,
}

fn print_settings_check(named: Option<&Path>, json: bool) -> Result {
    let report = build_report(named);
    if json {
        print_json(&report)?;
    } else {
        print_mistakes(&report)?;
    }
    Failure::check_exit_code(if report.mistakes.is_empty() { 0 } else { 2 })
}

fn build_report(named: Option<&Path>) -> Report {
    let (files, unreadable) = config::read_and_parse_files(named);
    let mut mistakes: Vec<Mistake> = unreadable.iter().map(Mistake::new).collect();
    let mut alerts = Vec::new();
    let mut paths = Vec::new();
    for (path, parsed) in files {
        paths.push(path);
        mistakes.extend(parsed.mistakes.into_iter().map(|mistake| Mistake {
            file: Some(mistake.error.origin),
            line: Some(mistake.error.line),
            column: Some(mistake.error.column),
            message: mistake.error.message,
        }));
        let named = parsed
            .entries
            .iter()
            .filter(|entry| entry.key.full_name() == "serve.alerts");
        alerts.extend(
            named
                .flat_map(|entry| &entry.texts)
                .filter(|text| !text.is_empty())
                .map(PathBuf::from),
        );
    }
    // Even if each file is valid, settings in different files may conflict.
    if mistakes.is_empty() {
        mistakes.extend(
            TABLES
                .into_iter()
                .flat_map(|table| find_setting_conflicts(named, table)),
        );
    }
    let broken = alerts
        .iter()
        .filter_map(|file| AlertRules::read(file).err());
    mistakes.extend(broken.map(|error| Mistake::new(&error)));
    Report {
        files: paths.into_iter().chain(alerts).collect(),
        mistakes,
    }
}

impl Mistake {
    fn new(message: &impl ToString) -> Self {
        Self {
            file: None,
            line: None,
            column: None,
            message: message.to_string(),
        }
    }
}

fn find_setting_conflicts(named: Option<&Path>, table: &str) -> Vec<Mistake> {
    let mut words: Vec<OsString> = vec!["gpumon".into(), table.into()];
    if let Some(path) = named {
        words.extend(["--config".into(), path.into()]);
    }
    match config::resolve_command_line(&command_definition::build_command(), &words) {
        Err(Refusal::Settings(mistakes)) => mistakes.iter().map(Mistake::new).collect(),
        // An invalid environment variable or option is not a mistake in a settings file.
        Err(Refusal::Arguments(_)) | Ok(_) => Vec::new(),
    }
}

fn print_mistakes(report: &Report) -> Result {
    for Mistake {
        file,
        line,
        column,
        message,
    } in &report.mistakes
    {
        match (file, line, column) {
            (Some(file), Some(line), Some(column)) => {
                print_message(&format!("{file}:{line}:{column}: {message}"));
            }
            _ => print_message(message),
        }
    }
    if !report.mistakes.is_empty() {
        return Ok(());
    }
    let shown = |path: &Path| escape_untrusted(&path.display().to_string());
    let files = report.files.iter().map(|file| shown(file) + ": ok\n");
    let mut text: String = files.collect();
    if text.is_empty() {
        let user = user_settings_path().map(|path| format!(" or {}", shown(&path)));
        let user = user.unwrap_or_default();
        text = format!("no settings file at /etc/gpumon/config.toml{user}\n");
    }
    print_raw(&text)
}

const EXAMPLE_HEAD: &str = "\
# Settings of gpumon: /etc/gpumon/config.toml for every user, ~/.config/gpumon/config.toml for one.
#
# Each line that is commented out shows the default, or the type of the value if there is no \
default. Environment variables and
# options override this file. Check with
#
#     gpumon config check
#     gpumon config show
";

const EXAMPLE_WIDTH: usize = 118;

pub(crate) fn format_example() -> String {
    let keys = Keys::new();
    let mut text = EXAMPLE_HEAD.to_owned();
    for table in [None].into_iter().chain(TABLES.map(Some)) {
        if let Some(table) = table {
            // Writing to a string cannot fail.
            let _ = write!(text, "\n[{table}]\n");
        }
        for key in keys.iter_table(table) {
            text.push('\n');
            push_wrapped_paragraph(
                &mut text,
                &format!("{} (--{}, {})", key.help(), key.name(), key.variable_name()),
            );
            let _ = writeln!(text, "#{} = {}", key.name(), key.example_value());
        }
    }
    text
}

fn push_wrapped_paragraph(text: &mut String, paragraph: &str) {
    let mut line = String::from("#");
    for word in paragraph.split_whitespace() {
        if line.chars().count() + word.chars().count() >= EXAMPLE_WIDTH {
            text.extend([line.as_str(), "\n"]);
            "#".clone_into(&mut line);
        }
        line.extend([" ", word]);
    }
    text.extend([line.as_str(), "\n"]);
}

/// Prints the settings that apply to the command line `command`, or all settings if it is empty.
fn show_settings(command: &[OsString], json: bool) -> Result {
    let settings = match read_settings(command) {
        Ok(settings) => settings,
        Err(refusal) => {
            exit_with_refusal(refusal);
            return Err(Failure::from_printed_error(2));
        }
    };
    print_report(
        json,
        || json!({ "settings": settings.iter().map(setting_to_json).collect::<Vec<_>>() }),
        |_| format_settings(&settings),
    )
}

fn format_settings(settings: &[EffectiveSetting]) -> String {
    let mut table = None;
    let lines = settings.iter().map(|setting| {
        let heading = if setting.key.table == table {
            String::new()
        } else {
            table = setting.key.table;
            format!("\n[{}]\n", table.unwrap_or_default())
        };
        let name = setting.key.name();
        match &setting.value {
            Some(value) => format!(
                "{heading}{name} = {value}  # {}\n",
                describe_origin(&setting.origin)
            ),
            None => format!("{heading}# {name} is not set\n"),
        }
    });
    lines.collect()
}

fn read_settings(command: &[OsString]) -> Result<Vec<EffectiveSetting>, Refusal> {
    let all: Vec<OsString> = env::args_os().skip(1).collect();
    // The arguments before `command` affect the settings only if all commands share them.
    let (general, _) =
        SourceArgs::split_off_source_arguments(&all[..all.len().saturating_sub(command.len())]);
    let begun = [vec![OsString::from("gpumon")], general].concat();
    if !command.is_empty() {
        return resolve_settings(&[&begun, command].concat());
    }
    let mut settings: Vec<EffectiveSetting> = Vec::new();
    for table in TABLES {
        let of_table = resolve_settings(&[begun.clone(), vec![table.into()]].concat())?;
        // Settings outside of tables apply to all commands, so they are listed only for the first
        // table.
        settings.extend(
            of_table
                .into_iter()
                .filter(|setting| setting.key.table.is_some() || table == TABLES[0]),
        );
    }
    Ok(settings)
}

fn describe_origin(origin: &Origin) -> String {
    match origin {
        Origin::Default => "default".to_owned(),
        Origin::File { path, line } => format!("{path}:{line}"),
        Origin::Variable { name } => format!("variable {name}"),
        Origin::Flag { name } => format!("option {name}"),
    }
}

fn setting_to_json(setting: &EffectiveSetting) -> Value {
    let value = setting
        .value
        .as_ref()
        .and_then(|value| toml::from_str::<toml::Table>(&format!("value = {value}")).ok());
    json!({
        "table": setting.key.table,
        "key": setting.key.name(),
        "value": value.and_then(|mut table| table.remove("value")),
        "origin": setting.origin,
    })
}

#[cfg(test)]
mod tests {
    use crate::config::{ParsedFile, SettingsFile, parse};

    use super::*;

    fn read(text: String) -> ParsedFile {
        parse(
            &SettingsFile {
                path: "/etc/gpumon/config.toml".into(),
                text,
            },
            &Keys::new(),
        )
    }

    #[test]
    fn example_settings_file_and_defaults_are_valid() {
        let example = format_example();
        let parsed = read(example.clone());
        assert!(
            parsed.mistakes.is_empty() && parsed.entries.is_empty(),
            "{:?}",
            parsed.mistakes
        );
        let keys = Keys::new();
        for key in keys
            .iter()
            .filter(|key| !key.arg.get_default_values().is_empty())
        {
            let heading = key
                .table
                .map(|table| format!("[{table}]\n"))
                .unwrap_or_default();
            let parsed = read(format!(
                "{heading}{} = {}\n",
                key.name(),
                key.example_value()
            ));
            assert!(parsed.mistakes.is_empty(), "{:?}", parsed.mistakes);
            assert!(example.contains(&format!("\n#{} = {}\n", key.name(), key.example_value())));
        }
    }
}
