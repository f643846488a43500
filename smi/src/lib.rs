//! nvidia-smi's command line, with the same arguments, output and exit codes.
//!
//! This crate formats the driver's answers, which it gets directly or through a running server. The
//! connection to the server is part of [`AnswerSource`].
//!
//! Every output form is a function from a [`Context`] to text. This module decides where the text
//! is written, how often, and how the process ends.

#![forbid(unsafe_code)]

mod cache;
pub mod cli_spec;
mod command_line;
mod context;
mod dmon;
mod driver;
mod form;
mod list;
mod log;
mod monitor;
mod nvidia_smi;
mod nvlink;
mod options;
mod output;
mod passthrough;
mod pmon;
mod query;
mod refusal;
mod release;
mod return_code;
mod running;
mod scroll;
mod select;
mod subcommand;
mod subcommands;
mod summary;
mod switches;
#[cfg(test)]
mod tests;
mod ticker;
mod time_limit;
mod timestamp;
mod topo;
mod unavailable;

use std::{ffi::OsString, io};

use gpumon_probe::{
    local_time,
    vendor::nvml::query::{Code, Query},
};

use self::{
    command_line::{Command, CommandLine},
    context::Context,
    driver::Driver,
    output::Output,
    refusal::Refusal,
    release::Release,
    subcommand::Stop,
    subcommands::{is_handed_over, subcommand},
    ticker::Ticker,
};
pub use gpumon_probe::vendor::nvml::Recorded;

pub use self::{
    driver::{AnswerSource, Server},
    passthrough::is_passthrough,
    release::{NEWEST_KNOWN, OLDEST_KNOWN},
    switches::Arity,
};

/// Runs nvidia-smi's command line and returns its exit code. For commands that are left to NVIDIA's
/// own nvidia-smi, this process is replaced by that tool if it is installed.
///
/// # Errors
/// Returns an error if the output cannot be written. A reader that closes the output early is no
/// error.
pub fn run(source: &AnswerSource<'_>, arguments: &[OsString]) -> io::Result<u8> {
    let words: Vec<_> = arguments
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    match run_words(source, &words) {
        Ok(code) => Ok(code),
        Err(Stop::Refused(refusal)) => {
            if refusal.is_left_to_nvidia_smi && source.hands_over && !source.is_simulated() {
                nvidia_smi::exec(arguments);
            }
            let _ = Output::standard().write(&refusal.text);
            Ok(refusal.code)
        }
        Err(Stop::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(0),
        Err(Stop::Output(error)) => Err(error),
    }
}

fn run_words(source: &AnswerSource<'_>, words: &[String]) -> Result<u8, Stop> {
    if let Some(name) = words.first().filter(|name| is_handed_over(name)) {
        return Err(Refusal::handed_over(name).into());
    }
    if let Some(own) = words.first().and_then(|name| subcommand(name)) {
        let behind = &words[1..];
        let is_help = behind.iter().any(|word| word == "-h" || word == "--help");
        let is_left = own
            .form
            .parse(behind)
            .is_err_and(|stop| stop.is_left_to_nvidia_smi());
        // Opening the driver would keep the GPU in use, and a change such as a reset would fail.
        let driver = if is_help || is_left {
            Ok(Driver::unopened(source))
        } else {
            Driver::open_directly(source)
        };
        let driver = driver.map_err(|error| unavailable::refusal(&error))?;
        return own.run(behind, &driver, &mut io::stdout());
    }
    let typed = command_line::parse(words)?;
    if let Some(text) = without_gpu(source, &typed.command) {
        Output::standard().write(&text)?;
        return Ok(0);
    }
    let mut ticker = typed.pause.map(Ticker::start).transpose()?;
    let mut round = Round::begin(source, &typed)?;
    let mut header = None;
    if let Command::Query(request) = &typed.command {
        request.check(round.context().release())?;
        header = request.header();
    }
    // The output file is opened only now, so that a refused command does not change it.
    let mut output = Output::open(
        typed.file.as_deref(),
        matches!(typed.command, Command::Query(_)),
    )?;
    output.write(&header.unwrap_or_default())?;
    loop {
        output.write(&render(&typed.command, &round.context()))?;
        if !ticker.as_mut().is_some_and(Ticker::next) {
            return Ok(if typed.error_on_warning {
                round.warned.unwrap_or(0)
            } else {
                0
            });
        }
        round
            .driver
            .refresh()
            .map_err(|error| unavailable::refusal(&error))?;
    }
}

/// The text of `-h`: nvidia-smi's options in gpumon's own words.
const HELP: &str = include_str!("help.txt");

fn without_gpu(source: &AnswerSource<'_>, command: &Command) -> Option<String> {
    let release = || {
        let driver = Driver::open(source).ok();
        driver
            .as_ref()
            .map_or(Release::NEWEST_KNOWN, |driver| Release::running(driver))
    };
    match command {
        Command::Help => Some(HELP.to_owned()),
        Command::HelpQuery(query) => Some(query::help(*query, release())),
        Command::Dtd => Some(log::dtd_text(release())),
        _ => None,
    }
}

/// The answers of one reading, and the GPUs that were selected.
struct Round<'a> {
    driver: Driver<'a>,
    gpus: Vec<u32>,
    count: u32,
    /// The exit code of the last warning, which is used with `-eow`.
    warned: Option<u8>,
}

