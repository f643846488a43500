//! Rows of the seeds, one after the other.

use anyhow::anyhow;
use gpumon_workload::{
    Backend, Limits, Now, RunError,
    job::{BackendChoice, SeedsJob},
    report::Topic,
    seeds::{self, Found, How, News, Places, ROWS, Row, SeedReport},
};

use super::{Around, FAILED, INTERRUPTED, NO_GPU, REFUSED, Report, floor::Floor};
use crate::{exit::Failure, suggest::nearest};

/// As many GPUs as the rows with several of them have.
const GPUS: usize = 2;
/// Those rows.
const ON_SEVERAL: [&str; 2] = ["k2", "k5"];

pub(super) fn run(job: &SeedsJob, around: &Around<'_>, say: &mut dyn FnMut(Report)) -> Result<u8, Failure> {
    let mut rows = named(&job.rows)?;
    let mut floor = Floor::take(&job.place, false, around.source)?;
    let is_several = |row: &Row| ON_SEVERAL.contains(&row.id);
    if rows.iter().any(|row| is_several(row))
        && let Err(error) = floor.widen(GPUS, &job.place, around.source)
    {
        if !job.rows.is_empty() {
            return Err(error);
        }
        rows.retain(|row| !is_several(row));
    }
    let gpu = match floor.gpus.first().map(super::floor::Held::open).transpose() {
        Ok(gpu) => gpu,
        Err(error) => return Err(Failure::with_code(error, NO_GPU)),
    };
    let only = match job.place.backend {
        BackendChoice::Auto if gpu.is_none() => Some(Backend::Cpu),
        BackendChoice::Auto | BackendChoice::Both => None,
        BackendChoice::Cuda => Some(Backend::Cuda),
        BackendChoice::Cpu => Some(Backend::Cpu),
    };
    let title = if job.rows.is_empty() { "seeds".to_owned() } else { format!("seeds {}", job.rows.join(", ")) };
    say(Report::Begun { title, devices: floor.names(), steps: seeds::steps(&rows, only).count() });
    if let Some(note) = &floor.note {
        say(Report::Said { topic: Topic::Step, text: note.clone() });
    }
    let places = Places { gpu: gpu.as_ref(), cpu: &floor.cpu, only };
    let how = How { limits: if job.quick { Limits::QUICK } else { Limits::FULL }, quick: job.quick };
    let mut worst = 0;
    let mut tell = |news| {
        say(match news {
            News::Now { step, row, variant, now: Now::Phase(phase) } => {
                Report::Phase { step, id: format!("{} {}", row.id, variant.name), backend: variant.backend, phase }
            }
            News::Now { now: Now::Share(share), .. } => Report::Progress { share, text: String::new() },
            News::Found(seed) => {
                let code = code(&seed);
                worst = if worst == FAILED || code == 0 { worst } else { code };
                Report::Seed { seed }
            }
        });
    };
    match seeds::run(&rows, &places, how, &mut tell, around.interrupted) {
        _ if around.is_interrupted() => Ok(INTERRUPTED),
        // It was told with the variant that it ended.
        Err(RunError::Cuda(_)) => Ok(FAILED),
        Err(error) => Err(Failure::with_code(error, FAILED)),
        Ok(()) => Ok(worst),
    }
}

fn code(seed: &SeedReport) -> u8 {
    match &seed.found {
        _ if seed.is_wrong() => FAILED,
        Found::Failed { refused: true, .. } => REFUSED,
        Found::Failed { .. } => FAILED,
        _ => 0,
    }
}

/// Each once, in the order in which they were named.
fn named(ids: &[String]) -> Result<Vec<&'static Row>, Failure> {
    if ids.is_empty() {
        return Ok(ROWS.iter().collect());
    }
    let names = || ROWS.iter().map(|row| row.id);
    let mut rows: Vec<&'static Row> = Vec::new();
    for id in ids {
        let found = seeds::find(&id.to_lowercase()).ok_or_else(|| {
            let cure = nearest(id, names()).map(|near| format!("did you mean '{near}'?"));
            let cure = cure.unwrap_or_else(|| format!("there are {}", names().collect::<Vec<_>>().join(", ")));
            Failure::usage(anyhow!("unknown row '{id}': {cure}"))
        })?;
        if !rows.iter().any(|row| row.id == found.id) {
            rows.push(found);
        }
    }
    Ok(rows)
}
