//! The commands, one file each: its arguments, and what it does.

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
pub(crate) mod licenses;
pub(crate) mod man;
pub(crate) mod mark;
pub(crate) mod mcp;
pub(crate) mod measure;
mod meter;
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
    config::Resolved,
    exit::{Failure, usage},
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
    Licenses(licenses::LicensesArgs),
    Help(help::HelpArgs),
    #[command(hide = true)]
    Measure(measure::MeasureArgs),
    #[command(hide = true)]
    Work(work::WorkArgs),
    #[command(hide = true)]
    Tether(tether::TetherArgs),
}

/// `resolved` is what the arguments were made of.
pub(crate) fn dispatch(args: Args, resolved: Resolved) -> Result<(), Failure> {
    let name = resolved.matches.subcommand_name();
    if let (Some(name), Some(option)) = (name, args.show.typed()) {
        return Err(usage!(
            "'{option}' before '{name}' has no effect on it: remove it, or put it after '{name}' if `gpumon {name} --help` lists it"
        ));
    }
    if let Some(price) = args.energy_price {
        price.show_costs();
    }
    match args.command {
        None => show::run(&args.source, &args.show, &resolved),
        Some(Command::Collect(collect)) => collect::run(&args.source, &collect),
        Some(Command::Serve(serve)) => serve::run(&args.source, &serve, &resolved),
        Some(Command::Doctor(doctor)) => doctor::run(&args.source, &doctor),
        Some(Command::Compare(compare)) => compare::run(&compare),
        Some(Command::Export(export)) => export::run(&export),
        Some(Command::Fleet(fleet)) => fleet::run(&fleet),
        Some(Command::Info(info)) => info::run(&args.source, &info),
        Some(Command::Job(job)) => job::run(&job),
        Some(Command::Bench(bench)) => bench::run(&args.source, &bench),
        Some(Command::Burn(burn)) => burn::run(&args.source, &burn),
        Some(Command::Work(work)) => work::run(&args.source, &work),
        Some(Command::Tether(tether)) => tether::run(&tether),
        Some(Command::Tutorials(tutorials)) => tutorials::run(&args.source, &tutorials),
        Some(Command::Oom(oom)) => oom::run(&args.source, &oom),
        Some(Command::Selftest(selftest)) => selftest::run(&args.source, &selftest),
        Some(Command::Mark(mark)) => mark::run(&mark),
        Some(Command::Mcp(mcp)) => mcp::run(&args.source, &mcp),
        Some(Command::Notebook(notebook)) => notebook::run(&notebook),
        Some(Command::Alerts(alerts)) => alerts::run(&alerts),
        Some(Command::Config(config)) => config::run(&args.source, &config),
        Some(Command::Pause(pause)) => pause::pause(&pause),
        Some(Command::Schema(schema)) => schema::run(&schema),
        Some(Command::Resume(resume)) => pause::resume(&resume),
        Some(Command::Record(record)) => record::run(&args.source, &record),
        Some(Command::Replay(replay)) => replay::run(&args.source, replay, resolved),
        Some(Command::Run(run)) => run::run(&args.source, &run),
        Some(Command::Measure(measure)) => measure::run(&args.source, &measure),
        Some(Command::Smi(smi)) => smi::run(&args.source, &smi),
        Some(Command::Top(top)) => top::run(&args.source, *top, resolved),
        Some(Command::Usage(usage)) => usage::run(&usage),
        Some(Command::Wait(wait)) => wait::run(&args.source, &wait),
        Some(Command::Completions(completions)) => completions::run(&Args::command(), &completions),
        Some(Command::Man(man)) => man::run(Args::command(), &man),
        Some(Command::Licenses(_)) => licenses::run(),
        Some(Command::Help(help)) => help::run(Args::command(), &help),
    }
}
