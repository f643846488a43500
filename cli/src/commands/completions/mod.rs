//! `gpumon completions`: what a shell needs to complete gpumon's arguments, made of the arguments themselves.

mod smi;

use std::io::{self, Write};

use clap::{ValueEnum, ValueHint, builder::PossibleValuesParser};
use clap_complete::{Shell, generate};
use gpumon_probe::vendor::SourceChoice;

use crate::{
    commands::{bench, oom, tutorials},
    exit::Failure,
};

/// Print shell completions
///
/// Packages install them for all three shells. They include the options of nvidia-smi after `gpumon smi` and
/// `gpumon`, but not for a link named nvidia-smi.
///
/// To install them manually, write them to:
///
/// bash: ~/.local/share/bash-completion/completions/gpumon (with the package bash-completion)
///
/// zsh: _gpumon in a folder of $fpath, for example /usr/local/share/zsh/site-functions
///
/// fish: ~/.config/fish/completions/gpumon.fish
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// Shell
    #[arg(value_enum)]
    shell: Completed,
}

const EXAMPLES: &str = "\
Examples:
  source <(gpumon completions bash)
      Enable completions in this shell.
  gpumon completions fish > ~/.config/fish/completions/gpumon.fish
      Install completions for this user.";

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Completed {
    Bash,
    Zsh,
    Fish,
}

/// `gpumon` is the definition of all that can be typed.
pub(crate) fn run(gpumon: &clap::Command, args: &CompletionsArgs) -> Result<(), Failure> {
    let shell = match args.shell {
        Completed::Bash => Shell::Bash,
        Completed::Zsh => Shell::Zsh,
        Completed::Fish => Shell::Fish,
    };
    // What is written into memory cannot fail, as the pipe may.
    let mut script = Vec::new();
    let mut command = command(gpumon);
    generate(shell, &mut command, "gpumon", &mut script);
    let mut script = String::from_utf8_lossy(&script).into_owned();
    if shell == Shell::Fish {
        script.push_str(&fish_values(&command));
    }
    io::stdout().write_all(smi::add(shell, &script, &names(&command)).as_bytes())?;
    Ok(())
}

/// The arguments, with the values that are worth proposing where others are valid, too.
fn command(gpumon: &clap::Command) -> clap::Command {
    let all = without_hidden(gpumon);
    let names = names(&all);
    all.mut_subcommand("man", |man| {
        man.mut_arg("command", |command| {
            command.value_parser(PossibleValuesParser::new(names.clone()))
        })
    })
    .mut_subcommand("help", |help| {
        help.mut_arg("path", |path| {
            path.value_parser(PossibleValuesParser::new(names))
        })
    })
    .mut_subcommand("bench", |bench| {
        bench.mut_arg("ids", |ids| {
            ids.value_parser(PossibleValuesParser::new(bench::names()))
        })
    })
    .mut_subcommand("tutorials", |tutorials| {
        tutorials.mut_arg("cases", |cases| {
            cases.value_parser(PossibleValuesParser::new(tutorials::names()))
        })
    })
    .mut_subcommand("oom", |oom| {
        oom.mut_arg("scenario", |scenario| {
            scenario.value_parser(PossibleValuesParser::new(oom::names()))
        })
    })
    .mut_arg("source", |source| {
        source.value_parser(SourceChoice::PROPOSED)
    })
    .mut_arg("nvml_lib", |library| {
        library.value_hint(ValueHint::FilePath)
    })
}

/// The same command without what only gpumon itself starts, which the generators would propose.
fn without_hidden(all: &clap::Command) -> clap::Command {
    let shown = all
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .cloned();
    let version = all.get_version().unwrap_or_default().to_owned();
    clap::Command::new("gpumon")
        .version(version)
        .disable_help_subcommand(true)
        .args(all.get_arguments().cloned())
        .subcommands(shown)
}

fn names(gpumon: &clap::Command) -> Vec<String> {
    let shown = gpumon
        .get_subcommands()
        .filter(|command| !command.is_hide_set());
    shown.map(|command| command.get_name().to_owned()).collect()
}

/// What the script for fish lacks: the values of arguments without a name, and those of options before a command.
fn fish_values(command: &clap::Command) -> String {
    let values = |argument: &clap::Arg| {
        let names = argument
            .get_possible_values()
            .iter()
            .map(|value| value.get_name().to_owned())
            .collect::<Vec<_>>();
        (!names.is_empty()).then(|| names.join(" "))
    };
    let options = command.get_opts().filter_map(|option| {
        let condition = "__fish_gpumon_smi_is own start open";
        let (long, values) = (option.get_long()?, values(option)?);
        Some(format!(
            "complete -c gpumon -n \"{condition}\" -l {long} -r -f -a \"{values}\"\n"
        ))
    });
    let positionals = command.get_subcommands().flat_map(|subcommand| {
        let condition = format!("__fish_gpumon_using_subcommand {}", subcommand.get_name());
        let line =
            move |values| format!("complete -c gpumon -n \"{condition}\" -f -a \"{values}\"\n");
        subcommand.get_positionals().filter_map(values).map(line)
    });
    options.chain(positionals).collect()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Args;

    #[test]
    fn what_is_proposed_can_be_typed() {
        let mut proposing = command(&Args::command());
        proposing.build();
        let source = proposing
            .get_arguments()
            .find(|argument| argument.get_id() == "source")
            .unwrap();
        let proposed = source.get_possible_values();
        assert_eq!(proposed.len(), 6);
        for value in proposed {
            let typed =
                Args::command().try_get_matches_from(["gpumon", "--source", value.get_name()]);
            assert!(typed.is_ok(), "{value:?}");
        }
    }
}
