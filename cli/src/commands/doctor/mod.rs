//! `gpumon doctor`: diagnoses problems with this machine's GPUs and drivers, and prints how to fix
//! them.
//!
//! - [`finding`] is the result of a check; [`report`] prints findings and readings.
//! - [`machine`] is the file system around the driver.
//! - The checks are in [`installation`], [`device_files`], [`kernel_drivers`], [`surroundings`],
//!   [`gpus`] and [`state`], which checks gpumon itself.
//! - [`bundle`] writes all results into an archive for a bug report.

mod bundle;
mod device_files;
mod finding;
mod gpus;
mod installation;
mod kernel_drivers;
mod machine;
mod report;
mod state;
mod surroundings;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use gpumon_probe::{owner::CommandLines, vendor::SourceChoice};

use self::{
    bundle::{BundleArgs, Collected},
    finding::Finding,
    machine::Machine,
    report::{Readings, Report},
    state::{Response, Settings},
};
use crate::{
    data_dir::DataDirArgs,
    driver::{self, Driver},
    exit::{Failure, code_of},
    local::{NoServer, ServerArgs},
    options::SourceArgs,
    terminal::output::print_report,
};

/// Check driver, permissions and GPUs, and print how to fix problems
///
/// The exit code is 0 if every check passes, 1 if there is a warning or an error, and one of the
/// codes below if the GPUs cannot be read. With --bundle, it is 0 if the archive is written.
#[derive(Debug, clap::Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct DoctorArgs {
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    bundle: BundleArgs,

    #[command(flatten)]
    server: ServerArgs,

    #[command(flatten)]
    data_dir: DataDirArgs,
}

const NOTES: &str = "\
Examples:
  gpumon doctor
      Print all findings, each with its fix.
  gpumon doctor --json | jq '.checks[] | select(.verdict != \"ok\")'
      Print the findings that are not ok as JSON.
  gpumon doctor --bundle
      Write an archive for a bug report, after listing its contents.

Exit codes: 0 all checks pass, 1 warning or error, 2 invalid argument, 4 permission denied, 6 no GPU, \
9 driver not loaded, 12 NVML library not found, 18 NVML library and driver versions differ";

/// The time limit for the driver to start.
const OPENING: Duration = Duration::from_secs(10);

/// The minimum number of samples to read. Counters are present from the second sample on, and rates
/// derived from them from the third.
const SAMPLES: u32 = 4;

pub(crate) fn run(source: &SourceArgs, args: &DoctorArgs) -> Result<(), Failure> {
    source.source.check()?;
    let bundle = args.bundle.file()?;
    let machine = Machine::with_roots(source.roots());
    let driver = read(source);
    let server = state::ask(&args.server);
    let settings = Settings::read(source.config.as_deref());
    let data_dir = args.data_dir.or(settings.data_dir()).folder();
    let report = Report::new(
        checks(
            &machine,
            &source.source,
            &driver,
            &settings,
            data_dir.as_deref(),
            &server,
        ),
        driver.answer().map(Readings::new).unwrap_or_default(),
    );
    if let Some(path) = bundle {
        let scenario = match &source.source {
            SourceChoice::SimScenario(path) => Some(path.clone()),
            _ => None,
        };
        let library = source.nvml_lib.clone().map(PathBuf::from);
        let paths = [args.server.named().cloned(), library, scenario, data_dir]
            .into_iter()
            .flatten();
        let paths = paths.chain(settings.paths()).collect();
        let settings = settings.effective();
        let collected = Collected {
            machine: &machine,
            driver: &driver,
            server: &server,
            report,
            paths,
            settings,
        };
        return args.bundle.write(&path, collected);
    }
    print_report(args.json, || &report, |_| report.text())?;
    match &driver {
        Driver::Refused(error) => Err(Failure::reported(code_of(error))),
        _ if report.well => Ok(()),
        _ => Err(Failure::reported(1)),
    }
}

/// Reads the driver until rates and the conditions of all GPUs are present.
fn read(source: &SourceArgs) -> Driver {
    let mut samples = 0;
    driver::read(source, CommandLines::All, OPENING, |answer, is_sample| {
        samples += u32::from(is_sample);
        // Conditions that depend on details appear only in later samples.
        is_sample && samples >= SAMPLES && answer.is_complete()
    })
}

/// Runs all checks and returns their findings, with causes before their effects.
fn checks(
    machine: &Machine,
    source: &SourceChoice,
    driver: &Driver,
    settings: &Settings,
    data_dir: Option<&Path>,
    server: &Result<Response, NoServer>,
) -> Vec<Finding> {
    let mut findings: Vec<_> = installation::check_package(machine).into_iter().collect();
    findings.extend(installation::check(machine, driver));
    if !driver.is_simulated() {
        if driver.uses_nvidia() {
            findings.extend(device_files::check(machine));
        }
        if source.reads_kernel_drivers() {
            findings.extend(kernel_drivers::check(machine));
        }
        findings.extend(surroundings::check(machine, driver));
        findings.push(surroundings::check_kernel_log(
            machine,
            driver.uses_nvidia(),
        ));
    }
    if let Some(answer) = driver.answer() {
        findings.extend(gpus::check(machine, answer));
        findings.extend(state::check_benchmarks(answer, data_dir));
    }
    findings.extend(settings.check());
    findings.push(state::check(server));
    findings.extend(state::check_history(server));
    findings
}
