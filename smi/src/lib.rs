//! nvidia-smi's command line, with the same arguments, output, and exit codes.
//!
//! This crate formats the driver's answers, which it obtains directly or through a running server.
//! [`AnswerSource`] contains the connection to the server.
//!
//! Every output form is a function that converts a [`Context`] to text. This module determines
//! where the text is written, how often, and how the process ends.

#![forbid(unsafe_code)]

pub mod cli_spec;
mod command_line;
mod context;
mod dmon;
mod driver;
mod error_messages;
mod formats;
mod gpu_list;
mod log;
mod monitor;
mod nvidia_smi;
mod nvlink;
mod options;
mod output;
mod pmon;
mod query;
mod release;
mod running_processes;
mod subcommand;
mod summary;
#[cfg(test)]
mod tests;
mod topo;

use std::{ffi::OsString, io};

use gpumon_probe::{
    local_time,
    vendor::nvml::query::{Code, Query},
};

use self::{
    command_line::{Command, CommandLine, find_subcommand, is_nvidia_only_subcommand},
    context::Context,
    driver::Driver,
    error_messages::Refusal,
    output::{Output, Ticker},
    release::Release,
    subcommand::SubcommandError,
};

pub use self::{
    command_line::belongs_to_nvidia_smi,
    driver::{AnswerSource, Server},
    release::{NEWEST_KNOWN, OLDEST_KNOWN},
    subcommand::Arity,
};
pub use gpumon_probe::vendor::nvml::RecordedAnswers;

/// Runs nvidia-smi's command line and returns its exit code. If a command requires NVIDIA's own
/// nvidia-smi and that tool is installed, the tool replaces this process.
///
/// # Errors
/// Returns an error if the output cannot be written, unless the reader has closed the output early.
pub fn run(source: &AnswerSource<'_>, arguments: &[OsString]) -> io::Result<u8> {
    let words: Vec<_> = arguments
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    match run_words(source, &words) {
        Ok(code) => Ok(code),
        Err(SubcommandError::Refused(refusal)) => {
            if refusal.is_left_to_nvidia_smi && source.hands_over && !source.is_simulated() {
                nvidia_smi::replace_with_nvidia_smi(arguments);
            }
            let _ = Output::to_stdout().write(&refusal.text);
            Ok(refusal.code)
        }
        Err(SubcommandError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(0),
        Err(SubcommandError::Output(error)) => Err(error),
    }
}

fn run_words(source: &AnswerSource<'_>, words: &[String]) -> Result<u8, SubcommandError> {
    if let Some(name) = words.first().filter(|name| is_nvidia_only_subcommand(name)) {
        return Err(Refusal::new_nvidia_only(name).into());
    }
    if let Some(own) = words.first().and_then(|name| find_subcommand(name)) {
        let behind = &words[1..];
        let is_help = behind.iter().any(|word| word == "-h" || word == "--help");
        let is_left = own
            .syntax
            .parse(behind)
            .is_err_and(|stop| stop.is_left_to_nvidia_smi());
        // If gpumon opened the driver, the GPU would be in use. A change such as a reset would then
        // fail.
        let driver = if is_help || is_left {
            Driver::new(source)
        } else {
            Driver::open_directly(source).map_err(Refusal::from)?
        };
        return own.run(behind, &driver, &mut io::stdout());
    }
    let typed = command_line::parse(words)?;
    if let Some(text) = render_without_gpu(source, &typed.command) {
        Output::to_stdout().write(&text)?;
        return Ok(0);
    }
    let mut ticker = typed.pause.map(Ticker::start).transpose()?;
    let mut round = Round::begin(source, &typed)?;
    let mut header = None;
    if let Command::Query(request) = &typed.command {
        request.check_release(round.context().release())?;
        header = request.format_header();
    }
    // Opening the output file empties it. The file is therefore opened only after the command has
    // been checked.
    let mut output = Output::open(
        typed.file.as_deref(),
        matches!(typed.command, Command::Query(_)),
    )?;
    output.write(&header.unwrap_or_default())?;
    loop {
        output.write(&render(&typed.command, &round.context()))?;
        if !ticker.as_mut().is_some_and(Ticker::wait_for_next) {
            return Ok(if typed.error_on_warning {
                round.warned.unwrap_or(0)
            } else {
                0
            });
        }
        round.driver.refresh().map_err(Refusal::from)?;
    }
}

/// The help text for `-h`, which describes nvidia-smi's options in gpumon's own words.
const HELP_TEXT: &str = include_str!("help.txt");

fn render_without_gpu(source: &AnswerSource<'_>, command: &Command) -> Option<String> {
    let release = || {
        let driver = Driver::open(source).ok();
        driver
            .as_ref()
            .map_or(Release::NEWEST_KNOWN, |driver| Release::from_driver(driver))
    };
    match command {
        Command::Help => Some(HELP_TEXT.to_owned()),
        Command::HelpQuery(query) => Some(query::render_help(*query, release())),
        Command::Dtd => Some(log::render_dtd(release())),
        _ => None,
    }
}

/// The answers for one round of output, and the selected GPUs.
struct Round<'a> {
    driver: Driver<'a>,
    gpus: Vec<u32>,
    count: u32,
    /// The exit code that the last warning causes if `-eow` is given.
    warned: Option<u8>,
}

