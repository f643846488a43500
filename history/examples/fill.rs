//! Fills a folder with the history of 30 days of 8 GPUs, for measurements, and prints its size as JSON.

#[path = "../tests/support/mod.rs"]
mod support;

use std::{env, error::Error, fs, path::PathBuf};

use gpumon_history::database::{Database, FILE, TIERS};
use gpumon_probe::model::now_ms;

const GPUS: u64 = 8;
const DAYS_MS: u64 = 30 * 24 * 3_600_000;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(env::args_os().nth(1).ok_or("name the folder")?);
    let database = Database::open(&folder)?;
    let (mut rows, mut values) = (0, 0);
    for (tier, stored) in TIERS.iter().enumerate() {
        let step = stored.resolution_ms;
        let to_ms = now_ms() / step * step;
        let times = (to_ms - stored.keep_ms.min(DAYS_MS)..to_ms).step_by(step as usize);
        let sums = times.map(|at_ms| support::bucket(at_ms, GPUS)).inspect(|sum| {
            rows += sum.devices.len() + 1;
            values += sum.devices.iter().flat_map(|device| &device.stats).chain(&sum.host).flatten().count();
        });
        database.import(tier, sums)?;
    }
    drop(database);
    let bytes = fs::metadata(folder.join(FILE))?.len();
    println!("{}", serde_json::json!({ "bytes": bytes, "rows": rows, "values": values }));
    Ok(())
}
