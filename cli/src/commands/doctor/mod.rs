//! `gpumon doctor`: diagnoses problems with this machine's GPUs and drivers, and prints how to fix
//! them.
//!
//! - [`report`] defines the result of a check, and prints findings and readings.
//! - [`machine`] gives access to the machine's file system.
//! - [`installation`] checks drivers, [`gpus`] checks GPUs and device files, and [`runtime`] checks
//!   gpumon itself and its environment.
//! - [`bundle`] writes all results into an archive for a bug report.

mod bundle;
mod gpus;
mod installation;
mod machine;
mod report;
mod runtime;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use gpumon_probe::{owner::CommandLines, vendor::SourceChoice};

use self::{
    bundle::{BundleArgs, CollectedData},
    machine::Machine,
    report::{Finding, Readings, Report},
    runtime::{ServerResponse, Settings},
};
use crate::{
    data_dir::DataDirArgs,
    exit::{Failure, Result, find_source_error_code},
    local_server::{NoServerError, ServerArgs},
    options::SourceArgs,
    snapshot::{self, DriverState},
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

/// The maximum time to wait for the driver to start.
const OPEN_TIMEOUT: Duration = Duration::from_secs(10);

/// The minimum number of samples to read. Counters are first available in the second sample, and
/// rates derived from them in the third.
const MIN_SAMPLES: u32 = 4;

pub(crate) fn run(source: &SourceArgs, args: &DoctorArgs) -> Result {
    source.source.check_scenario_file()?;
    let bundle = args.bundle.archive_path()?;
    let machine = Machine::with_roots(source.roots());
    let driver = read_driver(source);
    let server = runtime::fetch_server_state(&args.server);
    let settings = Settings::read_files(source.config.as_deref());
    let data_dir = args
        .data_dir
        .with_settings_folder(settings.data_dir())
        .folder();
    let report = Report::new(
        run_checks(
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
        let paths = [
            args.server.named_socket().cloned(),
            library,
            scenario,
            data_dir,
        ]
        .into_iter()
        .flatten();
        let paths = paths.chain(settings.paths()).collect();
        let settings = settings.to_toml();
        let collected = CollectedData {
            machine: &machine,
            driver: &driver,
            server: &server,
            report,
            paths,
            settings,
        };
        return args.bundle.confirm_and_write(&path, collected);
    }
    print_report(args.json, || &report, |_| report.to_text())?;
    match &driver {
        DriverState::Refused(error) => {
            Err(Failure::from_printed_error(find_source_error_code(error)))
        }
        _ if report.well => Ok(()),
        _ => Err(Failure::from_printed_error(1)),
    }
}

/// Reads the driver until rates and the conditions of all GPUs are available.
fn read_driver(source: &SourceArgs) -> DriverState {
    let mut samples = 0;
    snapshot::read_driver(
        source,
        CommandLines::All,
        OPEN_TIMEOUT,
        |answer, is_sample| {
            samples += u32::from(is_sample);
            // Some conditions depend on the details of a GPU and appear only in the samples that
            // follow these details. A minimum number of samples is therefore read.
            is_sample && samples >= MIN_SAMPLES && answer.is_complete()
        },
    )
}

/// Runs all checks and returns their findings, ordered so that causes precede effects.
fn run_checks(
    machine: &Machine,
    source: &SourceChoice,
    driver: &DriverState,
    settings: &Settings,
    data_dir: Option<&Path>,
    server: &Result<ServerResponse, NoServerError>,
) -> Vec<Finding> {
    let mut findings: Vec<_> = installation::check_package_conflict(machine)
        .into_iter()
        .collect();
    findings.extend(installation::check_installation(machine, driver));
    if !driver.is_simulated() {
        if driver.uses_nvidia() {
            findings.extend(gpus::check_device_files(machine));
        }
        if source.reads_kernel_drivers() {
            findings.extend(installation::check_kernel_drivers(machine));
        }
        findings.extend(runtime::check_surroundings(machine, driver));
        findings.push(runtime::check_kernel_log(machine, driver.uses_nvidia()));
    }
    if let Some(answer) = driver.answer() {
        findings.extend(gpus::check_gpus(machine, answer));
        findings.extend(runtime::check_benchmarks(answer, data_dir));
    }
    findings.extend(settings.check_files());
    findings.push(runtime::check_server(server));
    findings.extend(runtime::check_history(server));
    findings
}
