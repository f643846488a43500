//! Xids of the engines beside the multiprocessors: copy, video, pictures, display.

use super::{Entry, fault, program};
use crate::model::Severity::{Notice, Warning};

const AGAIN: &str = "Start the program again; if it comes back with other programs too, ask the vendor.";

const DISPLAY: &str =
    "Restart what draws on the screen; if it comes back, update the driver and check cable and screen.";

pub(super) const TABLE: &[Entry] = &[
    program(
        &[39, 40, 41, 70, 71, 72, 75, 76, 77, 85, 126, 127, 128, 129, 130, 131, 132, 133, 134, 135],
        Warning,
        "A copy engine failed while it moved a program's data.",
        AGAIN,
    ),
    program(
        &[20, 21, 22, 27, 28, 29, 34, 35, 36, 42, 60],
        Warning,
        "The video processor failed at a program's work.",
        AGAIN,
    ),
    program(&[47, 65, 73, 142], Warning, "A video encoder failed at a program's work.", AGAIN),
    program(
        &[68, 83, 84, 88, 89, 96, 97, 98],
        Warning,
        "A video decoder failed at a program's work, often because the video is damaged.",
        AGAIN,
    ),
    program(
        &[82, 99, 100, 101, 102, 103, 104, 105],
        Warning,
        "A JPEG decoder failed at a program's work, often because the picture is damaged.",
        AGAIN,
    ),
    program(&[86, 139], Warning, "The optical flow engine failed at a program's work.", AGAIN),
    program(&[138, 152, 153], Warning, "The deep learning accelerator failed at a program's work.", AGAIN),
    fault(&[16, 19, 56, 112, 114, 115, 116, 117, 118], Warning, "The display engine failed.", DISPLAY),
    fault(&[81], Warning, "The part of the GPU that serves text consoles failed.", DISPLAY),
    fault(&[113], Notice, "A screen's DisplayPort link could not be set up.", "Check the cable and the screen."),
    fault(
        &[78],
        Warning,
        "A virtual GPU could not be started.",
        "Check that the driver versions of host and guest fit each other, and update them.",
    ),
];
