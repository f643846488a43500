//! How an H200 can be divided into MIG's instances, and how a simulated one is.

use gpumon_probe::vendor::sim::MigState;

use crate::{call::Gpu, code::Code};

/// A way to cut GPU instances, as `nvidia-smi mig -lgip` lists them for an H200.
pub(crate) struct Profile {
    /// `NVML_GPU_INSTANCE_PROFILE_*`.
    pub(crate) number: u32,
    /// By which the driver knows it.
    pub(crate) id: u32,
    /// As `1g.18gb`.
    pub(crate) name: &'static str,
    /// Sevenths of the GPU.
    pub(crate) slices: u32,
    pub(crate) most: u32,
    pub(crate) multiprocessors: u32,
    pub(crate) copy_engines: u32,
    /// And as many JPEG decoders. It encodes nothing.
    pub(crate) decoders: u32,
    pub(crate) optical_flow_engines: u32,
    pub(crate) memory_mib: u64,
    /// The eighths of the memory at which an instance can begin, and how many it takes.
    starts: &'static [u32],
    size: u32,
}

const PROFILES: [Profile; 7] = [
    Profile {
        number: 0,
        id: 19,
        name: "1g.18gb",
        slices: 1,
        most: 7,
        multiprocessors: 16,
        copy_engines: 1,
        decoders: 1,
        optical_flow_engines: 0,
        memory_mib: 16_384,
        starts: &[0, 1, 2, 3, 4, 5, 6],
        size: 1,
    },
    Profile {
        number: 1,
        id: 14,
        name: "2g.35gb",
        slices: 2,
        most: 3,
        multiprocessors: 32,
        copy_engines: 2,
        decoders: 2,
        optical_flow_engines: 0,
        memory_mib: 33_280,
        starts: &[0, 2, 4],
        size: 2,
    },
    Profile {
        number: 2,
        id: 9,
        name: "3g.71gb",
        slices: 3,
        most: 2,
        multiprocessors: 60,
        copy_engines: 3,
        decoders: 3,
        optical_flow_engines: 0,
        memory_mib: 71_424,
        starts: &[0, 4],
        size: 4,
    },
    Profile {
        number: 3,
        id: 5,
        name: "4g.71gb",
        slices: 4,
        most: 1,
        multiprocessors: 64,
        copy_engines: 4,
        decoders: 4,
        optical_flow_engines: 0,
        memory_mib: 71_424,
        starts: &[0],
        size: 4,
    },
    Profile {
        number: 4,
        id: 0,
        name: "7g.141gb",
        slices: 7,
        most: 1,
        multiprocessors: 132,
        copy_engines: 8,
        decoders: 7,
        optical_flow_engines: 1,
        memory_mib: 143_360,
        starts: &[0],
        size: 8,
    },
    // With what there is one of in all of the GPU.
    Profile {
        number: 7,
        id: 20,
        name: "1g.18gb+me",
        slices: 1,
        most: 1,
        multiprocessors: 16,
        copy_engines: 1,
        decoders: 1,
        optical_flow_engines: 1,
        memory_mib: 16_384,
        starts: &[0, 1, 2, 3, 4, 5, 6],
        size: 1,
    },
    // With twice the memory.
    Profile {
        number: 9,
        id: 15,
        name: "1g.35gb",
        slices: 1,
        most: 4,
        multiprocessors: 26,
        copy_engines: 1,
        decoders: 1,
        optical_flow_engines: 0,
        memory_mib: 33_280,
        starts: &[0, 2, 4, 6],
        size: 2,
    },
];

/// One more than the last `NVML_GPU_INSTANCE_PROFILE_*`, and than the last of compute instances.
const NUMBERS: u32 = 17;
const COMPUTE_NUMBERS: u32 = 8;

/// Where something begins, and how much it takes.
pub(crate) type Place = (u32, u32);

/// The profiles of a board. Those of other boards than the H200 have not been measured, so that it does not tell them.
fn profiles(gpu: &Gpu) -> Result<&'static [Profile], Code> {
    let identity = gpu.identity();
    if identity.has_mig() && identity.name.contains("H200") {
        Ok(&PROFILES)
    } else {
        Err(Code::NOT_SUPPORTED)
    }
}

impl Profile {
    /// The one of this `NVML_GPU_INSTANCE_PROFILE_*`.
    pub(crate) fn numbered(gpu: &Gpu, number: u32) -> Result<&'static Self, Code> {
        let profiles = profiles(gpu)?;
        if number >= NUMBERS {
            return Err(Code::INVALID_ARGUMENT);
        }
        profiles
            .iter()
            .find(|profile| profile.number == number)
            .ok_or(Code::NOT_SUPPORTED)
    }

    /// The one that the driver knows by this id.
    pub(crate) fn of(gpu: &Gpu, id: u32) -> Result<&'static Self, Code> {
        profiles(gpu)?
            .iter()
            .find(|profile| profile.id == id)
            .ok_or(Code::INVALID_ARGUMENT)
    }

    /// Where instances of it can stand.
    pub(crate) fn places(&self) -> Vec<Place> {
        self.starts
            .iter()
            .map(|start| (*start, self.size))
            .collect()
    }

    /// How many more of it fit beside these.
    pub(crate) fn room(&self, parts: &[Part]) -> u32 {
        let taken: Vec<Place> = parts.iter().map(|part| part.place).collect();
        let slices =
            MigState::MOST.saturating_sub(parts.iter().map(|part| part.profile.slices).sum());
        let own = parts
            .iter()
            .filter(|part| part.profile.id == self.id)
            .count() as u32;
        free(&self.places(), taken)
            .min(slices / self.slices)
            .min(self.most.saturating_sub(own))
    }
}

