//! The two async ends of a queue.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::mem;
use std::task::{Context, Poll, Waker};

use kubestrata_api_types::{Object, Update};
use tokio::time::Instant;

use crate::sync::{Arc, Mutex, MutexGuard};
use crate::{Batch, Delta, Limits, Load, Metrics, Popped, Queue, RealFifo, Synced};

/// Configuration of [`channel`].
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_structs, reason = "written as literals with ..Default")]
pub struct Config<T> {
    /// Bounds.
    pub limits: Limits,
    /// Bytes that an object holds, for the bound in bytes. Default: the size of the Rust type.
    pub weigh: fn(&T) -> usize,
    /// Metrics. Default: none.
    pub metrics: Metrics,
}

impl<T> Default for Config<T> {
    fn default() -> Self {
        Self { limits: Limits::default(), weigh: |_| size_of::<T>(), metrics: Metrics::default() }
    }
}

/// The two ends of an atomic [`RealFifo`].
pub fn channel<T: Object + Clone>(config: Config<T>) -> (Producer<T>, Consumer<T>) {
    let queue: Box<dyn Queue<T>> = Box::new(RealFifo::new(config.limits, config.weigh));
    over(queue, config.metrics)
}

/// The two ends of any queue.
pub fn over<T>(queue: Box<dyn Queue<T>>, metrics: Metrics) -> (Producer<T>, Consumer<T>) {
    let shared = Arc::new(Shared {
        synced: Synced::new(queue.has_synced()),
        inner: Mutex::new(Inner { queue, producer: None, consumer: None, consumer_gone: false }),
        metrics,
    });
    (Producer(Arc::clone(&shared)), Consumer(shared))
}

/// The queue is closed; here is the update that it did not take.
#[derive(thiserror::Error)]
#[error("the queue's consumer is gone")]
#[expect(clippy::exhaustive_structs, reason = "a wrapper of what was refused")]
pub struct Closed<T>(pub Option<Update<T>>);

impl<T> fmt::Debug for Closed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Closed")
    }
}

struct Shared<T> {
    inner: Mutex<Inner<T>>,
    /// A copy of the queue's own latch, for those who must not take the lock.
    synced: Synced,
    metrics: Metrics,
}

struct Inner<T> {
    queue: Box<dyn Queue<T>>,
    producer: Option<Waker>,
    consumer: Option<Waker>,
    consumer_gone: bool,
}

impl<T> Shared<T> {
    /// Publishes the load, with the lock held.
    fn publish(&self, inner: &Inner<T>) {
        let load = inner.queue.load();
        #[expect(clippy::cast_precision_loss, reason = "metrics are doubles")]
        {
            self.metrics.queued_items.set(load.items as f64);
            self.metrics.queued_bytes.set(load.bytes as f64);
        }
    }

    /// Sets the latch if the queue says so. Wakers may run foreign code, so the lock must be released.
    fn latch(&self, synced: bool) {
        if synced && !self.synced.is_set() {
            self.synced.set();
        }
    }

    fn offer(
        &self,
        cx: &Context<'_>,
        admit: impl Fn(&dyn Queue<T>) -> bool,
        add: impl FnOnce(&mut dyn Queue<T>),
    ) -> Poll<Result<(), ()>> {
        let mut inner = self.inner.lock();
        if inner.consumer_gone {
            return Poll::Ready(Err(()));
        }
        if !admit(&*inner.queue) {
            store_waker(&mut inner.producer, cx);
            return Poll::Pending;
        }
        add(&mut *inner.queue);
        self.appended(inner);
        Poll::Ready(Ok(()))
    }

