//! The MIG devices of a GPU.

use super::{
    super::cached::{Answers, and_then, whole},
    details::mode,
    sample::memory,
};
use crate::{
    model::{Absence, Activity, MigDevice, MigInstance, MigSample, Mode, Reading},
    vendor::nvml::query::Query as Q,
};

/// Returns whether MIG is on, and whether it will be after the next reset.
pub(in super::super) fn mig_mode(answers: Answers<'_>) -> Reading<Mode> {
    mode(answers, Q::MigMode)
}

/// Returns the constant data of a MIG device, or `None` if the device is gone.
pub(in super::super) fn mig_device(answers: Answers<'_>, index: u32) -> Option<MigDevice> {
    let [gpu_instance, compute_instance] = *answers.numbers(Q::MigInstance).value()?;
    let attributes = answers.numbers::<9>(Q::MigAttributes);
    let number = |place: usize| and_then(attributes.clone(), |numbers| whole(numbers[place]));
    Some(MigDevice {
        index,
        uuid: answers.text(Q::Uuid).value()?.clone(),
        instance: MigInstance {
            gpu_instance: gpu_instance.try_into().ok()?,
            compute_instance: compute_instance.try_into().ok()?,
        },
        profile: and_then(answers.text(Q::Name), |name| profile(&name)),
        multiprocessors: number(0),
        copy_engines: number(1),
        decoders: number(2),
        encoders: number(3),
    })
}

pub(in super::super) fn mig_sample(
    answers: Answers<'_>,
    device: &MigDevice,
    activity: Reading<Activity>,
) -> MigSample {
    MigSample {
        uuid: device.uuid.clone(),
        instance: device.instance,
        memory: memory(answers),
        activity,
        allocated_to: Vec::new(),
    }
}

/// Returns the profile at the end of a MIG device's name, such as `NVIDIA H200 MIG 1g.18gb`.
fn profile(name: &str) -> Reading<String> {
    match name.split_once(" MIG ") {
        Some((_, profile)) => Reading::Now(profile.to_owned()),
        None => Reading::Absent(Absence::Unknown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mig_devices_name_ends_in_its_profile() {
        assert_eq!(
            profile("NVIDIA H200 MIG 1g.18gb"),
            Reading::Now("1g.18gb".to_owned())
        );
        assert_eq!(profile("NVIDIA H200"), Reading::Absent(Absence::Unknown));
    }
}
