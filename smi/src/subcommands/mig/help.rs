//! The text of `mig -h`.

/// The explanation, and how it is typed.
pub(super) const HELP: &str = "
    mig -- Shows how GPUs are, and can be, divided.

    Usage: nvidia-smi mig [options]

    Options include:
    [-h | --help]: Show this help.
    [-i | --id]: GPUs by index, PCI bus ID, UUID or serial number.
                 Several are separated by commas.
    [-gi | --gpu-instance-id]: GPU instances by ID.
                               Several are separated by commas.
    [-ci | --compute-instance-id]: Compute instances by ID.
                                   Several are separated by commas.
    [-lgip | --list-gpu-instance-profiles]: The kinds of GPU instances that there can be.
                                            -i limits it to some GPUs.
    [-lgipp | --list-gpu-instance-possible-placements]: Where GPU instances of each kind fit,
                                                        written as {Start}:Size.
                                                        -i limits it to some GPUs.
    [-C | --default-compute-instance]: With -cgi, makes a compute instance that takes all of
                                       each GPU instance; left to NVIDIA's tool.
    [-cgi | --create-gpu-instance]: Makes GPU instances; left to NVIDIA's tool.
    [-dgi | --destroy-gpu-instance]: Destroys GPU instances; left to NVIDIA's tool.
    [-lgi | --list-gpu-instances]: The GPU instances that there are.
                                   -i limits it to some GPUs.
    [-lcip | --list-compute-instance-profiles]: The kinds of compute instances that there can be.
                                                -i and -gi limit it to some GPUs and
                                                GPU instances.
    [-lcipp | --list-compute-instance-possible-placements]: Where compute instances of each kind fit,
                                                            written as {Start}:Size.
                                                            -i and -gi limit it to some GPUs and
                                                            GPU instances.
    [-cci | --create-compute-instance]: Makes compute instances; left to NVIDIA's tool.
    [-dci | --destroy-compute-instance]: Destroys compute instances; left to NVIDIA's tool.
    [-lci | --list-compute-instances]: The compute instances that there are.
                                       -i and -gi limit it to some GPUs and
                                       GPU instances.


";
