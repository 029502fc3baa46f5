//! A service of HTTP made of a closure, and a real server around it.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use kubestrata_api_types::BoxError;
use parking_lot::Mutex;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls_pki_types::PrivateKeyDer;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::{Config, Pem, RequestBody, Retry, Timeouts, Tls, Transport};

pub(crate) type Body = UnsyncBoxBody<Bytes, BoxError>;
type Answer = Pin<Box<dyn Future<Output = Response<Body>> + Send>>;
type Handler = Arc<dyn Fn(Seen) -> Answer + Send + Sync>;

/// What the server saw of one request.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    /// The connection, numbered from 0.
    pub(crate) connection: usize,
    pub(crate) version: http::Version,
    pub(crate) method: http::Method,
    /// Path and query.
    pub(crate) target: String,
    pub(crate) headers: http::HeaderMap,
    pub(crate) body: Bytes,
}

/// An answer of one piece.
pub(crate) fn answer(code: u16, content_type: &str, body: impl Into<Bytes>) -> Response<Body> {
    let body = Full::new(body.into()).map_err(|never| match never {}).boxed_unsync();
    Response::builder().status(code).header("content-type", content_type).body(body).unwrap()
}

pub(crate) fn json(body: impl Into<String>) -> Response<Body> {
    answer(200, "application/json", body.into())
}

/// An answer of these pieces, then an error, an end, or silence.
pub(crate) fn pieces(pieces: Vec<Bytes>, end: End) -> Response<Body> {
    use futures_util::{StreamExt as _, stream};
    let data = stream::iter(pieces).map(|piece| Ok(Frame::data(piece)));
    let tail = match end {
        End::Clean => stream::empty().boxed(),
        End::Broken => stream::once(async { Err(BoxError::from("the server is gone")) }).boxed(),
        End::Silent => stream::pending().boxed(),
    };
    let body = StreamBody::new(data.chain(tail)).boxed_unsync();
    Response::builder().header("content-type", "application/json").body(body).unwrap()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Clean,
    Broken,
    Silent,
}

/// Requests that a service has seen.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<Seen>>>);

impl Log {
    pub(crate) fn all(&self) -> Vec<Seen> {
        self.0.lock().clone()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().len()
    }

    pub(crate) fn last(&self) -> Seen {
        self.0.lock().last().cloned().unwrap()
    }

    pub(crate) fn targets(&self) -> Vec<String> {
        self.0.lock().iter().map(|seen| format!("{} {}", seen.method, seen.target)).collect()
    }
}

/// A transport over a closure in the same process.
pub(crate) fn over<F, A>(config: Config, handler: F) -> (Transport, Log)
where
    F: Fn(Seen) -> A + Send + Sync + 'static,
    A: Future<Output = Response<Body>> + Send + 'static,
{
    let (handler, log) = (handler_of(handler), Log::default());
    let seen = log.clone();
    let service = tower::service_fn(move |request: Request<RequestBody>| {
        let (handler, log) = (Arc::clone(&handler), seen.clone());
        async move { Ok::<_, Infallible>(handle(request, 0, &handler, &log).await) }
    });
    (Transport::over(service, config).unwrap(), log)
}

fn handler_of<F, A>(handler: F) -> Handler
where
    F: Fn(Seen) -> A + Send + Sync + 'static,
    A: Future<Output = Response<Body>> + Send + 'static,
{
    Arc::new(move |seen| Box::pin(handler(seen)))
}

async fn handle<B>(
    request: Request<B>,
    connection: usize,
    handler: &Handler,
    log: &Log,
) -> Response<Body>
where
    B: hyper::body::Body<Data = Bytes>,
    B::Error: std::fmt::Debug,
{
    let (head, body) = request.into_parts();
    let seen = Seen {
        connection,
        version: head.version,
        method: head.method,
        target: head.uri.path_and_query().unwrap().to_string(),
        headers: head.headers,
        body: body.collect().await.unwrap().to_bytes(),
    };
    log.0.lock().push(seen.clone());
    handler(seen).await
}

