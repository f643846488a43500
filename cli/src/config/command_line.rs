//! The command line, completed with the values of settings files.
//!
//! The values are added to the typed command line as arguments, so that the clap definitions
//! validate them like typed arguments. A value is left out if a variable or a flag sets the same
//! option or conflicts with it.

use std::{
    env,
    ffi::OsString,
    iter,
    path::{Path, PathBuf},
};

use clap::{
    Arg, ArgAction, ArgMatches, Command, builder::Resettable, error::ErrorKind, parser::ValueSource,
};

use super::{
    SettingsFile, UnreadableFile,
    file::{Entry, Mistake, ParsedFile, parse},
    keys::{Keys, list_conflicts},
    merge_entries, read_applicable_files, store_general_settings,
};

/// A command line to which the values of settings files have been added.
#[derive(Debug)]
pub(crate) struct ResolvedArguments {
    pub(crate) matches: ArgMatches,
    /// The matches from variables and flags only, without settings files.
    pub(super) typed: ArgMatches,
    /// All settings of the files, including those that this command does not use.
    pub(crate) entries: Vec<Entry>,
    /// Messages about mistakes in settings files that do not stop the command.
    pub(crate) remarks: Vec<String>,
}

impl ResolvedArguments {
    /// Returns `true` if a flag sets the option, rather than a variable or a file.
    pub(crate) fn is_typed(&self, option: &str) -> bool {
        let typed = find_leaf_matches(&self.typed);
        typed.try_contains_id(option).is_ok()
            && typed.value_source(option) == Some(ValueSource::CommandLine)
    }

    /// Returns `true` if a flag, a variable or a file sets the option.
    pub(crate) fn is_set(&self, option: &str) -> bool {
        let source = find_leaf_matches(&self.matches).value_source(option);
        source.is_some_and(|source| source != ValueSource::DefaultValue)
    }

    /// Returns the settings file that was named with `--config` or its variable.
    pub(crate) fn config_path(&self) -> Option<&Path> {
        find_config_path(&self.typed)
    }
}

fn find_config_path(matches: &ArgMatches) -> Option<&Path> {
    let path = find_leaf_matches(matches).try_get_one::<PathBuf>("config");
    path.ok().flatten().map(PathBuf::as_path)
}

/// The reason why a command line cannot be resolved.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The arguments are invalid, or request the help or the version.
    Arguments(clap::Error),
    /// The messages for mistakes in settings files; never empty.
    Settings(Vec<String>),
}

/// Commands with a full screen, which start even if the screen's settings are invalid.
const SCREEN_COMMANDS: [&str; 2] = ["top", "replay"];
/// Commands that use no settings, or that report mistakes in settings in their own output.
const COMMANDS_WITHOUT_SETTINGS: [&str; 6] = [
    "config",
    "doctor",
    "completions",
    "man",
    "licenses",
    "schema",
];

/// Resolves a command line. The first of `words` is the name of the program.
pub(crate) fn resolve_command_line(
    command: &Command,
    words: &[OsString],
) -> Result<ResolvedArguments, Refusal> {
    let (prepared, typed, is_complete) =
        match_typed_arguments(prepare_command(command.clone()), words)
            .map_err(Refusal::Arguments)?;
    let path = list_command_names(&typed);
    let arguments = list_arguments(command, &path);
    let command = prepared;
    let (files, unreadable) = read_applicable_files(find_config_path(&typed));
    let keys = (!files.is_empty()).then(Keys::new);
    let parsed: Vec<ParsedFile> = keys
        .iter()
        .flat_map(|keys| files.iter().map(|file: &SettingsFile| parse(file, keys)))
        .collect();
    let mistakes = parsed.iter().flat_map(|parsed| &parsed.mistakes);
    let remarks =
        convert_mistakes_to_remarks(&path, &arguments, keys.as_ref(), mistakes, &unreadable)?;
    let entries = merge_entries(parsed.into_iter().map(|parsed| parsed.entries));
    let general = entries.iter().filter(|entry| entry.key.table.is_none());
    store_general_settings(
        general
            .map(|entry| (entry.key.name().to_owned(), entry.texts.concat().into()))
            .collect(),
    );
    let set = build_file_arguments(
        &entries,
        &arguments,
        find_leaf_command(&command, &path),
        &typed,
    );
    if set.is_empty() {
        let matches = if is_complete {
            Ok(typed.clone())
        } else {
            command.try_get_matches_from(words)
        };
        let matches = matches.map_err(Refusal::Arguments)?;
        return Ok(ResolvedArguments {
            matches,
            typed,
            entries,
            remarks,
        });
    }
    let at = find_insertion_index(&command, words, &path);
    let all = words[..at].iter().chain(&set).chain(&words[at..]);
    let matches = command.clone().try_get_matches_from(all).map_err(|error| {
        // If the typed arguments are invalid even without the settings files, their error is
        // reported.
        match command.try_get_matches_from(words) {
            Err(of_typed) => Refusal::Arguments(of_typed),
            Ok(_) => Refusal::Settings(vec![describe_conflict(&error, &files)]),
        }
    })?;
    Ok(ResolvedArguments {
        matches,
        typed,
        entries,
        remarks,
    })
}

