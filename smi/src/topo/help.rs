//! The text of `topo -h`.

/// The explanation, and how it is typed.
pub(super) const HELP: &str = "
    topo -- Shows how the devices of this machine are connected.

    Usage: nvidia-smi topo [options]

    Options include:
    [-m | --matrix]: Matrix of what connects GPUs and network cards: NVLink, else PCIe.
    [-mp | --matrix_pci]: The same matrix with PCIe alone.
    [-i | --id]: GPUs by index, PCI bus ID, UUID or serial number, separated
                 by commas.
                 Goes with -n, -p, -C, -M and -gnid.
    [-c | --cpu]: The GPUs that are near the CPU of this number.
    [-n | --nearest_gpus]: The GPUs that are no farther than this from a GPU:
                   0 = a single PCIe switch on a dual GPU board
                   1 = a single PCIe switch
                   2 = multiple PCIe switches
                   3 = a PCIe host bridge
                   4 = an on-CPU interconnect link between PCIe host bridges
                   5 = an SMP interconnect link between NUMA nodes
                 Needs -i with one GPU.
    [-p | --gpu_path]: The shortest way between two GPUs.
                 Needs -i with two GPUs.
    [-p2p | --p2pstatus]:      Whether GPUs reach each other's memory, in this way:
                   r - p2p read
                   w - p2p write
                   n - p2p over NVLink
                   a - p2p atomics
                   p - p2p over PCIe

    [-C | --get-numa-id-of-nearby-cpu]: The NUMA node of the CPUs near a GPU.
                 Needs -i with one GPU.
    [-M | --get-numa-id-of-nearby-mem]: The NUMA node of the memory near a GPU.
                 Needs -i with one GPU.
    [-gnid | --gpu-numa-id]: The NUMA node that a GPU's own memory is.
                 Needs -i with one GPU.
    [-h | --help]: Show this help
    [-nvme | --matrix_nvme]: Matrix of what connects GPUs and NVMe disks.


";
