//! An event or a state on its way to the clients.

use std::sync::Arc;

use gpumon_probe::model::{Event, GpuDetails};

use super::{Hub, encode};
use crate::{frame::ServerFrame, stream::TextFrame, view::View};

/// As most clients get it, and what it is about, for those who may not know all of it.
#[derive(Debug, Clone)]
pub(crate) struct Notice {
    pub(super) text: TextFrame,
    pub(super) about: About,
}

#[derive(Debug, Clone)]
pub(super) enum About {
    Event(Arc<Event>),
    Details(Arc<GpuDetails>),
    /// All that is known: a hello.
    Everything,
    /// Nothing that is anybody's.
    Other,
}

impl From<TextFrame> for Notice {
    fn from(text: TextFrame) -> Self {
        Self { text, about: About::Other }
    }
}

impl Notice {
    /// As a client of this view gets it, if at all.
    pub(crate) fn text(self, view: &View, hub: &Hub) -> Option<TextFrame> {
        match self.about {
            About::Event(event) if !view.has_all_events() => {
                view.event(&event).map(|event| encode(&ServerFrame::Event(event)))
            }
            About::Details(details) if !view.has_all_events() => {
                Some(encode(&ServerFrame::Details(view.details((*details).clone()))))
            }
            About::Everything if !view.has_all_events() => Some(TextFrame::new(&hub.hello(view))),
            _ => Some(self.text),
        }
    }
}
