//! Compute instances within GPU instances: which there can be, and which there are.

use gpumon_probe::vendor::nvml::query::{Query, QueryBackend};

use super::{Chosen, ask, gpu, name, places};
use crate::subcommands::table::framed;

/// More than `NVML_COMPUTE_INSTANCE_PROFILE_COUNT` of any driver; a number that is no profile is not supported.
const PROFILES: u32 = 16;

struct Profile {
    gpu: u32,
    instance: u32,
    number: u32,
    id: u32,
    /// As [`Query::ComputeInstanceProfile`] orders them.
    numbers: Vec<i128>,
}

/// The profiles of the GPU instances that were chosen.
fn of(driver: &dyn QueryBackend, gpus: &[u32], chosen: &Chosen) -> Vec<Profile> {
    let mut profiles = Vec::new();
    for gpu in gpus {
        for instance in gpu::ids(driver, *gpu)
            .into_iter()
            .filter(|instance| chosen.has(*instance))
        {
            let instance = instance as u32;
            profiles.extend((0..PROFILES).filter_map(|number| {
                let answer = ask(
                    driver,
                    *gpu,
                    Query::ComputeInstanceProfile(instance, number),
                )?;
                let numbers = answer.numbers().to_vec();
                (numbers.len() >= 9).then(|| Profile {
                    gpu: *gpu,
                    instance,
                    number,
                    id: numbers[0] as u32,
                    numbers,
                })
            }));
        }
    }
    profiles
}

impl Profile {
    fn name(&self, driver: &dyn QueryBackend) -> String {
        name(
            driver,
            self.gpu,
            Query::ComputeInstanceProfileName(self.instance, self.number),
        )
    }
}

/// `-lcip`: the profiles. A star marks the one that takes all of its GPU instance, which is the one by default.
pub(super) fn profiles(driver: &dyn QueryBackend, gpus: &[u32], chosen: &Chosen) -> String {
    let profiles = of(driver, gpus, chosen);
    let mut groups = Vec::new();
    for profile in &profiles {
        let [id, slices, most, sms, copy, decoders, encoders, jpeg, ofa] = profile.numbers[..9]
        else {
            continue;
        };
        let free = ask(
            driver,
            profile.gpu,
            Query::ComputeInstanceCapacity(profile.instance, profile.id),
        )
        .and_then(|answer| answer.at(0));
        let instances = format!("{}/{most}", free.unwrap_or(0));
        let largest = profiles
            .iter()
            .filter(|other| (other.gpu, other.instance) == (profile.gpu, profile.instance))
            .all(|other| other.numbers[1] <= slices);
        let id = format!("{id}{}", if largest { "*" } else { " " });
        groups.push(vec![
            format!(
                " {:>3} {:>6}       {:<17}{id:>6}     {instances:<5}{sms:>11} {decoders:>8} {encoders:>5} {ofa:>5}   ",
                profile.gpu,
                profile.instance,
                profile.name(driver)
            ),
            format!("{copy:>71} {jpeg:>5}"),
        ]);
    }
    if groups.is_empty() {
        return "No compute instance profiles found: Not Found\n".to_owned();
    }
    framed(
        86,
        &[
            " Compute instance profiles:",
            " GPU     GPU       Name             Profile  Instances   Exclusive       Shared       ",
            "       Instance                       ID     Free/Total     SM       DEC   ENC   OFA  ",
            "         ID                                                          CE    JPEG       ",
        ],
        &groups,
    )
}

/// `-lcipp`: where instances of each profile fit.
pub(super) fn placements(driver: &dyn QueryBackend, gpus: &[u32], chosen: &Chosen) -> String {
    let lines = of(driver, gpus, chosen).into_iter().filter_map(
        |Profile {
             gpu, instance, id, ..
         }| {
            let answer = ask(driver, gpu, Query::ComputeInstancePlacements(instance, id));
            let places = places(answer.as_ref())?;
            Some(format!(
                "GPU {gpu:>2} GI {instance:>2} Profile ID {id:>2} {places}\n"
            ))
        },
    );
    lines.collect()
}

/// `-lci`: the instances.
pub(super) fn instances(driver: &dyn QueryBackend, gpus: &[u32], chosen: &Chosen) -> String {
    let mut groups = Vec::new();
    for profile in of(driver, gpus, chosen) {
        let answer = ask(
            driver,
            profile.gpu,
            Query::ComputeInstances(profile.instance, profile.id),
        );
        for [id, start, size] in answer
            .as_ref()
            .map_or(&[][..], |answer| answer.numbers())
            .as_chunks()
            .0
        {
            let place = format!("{start}:{size}");
            groups.push(vec![format!(
                " {:>3} {:>6}       {:<17}{:>5} {id:>9} {place:>12}     ",
                profile.gpu,
                profile.instance,
                profile.name(driver),
                profile.id
            )]);
        }
    }
    if groups.is_empty() {
        return "No compute instances found: Not Found\n".to_owned();
    }
    framed(
        68,
        &[
            " Compute instances:",
            " GPU     GPU       Name             Profile   Instance   Placement  ",
            "       Instance                       ID        ID       Start:Size ",
            "         ID                                                         ",
        ],
        &groups,
    )
}
