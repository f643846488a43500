//! `gpumon mcp`: answers the tools of AI assistants, by the Model Context Protocol over standard input and output.
//!
//! - [`handler`] lists the tools and speaks the protocol, by the library `rmcp`; [`tool`] calls
//!   one.
//! - [`now`], [`history`] and [`usage`] have the tools. A tool is a structure of its arguments;
//!   comments of its fields are
//!   their descriptions in the schema. It answers with a type of the API.
//! - [`answer`] shortens such an answer, and sets names apart that other people chose.
//! - [`sources`] is where readings and the past come from.

mod answer;
mod handler;
mod history;
mod now;
mod sources;
#[cfg(test)]
mod tests;
mod tool;
mod usage;

use std::{
    io::{self, IsTerminal as _},
    ops::Range,
};

use anyhow::{Context as _, anyhow};
use gpumon_probe::model::now_ms;
use rmcp::{ServiceExt as _, service::ServerInitializeError, transport::stdio};

use self::{handler::Handler, sources::Sources};
use crate::{
    exit::{Failure, say},
    moment::{Beside, Moment, MomentSpan},
    options::SourceArgs,
    past::PastArgs,
};

/// Answer AI assistants about the GPUs, by the Model Context Protocol
///
/// An assistant, as Claude Code, VS Code or Cursor, starts this command and speaks with it over standard input and output.
/// Its tools read and change nothing: the GPUs now, who holds their memory, history, conditions and events, and what
/// users and jobs used. They ask the running server; without one, what is now is read from the driver. Command lines are
/// not given out.
#[derive(Debug, clap::Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct McpArgs {
    #[command(flatten)]
    past: PastArgs,
}

const NOTES: &str = "\
Examples:
  claude mcp add gpumon -- gpumon mcp
      Register it with Claude Code.
  gpumon --source sim:4 mcp
      Answer about four simulated GPUs.

Environment:
  GPUMON_CONTROL  default of --control

Exit codes: 0 the assistant has ended, 1 it does not speak the protocol, 2 invalid argument";

pub(crate) fn run(source: &SourceArgs, args: &McpArgs) -> Result<(), Failure> {
    source.source.check()?;
    if io::stdin().is_terminal() {
        say(
            "waiting for an assistant on standard input: register this command with one, as `claude mcp add gpumon -- gpumon mcp` does",
        );
    }
    let handler = Handler::new(Sources::new(source.clone(), args.past.clone()));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let ended = runtime.block_on(serve(handler));
    // A tool that waits for the driver must not hold up the end.
    runtime.shutdown_background();
    ended
}

/// Answers until the assistant closes its end.
async fn serve(handler: Handler) -> Result<(), Failure> {
    match handler.serve(stdio()).await {
        Ok(service) => {
            service.waiting().await.context("cannot go on answering")?;
            Ok(())
        }
        // It has looked whether the command is there.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(anyhow!(
            "what started this does not speak the Model Context Protocol: {error}; register it with an assistant"
        )
        .into()),
    }
}

/// Parses the first moment of a span, and the first one after it.
fn parse_span(since: &str, until: Option<&str>) -> Result<Range<u64>, Failure> {
    let until = until
        .map(|until| parse_moment("until", until))
        .transpose()?;
    let span = MomentSpan::new(Some(parse_moment("since", since)?), until);
    Ok(span
        .resolve(&Beside::now(now_ms()))
        .map_err(|why| anyhow!(why))?)
}

fn parse_moment(argument: &str, text: &str) -> Result<Moment, Failure> {
    Ok(text
        .parse()
        .map_err(|why: String| anyhow!("{argument}: {why}"))?)
}
