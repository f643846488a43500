//! Measures how long NVML calls take on the first GPU of this machine, for each call whose cost is
//! in the table of queries (`query/table.rs`). Prints one line per call: the cost in the table, the
//! median and the maximum of 20 calls, all in microseconds, and the return code.
//!
//! ```console
//! $ cargo run --release --package gpumon-probe --example call_costs
//! ```

use std::time::{Duration, Instant};

use gpumon_probe::{
    vendor::nvml::query::{QueryBackend, Subject},
    vendor::nvml::{NvmlBackend, shared_queries_with_costs},
};

const CALLS: usize = 20;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let nvml = NvmlBackend::open(std::env::var_os("GPUMON_NVML_LIB"))?;
    println!(
        "{:>8} {:>10} {:>10}  code  call",
        "table", "median", "largest"
    );
    for (query, known) in shared_queries_with_costs() {
        let mut costs = Vec::with_capacity(CALLS);
        let mut code = 0;
        for _ in 0..CALLS {
            nvml.forget_answers();
            let begun = Instant::now();
            code = nvml
                .answer_query(Subject::from_gpu(0), query)
                .err()
                .map_or(0, |code| code.0);
            costs.push(begun.elapsed());
            // NVML caches most answers for a while. The pauses spread the calls over a longer time,
            // so that NVML refreshes some of these answers.
            std::thread::sleep(Duration::from_millis(2));
        }
        costs.sort_unstable();
        let us = |cost: Duration| cost.as_secs_f64() * 1e6;
        println!(
            "{known:>8} {:>10.1} {:>10.1}  {code:>4}  {query:?}",
            us(costs[CALLS / 2]),
            us(costs[CALLS - 1])
        );
    }
    Ok(())
}
