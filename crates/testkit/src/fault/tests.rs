//! Every fault, seen from both sides of a connection.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, timeout};

use super::frames::go_away;
use super::{Fault, FaultProxy, Moment, Newcomers};

/// Far more than anything takes; it ends a test that hangs.
const SOON: Duration = Duration::from_secs(60);
/// For what must not happen.
const NEVER: Duration = Duration::from_millis(150);

struct Bench {
    listener: TcpListener,
    proxy: FaultProxy,
}

impl Bench {
    async fn new(frames: bool) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let proxy = FaultProxy::listen(listener.local_addr().unwrap(), frames).await.unwrap();
        Self { listener, proxy }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(("127.0.0.1", self.proxy.port())).await.unwrap()
    }

    /// A connection through the proxy, from both sides, over which something has passed.
    async fn pair(&self) -> (TcpStream, TcpStream) {
        let mut client = self.connect().await;
        let mut server = timeout(SOON, self.listener.accept()).await.unwrap().unwrap().0;
        if !self.proxy.frames {
            echo(&mut client, &mut server).await;
        }
        (client, server)
    }
}

async fn echo(client: &mut TcpStream, server: &mut TcpStream) {
    client.write_all(b"ask").await.unwrap();
    assert_eq!(bytes(server, 3).await, b"ask");
    server.write_all(b"answer").await.unwrap();
    assert_eq!(bytes(client, 6).await, b"answer");
}

/// Exactly so many bytes.
async fn bytes(stream: &mut TcpStream, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    timeout(SOON, stream.read_exact(&mut bytes)).await.expect("in time").expect("so many bytes");
    bytes
}

/// What comes before the end, and whether that is orderly.
async fn rest(stream: &mut TcpStream) -> (Vec<u8>, bool) {
    let mut bytes = Vec::new();
    let end = timeout(SOON, stream.read_to_end(&mut bytes)).await.expect("an end in time");
    (bytes, end.is_ok())
}

async fn silent(stream: &mut TcpStream) {
    let read = timeout(NEVER, stream.read(&mut [0; 1])).await;
    assert!(read.is_err(), "nothing comes, and no end: {read:?}");
}

#[tokio::test]
async fn what_is_frozen_thaws_without_loss() {
    let bench = Bench::new(false).await;
    let (mut client, mut server) = bench.pair().await;
    bench.proxy.strike(Fault::Freeze);
    bench.proxy.wait_struck(1).await;
    client.write_all(b"up").await.unwrap();
    server.write_all(b"down").await.unwrap();
    silent(&mut client).await;
    silent(&mut server).await;
    // Newcomers are served meanwhile.
    let _other = bench.pair().await;
    bench.proxy.heal();
    assert_eq!(bytes(&mut client, 4).await, b"down");
    assert_eq!(bytes(&mut server, 2).await, b"up");
    echo(&mut client, &mut server).await;
    assert_eq!((bench.proxy.accepted(), bench.proxy.struck()), (2, 1));
    // What is frozen can still be harmed.
    bench.proxy.strike(Fault::Freeze);
    bench.proxy.wait_struck(3).await;
    bench.proxy.strike(Fault::Reset);
    assert_eq!(rest(&mut client).await, (Vec::new(), false));
}

#[tokio::test]
async fn half_open_is_heard_on_one_side() {
    let bench = Bench::new(false).await;
    let (mut client, mut server) = bench.pair().await;
    bench.proxy.strike(Fault::HalfOpen);
    assert_eq!(rest(&mut server).await.0, b"");
    client.write_all(&[0; 100_000]).await.unwrap();
    silent(&mut client).await;
    bench.proxy.heal();
    silent(&mut client).await;
}

