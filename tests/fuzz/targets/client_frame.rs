//! Fuzzes the parser of frames that a client sends over the stream.

#![no_main]

use gpumon_server::frame::ClientFrame;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(frame) = serde_json::from_str::<ClientFrame>(text) {
        let again = serde_json::to_string(&frame).expect("a frame is written");
        assert_eq!(
            serde_json::from_str::<ClientFrame>(&again).expect("what was written is read"),
            frame
        );
    }
});
