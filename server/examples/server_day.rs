//! Sends a day's 86,400 samples through a server as fast as possible, to check whether memory
//! grows.
//!
//! The output is `{"begin_kb":…,"end_kb":…,"seconds":…}`: the server's resident memory after the
//! samples of the first hour, when the history is full, and after the last sample.
//! `GPUMON_NVML_LIB` names the library that provides the readings.

use std::{
    env, fs,
    io::{self, Read, Write},
    net::TcpStream,
    sync::Arc,
    time::{Duration, Instant},
};

use gpumon_probe::{
    model::{Record, Sample, now_ms},
    owner::CommandLines,
    sampler::{self, OneShotReadings, Options},
    vendor::{Roots, SourceChoice},
};
use gpumon_server::{
    LiveSettings, SampleSource, ServerSettings,
    alerts::AlertSettings,
    auth::AccessPolicy,
    listen::{Listener, PortPurpose},
    runs::RunSettings,
    supervisor::CollectorCommand,
    view::ShowProcesses,
};

const SAMPLE_COUNT: u64 = 86_400;
const SAMPLES_PER_HOUR: u64 = 3_600;

fn main() -> io::Result<()> {
    if env::args().nth(1).as_deref() == Some("feed") {
        write_records()
    } else {
        measure_server()
    }
}

/// Acts as the collector: repeats one sample for a day, at intervals of a second.
fn write_records() -> io::Result<()> {
    let source = SourceChoice::Nvml
        .open(&Roots {
            nvml_lib: env::var_os("GPUMON_NVML_LIB"),
            ..Roots::default()
        })
        .expect("the NVML library can be loaded");
    let options = Options::new(Duration::from_secs(1), CommandLines::Own);
    let OneShotReadings {
        inventory, sample, ..
    } = sampler::sample_once(&source, &options).expect("the GPUs can be read");
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut write = |record: &Record| -> io::Result<()> {
        serde_json::to_writer(&mut out, record)?;
        out.write_all(b"\n")?;
        out.flush()
    };
    write(&Record::Inventory(inventory))?;
    let begun = now_ms() - SAMPLE_COUNT * 1000;
    for seq in 0..SAMPLE_COUNT {
        let at_ms = begun + seq * 1000;
        let mut gpus = sample.gpus.clone();
        for gpu in &mut gpus {
            gpu.at_ms = at_ms;
        }
        write(&Record::Sample(Sample {
            seq,
            at_ms,
            gpus,
            ..sample.clone()
        }))?;
        // The server's memory is measured after each of these two samples. The pause gives the
        // measurement enough time before the next sample.
        if seq == SAMPLES_PER_HOUR || seq + 1 == SAMPLE_COUNT {
            std::thread::sleep(Duration::from_secs(2));
        }
    }
    io::copy(&mut io::stdin(), &mut io::sink()).map(drop)
}

fn measure_server() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let policy = Arc::new(AccessPolicy::allow_all());
    let listener = runtime
        .block_on(async {
            Listener::open_tcp(
                "127.0.0.1:0".parse().expect("an address"),
                PortPurpose::Everything,
                &policy,
            )
        })
        .map_err(|error| io::Error::other(error.to_string()))?;
    let address = listener.display_address(&policy);
    let collector = CollectorCommand {
        program: env::current_exe()?,
        arguments: vec!["feed".into()],
        interval: Duration::from_secs(1),
    };
    let runs = RunSettings {
        worker: gpumon_workload::parent::WorkerCommand {
            program: env::current_exe()?,
            arguments: Vec::new(),
        },
    };
    let settings = ServerSettings {
        join: None,
        readings: SampleSource::Collector(collector),
        live: LiveSettings::default().into_constant_receiver(),
        policy,
        show_processes: ShowProcesses::Names,
        runs,
        history: None,
        alerts: AlertSettings::default(),
        kubelet: None,
        fleet: None,
        energy_price: None,
    };
    runtime.spawn(gpumon_server::run(
        vec![listener],
        settings,
        std::future::pending(),
    ));
    let begun = Instant::now();
    let address = address.trim_start_matches("http://").trim_end_matches('/');
    wait_for_sample(address, SAMPLES_PER_HOUR)?;
    let begin_kb = resident_memory_kb();
    wait_for_sample(address, SAMPLE_COUNT - 1)?;
    let seconds = begun.elapsed().as_secs_f64();
    println!(
        "{{\"begin_kb\":{begin_kb},\"end_kb\":{},\"seconds\":{seconds:.1}}}",
        resident_memory_kb()
    );
    Ok(())
}

/// Waits until the server's newest sample has at least the sequence number `seq`.
fn wait_for_sample(address: &str, seq: u64) -> io::Result<()> {
    loop {
        let mut stream = TcpStream::connect(address)?;
        write!(
            stream,
            "GET /api/v1/snapshot HTTP/1.0\r\nHost: {address}\r\n\r\n"
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let newest = answer
            .split_once("\"seq\":")
            .and_then(|(_, rest)| rest.split(',').next()?.parse::<u64>().ok());
        if newest.is_some_and(|newest| newest >= seq) {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

fn resident_memory_kb() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    resident
        .and_then(|line| line.trim().trim_end_matches(" kB").parse().ok())
        .unwrap_or(0)
}
