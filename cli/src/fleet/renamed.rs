//! Options of one command that another command has under other names.

use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches};

/// The names of the options in the other command.
pub(crate) trait Rename {
    /// Returns the option as it is in the other command.
    fn rename(arg: Arg) -> Arg;
}

/// The options of `A` with the names of `R`.
#[derive(Debug)]
pub(crate) struct Renamed<A, R> {
    pub(crate) args: A,
    names: std::marker::PhantomData<R>,
}

impl<A: FromArgMatches, R> FromArgMatches for Renamed<A, R> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        Ok(Self {
            args: A::from_arg_matches(matches)?,
            names: std::marker::PhantomData,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.args.update_from_arg_matches(matches)
    }
}

impl<A: Args, R: Rename> Args for Renamed<A, R> {
    fn augment_args(command: Command) -> Command {
        let own = A::augment_args(Command::new("options"));
        command.args(own.get_arguments().cloned().map(R::rename))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}
