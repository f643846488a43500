//! `gpumon-load`: thousands of clients of one server, for measurements.
//!
//! One thread reads all connections and looks at the beginning of each frame alone, so that it
//! takes little of the processors that the server under measurement needs, too. Every command
//! prints one JSON object.
//!
//! - [`stream`], [`half_open`] and [`readers`] are the commands.
//! - [`crowd`] is many clients at once, [`client`] one of them; [`frame`] reads the beginnings of
//!   frames, [`receive`] reads sockets, and [`server`] is where they connect to.
//! - [`deliveries`] is what the samples that came say together, [`spread`] a distribution of times,
//!   [`usage`] what this process itself has used.

#![forbid(unsafe_code)]

mod client;
mod crowd;
mod deliveries;
mod frame;
mod half_open;
mod readers;
mod receive;
mod server;
mod spread;
mod stream;
mod usage;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};

use self::server::Server;

/// Connects many clients to a gpumon server and measures what they get
#[derive(Debug, Parser)]
struct Command {
    #[command(subcommand)]
    mode: Mode,
}

#[derive(Debug, Subcommand)]
enum Mode {
    /// Clients of /api/v1/stream: how late samples come, and how many are lost
    Stream(stream::StreamArgs),
    /// Connections that send no whole request: how long until the server closes them
    HalfOpen(half_open::HalfOpenArgs),
    /// Loops that ask for the longest history, beside one client of the stream
    Readers(readers::ReadersArgs),
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Where {
    /// The server's port, as 127.0.0.1:9123
    #[arg(long, value_name = "ADDRESS:PORT")]
    address: Option<std::net::SocketAddr>,

    /// The server's unix socket
    #[arg(long, value_name = "PATH")]
    socket: Option<std::path::PathBuf>,
}

impl Where {
    fn server(&self) -> Server {
        match (&self.address, &self.socket) {
            (Some(address), _) => Server::Port(*address),
            (None, Some(path)) => Server::Socket(path.clone()),
            (None, None) => unreachable!("clap requires one of them"),
        }
    }
}

fn main() -> ExitCode {
    match run(&Command::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Without the backtrace that `main` would add.
            eprintln!("gpumon-load: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: &Command) -> Result<()> {
    usage::allow_many_connections()?;
    match &command.mode {
        Mode::Stream(args) => stream::run(args),
        Mode::HalfOpen(args) => half_open::run(args),
        Mode::Readers(args) => readers::run(args),
    }
}
