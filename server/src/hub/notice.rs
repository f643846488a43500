//! An event or a state on its way to the clients.

use std::sync::Arc;

use gpumon_probe::model::{Event, FiringAlert, GpuDetails};

use super::{Hub, encode};
use crate::{frame::ServerFrame, stream::TextFrame, view::View};

/// The whole, and its subject, for those who may not see all of it.
#[derive(Debug, Clone)]
pub(crate) struct Notice {
    pub(super) text: TextFrame,
    pub(super) about: About,
}

#[derive(Debug, Clone)]
pub(super) enum About {
    Event(Arc<Event>),
    Details(Arc<GpuDetails>),
    /// What fires now.
    Alerts(Arc<Vec<FiringAlert>>),
    /// All that is known: a hello.
    Everything,
    /// Nothing that is anybody's.
    Other,
}

/// The frame that says what fires now.
pub(super) fn alerts(firing: Vec<FiringAlert>) -> TextFrame {
    encode(&ServerFrame::Alerts { firing })
}

impl From<TextFrame> for Notice {
    fn from(text: TextFrame) -> Self {
        Self { text, about: About::Other }
    }
}

impl Notice {
    pub(super) fn of_alerts(firing: Vec<FiringAlert>) -> Self {
        Self { text: alerts(firing.clone()), about: About::Alerts(Arc::new(firing)) }
    }

    /// As a client of this view gets it, if at all.
    pub(crate) fn text(self, view: &View, hub: &Hub) -> Option<TextFrame> {
        match self.about {
            About::Event(event) if !view.is_whole() => {
                view.event(&event).map(|event| encode(&ServerFrame::Event(event)))
            }
            About::Details(details) if !view.has_others() => {
                Some(encode(&ServerFrame::Details(view.details((*details).clone()))))
            }
            About::Alerts(firing) if !view.is_whole() => Some(alerts(view.alerts((*firing).clone()))),
            About::Everything if !view.is_whole() => Some(TextFrame::new(&hub.hello(view))),
            _ => Some(self.text),
        }
    }
}
