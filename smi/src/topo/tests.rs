//! Tests of `topo` against the output of nvidia-smi 580 for two H200 GPUs, and for boards with
//! network cards.

use std::{fs, os::unix::fs::symlink, path::Path};

use gpumon_probe::vendor::nvml::query::{Query, SystemQuery, Value};

use super::{
    Topology,
    matrix::{self, Matrix},
    sysfs::Sysfs,
};
use crate::{subcommand::tests::run_line, tests::scripted::ScriptedBackend};

fn two_h200s() -> ScriptedBackend {
    let mut driver = ScriptedBackend::default()
        .with_system_answer(SystemQuery::DeviceCount, Ok(Value::from_number(2)))
        .with_system_answer(SystemQuery::GpusNearCpu(5), Ok(Value::Numbers(vec![1, 0])));
    for (gpu, other) in [(0, 1), (1, 0)] {
        driver = driver
            .with_text(
                gpu,
                Query::BusId,
                ["00000000:17:00.0", "00000000:97:00.0"][gpu as usize],
            )
            .with_numbers(gpu, Query::Field(91, 0), &[18])
            .with_numbers(gpu, Query::Field(147, 0), &[18])
            .with_numbers(gpu, Query::CpuAffinity, &[0xFFFF_FFFF])
            .with_numbers(gpu, Query::MemoryAffinity, &[1])
            .with_numbers(gpu, Query::CommonAncestor(other), &[30])
            .with_numbers(gpu, Query::NearestGpus(20), &[])
            .with_numbers(gpu, Query::NearestGpus(30), &[i128::from(other)])
            .with_numbers(gpu, Query::P2pStatus(other, 0), &[0])
            .with_numbers(gpu, Query::P2pStatus(other, 4), &[5]);
        for link in 0..18 {
            driver = driver.with_text(gpu, Query::NvLinkRemoteBusId(link), "FFFFFFFF:FF:FF.0");
        }
    }
    driver
}

fn render_matrix(driver: &ScriptedBackend, root: &Path, matrix: Matrix) -> String {
    let sysfs = Sysfs::with_root(root);
    matrix::render_matrix(
        &Topology {
            driver,
            sysfs: &sysfs,
        },
        &[0, 1],
        matrix,
    )
}

/// Creates a `/sys` directory for a machine with two sockets. The first socket has a GPU and two
/// network cards, and the second has a GPU and a disk.
fn create_machine() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let place = |link: &str, device: &str, node: u32| {
        let device = root.path().join("devices").join(device);
        fs::create_dir_all(&device).unwrap();
        fs::write(device.join("numa_node"), format!("{node}\n")).unwrap();
        let link = root.path().join(link);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(device, link).unwrap();
    };
    place(
        "bus/pci/devices/0000:17:00.0",
        "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0",
        0,
    );
    place(
        "bus/pci/devices/0000:97:00.0",
        "pci0000:95/0000:95:01.0/0000:97:00.0",
        1,
    );
    place(
        "class/infiniband/mlx5_10/device",
        "pci0000:15/0000:15:02.0/0000:19:00.0",
        0,
    );
    place(
        "class/infiniband/mlx5_2/device",
        "pci0000:15/0000:15:01.0/0000:16:01.0/0000:18:00.0",
        0,
    );
    place(
        "class/nvme/nvme0/device",
        "pci0000:95/0000:95:02.0/0000:98:00.0",
        1,
    );
    for (node, cpus) in [("node0", "0-15,32-47\n"), ("node1", "16-31,48-63\n")] {
        let node = root.path().join("devices/system/node").join(node);
        fs::create_dir_all(&node).unwrap();
        fs::write(node.join("cpulist"), cpus).unwrap();
    }
    root
}

