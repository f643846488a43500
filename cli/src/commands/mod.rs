//! The commands, one file each: its arguments, and what it does.

pub(crate) mod bench;
pub(crate) mod burn;
pub(crate) mod collect;
pub(crate) mod completions;
pub(crate) mod doctor;
pub(crate) mod info;
pub(crate) mod man;
pub(crate) mod oom;
pub(crate) mod pause;
pub(crate) mod schema;
pub(crate) mod selftest;
pub(crate) mod serve;
pub(crate) mod show;
pub(crate) mod smi;
pub(crate) mod top;
pub(crate) mod tutorials;
pub(crate) mod wait;
pub(crate) mod work;

use anyhow::anyhow;
use clap::CommandFactory;

use crate::{
    args::{Args, Command},
    exit::Failure,
};

pub(crate) fn dispatch(args: Args) -> Result<(), Failure> {
    if let (Some(command), Some(option)) = (&args.command, args.show.typed()) {
        let name = command.name();
        return Err(Failure::usage(anyhow!(
            "'{option}' before '{name}' has no effect on it: remove it, or put it after '{name}' if `gpumon {name} --help` lists it"
        )));
    }
    match args.command {
        None => show::run(&args.source, &args.show),
        Some(Command::Collect(collect)) => collect::run(&args.source, &collect),
        Some(Command::Serve(serve)) => serve::run(&args.source, &serve),
        Some(Command::Doctor(doctor)) => doctor::run(&args.source, &doctor),
        Some(Command::Info(info)) => info::run(&args.source, &info),
        Some(Command::Bench(bench)) => bench::run(&args.source, &bench),
        Some(Command::Burn(burn)) => burn::run(&args.source, &burn),
        Some(Command::Work(work)) => work::run(&args.source, &work),
        Some(Command::Tutorials(tutorials)) => tutorials::run(&args.source, &tutorials),
        Some(Command::Oom(oom)) => oom::run(&args.source, &oom),
        Some(Command::Selftest(selftest)) => selftest::run(&args.source, &selftest),
        Some(Command::Pause(pause)) => pause::pause(&pause),
        Some(Command::Schema(schema)) => schema::run(&schema),
        Some(Command::Resume(resume)) => pause::resume(&resume),
        Some(Command::Smi(smi)) => smi::run(&args.source, &smi),
        Some(Command::Top(top)) => top::run(&args.source, top),
        Some(Command::Wait(wait)) => wait::run(&args.source, &wait),
        Some(Command::Completions(completions)) => completions::run(&Args::command(), &completions),
        Some(Command::Man(man)) => man::run(Args::command(), &man),
    }
}
