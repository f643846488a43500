//! `gpumon measure`: measures what programs ask for, on behalf of the Python package.
//!
//! Requests and answers are JSON objects, one a line, on standard input and output ([`protocol`]). It ends with its input.

mod measurement;
mod measurements;
mod output;
mod protocol;
mod session;

use std::{
    io::{self, BufRead},
    sync::{
        Arc,
        atomic::AtomicBool,
        mpsc::{self, SyncSender},
    },
    thread,
};

use signal_hook::{consts::SIGINT, flag};

use self::session::{Happening, Session};
use crate::{exit::Failure, local::ServerArgs, options::SourceArgs};

/// Measure processes on request, for the Python package
#[derive(Debug, clap::Args)]
pub(crate) struct MeasureArgs {
    #[command(flatten)]
    server: ServerArgs,
}

/// So much may wait to be measured.
const WAITING: usize = 256;

pub(crate) fn run(source: &SourceArgs, args: &MeasureArgs) -> Result<(), Failure> {
    source.source.check()?;
    // Who interrupts a notebook's cell, or a program in a terminal, does not mean this.
    flag::register(SIGINT, Arc::new(AtomicBool::new(false)))?;
    let (happenings, waiting) = mpsc::sync_channel(WAITING);
    let lines = happenings.clone();
    thread::Builder::new()
        .name("requests".to_owned())
        .spawn(move || read(&lines))?;
    let mut session = Session::new(source, &args.server, happenings);
    session.open()?;
    session.follow(&waiting)
}

fn read(happenings: &SyncSender<Happening>) {
    for line in io::stdin().lock().split(b'\n') {
        let Ok(line) = line else { break };
        if happenings.send(Happening::Request(line)).is_err() {
            return;
        }
    }
    let _ = happenings.send(Happening::EndOfRequests);
}
