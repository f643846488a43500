//! A fake Prometheus, which answers queries about some nodes and counts the queries.

use std::{
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    thread,
};

use serde_json::{Value, json};

/// The number of GPUs of each node.
const GPUS_PER_NODE: usize = 2;

pub(super) struct FakePrometheus {
    port: u16,
    asked: Arc<AtomicUsize>,
}

impl FakePrometheus {
    /// Starts a Prometheus that scrapes these `instance`s and reports all of them as up.
    pub(super) fn with_instances(instances: &[&str]) -> Self {
        Self::new(
            instances
                .iter()
                .map(|instance| (*instance).to_owned())
                .collect(),
            None,
        )
    }

    /// Starts a Prometheus that answers every query with this status.
    pub(super) fn with_failure(status: u16) -> Self {
        Self::new(Vec::new(), Some(status))
    }

    fn new(instances: Vec<String>, failure: Option<u16>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (instances, count) = (instances.clone(), Arc::clone(&count));
                thread::spawn(move || serve_request(&stream, &instances, failure, &count));
            }
        });
        Self { port, asked }
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Returns the number of queries.
    pub(super) fn query_count(&self) -> usize {
        self.asked.load(Relaxed)
    }
}

fn serve_request(
    mut stream: &TcpStream,
    instances: &[String],
    failure: Option<u16>,
    count: &AtomicUsize,
) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    while let Some(Ok(first)) = lines.next() {
        while lines
            .next()
            .is_some_and(|line| line.is_ok_and(|line| !line.is_empty()))
        {}
        count.fetch_add(1, Relaxed);
        let target = first.split(' ').nth(1).unwrap_or_default();
        let query = target
            .split(['?', '&'])
            .find_map(|part| part.strip_prefix("query="))
            .map(decode_url);
        let body = query_result(&query.unwrap_or_default(), instances).to_string();
        let status =
            failure.map_or_else(|| "200 OK".to_owned(), |status| format!("{status} Refused"));
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        if stream.write_all((head + &body).as_bytes()).is_err() {
            return;
        }
    }
}

fn decode_url(text: &str) -> String {
    let bytes = text.replace('+', " ").into_bytes();
    let mut plain = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let escaped =
            (bytes[at] == b'%').then(|| std::str::from_utf8(&bytes[at + 1..at + 3]).unwrap());
        plain.push(escaped.map_or(bytes[at], |digits| u8::from_str_radix(digits, 16).unwrap()));
        at += if escaped.is_some() { 3 } else { 1 };
    }
    String::from_utf8(plain).unwrap()
}

fn query_result(query: &str, instances: &[String]) -> Value {
    let of_gpus = |value: &dyn Fn(usize) -> f64, more: Value| -> Vec<Value> {
        let each = instances
            .iter()
            .flat_map(|instance| (0..GPUS_PER_NODE).map(move |gpu| (instance, gpu)));
        each.map(|(instance, gpu)| {
            let name = query.split(['(', '[']).find(|part| part.starts_with("gpumon_")).unwrap_or(query);
            let mut labels = json!({ "__name__": name, "instance": instance, "job": "gpumon", "gpu": gpu.to_string() });
            labels["uuid"] = format!("GPU-{instance}-{gpu}").into();
            labels.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            make_series(&labels, value(gpu))
        })
        .collect()
    };
    // In the answers, GPU 0 is busy and GPU 1 is free.
    let result = match query {
        _ if query.starts_with("count by (__name__)") => {
            vec![make_series(
                &json!({ "__name__": "gpumon_gpu_up" }),
                (instances.len() * GPUS_PER_NODE) as f64,
            )]
        }
        _ if query.contains("gpumon_gpu_info") => {
            of_gpus(&|_| 1.0, json!({ "name": "NVIDIA H100 80GB HBM3" }))
        }
        _ if query.starts_with("up{") || query == "up" => instances
            .iter()
            .map(|instance| {
                make_series(
                    &json!({ "__name__": "up", "instance": instance, "job": "gpumon" }),
                    1.0,
                )
            })
            .collect(),
        "gpumon_gpu_utilization_ratio" => {
            of_gpus(&|gpu| if gpu == 0 { 0.875 } else { 0.0 }, json!({}))
        }
        "gpumon_gpu_memory_used_bytes" => {
            of_gpus(&|gpu| if gpu == 0 { 64e9 } else { 4e8 }, json!({}))
        }
        "gpumon_gpu_memory_total_bytes" => of_gpus(&|_| 85_520_809_984.0, json!({})),
        "gpumon_gpu_power_watts" => of_gpus(&|gpu| if gpu == 0 { 650.0 } else { 70.0 }, json!({})),
        "gpumon_gpu_power_limit_watts" => of_gpus(&|_| 700.0, json!({})),
        "gpumon_gpu_temperature_celsius" => {
            of_gpus(&|gpu| if gpu == 0 { 64.0 } else { 31.0 }, json!({}))
        }
        "gpumon_gpu_processes" => of_gpus(&|gpu| if gpu == 0 { 1.0 } else { 0.0 }, json!({})),
        "gpumon_gpu_job_info" => {
            let labels = json!({ "user": "ana\u{1b}[2J<script>", "slurm_job": "88123" });
            of_gpus(&|_| 1.0, labels)
                .into_iter()
                .step_by(GPUS_PER_NODE)
                .collect()
        }
        _ => Vec::new(),
    };
    json!({ "status": "success", "data": { "resultType": "vector", "result": result } })
}

fn make_series(labels: &Value, value: f64) -> Value {
    json!({ "metric": labels, "value": [1_700_000_000.0, value.to_string()] })
}
