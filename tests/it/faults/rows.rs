//! The faults, and what a caller must see of each.

use std::time::Duration;

use kubestrata_testkit::{Fault, Moment};

use super::case::Task;
use super::way::Way;

/// A fault, and what it must come to.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) trigger: Trigger,
    /// What reads, writes and watches see over HTTP/1.1, and over HTTP/2.
    expect: [Expect; 2],
}

/// What a read, a write and a watch may see, each separated by `|`.
struct Expect {
    read: &'static str,
    write: &'static str,
    watch: &'static str,
}

/// What happens, and when.
#[derive(Clone, Copy)]
pub(super) enum Trigger {
    /// To the open connections, just before the call.
    Strike(Fault),
    /// To the open connections, so long before the call that the client can have noticed.
    Idle(Fault),
    /// When so many bytes of the request or of its answer have passed. Of a watch it is the next event.
    Arm(Fault, Moment),
    /// The same, where it is the opening of the watch that is harmed.
    ArmOpening(Fault, Moment),
    /// Everything freezes, new connections too, for as long as `OUTAGE` at the scale of the run.
    Outage,
}

impl Row {
    /// Whether this can happen.
    pub(super) fn fits(&self, task: Task, way: Way) -> bool {
        let (Trigger::Arm(fault, moment) | Trigger::ArmOpening(fault, moment)) = self.trigger
        else {
            return true;
        };
        // Frames can be found in the clear only, and a reflector that is live asks for nothing.
        let clear = !matches!(fault, Fault::GoAway { .. }) || way == Way::Http2;
        let asks = task != Task::Reflector || !matches!(moment, Moment::RequestBytes(_));
        clear && asks
    }

    /// What may be seen, separated by `|`.
    pub(super) fn expected(&self, task: Task, way: Way) -> &'static str {
        let expect = &self.expect[usize::from(way.is_http2())];
        match task {
            Task::Read => expect.read,
            Task::Write => expect.write,
            Task::Watch => expect.watch,
            Task::Reflector => "ok",
        }
    }
}

const fn see(read: &'static str, write: &'static str, watch: &'static str) -> Expect {
    Expect { read, write, watch }
}

/// The scale for which times are given here.
pub(super) const SCALE: u32 = 20;
/// At the default deadlines, longer than it takes to notice that a peer is gone.
pub(super) const OUTAGE: Duration = Duration::from_secs(90);
/// Within the second of the TLS records, HTTP/2 frames or chunks that an answer or an event of these tests takes.
const MIDDLE: u64 = 20_000;
/// Within the head of any answer; over HTTP/2 that takes little more than a frame's header.
const HEAD: u64 = 10;
/// One byte and a pause: slower than any deadline bears.
const DROPS: Fault = Fault::Trickle { bytes: 1, every: Duration::from_millis(150) };
const GRACEFUL: Fault = Fault::GoAway { code: 0 };
const INTERNAL_ERROR: Fault = Fault::GoAway { code: 2 };

