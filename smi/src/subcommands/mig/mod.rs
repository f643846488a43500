//! `mig`: how GPUs are, and can be, divided.

mod compute;
mod gpu;
mod help;

use std::io::Write;

use gpumon_probe::vendor::nvml::query::{Query, QueryBackend, Subject, Value};

use crate::{Refusal, form::Form, select::is_divided, subcommand::Stop};

pub(super) static FORM: Form = Form::new("mig", help::HELP)
    .changing(&["-cgi", "-dgi", "-cci", "-dci", "-C"])
    .takes(&["-i", "-gi", "-ci"])
    .may_take(&["-cgi", "-cci"]);

pub(crate) fn run(
    arguments: &[String],
    driver: &dyn QueryBackend,
    output: &mut dyn Write,
) -> Result<u8, Stop> {
    let switches = FORM.parse(arguments)?;
    let listings = ["-lgip", "-lgipp", "-lgi", "-lcip", "-lcipp", "-lci"];
    let Some(listing) = switches.first_of(&listings) else {
        return Err(FORM.explain());
    };
    let gpus = Form::gpus(&switches, driver)?;
    let text = match listing {
        "-lgip" => gpu::profiles(driver, &gpus),
        "-lgipp" => gpu::placements(driver, &gpus),
        _ => {
            let gpus: Vec<u32> = gpus
                .into_iter()
                .filter(|gpu| is_divided(driver, *gpu))
                .collect();
            if gpus.is_empty() {
                return Err(Refusal::new(0, "No MIG-enabled devices found.\n").into());
            }
            let chosen = Chosen::parse(switches.value("-gi"));
            match listing {
                "-lgi" => gpu::instances(driver, &gpus),
                "-lcip" => compute::profiles(driver, &gpus, &chosen),
                "-lcipp" => compute::placements(driver, &gpus, &chosen),
                _ => compute::instances(driver, &gpus, &chosen),
            }
        }
    };
    output.write_all(text.as_bytes())?;
    Ok(0)
}

/// The GPU instances that `-gi` names.
struct Chosen(Option<Vec<i128>>);

impl Chosen {
    fn parse(text: Option<&str>) -> Self {
        Self(text.map(|text| {
            text.split(',')
                .filter_map(|word| word.trim().parse().ok())
                .collect()
        }))
    }

    fn has(&self, instance: i128) -> bool {
        self.0
            .as_ref()
            .is_none_or(|chosen| chosen.contains(&instance))
    }
}

fn ask(driver: &dyn QueryBackend, gpu: u32, query: Query) -> Option<Value> {
    driver.about(Subject::gpu(gpu), query).ok()
}

fn name(driver: &dyn QueryBackend, gpu: u32, query: Query) -> String {
    let answer = ask(driver, gpu, query);
    let name = answer
        .as_ref()
        .and_then(|answer| answer.text())
        .unwrap_or("N/A");
    if name.starts_with("MIG ") {
        name.to_owned()
    } else {
        format!("MIG {name}")
    }
}

/// Starts and sizes of places, as `{0,2,4}:2`.
fn places(answer: Option<&Value>) -> Option<String> {
    let places = answer?.numbers().as_chunks().0;
    let [_, size] = places.first()?;
    let starts: Vec<String> = places.iter().map(|[start, _]| start.to_string()).collect();
    // The colon stands below the colon of a list.
    let label = if places.len() == 1 {
        "Placement "
    } else {
        "Placements"
    };
    Some(format!("{label}: {{{}}}:{size}", starts.join(",")))
}