    /// Ready when all are appended, or the consumer is gone.
    fn offer_all(
        &self,
        cx: &Context<'_>,
        updates: &mut VecDeque<Update<T>>,
    ) -> Poll<Result<(), ()>> {
        let mut inner = self.inner.lock();
        if inner.consumer_gone && !updates.is_empty() {
            return Poll::Ready(Err(()));
        }
        while let Some(update) = updates.pop_front() {
            if !inner.queue.admits(inner.queue.measure(&update)) {
                updates.push_front(update);
                store_waker(&mut inner.producer, cx);
                break;
            }
            inner.queue.push(update);
        }
        self.appended(inner);
        if updates.is_empty() { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    /// Releases the lock, and tells the consumer and those who wait for the latch.
    fn appended(&self, mut inner: MutexGuard<'_, Inner<T>>) {
        self.publish(&inner);
        let (synced, consumer) = (inner.queue.has_synced(), inner.consumer.take());
        drop(inner);
        self.latch(synced);
        wake(consumer);
    }
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

fn store_waker(slot: &mut Option<Waker>, cx: &Context<'_>) {
    match slot {
        Some(waker) => waker.clone_from(cx.waker()),
        None => *slot = Some(cx.waker().clone()),
    }
}

// === impl Producer ===

/// The end that appends. There is one, so that the order is the order of its calls. Dropping it closes the queue.
pub struct Producer<T>(Arc<Shared<T>>);

impl<T> Producer<T> {
    /// Appends an update, when there is room for it.
    ///
    /// A state ([`Update::Replace`]) larger than the bounds is let in once the queue is empty.
    ///
    /// Cancel-safety: a cancelled call has appended nothing, and the update is dropped with the future.
    ///
    /// # Errors
    ///
    /// [`Closed`] with the update if the consumer is gone.
    pub async fn push(&mut self, update: Update<T>) -> Result<(), Closed<T>> {
        let load = self.0.inner.lock().queue.measure(&update);
        let mut update = Some(update);
        let pushed = poll_fn(|cx| {
            self.0.offer(
                cx,
                |queue| queue.admits(load),
                |queue| {
                    if let Some(update) = update.take() {
                        queue.push(update);
                    }
                },
            )
        })
        .await;
        pushed.map_err(|()| Closed(update))
    }

    /// Appends updates from the front of `updates`, as far as there is room under one lock and with one wake-up of the
    /// consumer, and waits for room for the rest.
    ///
    /// Cancel-safe: what was not appended is still in `updates`.
    ///
    /// # Errors
    ///
    /// [`Closed`] if the consumer is gone, with the first update that was not appended.
    pub async fn push_all(&mut self, updates: &mut VecDeque<Update<T>>) -> Result<(), Closed<T>> {
        let pushed = poll_fn(|cx| self.0.offer_all(cx, updates)).await;
        pushed.map_err(|()| Closed(updates.pop_front()))
    }

    /// Asks the consumer to see all its objects once more, when there is room.
    ///
    /// Cancel-safety: a cancelled call has asked for nothing.
    ///
    /// # Errors
    ///
    /// [`Closed`] if the consumer is gone.
    pub async fn resync(&mut self) -> Result<(), Closed<T>> {
        let load = Load { items: 1, bytes: 0 };
        let asked =
            poll_fn(|cx| self.0.offer(cx, |queue| queue.admits(load), |queue| queue.resync()));
        asked.await.map_err(|()| Closed(None))
    }

    /// What is queued now.
    pub fn load(&self) -> Load {
        self.0.inner.lock().queue.load()
    }

    /// Whether the first state has been processed.
    pub fn synced(&self) -> Synced {
        self.0.synced.clone()
    }
}

impl<T> Drop for Producer<T> {
    fn drop(&mut self) {
        let mut inner = self.0.inner.lock();
        inner.queue.close();
        let consumer = inner.consumer.take();
        drop(inner);
        wake(consumer);
    }
}

impl<T> fmt::Debug for Producer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Producer").field("load", &self.load()).finish()
    }
}

// === impl Consumer ===

/// The end that takes. There is one, and it holds one batch at a time. Dropping it refuses all further updates.
pub struct Consumer<T>(Arc<Shared<T>>);

impl<T> Consumer<T> {
    /// The next batch; `None` once the producer is gone and everything was taken.
    ///
    /// The batch counts as processed when the guard is dropped or [`Processing::done`] is called.
    ///
    /// Cancel-safe: a cancelled call has taken nothing.
    pub async fn next_batch(&mut self) -> Option<Processing<'_, T>> {
        let batch = poll_fn(|cx| self.poll_pop(cx)).await?;
        let length = batch.deltas.len();
        Some(Processing { consumer: self, batch, length, started: Instant::now() })
    }

    /// What is queued now, without the batch in process.
    pub fn load(&self) -> Load {
        self.0.inner.lock().queue.load()
    }

    /// Whether the first state has been processed.
    pub fn synced(&self) -> Synced {
        self.0.synced.clone()
    }

    fn poll_pop(&self, cx: &Context<'_>) -> Poll<Option<Batch<T>>> {
        let mut inner = self.0.inner.lock();
        match inner.queue.pop() {
            Popped::Batch(batch) => {
                self.0.publish(&inner);
                let producer = inner.producer.take();
                drop(inner);
                wake(producer);
                Poll::Ready(Some(batch))
            }
            Popped::Closed => Poll::Ready(None),
            Popped::Empty => {
                store_waker(&mut inner.consumer, cx);
                Poll::Pending
            }
        }
    }

    fn mark_processed(&self) {
        let mut inner = self.0.inner.lock();
        inner.queue.processed();
        let synced = inner.queue.has_synced();
        drop(inner);
        self.0.latch(synced);
    }
}

impl<T> Drop for Consumer<T> {
    fn drop(&mut self) {
        let mut inner = self.0.inner.lock();
        inner.consumer_gone = true;
        let producer = inner.producer.take();
        drop(inner);
        wake(producer);
    }
}

impl<T> fmt::Debug for Consumer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumer").field("load", &self.load()).finish()
    }
}

// === impl Processing ===

/// A batch in process. Dropping it says that the batch was applied, unless the thread panics.
pub struct Processing<'a, T> {
    consumer: &'a mut Consumer<T>,
    batch: Batch<T>,
    length: usize,
    started: Instant,
}

impl<T> Processing<'_, T> {
    /// The deltas that were not taken, oldest first.
    pub fn deltas(&self) -> &[Delta<T>] {
        &self.batch.deltas
    }

    /// Takes the deltas, oldest first; the batch is not yet processed by that.
    pub fn take(&mut self) -> Vec<Delta<T>> {
        mem::take(&mut self.batch.deltas)
    }

    /// Whether the batch belongs to the first state (client-go `isInInitialList`).
    pub fn is_initial(&self) -> bool {
        self.batch.initial
    }

    /// The batch was applied, and handlers were told.
    pub fn done(self) {}
}

impl<T> Drop for Processing<'_, T> {
    fn drop(&mut self) {
        // A consumer that panicked half way must not look synced.
        if !std::thread::panicking() {
            let latency = self.started.elapsed().as_secs_f64();
            self.consumer.0.metrics.processing_latency.observe(latency);
            self.consumer.mark_processed();
        }
    }
}

impl<T> fmt::Debug for Processing<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Processing")
            .field("deltas", &self.length)
            .field("initial", &self.batch.initial)
            .finish_non_exhaustive()
    }
}
