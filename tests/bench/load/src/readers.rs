//! The `readers` command: loops that request the longest history, and one client of the stream.

use std::{
    collections::BTreeMap,
    io::{self, Read, Write},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use anyhow::Result;
use clap::Args;
use serde_json::json;

use crate::{
    ServerAddress,
    crowd::Crowd,
    deliveries::Deliveries,
    server::Server,
    spread::Times,
    usage::{cpu_seconds, round_hundredths},
};

/// The maximum time to wait for an answer.
const RESPONSE_TIMEOUT: Duration = Duration::from_mins(1);

/// The pause of a reader after a refused request.
const REFUSAL_PAUSE: Duration = Duration::from_millis(100);

/// The time to wait after the measurement for its samples that arrive late.
const GRACE_PERIOD: Duration = Duration::from_secs(2);

#[derive(Debug, Args)]
pub(crate) struct ReadersArgs {
    #[command(flatten)]
    server: ServerAddress,

    /// The number of readers that run in parallel
    #[arg(long, default_value_t = 32)]
    readers: usize,

    /// Path and query of the requests
    #[arg(long, default_value = "/api/v1/snapshot?history_s=300")]
    path: String,

    /// Duration of the measurement in seconds
    #[arg(long, default_value_t = 30.0)]
    seconds: f64,
}

#[derive(Default)]
struct ReaderResults {
    /// The number of answers by HTTP status; 0 for a failed connection.
    statuses: BTreeMap<u16, usize>,
    took: Times,
    bytes: usize,
}

pub(crate) fn run_readers(args: &ReadersArgs) -> Result<()> {
    let server = args.server.server();
    let mut crowd = Crowd::new(server.clone())?;
    crowd.connect_clients(1, 1, RESPONSE_TIMEOUT)?;
    let request = format!(
        "GET {} HTTP/1.1\r\nHost: {}\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n",
        args.path,
        server.host()
    );
    let ended = AtomicBool::new(false);
    let window = Duration::from_secs_f64(args.seconds);
    let (report, got, cpu) = thread::scope(|scope| -> Result<_> {
        let reader = || send_requests_until_ended(&server, &request, &ended);
        let readers: Vec<_> = (0..args.readers).map(|_| scope.spawn(reader)).collect();
        eprintln!("measuring {} readers", args.readers);
        let (begun, cpu, mut deliveries) = (Instant::now(), cpu_seconds(), Deliveries::new(window));
        let streamed = crowd.read_frames_until(begun + window, |kind, arrival| {
            deliveries.count_frame(kind, arrival);
        });
        ended.store(true, Ordering::Relaxed);
        let cpu = cpu_seconds() - cpu;
        streamed?;
        crowd.read_frames_until(begun + window + GRACE_PERIOD, |kind, arrival| {
            deliveries.count_frame(kind, arrival);
        })?;
        let mut all = ReaderResults::default();
        for got in readers.into_iter().filter_map(|reader| reader.join().ok()) {
            all.add(got);
        }
        Ok((deliveries.report(crowd.counts.welcomed), all, cpu))
    })?;
    let line = json!({
        "readers": args.readers,
        "seconds": args.seconds,
        "answers": got.took.len(),
        "answers_per_s": round_hundredths(got.took.len() as f64 / args.seconds),
        "statuses": got.statuses,
        "bytes_per_s": (got.bytes as f64 / args.seconds) as u64,
        "answer_ms": got.took.into_spread(),
        "stream": report,
        "stream_ended": crowd.counts.ended,
        "own_cpu_s": round_hundredths(cpu),
    });
    println!("{line}");
    Ok(())
}

fn send_requests_until_ended(server: &Server, request: &str, ended: &AtomicBool) -> ReaderResults {
    let (mut got, mut scratch) = (ReaderResults::default(), vec![0; 64 << 10]);
    while !ended.load(Ordering::Relaxed) {
        let begun = Instant::now();
        let (status, bytes) = send_request(server, request, &mut scratch).unwrap_or_default();
        *got.statuses.entry(status).or_default() += 1;
        got.bytes += bytes;
        if status == 200 {
            got.took.push(begun.elapsed());
        } else {
            thread::sleep(REFUSAL_PAUSE);
        }
    }
    got
}

fn send_request(server: &Server, request: &str, scratch: &mut [u8]) -> io::Result<(u16, usize)> {
    let mut connection = server.connect(RESPONSE_TIMEOUT)?;
    connection.write_all(request.as_bytes())?;
    let first = connection.read(scratch)?;
    let status = scratch[..first]
        .get(9..12)
        .and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
    let mut length = first;
    loop {
        match connection.read(scratch)? {
            0 => return Ok((status.unwrap_or_default(), length)),
            more => length += more,
        }
    }
}

impl ReaderResults {
    fn add(&mut self, other: Self) {
        for (status, count) in other.statuses {
            *self.statuses.entry(status).or_default() += count;
        }
        self.took.append(other.took);
        self.bytes += other.bytes;
    }
}