/// A certificate authority and a certificate of the server.
pub(crate) struct Identity {
    pub(crate) authority_pem: String,
    config: Arc<rustls::ServerConfig>,
}

impl Identity {
    /// A certificate for these names, by an authority of its own.
    pub(crate) fn issued(names: &[&str]) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let key = KeyPair::generate().unwrap();
        let leaf = CertificateParams::new(names).unwrap().signed_by(&key, &authority).unwrap();
        Self::new(authority.pem(), leaf.der().to_vec(), &key)
    }

    /// A certificate that is authority and server in one, as kube-apiserver makes it.
    pub(crate) fn self_signed(
        names: &[&str],
        validity: impl FnOnce(&mut CertificateParams),
    ) -> Self {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        validity(&mut params);
        let key = KeyPair::generate().unwrap();
        let both = params.self_signed(&key).unwrap();
        Self::new(both.pem(), both.der().to_vec(), &key)
    }

    fn new(authority_pem: String, leaf: Vec<u8>, key: &KeyPair) -> Self {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![leaf.into()],
                PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
            )
            .unwrap();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Self { authority_pem, config: Arc::new(config) }
    }
}

/// A server on loopback. Its connections end when it is dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) log: Log,
    pub(crate) accepted: Arc<AtomicUsize>,
    identity: Option<Identity>,
    _tasks: JoinSet<()>,
}

impl Server {
    pub(crate) async fn start<F, A>(identity: Option<Identity>, handler: F) -> Self
    where
        F: Fn(Seen) -> A + Send + Sync + 'static,
        A: Future<Output = Response<Body>> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, log) = (listener.local_addr().unwrap(), Log::default());
        let acceptor = identity.as_ref().map(|id| TlsAcceptor::from(Arc::clone(&id.config)));
        let (accepted, handler) = (Arc::new(AtomicUsize::new(0)), handler_of(handler));
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, acceptor, handler, log.clone(), Arc::clone(&accepted)));
        Self { address, log, accepted, identity, _tasks: tasks }
    }

    /// A configuration that reaches and trusts it, with short deadlines and quick retries.
    pub(crate) fn config(&self) -> Config {
        let mut config = match &self.identity {
            None => Config::new(&format!("http://{}", self.address)).unwrap(),
            Some(identity) => {
                let pem = Pem::inline(identity.authority_pem.clone());
                Config::new(&format!("https://{}", self.address)).unwrap().tls(Tls::trust(pem))
            }
        };
        config.timeouts = quick();
        config.retry = Retry { broken: Duration::from_millis(10), ..Retry::default() };
        config
    }

    pub(crate) fn transport(&self) -> Transport {
        Transport::connect(self.config()).unwrap()
    }

    pub(crate) fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }
}

/// Deadlines long enough for a busy machine, and short enough to wait for.
pub(crate) fn quick() -> Timeouts {
    let limit = Duration::from_secs(5);
    Timeouts {
        wait: limit,
        connect: limit,
        tls: limit,
        answer: limit,
        watch_answer: limit,
        body: limit,
        watch_margin: limit,
        ..Timeouts::default()
    }
}

async fn accept(
    listener: TcpListener,
    acceptor: Option<TlsAcceptor>,
    handler: Handler,
    log: Log,
    accepted: Arc<AtomicUsize>,
) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let number = accepted.fetch_add(1, Ordering::SeqCst);
        let (acceptor, handler, log) = (acceptor.clone(), Arc::clone(&handler), log.clone());
        connections.spawn(async move {
            let service = service_fn(move |request: Request<Incoming>| {
                let (handler, log) = (Arc::clone(&handler), log.clone());
                async move { Ok::<_, Infallible>(handle(request, number, &handler, &log).await) }
            });
            let builder = auto::Builder::new(TokioExecutor::new());
            // How a connection ends is what the tests look at from the other side.
            match acceptor {
                None => {
                    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
                }
                Some(acceptor) => {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        let _ = builder.serve_connection(TokioIo::new(stream), service).await;
                    }
                }
            }
        });
    }
}
