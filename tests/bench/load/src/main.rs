//! `gpumon-load`: a load generator that connects thousands of clients to one server.
//!
//! A single thread reads all connections, and only parses the beginning of each frame. So the load
//! generator leaves most of the processor time to the measured server. Every command prints one
//! JSON object.
//!
//! - [`stream`], [`half_open`] and [`readers`] are the commands.
//! - [`crowd`] manages many clients, and [`client`] is one of them. [`frame`] parses the beginnings
//!   of frames, [`receive`] reads sockets, and [`server`] is the address of the server.
//! - [`deliveries`] are the statistics of received samples, [`spread`] is a distribution of times,
//!   and [`usage`] is the resource usage of this process.

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

/// Connect many clients to a gpumon server and measure what they receive
#[derive(Debug, Parser)]
struct Command {
    #[command(subcommand)]
    mode: Mode,
}

#[derive(Debug, Subcommand)]
enum Mode {
    /// Measure delays and losses of samples for clients of /api/v1/stream
    Stream(stream::StreamArgs),
    /// Measure how long the server keeps connections that never send a whole request
    HalfOpen(half_open::HalfOpenArgs),
    /// Request the longest history in loops, with one client of the stream
    Readers(readers::ReadersArgs),
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct ServerAddress {
    /// Address and port of the server, for example 127.0.0.1:9123
    #[arg(long, value_name = "ADDRESS:PORT")]
    address: Option<std::net::SocketAddr>,

    /// Path of the server's unix socket
    #[arg(long, value_name = "PATH")]
    socket: Option<std::path::PathBuf>,
}

impl ServerAddress {
    fn server(&self) -> Server {
        match (&self.address, &self.socket) {
            (Some(address), _) => Server::Port(*address),
            (None, Some(path)) => Server::Socket(path.clone()),
            (None, None) => unreachable!("clap requires one of the two options"),
        }
    }
}

fn main() -> ExitCode {
    match run(&Command::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // An error returned from `main` would be printed with a backtrace.
            eprintln!("gpumon-load: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: &Command) -> Result<()> {
    usage::allow_many_connections()?;
    match &command.mode {
        Mode::Stream(args) => stream::run_stream(args),
        Mode::HalfOpen(args) => half_open::run_half_open(args),
        Mode::Readers(args) => readers::run_readers(args),
    }
}
