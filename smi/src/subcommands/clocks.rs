//! `clocks`, `base-clocks`, `boost-slider` and `compute-policy`: what NVML tells nothing about.

use std::io::Write;

use gpumon_probe::vendor::nvml::query::QueryBackend;

use crate::{Refusal, form::Form, subcommand::Stop};

pub(super) static CLOCKS: Form = Form::new("clocks", CLOCKS_HELP)
    .changing(&["--sync-boost-add", "--sync-boost-remove", "-som"])
    .not_in_nvml(&["--sync-boost-list"])
    .takes(&["-i", "--sync-boost-remove", "-som"]);

pub(super) static BASE: Form = Form::new("base-clocks", BASE_HELP).takes(&["-i"]);

pub(super) static BOOST_SLIDER: Form = Form::new("boost-slider", BOOST_SLIDER_HELP)
    .changing(&["--vboost"])
    .not_in_nvml(&["-l"])
    .takes(&["-i", "--vboost"]);

pub(super) static COMPUTE_POLICY: Form = Form::new("compute-policy", COMPUTE_POLICY_HELP)
    .changing(&["--set-timeslice"])
    .not_in_nvml(&["-l"])
    .takes(&["-i", "--set-timeslice"]);

pub(crate) fn base(
    arguments: &[String],
    driver: &dyn QueryBackend,
    _: &mut dyn Write,
) -> Result<u8, Stop> {
    let switches = BASE.parse(arguments)?;
    Form::gpus(&switches, driver)?;
    Err(Refusal::not_in_nvml("base-clocks").into())
}

const CLOCKS_HELP: &str = "
    clocks -- Groups of GPUs that boost together.

    Usage: nvidia-smi clocks [options]

    Options include:
    [-i | --id]: GPUs by index, PCI bus ID, UUID or serial number. Several
                 are separated by commas

    [ | --sync-boost-list]: The groups that there are

    [ | --sync-boost-add]: Makes a group; left to NVIDIA's tool

    [ | --sync-boost-remove]: Removes the group of this ID; left to NVIDIA's tool

    [-som | --sparse-operation-mode]: Turns it on or off: 0/DISABLED, 1/ENABLED; left to NVIDIA's tool

    [-h | --help]: Show this help


";

const BASE_HELP: &str = "
    Base Clocks --   The clocks that a GPU always reaches.

    Usage: nvidia-smi base-clocks [options]

    Options include:
    [-i | --id]: GPUs by index, PCI bus ID, UUID or serial number. Several
                 are separated by commas

    [-h | --help]: Show this help


";

const BOOST_SLIDER_HELP: &str = "
    Boost Slider --   How power is shared within a GPU.

    Usage: nvidia-smi boost-slider [options]

    Options include:
    [-i | --id]: GPUs by index, PCI bus ID, UUID or serial number. Several
                 are separated by commas

    [-l | --list]: The sliders that there are

    [ | --vboost]: Sets the video boost slider; left to NVIDIA's tool

    [-h | --help]: Show this help


";

const COMPUTE_POLICY_HELP: &str = "
    Compute Policy -- How processes share a GPU.

    Usage: nvidia-smi compute-policy [options]

    Options include:
    [-i | --id]: GPUs by index, PCI bus ID, UUID or serial number. Several
                 are separated by commas

    [-l | --list]: The policies that there are

    [ | --set-timeslice]: Sets the time slice of a GPU; left to NVIDIA's tool:
                          0=DEFAULT, 1=SHORT, 2=MEDIUM, 3=LONG

    [-h | --help]: Show this help


";
