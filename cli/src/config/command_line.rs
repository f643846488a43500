//! The command line, completed with the values of settings files.
//!
//! The values of files are added as arguments to the typed command line, so that the clap
//! definitions validate them like typed ones. A value is left out if a variable or a flag sets the
//! same option, or conflicts with it.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
};

use clap::{
    Arg, ArgAction, ArgMatches, Command, builder::Resettable, error::ErrorKind, parser::ValueSource,
};

use super::{
    SettingsFile, Unreadable, find,
    keys::{Keys, conflicts_of},
    merge,
    parse::{Entry, Mistake, Parsed, parse},
    remember,
};

/// A command line with all values that apply to it.
#[derive(Debug)]
pub(crate) struct Resolved {
    pub(crate) matches: ArgMatches,
    /// The matches of variables and flags, without files.
    pub(super) typed: ArgMatches,
    /// All settings of the files, including those that this command does not use.
    pub(crate) entries: Vec<Entry>,
    /// Mistakes in files that do not stop the command.
    pub(crate) remarks: Vec<String>,
}

impl Resolved {
    /// Returns `true` if a flag sets the option, as opposed to a variable or a file.
    pub(crate) fn is_typed(&self, option: &str) -> bool {
        let typed = leaf_matches(&self.typed);
        typed.try_contains_id(option).is_ok()
            && typed.value_source(option) == Some(ValueSource::CommandLine)
    }

    /// Returns `true` if a flag, a variable or a file sets the option.
    pub(crate) fn is_set(&self, option: &str) -> bool {
        let source = leaf_matches(&self.matches).value_source(option);
        source.is_some_and(|source| source != ValueSource::DefaultValue)
    }

    /// Returns the settings file that was named with `--config` or its variable.
    pub(crate) fn config(&self) -> Option<&Path> {
        named(&self.typed).map(PathBuf::as_path)
    }
}

fn named(matches: &ArgMatches) -> Option<&PathBuf> {
    leaf_matches(matches)
        .try_get_one::<PathBuf>("config")
        .ok()
        .flatten()
}

/// The reason why a command line cannot be resolved.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The arguments are invalid, or ask for help or the version.
    Arguments(clap::Error),
    /// The mistakes in settings files; never empty.
    Settings(Vec<String>),
}

/// Commands with a full screen, which start even if settings of the screen are wrong.
const SCREENS: [&str; 2] = ["top", "replay"];
/// Commands that use no settings, or report mistakes in settings themselves.
const WITHOUT: [&str; 6] = [
    "config",
    "doctor",
    "completions",
    "man",
    "licenses",
    "schema",
];

/// Resolves a command line. The first of `words` is the name of the program.
pub(crate) fn resolve(command: &Command, words: &[OsString]) -> Result<Resolved, Refusal> {
    let (prepared, typed, is_complete) =
        match_typed(prepare(command.clone()), words).map_err(Refusal::Arguments)?;
    let path = path(&typed);
    let arguments = arguments(command, &path);
    let command = prepared;
    let (files, unreadable) = find(named(&typed).map(PathBuf::as_path));
    let keys = if files.is_empty() {
        None
    } else {
        Some(Keys::new())
    };
    let parsed: Vec<Parsed> = keys
        .iter()
        .flat_map(|keys| files.iter().map(|file: &SettingsFile| parse(file, keys)))
        .collect();
    let mistakes = parsed.iter().flat_map(|parsed| &parsed.mistakes);
    let remarks = judged(&path, &arguments, keys.as_ref(), mistakes, &unreadable)?;
    let entries = merge(parsed.into_iter().map(|parsed| parsed.entries));
    let general = entries.iter().filter(|entry| entry.key.table.is_none());
    remember(
        general
            .map(|entry| (entry.key.name().to_owned(), entry.texts.concat().into()))
            .collect(),
    );
    let set = words_of(&entries, &arguments, leaf(&command, &path), &typed);
    if set.is_empty() {
        let matches = if is_complete {
            Ok(typed.clone())
        } else {
            command.try_get_matches_from(words)
        };
        let matches = matches.map_err(Refusal::Arguments)?;
        return Ok(Resolved {
            matches,
            typed,
            entries,
            remarks,
        });
    }
    let at = place(&command, words, &path);
    let all = words[..at].iter().chain(&set).chain(&words[at..]);
    let matches = command.clone().try_get_matches_from(all).map_err(|error| {
        // The typed arguments may be wrong even without the files.
        match command.try_get_matches_from(words) {
            Err(of_typed) => Refusal::Arguments(of_typed),
            Ok(_) => Refusal::Settings(vec![contradiction(&error, &files)]),
        }
    })?;
    Ok(Resolved {
        matches,
        typed,
        entries,
        remarks,
    })
}

/// Returns the names of the command and its subcommands.
pub(super) fn path(matches: &ArgMatches) -> Vec<String> {
    let inner = matches
        .subcommand()
        .map(|(name, inner)| (name.to_owned(), path(inner)));
    inner
        .map(|(name, rest)| [vec![name], rest].concat())
        .unwrap_or_default()
}

pub(super) fn leaf<'a>(command: &'a Command, path: &[String]) -> &'a Command {
    path.iter().fold(command, |command, name| {
        command.find_subcommand(name).unwrap_or(command)
    })
}

pub(super) fn leaf_matches(matches: &ArgMatches) -> &ArgMatches {
    matches
        .subcommand()
        .map_or(matches, |(_, inner)| leaf_matches(inner))
}

/// Returns the arguments of a command, including those that all commands share.
fn arguments(command: &Command, path: &[String]) -> Vec<Arg> {
    let general = command
        .get_arguments()
        .filter(|arg| !path.is_empty() && arg.is_global_set());
    leaf(command, path)
        .get_arguments()
        .chain(general)
        .cloned()
        .collect()
}

