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
    exit::{Failure, usage},
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
    Licenses(help::LicensesArgs),
    Help(help::HelpArgs),
    #[command(hide = true)]
    Measure(measure::MeasureArgs),
    #[command(hide = true)]
    Work(work::WorkArgs),
    #[command(hide = true)]
    Tether(tether::TetherArgs),
}

/// Runs the command. `resolved` is the command line from which `args` was parsed.
pub(crate) fn dispatch(args: Args, resolved: ResolvedArguments) -> Result<(), Failure> {
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
        Command::Collect(collect) => collect::run(source, &collect),
        Command::Serve(serve) => serve::run(source, &serve, &resolved),
        Command::Doctor(doctor) => doctor::run(source, &doctor),
        Command::Compare(compare) => compare::run(&compare),
        Command::Export(export) => export::run(&export),
        Command::Fleet(fleet) => fleet::run(&fleet),
        Command::Info(info) => info::run(source, &info),
        Command::Job(job) => job::run(&job),
        Command::Bench(bench) => bench::run(source, &bench),
        Command::Burn(burn) => burn::run(source, &burn),
        Command::Work(work) => work::run(source, &work),
        Command::Tether(tether) => tether::run(&tether),
        Command::Tutorials(tutorials) => tutorials::run(source, &tutorials),
        Command::Oom(oom) => oom::run(source, &oom),
        Command::Selftest(selftest) => selftest::run(source, &selftest),
        Command::Mark(mark) => mark::run(&mark),
        Command::Mcp(mcp) => mcp::run(source, &mcp),
        Command::Notebook(notebook) => notebook::run(&notebook),
        Command::Alerts(alerts) => alerts::run(&alerts),
        Command::Config(config) => config::run(source, &config),
        Command::Pause(pause) => pause::pause(&pause),
        Command::Schema(schema) => schema::run(&schema),
        Command::Resume(resume) => pause::resume(&resume),
        Command::Record(record) => record::run(source, &record),
        Command::Replay(replay) => replay::run(source, replay, resolved),
        Command::Run(run) => run::run(source, &run),
        Command::Measure(measure) => measure::run(source, &measure),
        Command::Smi(smi) => smi::run(source, &smi),
        Command::Top(top) => top::run(source, *top, resolved),
        Command::Usage(usage) => usage::run(&usage),
        Command::Wait(wait) => wait::run(source, &wait),
        Command::Completions(completions) => completions::run(&Args::command(), &completions),
        Command::Man(man) => man::run(Args::command(), &man),
        Command::Licenses(_) => help::print_licenses(),
        Command::Help(help) => help::run(Args::command(), &help),
    }
}