impl<'a> Round<'a> {
    fn begin(source: &AnswerSource<'a>, typed: &CommandLine) -> Result<Self, Refusal> {
        let driver = Driver::open(source)?;
        let count = gpu_list::read_device_count(&driver);
        if count == 0 {
            return Err(Refusal::new_no_devices());
        }
        let mut round = Self {
            gpus: select_gpus(&driver, &typed.ids)?,
            count,
            driver,
            warned: None,
        };
        let warnings = round.remove_lost_gpus();
        eprint!("{warnings}");
        match round.warned {
            Some(code) if round.gpus.is_empty() => Err(Refusal::new(code, "")),
            _ => Ok(round),
        }
    }

    /// Removes GPUs that cannot be opened from the selection, and returns warnings about them.
    fn remove_lost_gpus(&mut self) -> String {
        let context = self.context();
        let failed: Vec<Option<Code>> = context.map_gpus(|gpu| {
            context
                .run_query(gpu, Query::Name)
                .err()
                .filter(|code| means_lost_gpu(*code))
        });
        let mut lost = failed.iter();
        let mut warnings = String::new();
        let gpus = std::mem::take(&mut self.gpus);
        for gpu in gpus {
            match lost.next().copied().flatten() {
                Some(code) => {
                    warnings += &error_messages::format_lost_gpu_warning(gpu, self.count, code);
                    self.warned = Some(if code == Code::GPU_IS_LOST { 15 } else { 255 });
                }
                None => self.gpus.push(gpu),
            }
        }
        warnings
    }

    fn context(&self) -> Context<'_> {
        Context {
            driver: &self.driver,
            gpus: &self.gpus,
            count: self.count,
            now: local_time::now(),
        }
    }
}

fn render(command: &Command, context: &Context<'_>) -> String {
    match command {
        Command::Summary => summary::render_summary(context),
        Command::ListGpus => gpu_list::render_gpu_list(context),
        Command::Version => release::render_version(context),
        Command::Log(sections) => log::render_text_log(context, sections.as_deref()),
        Command::Xml { with_dtd } => log::render_xml_log(context, *with_dtd),
        Command::Query(request) => request.render_rows(context),
        Command::Help | Command::HelpQuery(_) | Command::Dtd => {
            unreachable!("commands that need no GPU are answered earlier")
        }
    }
}

/// Returns the selected GPUs. A single list may contain several GPUs, but only one list is allowed.
fn select_gpus(driver: &Driver<'_>, ids: &[String]) -> Result<Vec<u32>, Refusal> {
    match ids {
        [] => gpu_list::find_listed_gpus(driver, None),
        [only] => gpu_list::find_listed_gpus(driver, Some(only)),
        several => {
            for id in several {
                gpu_list::find_listed_gpus(driver, Some(id))?;
            }
            Err(Refusal::new(
                255,
                "Input combination for device modification is not valid.\n\n",
            ))
        }
    }
}

/// Returns `true` if `code` means that the whole GPU cannot be read.
fn means_lost_gpu(code: Code) -> bool {
    !matches!(
        code,
        Code::NOT_SUPPORTED | Code::FUNCTION_NOT_FOUND | Code::NO_PERMISSION
    )
}
