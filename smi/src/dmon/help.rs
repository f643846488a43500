//! The text of `dmon -h`.

use crate::monitor;

pub(super) const ABOUT: &str = "
    Prints a line per GPU and interval, which scrolls by. Which columns
    there are is chosen by group, as the width of the terminal allows.
    At most 16 GPUs are watched; without a list of GPUs, the first 16.
    A reading that a GPU does not give is shown as '-'. A GPU in MIG mode
    gives no utilization of itself, its memory and its video engines.
";

pub(super) const USAGE: &str = concat!(
    "
    Usage: nvidia-smi dmon [options]

    Options include:
    [-i | --id]:          GPUs by index, PCI bus ID, UUID or serial number, separated by commas
    [-d | --delay]:       Seconds between two lines of a GPU, 1 to 600 [default=1sec]
    [-c | --count]:       Stop after so many lines of each GPU
    [-s | --select]:      Groups of columns [default=puc]
                          Any of these letters, in the order in which they are to stand:
",
    monitor::letters!(),
    "    [N/A | --gpm-metrics]: Metrics of GPM by number, separated by commas without spaces
                           The metrics are:
                               Graphics Activity           = 1
                               SM Activity                 = 2
                               SM Occupancy                = 3
                               Integer Activity            = 4
                               Tensor Activity             = 5
                               DFMA Tensor Activity        = 6
                               HMMA Tensor Activity        = 7
                               IMMA Tensor Activity        = 9
                               DRAM Activity               = 10
                               FP64 Activity               = 11
                               FP32 Activity               = 12
                               FP16 Activity               = 13
                               PCIe TX                     = 20
                               PCIe RX                     = 21
                               NVDEC 0-7 Activity          = 30-37
                               NVJPG 0-7 Activity          = 40-47
                               NVOFA 0 Activity            = 50
                               NVLink Total RX             = 60
                               NVLink Total TX             = 61
                               NVLink L0-17 RX             = 62,64,66,...,96
                               NVLink L0-17 TX             = 63,65,67,...,97
                               C2C TOTAL TX                = 100
                               C2C TOTAL RX                = 101
                               C2C DATA TX                 = 102
                               C2C DATA RX                 = 103
                               C2C LINK0-13 TOTAL TX       = 104,108,112,...,156
                               C2C LINK0-13 TOTAL RX       = 105,109,113,...,157
                               C2C LINK0-13 DATA TX        = 106,110,114,...,158
                               C2C LINK0-13 DATA RX        = 107,111,115,...,159
                               HOSTMEM CACHE HIT           = 160
                               HOSTMEM CACHE MISS          = 161
                               PEERMEM CACHE HIT           = 162
                               PEERMEM CACHE MISS          = 163
                               DRAM CACHE HIT              = 164
                               DRAM CACHE MISS             = 165
                               NVENC 0-3 Activity          = 166-169
                               GR0-7 CTXSW CYCLES ELAPSED  = 170,175,180,...,205
                               GR0-7 CTXSW CYCLES ACTIVE   = 171,176,181,...,206
                               GR0-7 CTXSW REQUESTS        = 172,177,182,...,207
                               GR0-7 CTXSW ACTIVE AVERAGE  = 173,178,183,...,208
                               GR0-7 CTXSW ACTIVE PERCENT  = 174,179,184,...,209

    [N/A | --gpm-options]: whose GPM metrics are shown:
                              d  - of the GPUs
                              m  - of their MIG devices
                              dm - of both
                              md - of both
    [-o | --options]:     What stands in front of each line:
                              D - the date (YYYYMMDD)
                              T - the time (HH:MM:SS)
    [-f | --filename]:    Write into this file instead of to standard output
    [-h | --help]:        Show this help
    [N/A | --format]:     How lines are written, separated by commas:
                               csv - values separated by commas
                               nounit - without the line of units
                               noheader - without the line of names


"
);
