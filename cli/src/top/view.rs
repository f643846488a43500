//! Views that can be shown in the middle of the screen.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    Charts,
    Activity,
    Links,
    Mig,
    Host,
    Events,
}

impl View {
    pub(super) const ALL: [Self; 6] = [
        Self::Charts,
        Self::Activity,
        Self::Links,
        Self::Mig,
        Self::Host,
        Self::Events,
    ];

    pub(super) fn id(self) -> &'static str {
        match self {
            Self::Charts => "charts",
            Self::Activity => "activity",
            Self::Links => "links",
            Self::Mig => "mig",
            Self::Host => "host",
            Self::Events => "events",
        }
    }

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Charts => "Charts",
            Self::Activity => "Activity",
            Self::Links => "Links",
            Self::Mig => "MIG",
            Self::Host => "Host",
            Self::Events => "Events",
        }
    }

    pub(super) fn step(self, forward: bool) -> Self {
        let at = Self::ALL.iter().position(|view| *view == self).unwrap_or(0);
        Self::ALL[(at + if forward { 1 } else { Self::ALL.len() - 1 }) % Self::ALL.len()]
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum ScreenSplit {
    /// The selected view, with the list of processes below it.
    #[default]
    Both,
    View,
    Processes,
}

impl ScreenSplit {
    pub(super) fn next(self) -> Self {
        match self {
            Self::Both => Self::View,
            Self::View => Self::Processes,
            Self::Processes => Self::Both,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_cycle_in_both_directions() {
        assert_eq!(View::Events.step(true), View::Charts);
        assert_eq!(View::Charts.step(false), View::Events);
        assert_eq!(ScreenSplit::Both.next().next().next(), ScreenSplit::Both);
    }
}
