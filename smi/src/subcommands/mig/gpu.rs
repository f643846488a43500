//! GPU instances: which there can be, and which there are.

use gpumon_probe::vendor::nvml::query::{Query, QueryBackend};

use super::{ask, name, places};
use crate::subcommands::table::framed;

/// More than `NVML_GPU_INSTANCE_PROFILE_COUNT` of any driver; a number that is no profile is not supported.
const PROFILES: u32 = 32;

struct Profile {
    number: u32,
    id: u32,
    /// As [`Query::GpuInstanceProfile`] orders them.
    numbers: Vec<i128>,
}

/// The profiles of a GPU: small ones first, and the later variants of a size after its first one.
fn of(driver: &dyn QueryBackend, gpu: u32) -> Vec<Profile> {
    let mut profiles: Vec<Profile> = (0..PROFILES)
        .filter_map(|number| {
            let numbers = ask(driver, gpu, Query::GpuInstanceProfile(number))?
                .numbers()
                .to_vec();
            (numbers.len() >= 11).then(|| Profile {
                number,
                id: numbers[0] as u32,
                numbers,
            })
        })
        .collect();
    profiles.sort_by_key(|profile| (profile.numbers[2], profile.numbers[10]));
    profiles
}

/// `-lgip`: the profiles.
pub(super) fn profiles(driver: &dyn QueryBackend, gpus: &[u32]) -> String {
    let mut groups = Vec::new();
    for gpu in gpus {
        for profile in of(driver, *gpu) {
            let [
                id,
                p2p,
                _,
                most,
                sms,
                copy,
                decoders,
                encoders,
                jpeg,
                ofa,
                mib,
            ] = profile.numbers[..11]
            else {
                continue;
            };
            let free = ask(driver, *gpu, Query::GpuInstanceCapacity(profile.id))
                .and_then(|answer| answer.at(0));
            let instances = format!("{}/{most}", free.unwrap_or(0));
            // Hundredths of a GiB.
            let memory = format!("{:.2}", mib as f64 / 1024.0);
            let p2p = if p2p == 1 { "Yes" } else { "No" };
            let name = name(driver, *gpu, Query::GpuInstanceProfileName(profile.number));
            groups.push(vec![
                format!(
                    " {gpu:>3}  {name:<17} {id:>4}     {instances:<6}     {memory:<6}     {p2p:<3}    {sms:<3}    {decoders:<2}    {encoders:<2}  "
                ),
                format!("{:63}{copy:<2}    {jpeg:<2}    {ofa:<2}", ""),
            ]);
        }
    }
    framed(
        79,
        &[
            " GPU instance profiles:",
            " GPU   Name               ID    Instances   Memory     P2P    SM    DEC   ENC  ",
            "                                Free/Total   GiB              CE    JPEG  OFA  ",
        ],
        &groups,
    )
}

/// `-lgipp`: where instances of each profile fit.
pub(super) fn placements(driver: &dyn QueryBackend, gpus: &[u32]) -> String {
    let mut lines = Vec::new();
    for gpu in gpus {
        for profile in of(driver, *gpu) {
            let answer = ask(driver, *gpu, Query::GpuInstancePlacements(profile.id));
            if let Some(places) = places(answer.as_ref()) {
                lines.push(format!(
                    "GPU {gpu:>2} Profile ID {:>2} {places}\n",
                    profile.id
                ));
            }
        }
    }
    lines.concat()
}

/// `-lgi`: the instances.
pub(super) fn instances(driver: &dyn QueryBackend, gpus: &[u32]) -> String {
    let mut groups = Vec::new();
    for gpu in gpus {
        for profile in of(driver, *gpu) {
            for (id, start, size) in all(driver, *gpu, profile.id) {
                let name = name(driver, *gpu, Query::GpuInstanceProfileName(profile.number));
                let place = format!("{start}:{size}");
                groups.push(vec![format!(
                    " {gpu:>3}  {name:<17} {:>6} {id:>8} {place:>12}     ",
                    profile.id
                )]);
            }
        }
    }
    if groups.is_empty() {
        return "No GPU instances found: Not Found\n".to_owned();
    }
    framed(
        57,
        &[
            " GPU instances:",
            " GPU   Name               Profile  Instance   Placement  ",
            "                            ID       ID       Start:Size ",
        ],
        &groups,
    )
}

/// The ids of a GPU's instances, in the order in which they are listed.
pub(super) fn ids(driver: &dyn QueryBackend, gpu: u32) -> Vec<i128> {
    of(driver, gpu)
        .iter()
        .flat_map(|profile| all(driver, gpu, profile.id))
        .map(|(id, ..)| id)
        .collect()
}

/// Id, start and size of each instance of a profile.
fn all(driver: &dyn QueryBackend, gpu: u32, profile: u32) -> Vec<(i128, i128, i128)> {
    let answer = ask(driver, gpu, Query::GpuInstances(profile));
    let numbers = answer.as_ref().map_or(&[][..], |answer| answer.numbers());
    numbers
        .as_chunks()
        .0
        .iter()
        .map(|[id, start, size]| (*id, *start, *size))
        .collect()
}