/// Returns the names of the matched command and its subcommands.
pub(super) fn list_command_names(matches: &ArgMatches) -> Vec<String> {
    let subcommands = iter::successors(matches.subcommand(), |(_, inner)| inner.subcommand());
    subcommands.map(|(name, _)| name.to_owned()).collect()
}

pub(super) fn find_leaf_command<'a>(command: &'a Command, path: &[String]) -> &'a Command {
    path.iter().fold(command, |command, name| {
        command.find_subcommand(name).unwrap_or(command)
    })
}

pub(super) fn find_leaf_matches(matches: &ArgMatches) -> &ArgMatches {
    matches
        .subcommand()
        .map_or(matches, |(_, inner)| find_leaf_matches(inner))
}

/// Returns the arguments of a command, including those that all commands share.
fn list_arguments(command: &Command, path: &[String]) -> Vec<Arg> {
    let general = command
        .get_arguments()
        .filter(|arg| !path.is_empty() && arg.is_global_set());
    find_leaf_command(command, path)
        .get_arguments()
        .chain(general)
        .cloned()
        .collect()
}

/// Returns remarks about mistakes that do not stop the command, or refuses the command line.
/// Mistakes in settings that this command does not use are ignored. Mistakes that affect only a
/// full screen become remarks.
fn convert_mistakes_to_remarks<'a>(
    path: &[String],
    arguments: &[Arg],
    keys: Option<&Keys>,
    mistakes: impl Iterator<Item = &'a Mistake>,
    unreadable: &[UnreadableFile],
) -> Result<Vec<String>, Refusal> {
    let command = path.first().map(String::as_str);
    if command.is_some_and(|command| COMMANDS_WITHOUT_SETTINGS.contains(&command)) {
        return Ok(Vec::new());
    }
    let is_live = command.is_some_and(|command| SCREEN_COMMANDS.contains(&command));
    let is_screen = is_live || command.is_none();
    let uses = |table: &str| {
        let mut of_table = keys
            .into_iter()
            .flat_map(|keys| keys.iter_table(Some(table)));
        command == Some(table)
            || is_screen && table == "top"
            || of_table.any(|key| arguments.iter().any(|arg| key.matches_argument(arg)))
    };
    let (mut reported, mut refused) = (Vec::new(), Vec::new());
    for file in unreadable
        .iter()
        .filter(|file| !(is_live && file.can_be_created()))
    {
        if is_screen && !file.is_named {
            reported.push(file.to_string());
        } else {
            refused.push(file.to_string());
        }
    }
    for mistake in mistakes {
        match mistake.table {
            Some("top") if is_screen => reported.push(mistake.error.to_string()),
            Some(table) if !uses(table) => {}
            // A screen can also run without a fleet, so a mistake in the fleet's settings becomes a
            // remark.
            Some("fleet") if is_live => reported.push(mistake.error.to_string()),
            _ => refused.push(mistake.error.to_string()),
        }
    }
    if refused.is_empty() {
        Ok(reported)
    } else {
        Err(Refusal::Settings(refused))
    }
}

/// Converts settings from files to arguments of this command. A setting is left out if a variable
/// or a flag sets the same option or conflicts with it.
fn build_file_arguments(
    entries: &[Entry],
    arguments: &[Arg],
    leaf: &Command,
    typed: &ArgMatches,
) -> Vec<OsString> {
    let typed = find_leaf_matches(typed);
    let is_set = |arg: &Arg| {
        arg.get_env()
            .and_then(env::var_os)
            .is_some_and(|value| !value.is_empty())
    };
    let is_typed = |arg: &Arg| {
        let source = typed.value_source(arg.get_id().as_str());
        matches!(
            source,
            Some(ValueSource::CommandLine | ValueSource::EnvVariable)
        )
    };
    let used = entries.iter().filter_map(|entry| {
        Some((
            entry,
            arguments
                .iter()
                .find(|arg| entry.key.matches_argument(arg))?,
        ))
    });
    let used = used.filter(|(entry, arg)| {
        let is_contradicted = || {
            arguments
                .iter()
                .any(|other| is_typed(other) && are_in_conflict(leaf, arg, other))
        };
        // A switch that is off by default needs no argument if a file sets it to `false`. The
        // argument might conflict with another option.
        let is_off = entry.is_switched_off()
            && arg
                .get_default_values()
                .iter()
                .all(|value| value == "false");
        !(is_typed(arg) || is_set(arg) || is_off || is_contradicted())
    });
    used.flat_map(|(entry, _)| {
        entry
            .texts
            .iter()
            .map(|text| format!("--{}={text}", entry.key.name()).into())
    })
    .collect()
}

