//! How GPUs are, and can be, divided, and what is protected: each form over the library, call by call.

use super::snapshots;
use crate::support::{Fake, stdout};

const FORMS: &[&str] = &[
    "mig -lgip",
    "mig -lgipp",
    "mig -lgi",
    "mig -lcip",
    "mig -lcipp",
    "mig -lci",
    "conf-compute -gm",
    "conf-compute -gkr",
    "conf-compute -q",
    "gpm -g",
    "nvlink -info",
    "drain -q -p 0000:10:00.0",
    "drain -q -p 0000:99:00.0",
    "-q -u",
];

/// One that is whole, one in parts of which one is cut once more, and one of which nobody knows the profiles.
#[test]
fn gpus_that_are_divided_and_gpus_that_are_not() {
    let scenario = "seed = 7\n[[gpu]]\nindex = 0\nnvlinks = 18\n[[gpu]]\nindex = 1\nmig = [\
        { profile = \"1c.3g.71gb\", gpu_instance = 1 }, \
        { profile = \"1c.3g.71gb\", gpu_instance = 1, compute_instance = 1 }, \
        { profile = \"1g.18gb\", gpu_instance = 7 }]\n\
        [[gpu]]\nindex = 2\nname = \"NVIDIA GeForce RTX 4090\"\narchitecture = \"ada\"\n";
    snapshots::check("subcommands", scenario, FORMS);
}

/// A library that cannot say how an H200 can be divided says nothing wrong.
#[test]
fn an_older_library_names_no_profiles() {
    let fake = Fake::without("gpus = 1", &["nvmlDeviceGetGpuInstanceProfileInfoV"]);
    let table = stdout(&fake.gpumon(&["smi", "mig", "-lgip"]).output().unwrap());
    assert!(
        table.contains(
            "|   0  MIG N/A             19     7/7        16.00      No     16     1     0   |"
        ),
        "{table}"
    );
    let fake = Fake::without(
        "gpus = 1",
        &[
            "nvmlSystemGetConfComputeState",
            "nvmlSystemGetConfComputeSettings",
        ],
    );
    let log = stdout(
        &fake
            .gpumon(&["smi", "conf-compute", "-q"])
            .output()
            .unwrap(),
    );
    for line in [
        "CC State                   : N/A",
        "Multi-GPU Mode             : N/A",
        "GPU CC Capabilities        : CC Capable",
    ] {
        assert!(log.contains(line), "{log}");
    }
}
