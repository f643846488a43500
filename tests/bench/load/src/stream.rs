//! The `stream` command: many clients of the stream.

use std::{
    io::Write,
    time::{Duration, Instant},
};

use anyhow::Result;
use clap::Args;
use serde_json::json;

use crate::{
    ServerAddress,
    crowd::Crowd,
    deliveries::Deliveries,
    frame::FrameKind,
    usage::{cpu_seconds, round_hundredths},
};

/// The time to wait after the measurement for its samples that arrive late.
const GRACE_PERIOD: Duration = Duration::from_secs(2);

#[derive(Debug, Args)]
pub(crate) struct StreamArgs {
    #[command(flatten)]
    server: ServerAddress,

    /// The number of clients to connect
    #[arg(long, default_value_t = 1000)]
    clients: usize,

    /// The number of clients to connect per second
    #[arg(long, value_name = "PER_SECOND", default_value_t = 2000)]
    rate: u32,

    /// Duration of the measurement in seconds, after all clients are connected
    #[arg(long, default_value_t = 30.0)]
    seconds: f64,

    /// Maximum seconds to wait until all clients have received their hello frames
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0)]
    patience: f64,

    /// Print each sample's number and time as a JSON line when the first client has received it
    #[arg(long)]
    print_samples: bool,
}

pub(crate) fn run_stream(args: &StreamArgs) -> Result<()> {
    let mut crowd = Crowd::new(args.server.server())?;
    let begun = Instant::now();
    crowd.connect_clients(
        args.clients,
        args.rate,
        Duration::from_secs_f64(args.patience),
    )?;
    let connecting = begun.elapsed();
    // The measuring script waits for this line before it continues.
    eprintln!("measuring {} clients", crowd.counts.welcomed);

    let window = Duration::from_secs_f64(args.seconds);
    let mut deliveries = Deliveries::new(window);
    let (begun, cpu, bytes) = (Instant::now(), cpu_seconds(), crowd.received_bytes());
    let (mut output, mut written) = (std::io::stdout().lock(), Ok(()));
    let mut on = |kind, arrival| {
        let is_first = deliveries.count_frame(kind, arrival);
        if let (FrameKind::Sample { seq, at_ms }, true, true) = (kind, is_first, args.print_samples)
        {
            written = writeln!(output, "{}", json!({ "seq": seq, "at_ms": at_ms }));
        }
    };
    crowd.read_frames_until(begun + window, &mut on)?;
    let (cpu, bytes) = (cpu_seconds() - cpu, crowd.received_bytes() - bytes);
    crowd.read_frames_until(begun + window + GRACE_PERIOD, &mut on)?;
    written?;

    let report = deliveries.report(crowd.counts.welcomed);
    let line = json!({
        "clients": crowd.counts.welcomed,
        "refused": crowd.counts.refused,
        "ended": crowd.counts.ended,
        "connecting_s": round_hundredths(connecting.as_secs_f64()),
        "seconds": args.seconds,
        "stream": report,
        "bytes_per_s": (bytes as f64 / args.seconds) as u64,
        "own_cpu_s": round_hundredths(cpu),
    });
    writeln!(output, "{line}")?;
    Ok(())
}
