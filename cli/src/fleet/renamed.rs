//! Options of one command, in another under other names.

use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches};

/// How the options are called in the other command.
pub(crate) trait Rename {
    /// The same option as the other command has it.
    fn rename(arg: Arg) -> Arg;
}

/// The options of `A` as `R` calls them.
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