const LEGEND: &str = "
Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)
  NODE = Connection traversing PCIe as well as the interconnect between PCIe Host Bridges within a NUMA node
  PHB  = Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)
  PXB  = Connection traversing multiple PCIe bridges (without traversing the PCIe Host Bridge)
  PIX  = Connection traversing at most a single PCIe bridge
";

#[test]
fn nvlinks_through_switches_are_counted() {
    let nowhere = tempfile::tempdir().unwrap();
    let expected = format!(
        "\t\u{1b}[4mGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\u{1b}[0m\n\
         GPU0\t X \tNV18\t0-31\t0\t\tN/A\n\
         GPU1\tNV18\t X \t0-31\t0\t\tN/A\n\
         {LEGEND}  NV#  = Connection traversing a bonded set of # NVLinks\n"
    );
    assert_eq!(
        render_matrix(&two_h200s(), nowhere.path(), Matrix::Links),
        expected
    );
    let pci = expected.replace("NV18", "PHB").replace(
        "  NV#  = Connection traversing a bonded set of # NVLinks\n",
        "",
    );
    assert_eq!(
        render_matrix(&two_h200s(), nowhere.path(), Matrix::Pci),
        pci
    );
}

#[test]
fn links_between_two_gpus_are_counted() {
    let nowhere = tempfile::tempdir().unwrap();
    let driver = (0..4).fold(two_h200s(), |driver, link| {
        let driver = driver.with_text(0, Query::NvLinkRemoteBusId(link), "00000000:97:00.0");
        driver.with_numbers(0, Query::Field(165, link), &[1])
    });
    assert!(render_matrix(&driver, nowhere.path(), Matrix::Links).contains("GPU0\t X \tNV4\t"));
    let driver = driver.with_numbers(0, Query::Field(165, 2), &[0]);
    assert!(
        render_matrix(&driver, nowhere.path(), Matrix::Links).contains("GPU0\t X \tNV3\t"),
        "one is down"
    );
}

#[test]
fn gpu_with_fewer_switch_links_limits_pair() {
    let nowhere = tempfile::tempdir().unwrap();
    let driver = two_h200s().with_numbers(1, Query::Field(147, 0), &[17]);
    let text = render_matrix(&driver, nowhere.path(), Matrix::Links);
    assert!(
        text.contains("GPU0\t X \tNV17\t") && text.contains("GPU1\tNV17\t X \t"),
        "{text}"
    );
}

#[test]
fn network_cards_have_rows_and_names() {
    let machine = create_machine();
    assert_eq!(
        render_matrix(&two_h200s(), machine.path(), Matrix::Pci),
        format!(
            "\t\u{1b}[4mGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\u{1b}[0m\n\
             GPU0\t X \tPHB\tPIX\tPHB\t0-31\t0\t\tN/A\n\
             GPU1\tPHB\t X \tSYS\tSYS\t0-31\t0\t\tN/A\n\
             NIC0\tPIX\tSYS\t X \tPHB\t\t\t\t\n\
             NIC1\tPHB\tSYS\tPHB\t X \t\t\t\t\n\
             {LEGEND}\nNIC Legend:\n\n  NIC0: mlx5_2\n  NIC1: mlx5_10\n\n"
        )
    );
}

#[test]
fn disks_have_a_separate_matrix() {
    let machine = create_machine();
    let text = render_matrix(&two_h200s(), machine.path(), Matrix::Disks);
    assert!(
        text.starts_with("\t\u{1b}[4mNVMe0\u{1b}[0m\nGPU0\tSYS\t\nGPU1\tPHB\t\n\nLegend:\n"),
        "{text}"
    );
    let nowhere = tempfile::tempdir().unwrap();
    let text = render_matrix(&two_h200s(), nowhere.path(), Matrix::Disks);
    assert_eq!(
        text,
        format!("\t\u{1b}[4m\u{1b}[0m\nGPU0\t\nGPU1\t\n{LEGEND}")
    );
}