#[tokio::test]
async fn a_reset_comes_after_so_many_bytes_of_an_answer() {
    let bench = Bench::new(false).await;
    let (mut client, mut server) = bench.pair().await;
    bench.proxy.arm(Fault::Reset, Moment::AnswerBytes(4), 1);
    // Not more than four yet; what the client says does not count.
    client.write_all(b"a request").await.unwrap();
    assert_eq!(bytes(&mut server, 9).await, b"a request");
    server.write_all(b"head").await.unwrap();
    assert_eq!(bytes(&mut client, 4).await, b"head");
    silent(&mut client).await;
    assert_eq!(bench.proxy.struck(), 0);
    server.write_all(b"er").await.unwrap();
    assert_eq!(rest(&mut client).await, (Vec::new(), false));
    assert!(!rest(&mut server).await.1);
    assert!(bench.proxy.last_strike().is_some());
    let (mut client, mut server) = bench.pair().await;
    echo(&mut client, &mut server).await;
}

#[tokio::test]
async fn an_end_is_orderly_within_any_bytes() {
    let bench = Bench::new(false).await;
    let (mut client, mut server) = bench.pair().await;
    bench.proxy.arm(Fault::End, Moment::AnswerBytes(6), 1);
    client.write_all(b"ask").await.unwrap();
    assert_eq!(bytes(&mut server, 3).await, b"ask");
    server.write_all(b"a whole sentence").await.unwrap();
    assert_eq!(rest(&mut client).await, (b"a whol".to_vec(), true));
    assert_eq!(rest(&mut server).await, (Vec::new(), true));
}

#[tokio::test]
async fn a_request_is_held_back_where_the_fault_strikes() {
    let bench = Bench::new(false).await;
    let (mut client, mut server) = bench.pair().await;
    bench.proxy.arm(Fault::End, Moment::RequestBytes(0), 1);
    client.write_all(b"never heard").await.unwrap();
    assert_eq!(rest(&mut server).await, (Vec::new(), true));
    assert_eq!(rest(&mut client).await, (Vec::new(), true));
}

#[tokio::test]
async fn an_armed_fault_strikes_so_many_connections() {
    let bench = Bench::new(false).await;
    let mut pairs = Vec::new();
    for _ in 0..3 {
        pairs.push(bench.pair().await);
    }
    bench.proxy.arm(Fault::Freeze, Moment::AnswerBytes(2), 2);
    for (client, server) in &mut pairs {
        server.write_all(b"four").await.unwrap();
        assert_eq!(bytes(client, 2).await, b"fo");
        silent(client).await;
        if bench.proxy.struck() == 2 {
            break;
        }
    }
    let (client, server) = &mut pairs[2];
    server.write_all(b"four").await.unwrap();
    assert_eq!(bytes(client, 4).await, b"four");
    bench.proxy.heal();
    assert_eq!(bytes(&mut pairs[0].0, 2).await, b"ur");
}

#[tokio::test]
async fn a_trickle_is_slow_and_complete() {
    let bench = Bench::new(false).await;
    let (mut client, mut server) = bench.pair().await;
    let every = Duration::from_millis(20);
    bench.proxy.strike(Fault::Trickle { bytes: 2, every });
    bench.proxy.wait_struck(1).await;
    let started = Instant::now();
    server.write_all(b"drop by drop").await.unwrap();
    assert_eq!(bytes(&mut client, 12).await, b"drop by drop");
    assert!(started.elapsed() >= every * 5, "{:?}", started.elapsed());
    client.write_all(b"at once").await.unwrap();
    assert_eq!(bytes(&mut server, 7).await, b"at once");
}

