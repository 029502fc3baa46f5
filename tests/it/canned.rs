//! A server that says what it is told to say, over plain HTTP/1.1, right or wrong.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// One answer: all bytes of it, from the status line on. The connection is closed after it.
pub(crate) type Bytes = Vec<u8>;

/// Gives the answer to the request with this first line, such as `GET /api/v1/pods?watch=1 HTTP/1.1`.
type Answer = dyn Fn(&str) -> Bytes + Send + Sync;

/// A running server. Dropping it ends it.
pub(crate) struct Canned {
    /// As in `http://127.0.0.1:1234`.
    pub(crate) url: String,
    requests: Arc<Mutex<Vec<String>>>,
    _tasks: JoinSet<()>,
}

impl Canned {
    /// Starts on a free port of loopback.
    pub(crate) async fn start(answer: impl Fn(&str) -> Bytes + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&requests);
        let answer: Arc<Answer> = Arc::new(answer);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (log, answer) = (Arc::clone(&log), Arc::clone(&answer));
                connections.spawn(async move {
                    // A client that goes away ends its connection, and nothing else.
                    let _ = serve(stream, &log, &*answer).await;
                });
                while connections.try_join_next().is_some() {}
            }
        });
        Self { url, requests, _tasks: tasks }
    }

    /// The first lines of all requests so far.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

async fn serve(
    mut stream: TcpStream,
    log: &Mutex<Vec<String>>,
    answer: &Answer,
) -> std::io::Result<()> {
    let mut head = Vec::new();
    let mut buffer = [0; 4096];
    while !head.windows(4).any(|window| window == b"\r\n\r\n") {
        let length = stream.read(&mut buffer).await?;
        if length == 0 || head.len() > 64 << 10 {
            return Ok(());
        }
        head.extend_from_slice(&buffer[..length]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let line = head.lines().next().unwrap_or_default();
    log.lock().unwrap().push(line.to_owned());
    stream.write_all(&answer(line)).await?;
    stream.shutdown().await
}

/// A JSON answer of known length.
pub(crate) fn json(code: u16, body: &str) -> Bytes {
    let length = body.len();
    format!(
        "HTTP/1.1 {code} x\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
    .into_bytes()
}

/// A JSON stream whose end is the end of the connection: nothing but the frames tells whether it is complete.
pub(crate) fn stream(body: &str) -> Bytes {
    format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n{body}")
        .into_bytes()
}

/// A chunked JSON stream that breaks off: the last chunk never comes.
pub(crate) fn broken_stream(body: &str) -> Bytes {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n",
        body.len()
    )
    .into_bytes()
}

/// A config map, as a server writes it in a list or an event.
pub(crate) fn config_map(name: &str, version: u64) -> String {
    format!(
        r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"{name}","namespace":"default","uid":"uid-{name}","resourceVersion":"{version}"}}}}"#
    )
}
