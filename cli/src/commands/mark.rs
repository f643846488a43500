//! `gpumon mark`: a moment that a script wants to see on charts.

use std::thread;

use anyhow::{Context, anyhow};
use gpumon_probe::model::CostMark;
use serde_json::{Value, json};

use crate::{exit::Failure, local::ServerArgs};

/// Mark this moment on the charts of a running server
///
/// The mark stands on the charts of everybody who looks at the server, and in its list of events, with the name of the
/// user. The server remembers the last 64 marks until it ends, and with --data-dir all of them for a year.
#[derive(Debug, clap::Args)]
#[command(after_long_help = NOTES)]
pub(crate) struct MarkArgs {
    /// What to write there, in up to 100 characters
    text: String,

    #[command(flatten)]
    server: ServerArgs,
}

const NOTES: &str = "\
Examples:
  gpumon mark 'epoch 3'
      Mark the beginning of an epoch. 20 marks may come at once, and then one per second.
  gpumon mark 'sweep starts'; python sweep.py; gpumon mark 'sweep ended'
      Mark where a program starts and ends.

Environment:
  GPUMON_CONTROL  default of --control

Exit codes: 0 success, 1 no server or refused by it, 2 invalid argument";

pub(crate) fn run(args: &MarkArgs) -> Result<(), Failure> {
    send(&args.server, &json!({ "text": args.text }))
}

/// Has a running server know it, too, where there is one; nobody waits for it.
pub(crate) fn send_in_background(server: &ServerArgs, CostMark { at_ms, text }: &CostMark) {
    let (server, mark) = (server.clone(), json!({ "text": text, "at_ms": at_ms }));
    // Where no thread is to be had, the mark is on no chart.
    let _ = thread::Builder::new().name("mark".to_owned()).spawn(move || send(&server, &mark).is_ok());
}

fn send(server: &ServerArgs, mark: &Value) -> Result<(), Failure> {
    let server = server.connect().map_err(anyhow::Error::from)?;
    let at = server.path.display().to_string();
    let answer = server
        .post("/api/v1/marks", &mark.to_string())
        .with_context(|| format!("the server at {at} does not answer; restart it"))?;
    match answer.status {
        201 => Ok(()),
        404 | 405 => Err(anyhow!("the server at {at} is older than this gpumon and takes no marks; restart it").into()),
        _ => Err(anyhow!("the server at {at} refuses: {}", answer.body.trim()).into()),
    }
}