/// Returns the mistakes that only need a remark, or refuses the command line. Mistakes in settings
/// that this command does not use are ignored, and mistakes that affect only a screen are remarks.
fn judged<'a>(
    path: &[String],
    arguments: &[Arg],
    keys: Option<&Keys>,
    mistakes: impl Iterator<Item = &'a Mistake>,
    unreadable: &[Unreadable],
) -> Result<Vec<String>, Refusal> {
    let command = path.first().map(String::as_str);
    if command.is_some_and(|command| WITHOUT.contains(&command)) {
        return Ok(Vec::new());
    }
    let is_live = command.is_some_and(|command| SCREENS.contains(&command));
    let is_screen = is_live || command.is_none();
    let uses = |table: &str| {
        let mut of_table = keys.into_iter().flat_map(|keys| keys.of(Some(table)));
        command == Some(table)
            || is_screen && table == "top"
            || of_table.any(|key| arguments.iter().any(|arg| key.is_same(arg)))
    };
    let (mut told, mut refused) = (Vec::new(), Vec::new());
    for file in unreadable
        .iter()
        .filter(|file| !(is_live && file.can_be_made()))
    {
        if is_screen && !file.is_named {
            told.push(file.to_string());
        } else {
            refused.push(file.to_string());
        }
    }
    for mistake in mistakes {
        match mistake.table {
            Some("top") if is_screen => told.push(mistake.error.to_string()),
            Some(table) if !uses(table) => {}
            // A screen may not show a fleet, so a mistake in the fleet's settings does not stop it.
            Some("fleet") if is_live => told.push(mistake.error.to_string()),
            _ => refused.push(mistake.error.to_string()),
        }
    }
    if refused.is_empty() {
        Ok(told)
    } else {
        Err(Refusal::Settings(refused))
    }
}

/// Returns the settings of files as arguments of this command. Settings that a variable or a flag
/// sets or contradicts are left out.
fn words_of(
    entries: &[Entry],
    arguments: &[Arg],
    leaf: &Command,
    typed: &ArgMatches,
) -> Vec<OsString> {
    let typed = leaf_matches(typed);
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
    let used = entries
        .iter()
        .filter_map(|entry| Some((entry, arguments.iter().find(|arg| entry.key.is_same(arg))?)));
    let used = used.filter(|(entry, arg)| {
        let is_contradicted = || {
            arguments
                .iter()
                .any(|other| is_typed(other) && contradict(leaf, arg, other))
        };
        // A switch that is off by default needs no argument, and must not cause a conflict.
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

/// Returns the index in `words` after the command's name, where arguments of the command can be
/// inserted.
fn place(command: &Command, words: &[OsString], wanted: &[String]) -> usize {
    let names = |end: &usize| {
        let begun = command
            .clone()
            .ignore_errors(true)
            .try_get_matches_from(&words[..*end]);
        begun.is_ok_and(|begun| path(&begun) == wanted)
    };
    (1..=words.len()).find(names).unwrap_or(words.len())
}

/// Returns the message for settings that conflict only when files are combined.
fn contradiction(error: &clap::Error, files: &[SettingsFile]) -> String {
    let text = error.to_string();
    let what = text
        .lines()
        .next()
        .unwrap_or_default()
        .trim_start_matches("error: ");
    let files: Vec<_> = files
        .iter()
        .map(|file| Path::new(&file.path).display().to_string())
        .collect();
    format!(
        "{}: {what}; `gpumon config show` says what is set where",
        files.join(", ")
    )
}

/// Returns the command changed in two ways: empty variables are ignored, and switches accept a
/// value, such as `--allow-runs=false`.
fn prepare(command: Command) -> Command {
    command.mut_args(prepared_argument).mut_subcommands(prepare)
}

fn prepared_argument(arg: Arg) -> Arg {
    let is_switch = arg.get_env().is_some() && matches!(arg.get_action(), ArgAction::SetTrue);
    // A variable that switches an option off must not cause a conflict.
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

/// Returns the matches of variables and flags, and whether all required arguments are present. A
/// variable is ignored if it conflicts with a typed flag.
pub(super) fn match_typed(
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
    let path = path(&lenient);
    let (leaf, of_leaf) = (leaf(&command, &path), leaf_matches(&lenient));
    let from = |source: ValueSource| {
        leaf.get_arguments()
            .filter(move |arg| of_leaf.value_source(arg.get_id().as_str()) == Some(source))
    };
    let overruled: Vec<_> = from(ValueSource::EnvVariable)
        .filter(|set| from(ValueSource::CommandLine).any(|flag| contradict(leaf, set, flag)))
        .map(|arg| arg.get_id().clone())
        .collect();
    let is_overruled = |arg: &Arg| overruled.contains(arg.get_id());
    let command = at_leaf(command, &path, &|leaf: Command| {
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
        // A settings file may have the missing argument.
        Err(error) if error.kind() == ErrorKind::MissingRequiredArgument => {
            Ok((command, lenient, false))
        }
        Err(error) => Err(error),
    }
}

fn at_leaf(command: Command, path: &[String], change: &dyn Fn(Command) -> Command) -> Command {
    match path.split_first() {
        Some((name, rest)) => command.mut_subcommand(name, |inner| at_leaf(inner, rest, change)),
        None => change(command),
    }
}

pub(super) fn contradict(command: &Command, a: &Arg, b: &Arg) -> bool {
    conflicts_of(command, a).contains(b.get_id()) || conflicts_of(command, b).contains(a.get_id())
}
