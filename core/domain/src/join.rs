//! Doing several things at once.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use futures_util::FutureExt as _;
use futures_util::future::maybe_done;

/// Runs all futures at once and answers in their order. The function of this name in `futures-util` does the same, but brings a
/// scheduler for crowds along, once for every type of future. Shards, topics and sinks are few, and a Worker must be small.
pub async fn join_all<'a, T: 'a>(futures: impl IntoIterator<Item = impl Future<Output = T> + 'a>) -> Vec<T> {
    let mut running: Vec<_> = futures.into_iter().map(|future| maybe_done(future.boxed_local())).collect();
    poll_fn(|context| {
        let pending = running.iter_mut().map(|future| future.poll_unpin(context)).filter(Poll::is_pending);
        if pending.count() == 0 { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    running.iter_mut().filter_map(|future| Pin::new(future).take_output()).collect()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn all_run_at_once_and_answer_in_their_order() {
        let (started, turn) = (Cell::new(0), Cell::new(3));
        let futures = (0..3).map(|number| {
            started.set(started.get() + 1);
            // The last one ends first.
            let mut waits = turn.replace(turn.get() - 1);
            poll_fn(move |context| {
                waits -= 1;
                context.waker().wake_by_ref();
                if waits == 0 { Poll::Ready(number) } else { Poll::Pending }
            })
        });
        let mut all = Box::pin(join_all(futures));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(all.as_mut().poll(&mut context).is_pending() && started.get() == 3);
        assert!(all.as_mut().poll(&mut context).is_pending());
        assert_eq!(all.as_mut().poll(&mut context), Poll::Ready(vec![0, 1, 2]));
    }

    #[test]
    fn nothing_to_run_ends_at_once() {
        let none: Vec<std::future::Ready<()>> = Vec::new();
        assert_eq!(join_all(none).now_or_never(), Some(Vec::new()));
    }
}
