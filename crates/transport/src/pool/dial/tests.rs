//! What sockets are told.

use std::time::Duration;

use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};

/// kube-rs has no keep-alive (its defect L4): with it, and without anything that we send, the kernel notices a peer that is
/// gone.
#[tokio::test]
async fn the_kernel_probes_silent_connections() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    super::tune(&stream);
    let socket = SockRef::from(&stream);
    assert!(socket.keepalive().unwrap() && socket.tcp_nodelay().unwrap());
    let (time, interval) = (socket.tcp_keepalive_time(), socket.tcp_keepalive_interval());
    let noticed = time.unwrap() + interval.unwrap() * socket.tcp_keepalive_retries().unwrap();
    assert_eq!(noticed, Duration::from_secs(45));
}

/// With bytes of ours on their way there are no probes.
#[cfg(any(target_os = "linux", target_os = "android"))]
#[tokio::test]
async fn the_kernel_gives_up_what_nobody_acknowledges() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    super::tune(&stream);
    let limit = SockRef::from(&stream).tcp_user_timeout().unwrap();
    assert_eq!(limit, Some(Duration::from_secs(45)));
}
