//! The server, and the ways to it.

use std::net::SocketAddr;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubestrata_api_types::{
    ApiRequest, BoxError, Collection, Kind as _, Operation, Payload, WriteOptions,
};
use kubestrata_apiserver::{Listen, Server, Serving};
use kubestrata_codec::Client as _;
use kubestrata_testkit::FaultProxy;
use kubestrata_transport::{Config, Protocol, Retry, Timeouts, Transport};

use tower::ServiceExt as _;

use crate::target::from_text;

/// The object that is read.
pub(super) const SEED: &str = "seed";
/// The namespace that it is in.
pub(super) const SEED_NAMESPACE: &str = "default";
/// Bytes of an object: answers and events take several TLS records and frames of HTTP/2.
const OBJECT: usize = 40_000;

/// How HTTP is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Http1,
    Http1Tls,
    Http2,
    Http2Tls,
}

impl Way {
    pub(super) const ALL: [Self; 4] = [Self::Http1, Self::Http1Tls, Self::Http2, Self::Http2Tls];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Http1 => "HTTP/1.1",
            Self::Http1Tls => "HTTP/1.1, TLS",
            Self::Http2 => "HTTP/2",
            Self::Http2Tls => "HTTP/2, TLS",
        }
    }

    pub(super) fn is_http2(self) -> bool {
        matches!(self, Self::Http2 | Self::Http2Tls)
    }

    pub(super) fn is_tls(self) -> bool {
        matches!(self, Self::Http1Tls | Self::Http2Tls)
    }
}

/// One server, which listens with TLS and without.
pub(super) struct Ground {
    /// What deadlines are divided by.
    pub(super) scale: u32,
    /// A way to the server without any network, for what the proxy must not touch.
    pub(super) direct: Transport,
    plain: (Serving, Config),
    tls: (Serving, Config),
}

impl Ground {
    pub(super) async fn start(scale: u32) -> Self {
        // What a client has missed must be there when it comes back, whatever the other cases write meanwhile.
        let mut config = kubestrata_apiserver::Config::default();
        config.watch_cache.history_age = Duration::from_secs(3600);
        let server = Server::builder().config(config).start();
        let [plain, tls] = [Listen::new(), Listen::new().tls()].map(async |listen| {
            let serving = server.listen(listen).await.unwrap();
            let config = from_text(&serving.kubeconfig());
            (serving, config)
        });
        let (plain, tls) = (plain.await, tls.await);
        let direct = Transport::over(server, Config::in_process()).unwrap();
        let seed = create(&format!(r#""name":"{SEED}""#));
        send(&direct, SEED_NAMESPACE, seed).await.unwrap();
        Self { scale, direct, plain, tls }
    }

    /// Makes a namespace, past all proxies, and gives its name.
    pub(super) async fn make_namespace(&self) -> String {
        let generate_name = Some("faults-".to_owned());
        let metadata = ObjectMeta { generate_name, ..ObjectMeta::default() };
        let namespace = Namespace { metadata, ..Namespace::default() };
        let made = self.direct.create(&namespace).await.expect("a namespace can be made");
        made.metadata.name.clone().expect("what is made has a name")
    }

    /// What is measured by the defaults, at this scale.
    pub(super) fn scaled(&self, default: Duration) -> Duration {
        default / self.scale
    }

    /// A proxy before the server.
    pub(super) async fn proxy(&self, way: Way) -> FaultProxy {
        let target: SocketAddr = self.serving(way).0.address();
        let proxy = if way == Way::Http2 {
            FaultProxy::start_http2(target).await
        } else {
            FaultProxy::start(target).await
        };
        proxy.unwrap()
    }

    fn serving(&self, way: Way) -> &(Serving, Config) {
        if way.is_tls() { &self.tls } else { &self.plain }
    }

    /// A client that goes through the proxy.
    pub(super) fn transport(&self, way: Way, proxy: &FaultProxy) -> Transport {
        let mut config = self.serving(way).1.clone();
        let scheme = if way.is_tls() { "https" } else { "http" };
        config.server = format!("{scheme}://127.0.0.1:{}", proxy.port()).parse().unwrap();
        config.protocol = if way.is_http2() { Protocol::Http2 } else { Protocol::Http1 };
        config.timeouts = self.timeouts();
        let retry = Retry::default();
        config.retry = Retry {
            total: self.scaled(retry.total),
            wait: self.scaled(retry.wait),
            broken: self.scaled(retry.broken),
            ..retry
        };
        Transport::connect(config).unwrap()
    }

    fn timeouts(&self) -> Timeouts {
        let default = Timeouts::default();
        let scaled = |deadline| self.scaled(deadline);
        Timeouts {
            request: scaled(default.request),
            list: scaled(default.list),
            wait: scaled(default.wait),
            connect: scaled(default.connect),
            // Half a second can be too little for a handshake on a busy machine.
            tls: scaled(4 * default.tls).min(default.tls),
            answer: scaled(default.answer),
            watch_answer: scaled(default.watch_answer),
            body: scaled(default.body),
            watch_margin: scaled(default.watch_margin),
            ping_interval: scaled(default.ping_interval),
            ping_answer: scaled(default.ping_answer),
            idle: scaled(default.idle),
            ..default
        }
    }
}

/// The objects of one case: config maps in a namespace of its own.
pub(super) fn collection(namespace: &str) -> Collection {
    Collection::new(ConfigMap::resource().clone()).in_namespace(namespace)
}

/// A new object.
pub(super) fn create(name: &str) -> Operation {
    let text = "x".repeat(OBJECT);
    let body = Payload::json(format!(r#"{{"metadata":{{{name}}},"data":{{"text":"{text}"}}}}"#));
    Operation::Create { name: None, body, options: WriteOptions::default() }
}

/// Sends a request that is answered with an object.
pub(super) async fn send(
    over: &Transport,
    namespace: &str,
    operation: Operation,
) -> Result<(), BoxError> {
    let request = ApiRequest::new(collection(namespace), operation);
    over.clone().oneshot(request).await?.into_object().map(drop).map_err(Into::into)
}
