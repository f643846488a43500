//! What variables and flags say, without files.

use std::{env, ffi::OsString};

use clap::{
    Arg, ArgAction, ArgMatches, Command, builder::Resettable, error::ErrorKind, parser::ValueSource,
};

use super::{
    command_line::{leaf, leaf_matches, path},
    keys::conflicts_of,
};

/// The same command, of which a variable that is set to nothing sets nothing, and whose switches can be switched off, as
/// by `--allow-runs=false`.
pub(super) fn prepared(command: Command) -> Command {
    command
        .mut_args(prepared_argument)
        .mut_subcommands(prepared)
}

fn prepared_argument(arg: Arg) -> Arg {
    let is_switch = arg.get_env().is_some() && matches!(arg.get_action(), ArgAction::SetTrue);
    // What is switched off contradicts nothing.
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

/// What variables and flags say, and whether nothing is missing. A variable is left out where a flag is typed that it
/// cannot be used with.
pub(super) fn typed(
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
        // A file may say what is missing.
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
