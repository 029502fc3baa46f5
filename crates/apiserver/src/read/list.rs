//! List: which state answers, which page of it, and a body that is made as it is read.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use kubestrata_api_types::Format;
use kubestrata_storage::{Range, ReadError};
use kubestrata_watch_cache::Iter;

use crate::answer::{self, Answer};
use crate::body::Body;
use crate::catalog::Store;
use crate::failure::{Outcome, bad_request, expired};
use crate::options::{ListOptions, Match};
use crate::out::Out;
use crate::read::Selection;
use crate::read::token::Token;
use crate::record::Item;
use crate::render::{ListHead, Renderer};
use crate::server::Core;

const TOKEN_EXPIRED: &str = "The provided continue parameter is too old to display a consistent list result. \
     You can start a new list without the continue parameter, or use the continue token in this response to \
     retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - \
     objects that were created, modified, or deleted between the time the first chunk was returned and now may \
     show up in the list.";

/// Keys that are read from storage at once where a selector hides some of them.
const STORAGE_PAGE: usize = 1000;

/// Which state a list is to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// The cache as it is, when it has reached a revision.
    Cache { at_least: u64 },
    /// The storage at exactly a revision.
    Exactly(u64),
}

/// What a list asks for, after all checks.
struct Plan {
    source: Source,
    /// First key, relative to the scope.
    start: String,
    limit: usize,
}

/// Answers a list.
pub(crate) async fn list(
    core: &Core,
    renderer: Renderer,
    store: &Arc<Store>,
    selection: Selection,
    options: &ListOptions,
) -> Outcome<Answer> {
    let plan = plan(core, options).await?;
    let scope = store.scope(selection.namespace.as_deref());
    let start = format!("{scope}{}", plan.start);
    let (items, head) = match plan.source {
        Source::Cache { at_least } => {
            store.cache.fresh(at_least, core.config.fresh_patience).await?;
            let snapshot = store.cache.snapshot();
            let head = ListHead { revision: snapshot.revision, ..ListHead::default() };
            if plan.limit == 0 {
                let items = Items::Cached(snapshot.items.iter_from(&scope, &start));
                (items, head)
            } else {
                let rest = snapshot.items.count_from(&scope, &start);
                let keys = snapshot.items.iter_from(&scope, &start);
                page(keys, &scope, &selection, plan.limit, rest, head)
            }
        }
        Source::Exactly(revision) => {
            store.cache.fresh(revision, core.config.fresh_patience).await?;
            let read = exact(core, &scope, &start, &selection, plan.limit, revision).await;
            read.map_err(|error| explain(error, options, &plan))?
        }
    };
    let items = items.filter(move |item| selection.matches(item));
    Ok(respond(core, renderer, items, head))
}

/// All matching objects of a selection, as of now.
pub(crate) fn matching_items(store: &Store, selection: &Selection) -> Vec<Item> {
    let scope = store.scope(selection.namespace.as_deref());
    let items = store.cache.snapshot().items.iter_from(&scope, "");
    items.map(|(_, item)| item).filter(|item| selection.matches(item)).collect()
}

