//! `gpumon` with no command: what the GPUs do now, as a table or as JSON.

use std::{
    env,
    io::{self, IsTerminal, Write},
    time::Duration,
};

use gpumon_probe::{
    model::now_ms,
    owner::CommandLines,
    sampler::{self, Moment, Options},
};
use gpumon_server::frame::{CollectorState, CollectorStatus, Snapshot};

use crate::{
    exit::Failure,
    options::SourceArgs,
    table::{self, Layout},
};

#[derive(Debug, clap::Args)]
pub(crate) struct ShowArgs {
    /// Print one sample as JSON, in the form of the server's /api/v1/snapshot
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(source: &SourceArgs, args: &ShowArgs) -> Result<(), Failure> {
    let options = Options { details: args.json, ..Options::new(Duration::from_secs(1), CommandLines::All) };
    let Moment { inventory, sample, details } = sampler::once(&source.open()?, &options)?;
    if args.json {
        let snapshot = Snapshot {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            collector: CollectorStatus {
                state: CollectorState::Running,
                since_ms: now_ms(),
                message: None,
                resumes_ms: None,
            },
            inventory: Some(inventory),
            sample: Some(sample),
            details,
            events: Vec::new(),
        };
        let mut out = io::stdout().lock();
        serde_json::to_writer(&mut out, &snapshot).map_err(io::Error::from)?;
        writeln!(out)?;
        return Ok(());
    }
    let layout = layout();
    let text = table::render(&inventory, &sample, layout);
    // Strips the colours where they are not wanted: NO_COLOR, a dumb terminal, a pipe.
    anstream::stdout().write_all(text.as_bytes())?;
    Ok(())
}

/// A terminal is filled to its width and no further; anything else gets plain text, and all of it.
fn layout() -> Layout {
    match rustix::termios::tcgetwinsize(io::stdout()) {
        Ok(size) if io::stdout().is_terminal() && size.ws_col > 0 => {
            Layout { width: Some(usize::from(size.ws_col)), unicode: speaks_utf8() }
        }
        _ => Layout { width: None, unicode: false },
    }
}

/// Whether the locale's characters are UTF-8, by the first of the variables that is set, as setlocale(3) has it.
fn speaks_utf8() -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .filter_map(|name| env::var(name).ok())
        .find(|value| !value.is_empty());
    let is_dumb = env::var("TERM").is_ok_and(|terminal| terminal == "dumb");
    !is_dumb && locale.is_some_and(|locale| locale.to_ascii_lowercase().replace('-', "").contains("utf8"))
}
