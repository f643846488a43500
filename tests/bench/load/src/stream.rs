//! Clients of the stream.

use std::{
    io::Write,
    time::{Duration, Instant},
};

use anyhow::Result;
use clap::Args;
use serde_json::json;

use crate::{
    Where,
    crowd::Crowd,
    deliveries::Deliveries,
    frame::Kind,
    usage::{cpu_seconds, rounded},
};

/// What was put together in time may come so much later.
const GRACE: Duration = Duration::from_secs(2);

#[derive(Debug, Args)]
pub(crate) struct StreamArgs {
    #[command(flatten)]
    server: Where,

    /// How many clients
    #[arg(long, default_value_t = 1000)]
    clients: usize,

    /// How many of them connect in a second
    #[arg(long, value_name = "PER_SECOND", default_value_t = 2000)]
    rate: u32,

    /// How long to measure once all are connected
    #[arg(long, default_value_t = 30.0)]
    seconds: f64,

    /// How long to wait for the hello of all
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0)]
    patience: f64,

    /// Print each sample's number and time when the first client has it, as a JSON line
    #[arg(long)]
    print_samples: bool,
}

pub(crate) fn run(args: &StreamArgs) -> Result<()> {
    let mut crowd = Crowd::new(args.server.server())?;
    let begun = Instant::now();
    crowd.connect(
        args.clients,
        args.rate,
        Duration::from_secs_f64(args.patience),
    )?;
    let connecting = begun.elapsed();
    // Whoever measures the server meanwhile waits for this line.
    eprintln!("measuring {} clients", crowd.counts.welcomed);

    let window = Duration::from_secs_f64(args.seconds);
    let mut deliveries = Deliveries::new(window);
    let (begun, cpu, bytes) = (Instant::now(), cpu_seconds(), crowd.bytes());
    let (mut output, mut written) = (std::io::stdout().lock(), Ok(()));
    let mut on = |kind, arrival| {
        let is_first = deliveries.take(kind, arrival);
        if let (Kind::Sample { seq, at_ms }, true, true) = (kind, is_first, args.print_samples) {
            written = writeln!(output, "{}", json!({ "seq": seq, "at_ms": at_ms }));
        }
    };
    crowd.read_until(begun + window, &mut on)?;
    let (cpu, bytes) = (cpu_seconds() - cpu, crowd.bytes() - bytes);
    crowd.read_until(begun + window + GRACE, &mut on)?;
    written?;

    let report = deliveries.report(crowd.counts.welcomed);
    let line = json!({
        "clients": crowd.counts.welcomed,
        "refused": crowd.counts.refused,
        "ended": crowd.counts.ended,
        "connecting_s": rounded(connecting.as_secs_f64()),
        "seconds": args.seconds,
        "stream": report,
        "bytes_per_s": (bytes as f64 / args.seconds) as u64,
        "own_cpu_s": rounded(cpu),
    });
    writeln!(output, "{line}")?;
    Ok(())
}
