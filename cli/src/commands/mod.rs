//! The commands: one file or directory each, with the arguments and the implementation.

pub(crate) mod alerts;
pub(crate) mod bench;
pub(crate) mod burn;
pub(crate) mod collect;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod doctor;
pub(crate) mod export;
mod figures;
pub(crate) mod fleet;
pub(crate) mod help;
pub(crate) mod info;
pub(crate) mod job;
pub(crate) mod man;
pub(crate) mod mark;
pub(crate) mod mcp;
pub(crate) mod measure;
pub(crate) mod notebook;
pub(crate) mod oom;
pub(crate) mod pause;
pub(crate) mod record;
pub(crate) mod replay;
pub(crate) mod run;
pub(crate) mod schema;
pub(crate) mod selftest;
pub(crate) mod serve;
pub(crate) mod show;
pub(crate) mod smi;
pub(crate) mod tether;
pub(crate) mod top;
pub(crate) mod tutorials;
pub(crate) mod usage;
pub(crate) mod wait;
pub(crate) mod work;

use clap::{CommandFactory, Subcommand};

use crate::{
    args::Args,
    config::ResolvedArguments,
    exit::{Result, usage},
    terminal::units::set_energy_price,
};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Top(Box<top::TopArgs>),
    Wait(Box<wait::WaitArgs>),
    Run(Box<run::RunArgs>),
    Smi(smi::SmiArgs),
    Serve(Box<serve::ServeArgs>),
    Fleet(Box<fleet::FleetArgs>),
    Record(record::RecordArgs),
    Replay(replay::ReplayArgs),
    Export(Box<export::ExportArgs>),
    Collect(collect::CollectArgs),
    Mcp(mcp::McpArgs),
    Usage(usage::UsageArgs),
    Job(job::JobArgs),
    Compare(compare::CompareArgs),
    Notebook(notebook::NotebookArgs),
    Bench(bench::BenchArgs),
    Burn(burn::BurnArgs),
    Selftest(selftest::SelftestArgs),
    Oom(oom::OomArgs),
    #[command(alias = "seeds")]
    Tutorials(tutorials::TutorialsArgs),
    Doctor(doctor::DoctorArgs),
    Info(info::InfoArgs),
    Config(config::ConfigArgs),
    Alerts(alerts::AlertsArgs),
    Mark(mark::MarkArgs),
    Pause(pause::PauseArgs),
    Resume(pause::ResumeArgs),
    Schema(schema::SchemaArgs),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
    /// Print the licenses of gpumon and of the libraries that it contains
    Licenses,
    Help(help::HelpArgs),
    #[command(hide = true)]
    Measure(measure::MeasureArgs),
    #[command(hide = true)]
    Work(work::WorkArgs),
    #[command(hide = true)]
    Tether(tether::TetherArgs),
}

/// Runs the command. `resolved` is the command line from which `args` was parsed.
pub(crate) fn dispatch(args: Args, resolved: ResolvedArguments) -> Result {
    let name = resolved.matches.subcommand_name();
    if let (Some(name), Some(option)) = (name, args.show.find_typed_option()) {
        return Err(usage!(
            "'{option}' before '{name}' has no effect: remove it, or put it after '{name}' if \
             `gpumon {name} --help` lists it"
        ));
    }
    if let Some(price) = args.energy_price {
        set_energy_price(price);
    }
    let source = &args.source;
    let Some(command) = args.command else {
        return show::run(source, &args.show, &resolved);
    };
    match command {
        Command::Collect(args) => collect::run(source, &args),
        Command::Serve(args) => serve::run(source, &args, &resolved),
        Command::Doctor(args) => doctor::run(source, &args),
        Command::Compare(args) => compare::run(&args),
        Command::Export(args) => export::run(&args),
        Command::Fleet(args) => fleet::run(&args),
        Command::Info(args) => info::run(source, &args),
        Command::Job(args) => job::run(&args),
        Command::Bench(args) => bench::run(source, &args),
        Command::Burn(args) => burn::run(source, &args),
        Command::Work(args) => work::run(source, &args),
        Command::Tether(args) => tether::run(&args),
        Command::Tutorials(args) => tutorials::run(source, &args),
        Command::Oom(args) => oom::run(source, &args),
        Command::Selftest(args) => selftest::run(source, &args),
        Command::Mark(args) => mark::run(&args),
        Command::Mcp(args) => mcp::run(source, &args),
        Command::Notebook(args) => notebook::run(&args),
        Command::Alerts(args) => alerts::run(&args),
        Command::Config(args) => config::run(source, &args),
        Command::Pause(args) => pause::pause(&args),
        Command::Schema(args) => schema::run(&args),
        Command::Resume(args) => pause::resume(&args),
        Command::Record(args) => record::run(source, &args),
        Command::Replay(args) => replay::run(source, args, resolved),
        Command::Run(args) => run::run(source, &args),
        Command::Measure(args) => measure::run(source, &args),
        Command::Smi(args) => smi::run(source, &args),
        Command::Top(args) => top::run(source, *args, resolved),
        Command::Usage(args) => usage::run(&args),
        Command::Wait(args) => wait::run(source, &args),
        Command::Completions(args) => completions::run(&Args::command(), &args),
        Command::Man(args) => man::run(Args::command(), &args),
        Command::Licenses => help::print_licenses(),
        Command::Help(args) => help::run(Args::command(), &args),
    }
}