#[tokio::test]
async fn newcomers_are_treated_as_told() {
    let bench = Bench::new(false).await;
    let (mut old, mut server) = bench.pair().await;
    bench.proxy.newcomers(Newcomers::Ended);
    let mut client = bench.connect().await;
    assert_eq!(rest(&mut client).await.0, b"");
    for newcomers in [Newcomers::Frozen, Newcomers::Unaccepted] {
        bench.proxy.newcomers(newcomers);
        // The proxy hears of it before it takes the next connection.
        let before = bench.proxy.accepted();
        let mut client = bench.connect().await;
        client.write_all(b"ask").await.unwrap();
        let accepted = usize::from(newcomers == Newcomers::Frozen);
        let taken = async {
            while bench.proxy.accepted() - before < accepted {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(SOON, taken).await.expect("one that is frozen is accepted");
        silent(&mut client).await;
        assert_eq!(bench.proxy.accepted() - before, accepted, "{newcomers:?}");
        // Those that are there go on.
        echo(&mut old, &mut server).await;
        bench.proxy.heal();
        let mut server = timeout(SOON, bench.listener.accept()).await.unwrap().unwrap().0;
        assert_eq!(bytes(&mut server, 3).await, b"ask");
    }
}

#[tokio::test]
async fn all_ends_with_the_proxy() {
    let bench = Bench::new(false).await;
    let (mut client, mut server) = bench.pair().await;
    drop(bench.proxy);
    assert_eq!((rest(&mut client).await.0, rest(&mut server).await.0), (Vec::new(), Vec::new()));
}

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A frame of type DATA.
fn data(stream: u32, text: &str) -> Vec<u8> {
    let mut frame = vec![0, 0, u8::try_from(text.len()).unwrap(), 0, 0];
    frame.extend_from_slice(&stream.to_be_bytes());
    frame.extend_from_slice(text.as_bytes());
    frame
}

/// The GOAWAY waits for the end of the frame under way, tells the last stream that has passed, and what comes on later
/// ones goes nowhere.
#[tokio::test]
async fn a_go_away_tells_the_truth() {
    for code in [0, 11] {
        let bench = Bench::new(true).await;
        let (mut client, mut server) = bench.pair().await;
        client.write_all(&[PREFACE, &data(1, "one"), &data(3, "three")].concat()).await.unwrap();
        assert_eq!(bytes(&mut server, PREFACE.len()).await, PREFACE);
        assert_eq!(bytes(&mut server, 12 + 14).await, [data(1, "one"), data(3, "three")].concat());
        bench.proxy.arm(Fault::GoAway { code }, Moment::AnswerBytes(11), 1);
        // Two frames of 13 bytes: the moment is within the first.
        let answer = [data(1, "uno!"), data(3, "tres")].concat();
        server.write_all(&answer).await.unwrap();
        assert_eq!(bytes(&mut client, 13).await, data(1, "uno!"));
        assert_eq!(bytes(&mut client, 17).await, go_away(3, code));
        if code != 0 {
            assert_eq!(rest(&mut client).await, (Vec::new(), true));
            continue;
        }
        assert_eq!(bytes(&mut client, 13).await, data(3, "tres"));
        let frames = [data(5, "five"), data(3, "more"), data(0, "all"), data(7, "seven")];
        // In two parts, one of which ends within a header.
        let (first, second) = frames.concat().split_at_checked(30).map(own).unwrap();
        client.write_all(&first).await.unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
        client.write_all(&second).await.unwrap();
        client.shutdown().await.unwrap();
        assert_eq!(rest(&mut server).await, ([data(3, "more"), data(0, "all")].concat(), true));
    }
}

fn own((a, b): (&[u8], &[u8])) -> (Vec<u8>, Vec<u8>) {
    (a.to_vec(), b.to_vec())
}

/// A request that is held back at the moment was not seen, and the GOAWAY says so.
#[tokio::test]
async fn a_go_away_before_a_request_leaves_it_out() {
    let bench = Bench::new(true).await;
    let (mut client, mut server) = bench.pair().await;
    client.write_all(&[PREFACE, &data(1, "one")].concat()).await.unwrap();
    bytes(&mut server, PREFACE.len() + 12).await;
    bench.proxy.arm(Fault::GoAway { code: 0 }, Moment::RequestBytes(0), 1);
    client.write_all(&data(3, "three")).await.unwrap();
    assert_eq!(bytes(&mut client, 17).await, go_away(1, 0));
    silent(&mut server).await;
    server.write_all(&data(1, "uno")).await.unwrap();
    assert_eq!(bytes(&mut client, 12).await, data(1, "uno"));
}

#[tokio::test]
#[should_panic(expected = "start_http2")]
async fn a_proxy_of_bytes_cannot_go_away() {
    Bench::new(false).await.proxy.strike(Fault::GoAway { code: 0 });
}