pub(crate) struct Part {
    pub(crate) id: u32,
    pub(crate) profile: &'static Profile,
    pub(crate) place: Place,
    /// The compute instances within it.
    pub(crate) inside: Vec<Inside>,
}

pub(crate) struct Inside {
    pub(crate) id: u32,
    pub(crate) profile: ComputeProfile,
    pub(crate) place: Place,
}

impl Part {
    /// All of a GPU. Each stands at the first place that is free; where a scenario divides a GPU as no board can be, at
    /// the first of all.
    pub(crate) fn all(gpu: &Gpu) -> Result<Vec<Self>, Code> {
        let profiles = profiles(gpu)?;
        let mut parts: Vec<Self> = Vec::new();
        for device in &gpu.state().mig {
            let id = device.instance.gpu_instance;
            let Some(profile) = profiles
                .iter()
                .find(|profile| profile.name == device.gpu_instance_profile)
            else {
                continue;
            };
            let taken = |place: &Place| parts.iter().any(|part| overlap(part.place, *place));
            let places = profile.places();
            let place = *places
                .iter()
                .find(|place| !taken(place))
                .unwrap_or(&places[0]);
            if !parts.iter().any(|part| part.id == id) {
                parts.push(Self {
                    id,
                    profile,
                    place,
                    inside: Vec::new(),
                });
            }
        }
        for part in &mut parts {
            part.divide(&gpu.state().mig);
        }
        Ok(parts)
    }

    /// The one of this id.
    pub(crate) fn of(gpu: &Gpu, id: u32, otherwise: Code) -> Result<Self, Code> {
        Self::all(gpu)?
            .into_iter()
            .find(|part| part.id == id)
            .ok_or(otherwise)
    }

    /// Places compute instances one after another.
    fn divide(&mut self, devices: &[MigState]) {
        let mut start = 0;
        for device in devices
            .iter()
            .filter(|device| device.instance.gpu_instance == self.id)
        {
            let slices = device.compute_slices;
            let id = device.instance.compute_instance;
            self.inside.push(Inside {
                id,
                profile: ComputeProfile { slices },
                place: (start, slices),
            });
            start += slices;
        }
    }
}

/// A way to cut compute instances from a GPU instance: so many of its slices.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct ComputeProfile {
    pub(crate) slices: u32,
}

impl ComputeProfile {
    /// By their `NVML_COMPUTE_INSTANCE_PROFILE_*`, which are their ids, too.
    const SLICES: [u32; 5] = [1, 2, 3, 4, 7];

    /// The one of this number, where it fits into the GPU instance. One of 4 slices has none of 3.
    pub(crate) fn numbered(part: &Part, number: u32) -> Result<Self, Code> {
        if number >= COMPUTE_NUMBERS {
            return Err(Code::INVALID_ARGUMENT);
        }
        let slices = *Self::SLICES
            .get(number as usize)
            .ok_or(Code::NOT_SUPPORTED)?;
        let whole = part.profile.slices;
        if slices > whole || (slices, whole) == (3, 4) {
            Err(Code::NOT_SUPPORTED)
        } else {
            Ok(Self { slices })
        }
    }

    /// The one that the driver knows by this id.
    pub(crate) fn of(part: &Part, id: u32) -> Result<Self, Code> {
        Self::numbered(part, id).map_err(|_| Code::INVALID_ARGUMENT)
    }

    pub(crate) fn id(self) -> u32 {
        Self::SLICES
            .iter()
            .zip(0..)
            .find_map(|(slices, id)| (*slices == self.slices).then_some(id))
            .unwrap_or(0)
    }

    /// As `1c.3g.71gb`, or `3g.71gb` for all of it.
    pub(crate) fn name(self, part: &Part) -> String {
        let whole = part.profile;
        if self.slices == whole.slices {
            whole.name.to_owned()
        } else {
            format!("{}c.{}", self.slices, whole.name)
        }
    }

    /// Its share of the GPU instance's.
    pub(crate) fn multiprocessors(self, part: &Part) -> u32 {
        let whole = part.profile;
        if self.slices == whole.slices {
            whole.multiprocessors
        } else {
            whole.multiprocessors / whole.slices * self.slices
        }
    }

    /// Side by side, as far as they fit.
    pub(crate) fn places(self, part: &Part) -> Vec<Place> {
        let fits = |start: &u32| start + self.slices <= part.profile.slices;
        (0..)
            .step_by(self.slices as usize)
            .take_while(fits)
            .map(|start| (start, self.slices))
            .collect()
    }

    /// How many more of it fit.
    pub(crate) fn room(self, part: &Part) -> u32 {
        free(
            &self.places(part),
            part.inside.iter().map(|own| own.place).collect(),
        )
    }
}

/// How many of these places are free, once each that is taken is.
fn free(places: &[Place], mut taken: Vec<Place>) -> u32 {
    let mut count = 0;
    for place in places {
        if !taken.iter().any(|other| overlap(*other, *place)) {
            taken.push(*place);
            count += 1;
        }
    }
    count
}

fn overlap(one: Place, other: Place) -> bool {
    one.0 < other.0 + other.1 && other.0 < one.0 + one.1
}
