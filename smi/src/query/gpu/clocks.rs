//! Fields for the current, configured, and supported clocks.

use gpumon_probe::vendor::nvml::query::Query as Q;

use super::super::cell::as_number;
use super::super::field::{Section, field, fields, with_title};

// The `nvmlClockType_t` values.
const GRAPHICS: u32 = 0;
const SM: u32 = 1;
const MEMORY: u32 = 2;
const VIDEO: u32 = 3;

pub(super) const CLOCK_SECTIONS: &[Section] = &[
    fields(&[
        field(
            "clocks.current.graphics or clocks.gr [MHz]",
            Q::Clock(GRAPHICS),
            as_number::<0>,
            "The current clock of the graphics engine, in MHz.",
        ),
        field(
            "clocks.current.sm or clocks.sm [MHz]",
            Q::Clock(SM),
            as_number::<0>,
            "The current clock of the streaming multiprocessors (SM), in MHz.",
        ),
        field(
            "clocks.current.memory or clocks.mem [MHz]",
            Q::Clock(MEMORY),
            as_number::<0>,
            "The current clock of the memory, in MHz.",
        ),
        field(
            "clocks.current.video or clocks.video [MHz]",
            Q::Clock(VIDEO),
            as_number::<0>,
            "The current clock of the video encoder and decoder, in MHz.",
        ),
    ]),
    with_title(
        "clocks.applications",
        "The requested clocks for programs, which the option [-ac | --applications-clocks] sets.",
        &[
            field(
                "clocks.applications.graphics or clocks.applications.gr [MHz]",
                Q::ApplicationsClock(GRAPHICS),
                as_number::<0>,
                "The requested clock of the graphics engine, in MHz.",
            ),
            field(
                "clocks.applications.memory or clocks.applications.mem [MHz]",
                Q::ApplicationsClock(MEMORY),
                as_number::<0>,
                "The requested clock of the memory, in MHz.",
            ),
        ],
    ),
    with_title(
        "clocks.default_applications",
        "The clocks for programs if no others were requested. The option [-ac | \
         --applications-clocks] requests others, and [-rac | --reset-applications-clocks] restores \
         the defaults.",
        &[
            field(
                "clocks.default_applications.graphics or clocks.default_applications.gr [MHz]",
                Q::DefaultApplicationsClock(GRAPHICS),
                as_number::<0>,
                "The default clock of the graphics engine, in MHz.",
            ),
            field(
                "clocks.default_applications.memory or clocks.default_applications.mem [MHz]",
                Q::DefaultApplicationsClock(MEMORY),
                as_number::<0>,
                "The default clock of the memory, in MHz.",
            ),
        ],
    ),
    with_title(
        "clocks.max",
        "The maximum clocks of the GPU.",
        &[
            field(
                "clocks.max.graphics or clocks.max.gr [MHz]",
                Q::MaxClock(GRAPHICS),
                as_number::<0>,
                "The maximum clock of the graphics engine, in MHz.",
            ),
            // In nvidia-smi's help, this field is also listed twice.
            field(
                "clocks.max.sm or clocks.max.sm [MHz]",
                Q::MaxClock(SM),
                as_number::<0>,
                "The maximum clock of the streaming multiprocessors (SM), in MHz.",
            ),
            field(
                "clocks.max.memory or clocks.max.mem [MHz]",
                Q::MaxClock(MEMORY),
                as_number::<0>,
                "The maximum clock of the memory, in MHz.",
            ),
        ],
    ),
];
