//! The small subcommands, against what nvidia-smi printed.

use gpumon_probe::vendor::nvml::query::{Query, Subject, SystemQuery, Value};

use super::sessions;
use crate::{scripted::ScriptedBackend, subcommand::tests::typed};

const HEADLINE: &str = "GPU 0: NVIDIA H200 (UUID: GPU-9ee7e26c-05cd-da01-e3db-ea6cb8412e56)\n";

fn one() -> ScriptedBackend {
    ScriptedBackend::default()
        .system(SystemQuery::DeviceCount, Ok(Value::number(1)))
        .text(0, Query::Name, "NVIDIA H200")
        .text(0, Query::Uuid, "GPU-9ee7e26c-05cd-da01-e3db-ea6cb8412e56")
}

/// A profile: its number, name, and numbers as [`Query::GpuInstanceProfile`] orders them.
type Profile = (u32, &'static str, [i128; 11]);

const H200: [Profile; 7] = [
    (0, "1g.18gb", [19, 0, 1, 7, 16, 1, 1, 0, 1, 0, 16_384]),
    (1, "2g.35gb", [14, 0, 2, 3, 32, 2, 2, 0, 2, 0, 33_280]),
    (2, "3g.71gb", [9, 0, 3, 2, 60, 3, 3, 0, 3, 0, 71_424]),
    (3, "4g.71gb", [5, 0, 4, 1, 64, 4, 4, 0, 4, 0, 71_424]),
    (4, "7g.141gb", [0, 0, 7, 1, 132, 8, 7, 0, 7, 1, 143_360]),
    (7, "1g.18gb+me", [20, 0, 1, 1, 16, 1, 1, 0, 1, 1, 16_384]),
    (9, "1g.35gb", [15, 0, 1, 4, 26, 1, 1, 0, 1, 0, 33_280]),
];

fn divisible() -> ScriptedBackend {
    H200.iter().fold(one(), |driver, (number, name, numbers)| {
        let id = numbers[0] as u32;
        driver
            .text(0, Query::GpuInstanceProfileName(*number), name)
            .numbers(0, Query::GpuInstanceProfile(*number), numbers)
            .numbers(0, Query::GpuInstanceCapacity(id), &[numbers[3]])
    })
}

/// A GPU in MIG mode with instances of 3 and 1 slices, and a compute instance in the large one.
fn divided() -> ScriptedBackend {
    divisible()
        .numbers(0, Query::MigMode, &[1, 1])
        .numbers(0, Query::GpuInstances(19), &[11, 0, 1])
        .numbers(0, Query::GpuInstances(9), &[1, 4, 4])
        .text(0, Query::ComputeInstanceProfileName(1, 0), "MIG 1c.3g.71gb")
        .text(0, Query::ComputeInstanceProfileName(1, 2), "MIG 3g.71gb")
        .numbers(
            0,
            Query::ComputeInstanceProfile(1, 0),
            &[0, 1, 3, 20, 3, 3, 0, 3, 0],
        )
        .numbers(
            0,
            Query::ComputeInstanceProfile(1, 2),
            &[2, 3, 1, 60, 3, 3, 0, 3, 0],
        )
        .numbers(0, Query::ComputeInstanceCapacity(1, 0), &[2])
        .numbers(0, Query::ComputeInstances(1, 0), &[4, 0, 1])
        .numbers(
            0,
            Query::ComputeInstancePlacements(1, 0),
            &[0, 1, 1, 1, 2, 1],
        )
        .numbers(0, Query::ComputeInstancePlacements(1, 2), &[0, 4])
}

#[test]
fn profiles_stand_as_nvidia_smi_writes_them() {
    assert_eq!(
        typed("mig -lgip", &divisible()),
        (
            "\
+-------------------------------------------------------------------------------+
| GPU instance profiles:                                                        |
| GPU   Name               ID    Instances   Memory     P2P    SM    DEC   ENC  |
|                                Free/Total   GiB              CE    JPEG  OFA  |
|===============================================================================|
|   0  MIG 1g.18gb         19     7/7        16.00      No     16     1     0   |
|                                                               1     1     0   |
+-------------------------------------------------------------------------------+
|   0  MIG 1g.18gb+me      20     1/1        16.00      No     16     1     0   |
|                                                               1     1     1   |
+-------------------------------------------------------------------------------+
|   0  MIG 1g.35gb         15     4/4        32.50      No     26     1     0   |
|                                                               1     1     0   |
+-------------------------------------------------------------------------------+
|   0  MIG 2g.35gb         14     3/3        32.50      No     32     2     0   |
|                                                               2     2     0   |
+-------------------------------------------------------------------------------+
|   0  MIG 3g.71gb          9     2/2        69.75      No     60     3     0   |
|                                                               3     3     0   |
+-------------------------------------------------------------------------------+
|   0  MIG 4g.71gb          5     1/1        69.75      No     64     4     0   |
|                                                               4     4     0   |
+-------------------------------------------------------------------------------+
|   0  MIG 7g.141gb         0     1/1        140.00     No     132    7     0   |
|                                                               8     7     1   |
+-------------------------------------------------------------------------------+
"
            .to_owned(),
            0
        )
    );
}

#[test]
fn placements_are_sets_of_starts() {
    let driver = divisible()
        .numbers(0, Query::GpuInstancePlacements(14), &[0, 2, 2, 2, 4, 2])
        .numbers(0, Query::GpuInstancePlacements(0), &[0, 8]);
    assert_eq!(
        typed("mig -lgipp", &driver).0,
        "GPU  0 Profile ID 14 Placements: {0,2,4}:2\nGPU  0 Profile ID  0 Placement : {0}:8\n"
    );
}

#[test]
fn instances_have_tables() {
    assert_eq!(
        typed("mig -lgi", &divided()).0,
        "\
+---------------------------------------------------------+
| GPU instances:                                          |
| GPU   Name               Profile  Instance   Placement  |
|                            ID       ID       Start:Size |
|=========================================================|
|   0  MIG 1g.18gb           19       11          0:1     |
+---------------------------------------------------------+
|   0  MIG 3g.71gb            9        1          4:4     |
+---------------------------------------------------------+
"
    );
    assert_eq!(
        typed("mig -lci", &divided()).0,
        "\
+--------------------------------------------------------------------+
| Compute instances:                                                 |
| GPU     GPU       Name             Profile   Instance   Placement  |
|       Instance                       ID        ID       Start:Size |
|         ID                                                         |
|====================================================================|
|   0      1       MIG 1c.3g.71gb       0         4          0:1     |
+--------------------------------------------------------------------+
"
    );
    assert_eq!(
        typed("mig -lcip -gi 1,5", &divided()).0,
        "\
+--------------------------------------------------------------------------------------+
| Compute instance profiles:                                                           |
| GPU     GPU       Name             Profile  Instances   Exclusive       Shared       |
|       Instance                       ID     Free/Total     SM       DEC   ENC   OFA  |
|         ID                                                          CE    JPEG       |
|======================================================================================|
|   0      1       MIG 1c.3g.71gb       0      2/3           20        3     0     0   |
|                                                                      3     3         |
+--------------------------------------------------------------------------------------+
|   0      1       MIG 3g.71gb          2*     0/1           60        3     0     0   |
|                                                                      3     3         |
+--------------------------------------------------------------------------------------+
"
    );
    assert_eq!(
        typed("mig -lcipp", &divided()).0,
        "GPU  0 GI  1 Profile ID  0 Placements: {0,1,2}:1\nGPU  0 GI  1 Profile ID  2 Placement : {0}:4\n"
    );
    assert_eq!(
        typed("mig -lci -gi 11", &divided()).0,
        "No compute instances found: Not Found\n"
    );
}

#[test]
fn without_mig_mode_there_are_no_instances() {
    for listing in ["-lgi", "-lci", "-lcip", "-lcipp"] {
        let expected = ("No MIG-enabled devices found.\n".to_owned(), 0);
        assert_eq!(
            typed(&format!("mig {listing}"), &divisible()),
            expected,
            "{listing}"
        );
    }
}

#[test]
fn confidential_computing_is_told_in_words() {
    let numbers = |numbers: &[i128]| Ok(Value::Numbers(numbers.to_vec()));
    let driver = one()
        .system(SystemQuery::ConfComputeState, numbers(&[0, 0, 1]))
        .system(SystemQuery::ConfComputeCapabilities, numbers(&[0, 1]))
        .system(SystemQuery::ConfComputeReady, numbers(&[0]))
        .system(SystemQuery::ConfComputeKeyRotation, numbers(&[60]))
        .system(SystemQuery::ConfComputeSettings, numbers(&[0, 0, 0, 0]))
        .numbers(0, Query::ConfComputeMemorySize, &[0, 146_591_680]);
    for (switch, expected) in [
        ("-gc", "CPU CC capabilities: None\n".to_owned()),
        ("-gg", "GPU CC capabilities: CC Capable\n".to_owned()),
        ("-d", "DevTools Mode: ON\n".to_owned()),
        ("-e", "CC Environment: UNAVAILABLE\n".to_owned()),
        ("-f", "CC status: OFF\n".to_owned()),
        ("-gm", format!("{HEADLINE}Protected memory size:   0 KiB\nUnprotected memory size: 146591680 KiB\n")),
        ("-grs", "\nConfidential Compute GPUs Ready state: not-ready\n\n".to_owned()),
        ("-gkr", "\nConfidential Compute Key Rotation Threshold Attacker Advantage: 60\n\n".to_owned()),
        ("-mgm", "Multi-GPU Mode: None\n".to_owned()),
        (
            "-q",
            "\n==============NVSMI CONF-COMPUTE LOG==============\n\n    CC State                   : OFF\n    Multi-GPU Mode             : None\n    CPU CC Capabilities        : None\n    GPU CC Capabilities        : CC Capable\n    CC GPUs Ready State        : Not Ready\n\n"
                .to_owned(),
        ),
    ] {
        assert_eq!(typed(&format!("conf-compute {switch}"), &driver), (expected, 0), "{switch}");
    }
}

#[test]
fn pcie_counts_errors_and_bytes() {
    let driver = one()
        .numbers(0, Query::Field(94, 0), &[0])
        .numbers(0, Query::Field(169, 0), &[233])
        .numbers(0, Query::Field(183, 0), &[12])
        .numbers(0, Query::Field(183, 1), &[0])
        .numbers(0, Query::Field(197, 0), &[4_049_803_632])
        .numbers(0, Query::Field(198, 0), &[1_938_695_316]);
    assert_eq!(
        typed("pci -gCnt", &driver).0,
        format!(
            "{HEADLINE}    TX_BYTES:                4049803632\n    RX_BYTES:                1938695316\n"
        )
    );
    let (text, _) = typed("pci -gErrCnt", &driver);
    assert!(
        text.starts_with(&format!(
            "{HEADLINE}    REPLAY_COUNTER:          0\n    REPLAY_ROLLOVER_COUNTER: N/A\n    L0_TO_RECOVERY_COUNTER:  233\n"
        )),
        "{text}"
    );
    assert!(
        text.ends_with("    LANE_ERROR:              \n\t lane  0: 12\n\t lane  1: 0\n"),
        "{text}"
    );
}

#[test]
fn chip_to_chip_links_are_up_or_there_are_none() {
    assert_eq!(
        typed("c2c -s", &one()),
        ("No Devices support C2C.\n".to_owned(), 3)
    );
    let driver = one()
        .numbers(0, Query::Field(170, 0), &[2])
        .numbers(0, Query::Field(171, 0), &[1])
        .numbers(0, Query::Field(172, 0), &[44_712]);
    assert_eq!(
        typed("c2c -s", &driver).0,
        format!("{HEADLINE}\t C2C Link 0: 44.712 GB/s\n\t C2C Link 1: <inactive>\n")
    );
}

#[test]
fn sessions_stand_in_columns() {
    let rows = |driver: &ScriptedBackend, query, row| sessions::rows(driver, &[0], query, row);
    assert_eq!(
        rows(&one(), Query::EncoderSessions, sessions::encoder_row),
        ["    0       -          -       -       -       -       -           -"]
    );
    assert_eq!(
        rows(&one(), Query::FbcSessions, sessions::capture_row),
        [
            "    0         -         -         -         -         -           -             -       -       -     -     -         -             -"
        ]
    );
    let driver = one()
        .numbers(
            0,
            Query::EncoderSessions,
            &[4, 1234, 1, 1920, 1080, 60, 1500],
        )
        .numbers(
            0,
            Query::FbcSessions,
            &[1, 99, 0, 2, 5, 3840, 2160, 1920, 1080, 60, 16],
        );
    assert_eq!(
        rows(&driver, Query::EncoderSessions, sessions::encoder_row),
        ["    0       4       1234    HEVC    1920    1080      60        1500"]
    );
    assert_eq!(
        rows(&driver, Query::FbcSessions, sessions::capture_row),
        [
            "    0         1        99         0      CUDA   Enabled    Disabled      Blocking    3840    2160  1920  1080        60            16"
        ]
    );
}

#[test]
fn a_drain_state_is_that_of_a_place_on_the_bus() {
    let driver = one().system(SystemQuery::DrainState(0, 6, 0), Ok(Value::number(0)));
    assert_eq!(
        typed("drain -q -p 0000:06:00.0", &driver),
        (
            "The current drain state of GPU 00000000:06:00.0 is: not draining.\n".to_owned(),
            0
        )
    );
    assert_eq!(
        typed("drain -q -p 0000:99:00.0", &driver),
        ("Failed to query the GPU drain state.\n".to_owned(), 255)
    );
    assert_eq!(
        typed("drain -q", &driver),
        ("Must specify -p with this option.\n".to_owned(), 2)
    );
    assert_eq!(typed("drain -q -p x", &driver).1, 2);
}

#[test]
fn what_a_gpu_can_not_do_is_told() {
    for (line, expected, code) in [
        (
            "power-profiles -l",
            "Workload Power Profiles feature is not supported on this device.\n",
            3,
        ),
        (
            "power-smoothing -ppd",
            "Power Smoothing is not supported on this device.\n",
            0,
        ),
        ("vgpu", "No supported devices in vGPU mode\n", 0),
        ("vgpu -s", "No supported devices in vGPU mode\n", 0),
        ("vgpu -i 9", "No devices were found\n", 6),
    ] {
        assert_eq!(typed(line, &one()), (expected.to_owned(), code), "{line}");
    }
    let host = one().answer(Subject::gpu(0), Query::HostVgpuMode, Ok(Value::number(1)));
    assert_eq!(typed("vgpu -s", &host).1, 3);
    let streaming = one().numbers(0, Query::GpmStreaming, &[0]);
    assert_eq!(
        typed("gpm -g", &streaming).0,
        "GPM stream state: DISABLED\n"
    );
}

#[test]
fn every_subcommand_explains_itself_and_knows_no_other_switch() {
    for subcommand in super::SUBCOMMANDS {
        let name = subcommand.form.name;
        let (help, code) = typed(&format!("{name} -h"), &one());
        assert!(
            help.contains("[-h | --help]:") && code == 0,
            "{name}: {help}"
        );
        let (text, code) = typed(&format!("{name} --bogus"), &one());
        let monitor = ["daemon", "dmon", "pmon", "replay"].contains(&name);
        assert!(
            text.starts_with("Option \"--bogus\" is not recognized.\n"),
            "{name}: {text}"
        );
        assert_eq!(code, if monitor { 0 } else { 2 }, "{name}");
    }
}

#[test]
fn what_changes_a_gpu_is_refused() {
    for line in [
        "mig -cgi 19",
        "mig -lgi -dgi",
        "mig -cci",
        "conf-compute -srs 1",
        "pci -cErrCnt",
        "drain -r -p 0000:06:00.0",
        "gpm -s 1",
        "power-smoothing -s 1",
        "power-profiles -sr 3",
        "boost-slider --vboost 1",
        "compute-policy --set-timeslice 2",
        "clocks -som 1",
        "vgpu -shm 1",
    ] {
        let (text, code) = typed(line, &one());
        assert_eq!(code, 3, "{line}");
        assert!(
            text.contains("changes the GPU, which gpumon never does"),
            "{line}: {text}"
        );
        assert_eq!(text.lines().count(), 1, "{line}");
    }
    assert_eq!(
        typed("mig -cgi 19", &one()).0,
        "gpumon: 'mig -cgi' changes the GPU, which gpumon never does; use NVIDIA's own nvidia-smi for it\n"
    );
}

#[test]
fn what_nvml_does_not_tell_is_refused() {
    for line in [
        "base-clocks",
        "boost-slider -l",
        "compute-policy -l",
        "clocks --sync-boost-list",
        "prm -l",
        "power-hint -l",
    ] {
        let (text, code) = typed(line, &one());
        assert_eq!(code, 3, "{line}");
        assert!(
            text.starts_with("gpumon: NVML does not tell what '"),
            "{line}: {text}"
        );
    }
}
