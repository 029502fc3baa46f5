//! The comparison of a streamed state with a list, which runs beside the watch.

use std::task::{Context, Poll};

use kubestrata_api_types::{FOREVER, Object, Tick};

use super::{Io, Reflector};
use crate::failure::Fault;
use crate::state::CheckStep;

impl<T: Object> Reflector<T> {
    /// Moves the comparison by one item. Pending if it has moved and wants to be polled again; else until when it waits.
    pub(super) fn poll_check(&mut self, cx: &mut Context<'_>, now: Tick) -> Poll<Tick> {
        let deadline = match self.machine.check_step(now) {
            None => {
                self.check_io = Io::Nothing;
                return Poll::Ready(Tick::from_origin(FOREVER));
            }
            Some(CheckStep::Sleep(until)) => {
                self.check_io = Io::Nothing;
                return Poll::Ready(until);
            }
            Some(CheckStep::List(options)) => {
                if options.continue_token.is_none() {
                    self.spans.comparison(&options);
                }
                let opening =
                    self.spans.comparing().in_scope(|| self.source.list(&self.collection, options));
                self.check_io = Io::OpeningList(opening);
                return Poll::Pending;
            }
            Some(CheckStep::Read(deadline)) => deadline,
        };
        let span = self.spans.comparing();
        let _entered = span.enter();
        match &mut self.check_io {
            Io::OpeningList(opening) => match opening.as_mut().poll(cx) {
                Poll::Pending => return Poll::Ready(deadline),
                Poll::Ready(Ok(stream)) => self.check_io = Io::Listing(stream),
                Poll::Ready(Err(error)) => {
                    self.check_io = Io::Nothing;
                    self.machine.on_check_error(Fault::of(error), now);
                }
            },
            Io::Listing(stream) => match stream.as_mut().poll_next(cx) {
                Poll::Pending => return Poll::Ready(deadline),
                Poll::Ready(Some(Ok(part))) => self.machine.on_check_part(part, now),
                Poll::Ready(Some(Err(error))) => {
                    self.check_io = Io::Nothing;
                    self.machine.on_check_error(Fault::of(error), now);
                }
                Poll::Ready(None) => {
                    self.check_io = Io::Nothing;
                    self.machine.on_check_list_end(now);
                }
            },
            Io::Nothing | Io::OpeningWatch(_) | Io::Watching(_) => return Poll::Ready(deadline),
        }
        Poll::Pending
    }
}
