//! Conversion of a GPU's MIG devices.

use super::{
    super::cached::{TimedAnswers, and_then, convert_integer},
    details::read_mode,
    sample::make_memory,
};
use crate::{
    model::{Absence, Activity, MigDevice, MigInstance, MigSample, Mode, Reading},
    vendor::nvml::query::Query as Q,
};

/// Returns whether MIG mode is on, and whether it will be on after the next reset.
pub(in super::super) fn mig_mode(answers: TimedAnswers<'_>) -> Reading<Mode> {
    read_mode(answers, Q::MigMode)
}

/// Returns a MIG device's constant data, or `None` if the device no longer exists.
pub(in super::super) fn make_mig_device(
    answers: TimedAnswers<'_>,
    index: u32,
) -> Option<MigDevice> {
    let [gpu_instance, compute_instance] = *answers.read_numbers(Q::MigInstance).value()?;
    let attributes = answers.read_numbers::<9>(Q::MigAttributes);
    let number = |place: usize| {
        and_then(attributes.clone(), |numbers| {
            convert_integer(numbers[place])
        })
    };
    Some(MigDevice {
        index,
        uuid: answers.read_text(Q::Uuid).value()?.clone(),
        instance: MigInstance {
            gpu_instance: gpu_instance.try_into().ok()?,
            compute_instance: compute_instance.try_into().ok()?,
        },
        profile: and_then(answers.read_text(Q::Name), |name| find_profile(&name)),
        multiprocessors: number(0),
        copy_engines: number(1),
        decoders: number(2),
        encoders: number(3),
    })
}

pub(in super::super) fn make_mig_sample(
    answers: TimedAnswers<'_>,
    device: &MigDevice,
    activity: Reading<Activity>,
) -> MigSample {
    MigSample {
        uuid: device.uuid.clone(),
        instance: device.instance,
        memory: make_memory(answers),
        activity,
        allocated_to: Vec::new(),
    }
}

/// Returns the profile in a MIG device's name, such as `1g.18gb` in `NVIDIA H200 MIG 1g.18gb`.
fn find_profile(name: &str) -> Reading<String> {
    match name.split_once(" MIG ") {
        Some((_, profile)) => Reading::Now(profile.to_owned()),
        None => Reading::Absent(Absence::Unknown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mig_name_ends_with_profile() {
        assert_eq!(
            find_profile("NVIDIA H200 MIG 1g.18gb"),
            Reading::Now("1g.18gb".to_owned())
        );
        assert_eq!(
            find_profile("NVIDIA H200"),
            Reading::Absent(Absence::Unknown)
        );
    }
}