/// Returns the index in `words` after the command's name, at which arguments of the command can be
/// inserted.
fn find_insertion_index(command: &Command, words: &[OsString], wanted: &[String]) -> usize {
    let names = |end: &usize| {
        let begun = command
            .clone()
            .ignore_errors(true)
            .try_get_matches_from(&words[..*end]);
        begun.is_ok_and(|begun| list_command_names(&begun) == wanted)
    };
    (1..=words.len()).find(names).unwrap_or(words.len())
}

/// Returns the error message for settings of different files that conflict with each other.
fn describe_conflict(error: &clap::Error, files: &[SettingsFile]) -> String {
    let text = error.to_string();
    let what = text
        .lines()
        .next()
        .unwrap_or_default()
        .trim_start_matches("error: ");
    let files: Vec<_> = files
        .iter()
        .map(|file| file.path.display().to_string())
        .collect();
    format!(
        "{}: {what}; run `gpumon config show` to see where each setting comes from",
        files.join(", ")
    )
}

/// Returns the command with two changes: empty variables are ignored, and switches accept a value,
/// as in `--allow-runs=false`.
fn prepare_command(command: Command) -> Command {
    command
        .mut_args(prepare_argument)
        .mut_subcommands(prepare_command)
}

fn prepare_argument(arg: Arg) -> Arg {
    let is_switch = arg.get_env().is_some() && matches!(arg.get_action(), ArgAction::SetTrue);
    // A switch whose variable has the value `false` is off and must not conflict with other
    // options, so the variable is ignored.
    let is_unset = |value: OsString| value.is_empty() || is_switch && value == "false";
    let arg = if arg.get_env().and_then(env::var_os).is_some_and(is_unset) {
        arg.env(Resettable::Reset)
    } else {
        arg
    };
    if !is_switch {
        return arg;
    }
    arg.action(ArgAction::Set)
        .num_args(0..=1)
        .require_equals(true)
        .default_missing_value("true")
        .default_value("false")
}

/// Returns the command, the matches from variables and flags, and whether all required arguments
/// are present. A variable that conflicts with a typed flag is ignored.
pub(super) fn match_typed_arguments(
    command: Command,
    words: &[OsString],
) -> Result<(Command, ArgMatches, bool), clap::Error> {
    let error = match command.clone().try_get_matches_from(words) {
        Ok(typed) => return Ok((command, typed, true)),
        Err(error) => error,
    };
    if !matches!(
        error.kind(),
        ErrorKind::ArgumentConflict | ErrorKind::MissingRequiredArgument
    ) {
        return Err(error);
    }
    let Ok(lenient) = command
        .clone()
        .ignore_errors(true)
        .try_get_matches_from(words)
    else {
        return Err(error);
    };
    let path = list_command_names(&lenient);
    let (leaf, of_leaf) = (
        find_leaf_command(&command, &path),
        find_leaf_matches(&lenient),
    );
    let from = |source: ValueSource| {
        leaf.get_arguments()
            .filter(move |arg| of_leaf.value_source(arg.get_id().as_str()) == Some(source))
    };
    let overruled: Vec<_> = from(ValueSource::EnvVariable)
        .filter(|set| from(ValueSource::CommandLine).any(|flag| are_in_conflict(leaf, set, flag)))
        .map(|arg| arg.get_id().clone())
        .collect();
    let is_overruled = |arg: &Arg| overruled.contains(arg.get_id());
    let command = change_leaf_command(command, &path, &|leaf: Command| {
        leaf.mut_args(|arg| {
            if is_overruled(&arg) {
                arg.env(Resettable::Reset)
            } else {
                arg
            }
        })
    });
    match command.clone().try_get_matches_from(words) {
        Ok(typed) => Ok((command, typed, true)),
        // A settings file may contain the missing argument.
        Err(error) if error.kind() == ErrorKind::MissingRequiredArgument => {
            Ok((command, lenient, false))
        }
        Err(error) => Err(error),
    }
}

fn change_leaf_command(
    command: Command,
    path: &[String],
    change: &dyn Fn(Command) -> Command,
) -> Command {
    match path.split_first() {
        Some((name, rest)) => {
            command.mut_subcommand(name, |inner| change_leaf_command(inner, rest, change))
        }
        None => change(command),
    }
}

pub(super) fn are_in_conflict(command: &Command, a: &Arg, b: &Arg) -> bool {
    list_conflicts(command, a).contains(b.get_id())
        || list_conflicts(command, b).contains(a.get_id())
}