#[test]
fn numa_affinity_is_derived_from_cpu_affinity() {
    let machine = create_machine();
    let sysfs = Sysfs::with_root(machine.path());
    let driver = two_h200s().with_numbers(1, Query::CpuAffinity, &[0xFFFF_0000]);
    let topology = Topology {
        driver: &driver,
        sysfs: &sysfs,
    };
    assert_eq!(topology.format_cpu_nodes(0), "0-1");
    assert_eq!(topology.format_cpu_nodes(1), "1");
}

#[test]
fn paths_are_described_in_words() {
    for (line, expected) in [
        (
            "-c 5",
            "The GPUs that have an affinity with CPU 5 are:\n0, 1\n\n",
        ),
        (
            "-c 99999",
            "No GPUs were found to have an affinity with CPU 99999.\n\n",
        ),
        (
            "-c -1",
            "No GPUs were found to have an affinity with CPU -1.\n\n",
        ),
        (
            "-n 2 -i 0",
            "Device 0 is not connected to other devices by way of potentially multiple PCIe \
             switches.\n\n",
        ),
        (
            "-n 3 -i 1",
            "Device 1 is connected by the same PCIe host bridge to device(s): 0\n\n",
        ),
        (
            "-p -i 1,0",
            "Device 0 is connected to device 1 by way of a PCIe host bridge.\n\n",
        ),
        ("-M -i 0", "NUMA IDs of closest memory: 0\n"),
        ("-gnid -i 0", "N/A\n"),
    ] {
        assert_eq!(
            run_line(&format!("topo {line}"), &two_h200s()),
            (expected.to_owned(), 0),
            "{line}"
        );
    }
}

#[test]
fn p2p_table_shows_reachability() {
    let legend = "\nLegend:\n\n  X    = Self\n  OK   = Status Ok\n  CNS  = Chipset not \
                  supported\n  GNS  = GPU not supported\n  TNS  = Topology not supported\n  NS   = \
                  Not supported\n  U    = Unknown\n";
    for (letter, word) in [("r", "OK"), ("p", "NS"), ("n", "U")] {
        let expected = format!(
            " \t\u{1b}[4mGPU0\tGPU1\t\u{1b}[0m\n GPU0\tX\t{word}\t\n GPU1\t{word}\tX\t\n{legend}"
        );
        assert_eq!(
            run_line(&format!("topo -p2p {letter}"), &two_h200s()),
            (expected, 0)
        );
    }
}

#[test]
fn invalid_value_errors_match_nvidia_smi() {
    let only = "The -i command line argument must be used in conjunction with -n or -p.\n\n";
    for (line, expected, code) in [
        ("--bogus", "Option \"--bogus\" is not recognized.\n", 2),
        ("-p2p", "Option \"-p2p\" is missing its value.\n", 2),
        (
            "-p2p z",
            "Invalid p2p capability index specified at the command-line\n",
            2,
        ),
        ("-c x", "Option \"x\" is invalid for \"-c\".\n", 2),
        ("-n 9 -i 0", "Failed to display the nearest GPUs\n\n", 255),
        ("-C -i 9", "No devices were found\n", 6),
        ("-m -i 0", only, 255),
        ("-i 0", only, 255),
        (
            "-C",
            "NUMA ID of nearest CPU must be used in conjunction with the -i argument which must \
             be a single identifier.\n\n",
            2,
        ),
        (
            "-p -i 0,9",
            "Path command line flag must be used in conjection with the -i argument which must be \
             two GPU identifiers.\n\n",
            2,
        ),
    ] {
        assert_eq!(
            run_line(&format!("topo {line}"), &two_h200s()),
            (expected.to_owned(), code),
            "{line}"
        );
    }
    let (text, code) = run_line("topo -i 0 -c 5", &two_h200s());
    assert_eq!(
        text,
        format!("The GPUs that have an affinity with CPU 5 are:\n0, 1\n\n{only}")
    );
    assert_eq!(code, 255);
}