pub(super) static ROWS: &[Row] = &[
    // What takes longest comes first.
    Row {
        name: "slow loris, head",
        trigger: Trigger::ArmOpening(DROPS, Moment::AnswerBytes(0)),
        expect: [
            see("timeout Answer", "timeout Answer", "timeout Answer"),
            see("ok", "broken", "timeout Answer"),
        ],
    },
    Row {
        name: "slow loris, body",
        trigger: Trigger::Arm(DROPS, Moment::AnswerBytes(MIDDLE)),
        expect: [
            // In the clear each byte comes in time, and the deadline of the whole ends it.
            see("timeout Body|deadline Body", "timeout Body|deadline Body", "timeout WatchEnd"),
            see("timeout Body", "timeout Body", "body broken"),
        ],
    },
    Row {
        name: "freeze",
        trigger: Trigger::Strike(Fault::Freeze),
        expect: [
            see("timeout Answer", "timeout Answer", "timeout WatchEnd"),
            // A ping is not answered.
            see("ok", "broken", "body broken"),
        ],
    },
    Row {
        name: "freeze before the answer",
        trigger: Trigger::Arm(Fault::Freeze, Moment::AnswerBytes(0)),
        expect: [
            see("timeout Answer", "timeout Answer", "timeout WatchEnd"),
            see("ok", "broken", "body broken"),
        ],
    },
    Row {
        name: "freeze in the body",
        trigger: Trigger::Arm(Fault::Freeze, Moment::AnswerBytes(MIDDLE)),
        expect: [
            see("timeout Body", "timeout Body", "timeout WatchEnd"),
            see("timeout Body", "timeout Body", "body broken"),
        ],
    },
    Row {
        name: "outage, new connections too",
        trigger: Trigger::Outage,
        expect: [
            see("timeout Answer", "timeout Answer", "timeout WatchEnd"),
            see("timeout Tls|timeout Answer|ok", "broken", "body broken"),
        ],
    },
    Row {
        name: "half-open",
        trigger: Trigger::Strike(Fault::HalfOpen),
        expect: [
            see("timeout Answer", "timeout Answer", "timeout WatchEnd"),
            see("ok", "broken", "body broken"),
        ],
    },
    Row {
        name: "reset while idle",
        trigger: Trigger::Idle(Fault::Reset),
        expect: [see("ok", "ok", "body broken"), see("ok", "ok", "body broken")],
    },
    Row {
        name: "end while idle",
        trigger: Trigger::Idle(Fault::End),
        expect: [see("ok", "ok", "body broken"), see("ok", "ok", "body broken")],
    },
    Row {
        name: "reset at the request",
        trigger: Trigger::ArmOpening(Fault::Reset, Moment::RequestBytes(0)),
        expect: [see("ok", "broken", "ok"), see("ok", "broken", "ok")],
    },
    Row {
        name: "reset before the answer",
        trigger: Trigger::ArmOpening(Fault::Reset, Moment::AnswerBytes(0)),
        expect: [see("ok", "broken", "ok"), see("ok", "broken", "ok")],
    },
    Row {
        name: "reset in the head",
        trigger: Trigger::ArmOpening(Fault::Reset, Moment::AnswerBytes(HEAD)),
        expect: [see("ok", "broken", "ok"), see("ok", "broken", "ok")],
    },
    Row {
        name: "reset in a frame of the body",
        trigger: Trigger::Arm(Fault::Reset, Moment::AnswerBytes(MIDDLE)),
        expect: [
            see("body broken", "body broken", "body broken"),
            see("body broken", "body broken", "body broken"),
        ],
    },
    Row {
        name: "end in the head (no close_notify)",
        trigger: Trigger::ArmOpening(Fault::End, Moment::AnswerBytes(HEAD)),
        expect: [see("ok", "broken", "ok"), see("ok", "broken", "ok")],
    },
    Row {
        name: "end in a frame of the body (no close_notify)",
        trigger: Trigger::Arm(Fault::End, Moment::AnswerBytes(MIDDLE)),
        expect: [
            see("body broken", "body broken", "body broken"),
            see("body broken", "body broken", "body broken"),
        ],
    },
    Row {
        name: "GOAWAY, the request unseen",
        trigger: Trigger::ArmOpening(GRACEFUL, Moment::RequestBytes(0)),
        expect: [see("", "", ""), see("ok", "ok", "ok")],
    },
    Row {
        name: "GOAWAY before the answer",
        trigger: Trigger::Arm(GRACEFUL, Moment::AnswerBytes(0)),
        expect: [see("", "", ""), see("ok", "ok", "ok")],
    },
    Row {
        name: "GOAWAY with an error, the request unseen",
        trigger: Trigger::ArmOpening(INTERNAL_ERROR, Moment::RequestBytes(0)),
        expect: [see("", "", ""), see("ok", "broken", "ok")],
    },
    Row {
        name: "GOAWAY with an error, before the answer",
        trigger: Trigger::Arm(INTERNAL_ERROR, Moment::AnswerBytes(0)),
        expect: [see("", "", ""), see("ok", "broken", "body broken")],
    },
];
