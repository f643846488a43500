//! Options that two commands share under different names.

use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches};

/// A rule for renaming options, for use in another command.
pub(crate) trait RenameOption {
    /// Returns the option as it appears in the other command.
    fn rename_option(arg: Arg) -> Arg;
}

/// The options `A`, renamed by `R`.
#[derive(Debug)]
pub(crate) struct RenamedArgs<A, R> {
    pub(crate) args: A,
    names: std::marker::PhantomData<R>,
}

impl<A: FromArgMatches, R> FromArgMatches for RenamedArgs<A, R> {
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

impl<A: Args, R: RenameOption> Args for RenamedArgs<A, R> {
    fn augment_args(command: Command) -> Command {
        let own = A::augment_args(Command::new("options"));
        command.args(own.get_arguments().cloned().map(R::rename_option))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}
