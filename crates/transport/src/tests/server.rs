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
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, IsCa, KeyPair,
};
use rustls::server::WebPkiClientVerifier;
use rustls_pki_types::PrivateKeyDer;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::clock::SOON;
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
    /// The certificate that the client has shown, as DER.
    pub(crate) client: Option<Vec<u8>>,
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
        async move { Ok::<_, Infallible>(handle(request, (0, None), &handler, &log).await) }
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
    (connection, client): (usize, Option<Vec<u8>>),
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
        client,
        method: head.method,
        target: head.uri.path_and_query().unwrap().to_string(),
        headers: head.headers,
        body: body.collect().await.unwrap().to_bytes(),
    };
    log.0.lock().push(seen.clone());
    handler(seen).await
}

/// A certificate authority.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A client's certificate and key.
pub(crate) struct ClientPair {
    pub(crate) certificate: String,
    pub(crate) key: String,
    pub(crate) der: Vec<u8>,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    /// A certificate of a server with these names. Clients may show one of this authority.
    pub(crate) fn server(
        &self,
        names: &[&str],
        change: impl FnOnce(&mut CertificateParams),
    ) -> Identity {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(names).unwrap();
        change(&mut params);
        let leaf = params.signed_by(&key, &self.0).unwrap();
        Identity::new(self.pem(), leaf.der().to_vec(), &key, Some(self.roots()))
    }

    fn roots(&self) -> rustls::RootCertStore {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(self.0.der().clone()).unwrap();
        roots
    }

    /// A server on 127.0.0.1 that wants a certificate of this authority, and speaks this version of TLS.
    pub(crate) fn strict(&self, version: &'static rustls::SupportedProtocolVersion) -> Identity {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        let leaf = params.signed_by(&key, &self.0).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let roots = Arc::new(self.roots());
        let clients = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(&provider));
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[version])
            .unwrap()
            .with_client_cert_verifier(clients.build().unwrap())
            .with_single_cert(vec![leaf.der().clone()], key)
            .unwrap();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Identity { authority_pem: self.pem(), config: Arc::new(config) }
    }

    pub(crate) fn client(
        &self,
        name: &str,
        change: impl FnOnce(&mut CertificateParams),
    ) -> ClientPair {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        change(&mut params);
        let leaf = params.signed_by(&key, &self.0).unwrap();
        let (certificate, der) = (leaf.pem(), leaf.der().to_vec());
        ClientPair { certificate, key: key.serialize_pem(), der }
    }
}

/// A certificate of the server, and what trusts it.
#[derive(Clone)]
pub(crate) struct Identity {
    pub(crate) authority_pem: String,
    pub(crate) config: Arc<rustls::ServerConfig>,
}

impl Identity {
    /// A certificate for these names, by an authority of its own.
    pub(crate) fn issued(names: &[&str]) -> Self {
        Authority::new("test authority").server(names, |_| {})
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
        Self::new(both.pem(), both.der().to_vec(), &key, None)
    }

    /// `clients` is the authority whose certificates clients may show.
    fn new(
        authority_pem: String,
        leaf: Vec<u8>,
        key: &KeyPair,
        clients: Option<rustls::RootCertStore>,
    ) -> Self {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap();
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(roots) => {
                let roots = Arc::new(roots);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider);
                builder.with_client_cert_verifier(verifier.allow_unauthenticated().build().unwrap())
            }
        };
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let mut config = builder.with_single_cert(vec![leaf.into()], key).unwrap();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Self { authority_pem, config: Arc::new(config) }
    }
}

/// What the server shows to the next client.
type Shown = Arc<Mutex<Option<Arc<rustls::ServerConfig>>>>;

/// A server on loopback. Its connections end when it is dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) log: Log,
    pub(crate) accepted: Arc<AtomicUsize>,
    identity: Option<Identity>,
    shown: Shown,
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
        let config = identity.as_ref().map(|identity| Arc::clone(&identity.config));
        let shown = Arc::new(Mutex::new(config));
        let (accepted, handler) = (Arc::new(AtomicUsize::new(0)), handler_of(handler));
        let mut tasks = JoinSet::new();
        let count = Arc::clone(&accepted);
        tasks.spawn(accept(listener, Arc::clone(&shown), handler, log.clone(), count));
        Self { address, log, accepted, identity, shown, _tasks: tasks }
    }

    /// A configuration that reaches and trusts it, with long deadlines and quick retries.
    pub(crate) fn config(&self) -> Config {
        let mut config = match &self.identity {
            None => Config::new(&format!("http://{}", self.address)).unwrap(),
            Some(identity) => {
                let pem = Pem::inline(identity.authority_pem.clone());
                Config::new(&format!("https://{}", self.address)).unwrap().tls(Tls::trust(pem))
            }
        };
        config.timeouts = patient();
        config.retry = Retry { broken: Duration::from_millis(10), ..Retry::default() };
        config
    }

    pub(crate) fn transport(&self) -> Transport {
        Transport::connect(self.config()).unwrap()
    }

    /// Shows another certificate from now on.
    pub(crate) fn show(&self, identity: &Identity) {
        *self.shown.lock() = Some(Arc::clone(&identity.config));
    }

    pub(crate) fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }
}

/// Deadlines that no busy machine misses. A test that waits for one has its own.
pub(crate) fn patient() -> Timeouts {
    Timeouts {
        wait: SOON,
        connect: SOON,
        tls: SOON,
        answer: SOON,
        watch_answer: SOON,
        body: SOON,
        watch_margin: SOON,
        token_file: SOON,
        ..Timeouts::default()
    }
}

async fn accept(
    listener: TcpListener,
    shown: Shown,
    handler: Handler,
    log: Log,
    accepted: Arc<AtomicUsize>,
) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        // As servers do: else each answer waits 40 ms for the client's acknowledgement of its head.
        stream.set_nodelay(true).unwrap();
        let number = accepted.fetch_add(1, Ordering::SeqCst);
        let acceptor = shown.lock().clone().map(TlsAcceptor::from);
        let (handler, log) = (Arc::clone(&handler), log.clone());
        connections.spawn(async move {
            match acceptor {
                None => serve(stream, (number, None), handler, log).await,
                Some(acceptor) => match acceptor.accept(stream).into_fallible().await {
                    Ok(stream) => {
                        let certificates = stream.get_ref().1.peer_certificates();
                        let client = certificates.map(|chain| chain[0].to_vec());
                        serve(stream, (number, client), handler, log).await;
                    }
                    // Until the client has read why: to close before it is heard would reset the connection.
                    Err((_, mut stream)) => {
                        let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
                    }
                },
            }
        });
    }
}

/// How a connection ends is what the tests look at from the other side.
async fn serve<T>(stream: T, peer: (usize, Option<Vec<u8>>), handler: Handler, log: Log)
where
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request: Request<Incoming>| {
        let (handler, log, peer) = (Arc::clone(&handler), log.clone(), peer.clone());
        async move { Ok::<_, Infallible>(handle(request, peer, &handler, &log).await) }
    });
    let builder = auto::Builder::new(TokioExecutor::new());
    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
}
