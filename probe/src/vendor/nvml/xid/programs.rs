//! Xids that a program's mistake or end brings about.

use super::{Entry, program};
use crate::model::Severity::{Notice, Warning};

/// Where to look first when a program used the GPU wrongly.
const DEBUG: &str = "Run the program under `compute-sanitizer` or `cuda-gdb` to find the line that did it; if other \
                     programs fail alike, test the GPU.";

pub(super) const TABLE: &[Entry] = &[
    program(
        &[1, 2, 3, 6, 7, 11, 25],
        Warning,
        "The GPU was sent commands that make no sense.",
        "Start the program again; if it comes back, suspect the program or the driver, then the PCIe link.",
    ),
    program(
        &[8],
        Warning,
        "The GPU stopped working on a program's commands.",
        "Start the program again; if it comes back with other programs too, ask the vendor.",
    ),
    program(
        &[13],
        Warning,
        "A kernel did something illegal, most often an access past the end of an array, and its program was ended.",
        DEBUG,
    ),
    program(
        &[14],
        Notice,
        "A program injected this error to test how errors are handled.",
        "Nothing needs to be done.",
    ),
    program(&[31], Warning, "A program used an address in GPU memory that it does not own, and was ended.", DEBUG),
    program(
        &[43],
        Notice,
        "A program's work on the GPU was stopped because of an error of its own; the GPU is well.",
        "Look at the program's own output and at the Xids before this one.",
    ),
    program(
        &[45],
        Notice,
        "The driver cleared away the work of a program that was ended or had failed.",
        "Nothing needs to be done if the program was stopped on purpose; else look at the Xids before this one.",
    ),
    program(
        &[69],
        Warning,
        "A program gave the compute or graphics engine a command that it does not know.",
        "Check that the program was built for this GPU and driver, and run it under `compute-sanitizer`.",
    ),
    program(
        &[80],
        Warning,
        "Commands for the GPU arrived corrupted, as their checksum tells.",
        "Start the program again; if it comes back, suspect the PCIe link or main memory.",
    ),
    program(
        &[106, 107],
        Notice,
        "A test message came from the machine's management controller.",
        "Nothing needs to be done.",
    ),
    program(&[137], Warning, "A program reached over NVLink for memory of another GPU that it may not use.", DEBUG),
    program(
        &[141],
        Warning,
        "The short way from CUDA to the GPU failed for a program.",
        "Start the program again; if it comes back, update the driver.",
    ),
];
