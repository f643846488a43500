//! The text of `pmon -h`.

pub(super) const ABOUT: &str = "
    Prints a line per process, GPU and interval, which scrolls by: every
    process that computes or draws on a GPU. Which columns there are is
    chosen by group, as the width of the terminal allows. At most 4 GPUs
    are watched; without a list of GPUs, the first 4. A reading that the
    driver does not give is shown as '-': on a GPU in MIG mode it gives no
    utilization of processes.
";

pub(super) const USAGE: &str = "
    Usage: nvidia-smi pmon [options]

    Options include:
    [-i | --id]:          GPUs by index, PCI bus ID, UUID or serial number, separated by commas
    [-d | --delay]:       Seconds between two lines of a process, 1 to 10 [default=1sec, max=10secs]
    [-c | --count]:       Stop after so many rounds
    [-s | --select]:      Groups of columns [default=u]
                          Any of these letters, in the order in which they are to stand:
                              u - Utilization
                              m - Memory in use: framebuffer, protected
    [-o | --options]:     What stands in front of each line:
                              D - the date (YYYYMMDD)
                              T - the time (HH:MM:SS)
    [-f | --filename]:    Write into this file instead of to standard output
    [-h | --help]:        Show this help


";
