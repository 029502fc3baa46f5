//! From a request to the handler of its verb.

use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Method};
use kubestrata_api_types::{Status, StatusDetails, reason};
use parking_lot::Mutex;

use crate::answer::{self, Answer};
use crate::body::Body;
use crate::catalog::Resource;
use crate::discovery;
use crate::failure::{self, Failure, Outcome};
use crate::media::{self, Media, Offer};
use crate::options::ListOptions;
use crate::query::Query;
use crate::read::{self, Selection};
use crate::render::Renderer;
use crate::route::{Route, Target};
use crate::server::Core;
use crate::write;

/// One request about a resource.
pub(crate) struct Call<'a> {
    pub(crate) core: &'a Arc<Core>,
    pub(crate) resource: Arc<Resource>,
    pub(crate) target: &'a Target,
    pub(crate) parts: &'a Parts,
    pub(crate) query: &'a Query,
    pub(crate) body: Bytes,
    pub(crate) media: Media,
    /// What the client is to be told beside the answer.
    pub(crate) warnings: Mutex<Vec<String>>,
}

impl Call<'_> {
    pub(crate) fn namespace(&self) -> Option<&str> {
        self.target.namespace.as_deref()
    }

    pub(crate) fn content_type(&self) -> &str {
        let value = self.parts.headers.get(http::header::CONTENT_TYPE);
        value.and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    pub(crate) fn renderer(&self) -> Renderer {
        Renderer::new(&self.resource, self.media)
    }
}

pub(crate) async fn dispatch(core: &Arc<Core>, parts: &Parts, body: Bytes) -> Outcome<Answer> {
    let query = Query::parse(parts.uri.query().unwrap_or_default());
    match Route::parse(parts.uri.path()) {
        Route::Version => Ok(discovery::version()),
        Route::Health => Ok(answer::text(200, "ok")),
        Route::Api => discovery::api(core, &parts.headers),
        Route::Apis => discovery::apis(core, &parts.headers),
        Route::Group(group) => discovery::group(core, &group),
        Route::GroupVersion(group, version) => discovery::group_version(core, &group, &version),
        Route::Resource(target) => resource(core, &target, parts, &query, body).await,
        Route::Unknown => Err(Failure::no_path()),
    }
}

async fn resource(
    core: &Arc<Core>,
    target: &Target,
    parts: &Parts,
    query: &Query,
    body: Bytes,
) -> Outcome<Answer> {
    let Some(resource) = core.catalog.find(&target.group, &target.version, &target.plural) else {
        let known = discovery::has_group(core, &target.group);
        return Err(if known { failure::no_resource() } else { Failure::no_path() });
    };
    if target.namespace.is_some() && !resource.ty.is_namespaced() {
        return Err(failure::no_resource());
    }
    if let Some(subresource) = &target.subresource
        && resource.subresource(subresource).is_none()
    {
        return Err(failure::no_resource());
    }
    let offer = Offer { protobuf: resource.message.is_some(), metadata: true, aggregated: false };
    let media = media::negotiate(&parts.headers, offer)?;
    let warnings = Mutex::default();
    let call = Call { core, resource, target, parts, query, body, media, warnings };
    if matches!(parts.method, Method::GET | Method::HEAD) {
        return read(call).await;
    }
    let mut answer = write(&call).await?;
    for warning in call.warnings.into_inner() {
        let text = format!("299 - {warning:?}");
        if let Ok(value) = HeaderValue::from_str(&text) {
            answer.headers_mut().append(http::header::WARNING, value);
        }
    }
    Ok(answer)
}

async fn read(call: Call<'_>) -> Outcome<Answer> {
    match (call.target.name.clone(), call.target.subresource.as_deref()) {
        (None, _) => collection(call).await,
        (Some(name), _) if call.target.watch => watch(call, Some(&name)),
        (Some(name), subresource) => object(&call, &name, subresource).await,
    }
}

async fn write(call: &Call<'_>) -> Outcome<Answer> {
    let target = call.target;
    match (&call.parts.method, target.name.as_deref(), target.subresource.as_deref()) {
        (&Method::POST, None, _) => write::create(call).await,
        (&Method::POST, Some(name), Some(subresource)) => {
            write::create_subresource(call, name, subresource).await
        }
        (&Method::PUT, Some(name), subresource) => write::update(call, name, subresource).await,
        (&Method::PATCH, Some(name), subresource) => write::patch(call, name, subresource).await,
        (&Method::DELETE, Some(name), None) => write::delete(call, name).await,
        (&Method::DELETE, None, _) => write::delete_collection(call).await,
        _ => Err(not_allowed()),
    }
}

/// A method that no handler of the path has.
pub(crate) fn not_allowed() -> Failure {
    let message = "the server does not allow this method on the requested resource";
    let mut status = Status::failure(405, reason::METHOD_NOT_ALLOWED, message);
    status.details = Some(StatusDetails::default());
    status.into()
}

/// List or watch.
async fn collection(call: Call<'_>) -> Outcome<Answer> {
    let is_watch = call.query.flag("watch").unwrap_or(false) || call.target.watch;
    if is_watch {
        return watch(call, None);
    }
    if !call.resource.has_verb("list") {
        return Err(not_allowed());
    }
    let options = ListOptions::parse(call.query, call.core.config.gates)?;
    let selection = Selection::new(&call.resource, call.namespace(), None, &options)?;
    let Some(store) = &call.resource.store else {
        // `componentstatuses` is a kind without objects.
        return Ok(empty_list(&call));
    };
    read::list(call.core, call.renderer(), store, selection, &options).await
}

fn empty_list(call: &Call<'_>) -> Answer {
    let renderer = call.renderer();
    let mut out = crate::out::Out::default();
    let head = crate::render::ListHead::default();
    renderer.list_head(&head, std::iter::empty(), &mut out);
    renderer.list_tail(&head, &mut out);
    answer::with(200, renderer.content_type(), Body::whole(out.take().unwrap_or_default()))
}

fn watch(call: Call<'_>, name: Option<&str>) -> Outcome<Answer> {
    if !call.resource.has_verb("watch") {
        return Err(failure::method_not_allowed(&call.resource.ty, "watch"));
    }
    let options = ListOptions::parse(call.query, call.core.config.gates)?;
    let selection = Selection::new(&call.resource, call.namespace(), name, &options)?;
    let store = call.resource.store()?.clone();
    read::watch(call.core.clone(), call.renderer(), store, selection, options)
}

/// Get.
async fn object(call: &Call<'_>, name: &str, subresource: Option<&str>) -> Outcome<Answer> {
    let verbs = subresource.map_or(Some(&call.resource.info.verbs), |subresource| {
        call.resource.subresource(subresource).map(|subresource| &subresource.verbs)
    });
    if !verbs.is_some_and(|verbs| verbs.iter().any(|verb| verb == "get")) {
        return Err(not_allowed());
    }
    let store = call.resource.store()?;
    let key = store.key(call.namespace(), name);
    let item = read::get(call.core, store, &key, call.query.text("resourceVersion")).await?;
    let item = item.ok_or_else(|| failure::not_found(&call.resource.ty, name))?;
    match subresource {
        None | Some("status" | "ephemeralcontainers" | "resize" | "approval") => {
            Ok(write::answer_object(call, &item, 200))
        }
        Some("scale") => write::get_scale(call, &item),
        Some(_) => Err(not_implemented()),
    }
}

/// A subresource that needs a kubelet.
pub(crate) fn not_implemented() -> Failure {
    Status::failure(501, "", "the embedded server has no kubelet behind it").into()
}
