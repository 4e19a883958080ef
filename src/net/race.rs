//! Two futures, of which the first that is ready counts.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

/// Which of two futures was ready first.
pub enum First<L, R> {
    Left(L),
    Right(R),
}

/// Waits for the first of two futures and drops the other. If both are ready it is the left one.
pub async fn race<L, R>(left: impl Future<Output = L>, right: impl Future<Output = R>) -> First<L, R> {
    let (mut left, mut right) = (pin!(left), pin!(right));
    poll_fn(|cx| {
        if let Poll::Ready(value) = left.as_mut().poll(cx) {
            return Poll::Ready(First::Left(value));
        }
        right.as_mut().poll(cx).map(First::Right)
    })
    .await
}