impl<'a> Round<'a> {
    fn begin(source: &AnswerSource<'a>, typed: &CommandLine) -> Result<Self, Refusal> {
        let driver = Driver::open(source).map_err(|error| unavailable::refusal(&error))?;
        let count = select::device_count(&driver);
        if count == 0 {
            return Err(Refusal::no_devices());
        }
        let mut round = Self {
            gpus: selected(&driver, &typed.ids)?,
            count,
            driver,
            warned: None,
        };
        let warnings = round.leave_out_lost_gpus();
        eprint!("{warnings}");
        match round.warned {
            Some(code) if round.gpus.is_empty() => Err(Refusal::new(code, "")),
            _ => Ok(round),
        }
    }

    /// Removes GPUs that cannot be opened from the selection, and returns the warnings about them.
    fn leave_out_lost_gpus(&mut self) -> String {
        let context = self.context();
        let failed: Vec<Option<Code>> = context.each(|gpu| {
            context
                .ask(gpu, Query::Name)
                .err()
                .filter(|code| is_lost(*code))
        });
        let mut lost = failed.iter();
        let mut warnings = String::new();
        let gpus = std::mem::take(&mut self.gpus);
        for gpu in gpus {
            match lost.next().copied().flatten() {
                Some(code) => {
                    warnings += &unavailable::lost(gpu, self.count, code);
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
        Command::Summary => summary::render(context),
        Command::ListGpus => list::gpus(context),
        Command::Version => list::version(context),
        Command::Log(sections) => log::text(context, sections.as_deref()),
        Command::Xml { with_dtd } => log::xml(context, *with_dtd),
        Command::Query(request) => request.rows(context),
        Command::Help | Command::HelpQuery(_) | Command::Dtd => {
            unreachable!("answered without a GPU")
        }
    }
}

/// Returns the selected GPUs. One list may name several GPUs, but only one list is allowed.
fn selected(driver: &Driver<'_>, ids: &[String]) -> Result<Vec<u32>, Refusal> {
    match ids {
        [] => select::select(driver, None),
        [only] => select::select(driver, Some(only)),
        several => {
            for id in several {
                select::select(driver, Some(id))?;
            }
            Err(Refusal::new(
                255,
                "Input combination for device modification is not valid.\n\n",
            ))
        }
    }
}

/// Returns `true` if the code means that the whole GPU cannot be read.
fn is_lost(code: Code) -> bool {
    !matches!(
        code,
        Code::NOT_SUPPORTED | Code::FUNCTION_NOT_FOUND | Code::NO_PERMISSION
    )
}
