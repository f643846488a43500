//! Which questions are asked, how often, and at which time.

use std::{
    collections::HashSet,
    sync::{Condvar, Mutex},
    time::Duration,
};

use gpumon_probe::question::{Answer, Ask, Code, Question, Subject, SystemQuestion};

use super::{
    boards::{driver, hopper},
    context,
};
use crate::smi::{
    log::{parse_sections, text, xml},
    script::Script,
};

/// Remembers what it was asked.
struct Listener {
    script: Script,
    heard: Mutex<Vec<Question>>,
}

impl Listener {
    fn new() -> Self {
        Self { script: hopper(driver(), 0), heard: Mutex::default() }
    }

    fn heard(self) -> Vec<Question> {
        self.heard.into_inner().unwrap()
    }
}

impl Ask for Listener {
    fn system(&self, question: SystemQuestion) -> Answer {
        Ask::system(&self.script, question)
    }

    fn about(&self, subject: Subject, question: Question) -> Answer {
        self.heard.lock().unwrap().push(question);
        self.script.about(subject, question)
    }

    fn gpm(&self, _subject: Subject, _metrics: &[u32]) -> Answer {
        Err(Code::NOT_SUPPORTED)
    }
}

#[test]
fn nothing_is_asked_whose_answer_is_not_shown() {
    let listener = Listener::new();
    text(&context(&listener, &[0]), Some(&parse_sections("COMPUTE").unwrap()));
    let heard: HashSet<_> = listener.heard().into_iter().collect();
    assert_eq!(heard, HashSet::from([Question::VirtualizationMode, Question::ComputeMode, Question::BusId]));

    let listener = Listener::new();
    text(&context(&listener, &[0]), None);
    let heard = listener.heard();
    assert!(!heard.contains(&Question::SupportedMemoryClocks) && !heard.contains(&Question::Samples(0)));
}

#[test]
fn nothing_is_asked_twice_within_a_block() {
    let listener = Listener::new();
    xml(&context(&listener, &[0]), false);
    let heard = listener.heard();
    assert!(heard.len() > 100, "{}", heard.len());
    let mut once = HashSet::new();
    let twice: Vec<_> = heard.iter().filter(|question| !once.insert(**question)).collect();
    // Of the mode, the head wants to know too.
    assert_eq!(twice, [&Question::VirtualizationMode]);
}

/// Answers how much goes over the bus once it has been asked for both directions.
struct Pair {
    script: Script,
    asked: Mutex<u32>,
    both: Condvar,
}

impl Ask for Pair {
    fn system(&self, question: SystemQuestion) -> Answer {
        Ask::system(&self.script, question)
    }

    fn about(&self, subject: Subject, question: Question) -> Answer {
        if matches!(question, Question::PcieThroughput(_)) {
            let mut asked = self.asked.lock().unwrap();
            *asked += 1;
            self.both.notify_all();
            let second = self.both.wait_timeout_while(asked, Duration::from_secs(20), |asked| *asked < 2);
            if second.unwrap().1.timed_out() {
                return Err(Code::UNKNOWN);
            }
        }
        self.script.about(subject, question)
    }

    fn gpm(&self, _subject: Subject, _metrics: &[u32]) -> Answer {
        Err(Code::NOT_SUPPORTED)
    }
}

#[test]
fn questions_that_wait_are_asked_at_the_same_time() {
    let pair = Pair { script: hopper(driver(), 0), asked: Mutex::new(0), both: Condvar::new() };
    let log = text(&context(&pair, &[0]), None);
    assert!(log.contains("        Tx Throughput                                  : 1067 KB/s\n"), "{log}");
}