/// Chooses by version, match, limit and token (kube-apiserver `ShouldDelegateList` and `CacheDelegator.GetList`).
async fn plan(core: &Core, options: &ListOptions) -> Outcome<Plan> {
    let limit = options.limit;
    if !options.continue_token.is_empty() {
        let token = Token::decode(&options.continue_token)?;
        if !matches!(options.version.as_str(), "" | "0") {
            return Err(bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        let source = match u64::try_from(token.revision) {
            Ok(revision) => Source::Exactly(revision),
            Err(_) => Source::Cache { at_least: core.storage.current().await? },
        };
        return Ok(Plan { source, start: token.start, limit });
    }
    let revision = options
        .revision()
        .map_err(|problem| bad_request(format!("invalid resource version: {problem}")))?;
    let (source, limit) = match (options.version.as_str(), options.matching) {
        // Most recent: what is committed by now.
        ("", _) => (Source::Cache { at_least: core.storage.current().await? }, limit),
        // Whatever is cached; the limit is ignored.
        (_, _) if revision == 0 => (Source::Cache { at_least: 0 }, 0),
        (_, Some(Match::Exact)) => (Source::Exactly(revision), limit),
        (_, Some(Match::NotOlderThan)) => (Source::Cache { at_least: revision }, limit),
        // A version with a limit and no match means exactly that version, for ever.
        (_, None) if limit > 0 => (Source::Exactly(revision), limit),
        (_, None) => (Source::Cache { at_least: revision }, 0),
    };
    Ok(Plan { source, start: String::new(), limit })
}

/// A compacted revision is said in two ways, depending on where it came from.
fn explain(error: ReadError, options: &ListOptions, plan: &Plan) -> crate::failure::Failure {
    let compacted = matches!(error, ReadError::Compacted { .. });
    if !compacted || options.continue_token.is_empty() {
        return error.into();
    }
    let mut status = expired(TOKEN_EXPIRED).status();
    let token = Token { revision: -1, start: plan.start.clone() };
    status.continue_token = Some(token.encode());
    status.into()
}

/// One page out of an ordered walk of a scope; `rest` is the number of keys in it, selected or not.
fn page(
    keys: impl Iterator<Item = (Arc<str>, Item)>,
    scope: &str,
    selection: &Selection,
    limit: usize,
    rest: usize,
    mut head: ListHead,
) -> (Items, ListHead) {
    let mut items = Vec::new();
    let mut seen = 0;
    for (key, item) in keys {
        seen += 1;
        if !selection.matches(&item) {
            continue;
        }
        items.push(item);
        if items.len() == limit {
            // A token goes out whenever any key follows, so that with a selector the next page may be empty.
            if seen < rest {
                let start = format!("{}\0", &key[scope.len()..]);
                let revision = i64::try_from(head.revision).unwrap_or(i64::MAX);
                head.continue_token = Token { revision, start }.encode();
                head.remaining = (!selection.is_selective()).then_some(rest - seen);
            }
            break;
        }
    }
    (Items::Page(items.into_iter()), head)
}

/// Reads the past. Memory is proportional to the page, and without a limit to the number of objects, not to their bytes.
async fn exact(
    core: &Core,
    scope: &str,
    start: &str,
    selection: &Selection,
    limit: usize,
    revision: u64,
) -> Result<(Items, ListHead), ReadError> {
    let head = ListHead { revision, ..ListHead::default() };
    if limit == 0 {
        let page = core.storage.range(Range::prefix(scope).start(start).at(revision)).await?;
        let items: Vec<Item> = page.items.into_iter().map(|entry| entry.value).collect();
        return Ok((Items::Page(items.into_iter()), head));
    }
    let step = if selection.is_selective() { limit.max(STORAGE_PAGE) } else { limit };
    let mut keys = Vec::new();
    let mut matched = 0;
    let mut from = start.to_owned();
    let mut rest = None;
    loop {
        let range = Range::prefix(scope).start(&from).limit(step).at(revision);
        let page = core.storage.range(range).await?;
        let total = *rest.get_or_insert(page.count);
        let last = page.items.len() == page.count;
        matched += page.items.iter().filter(|entry| selection.matches(&entry.value)).count();
        if let Some(entry) = page.items.last() {
            from = format!("{}\0", entry.key);
        }
        keys.extend(page.items.into_iter().map(|entry| (entry.key, entry.value)));
        if last || matched >= limit {
            let keys = keys.into_iter();
            return Ok(self::page(keys, scope, selection, limit, total, head));
        }
    }
}

/// Items of an answer, lazily. A clone walks the same items again.
#[derive(Clone)]
enum Items {
    Cached(Iter<Item>),
    Page(std::vec::IntoIter<Item>),
}

impl Iterator for Items {
    type Item = Item;
    fn next(&mut self) -> Option<Item> {
        match self {
            Self::Cached(items) => items.next().map(|(_, item)| item),
            Self::Page(items) => items.next(),
        }
    }
}

/// Builds the answer. A list that fits one chunk goes out whole, with its length.
pub(crate) fn respond(
    core: &Core,
    renderer: Renderer,
    items: impl Iterator<Item = Item> + Clone + Send + 'static,
    head: ListHead,
) -> Answer {
    let content_type = renderer.content_type();
    let gates = core.config.gates;
    let streams = match renderer.media.format {
        Format::Json => gates.streaming_collection_encoding_to_json,
        Format::Protobuf => gates.streaming_collection_encoding_to_protobuf,
    };
    let mut chunks = Chunks::new(renderer, items, head);
    if !streams {
        let whole: Vec<Bytes> = chunks.collect();
        return answer::with(200, content_type, Body::whole(whole.concat()));
    }
    let first = chunks.next().unwrap_or_default();
    let body = match chunks.next() {
        None => Body::whole(first),
        Some(second) => {
            let chunks = [first, second].into_iter().chain(chunks);
            Body::chunks(stream::iter(chunks.map(Ok)))
        }
    };
    answer::with(200, content_type, body)
}

/// The text of a list, one chunk at a time.
struct Chunks<I> {
    renderer: Renderer,
    items: I,
    head: ListHead,
    index: usize,
    out: Out,
    done: bool,
}

impl<I: Iterator<Item = Item> + Clone> Chunks<I> {
    fn new(renderer: Renderer, items: I, head: ListHead) -> Self {
        let mut out = Out::default();
        renderer.list_head(&head, items.clone(), &mut out);
        Self { renderer, items, head, index: 0, out, done: false }
    }
}

impl<I: Iterator<Item = Item>> Iterator for Chunks<I> {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        while !self.done && !self.out.is_full() {
            match self.items.next() {
                Some(item) => {
                    self.renderer.list_item(&item, self.index, &mut self.out);
                    self.index += 1;
                }
                None => {
                    self.renderer.list_tail(&self.head, &mut self.out);
                    self.done = true;
                }
            }
        }
        self.out.take()
    }
}
