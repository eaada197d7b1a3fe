//! Reading request bodies: each bounded in size and time, and all of them together
//! in memory.

use crate::http::Answer;
use http_body_util::BodyExt as _;
use hyper::body::{Body, Bytes};
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

/// Largest request body: that of the daemon whose contract this one keeps.
const BODY_MAX_BYTES: usize = 10 * 1024 * 1024;
/// Longest wait for a whole body.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes of all bodies that are held at once: six of the largest and some small
/// ones. Every connection could hold a largest one otherwise, 2.5 GiB.
const BODIES_MAX_BYTES: usize = 64 * 1024 * 1024;

/// What is left of the memory for bodies.
#[derive(Debug)]
pub(super) struct Budget {
    left: Rc<Cell<usize>>,
}

/// A part of the budget; given back when dropped.
#[derive(Debug)]
pub(super) struct Share {
    left: Rc<Cell<usize>>,
    taken: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            left: Rc::new(Cell::new(BODIES_MAX_BYTES)),
        }
    }
}

impl Budget {
    fn share(&self) -> Share {
        Share {
            left: Rc::clone(&self.left),
            taken: 0,
        }
    }
}

impl Share {
    fn take(&mut self, bytes: usize) -> Result<(), Answer> {
        let left = self.left.get().checked_sub(bytes).ok_or_else(|| {
            closing(
                503,
                "request bodies fill the memory that they may have",
                "bodies_too_large",
            )
            .with_header("Retry-After", "1")
        })?;
        self.left.set(left);
        self.taken += bytes;
        Ok(())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.left.set(self.left.get() + self.taken);
    }
}

/// Reads a whole body. Its share of the budget is to be kept as long as its content
/// is; the allocation may be up to twice as large.
///
/// A body that says itself that it is too large is refused before it is read.
pub(super) async fn read<B>(body: B, budget: &Budget) -> Result<(Vec<u8>, Share), Answer>
where
    B: Body<Data = Bytes> + Unpin,
{
    tokio::time::timeout(BODY_TIMEOUT, collect(body, budget.share()))
        .await
        .unwrap_or_else(|_| {
            Err(closing(
                408,
                "request body did not come in 30 s",
                "body_timeout",
            ))
        })
}

async fn collect<B>(mut body: B, mut share: Share) -> Result<(Vec<u8>, Share), Answer>
where
    B: Body<Data = Bytes> + Unpin,
{
    // The declared length where there is one, else what is buffered already.
    let least = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if least > BODY_MAX_BYTES {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame
            .map_err(|_| Answer::error(400, "request body ended early", Some("body_incomplete")))?;
        // Trailers are nothing that anybody asked for.
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if bytes.len() + data.len() > BODY_MAX_BYTES {
            return Err(too_large());
        }
        share.take(data.len())?;
        bytes.extend_from_slice(&data);
    }
    Ok((bytes, share))
}

fn too_large() -> Answer {
    closing(413, "request body is larger than 10 MiB", "body_too_large")
}

/// The rest of the body would be taken for the next request.
fn closing(status: u16, message: &str, code: &'static str) -> Answer {
    Answer::error(status, message, Some(code)).with_header("Connection", "close")
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::body::{Frame, SizeHint};
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    /// Pieces that come one after the other, with a length that is said or not.
    struct Pieces {
        left: usize,
        piece: Bytes,
        declared: u64,
    }

    impl Body for Pieces {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            if self.left == 0 {
                return Poll::Ready(None);
            }
            self.left -= 1;
            Poll::Ready(Some(Ok(Frame::data(self.piece.clone()))))
        }

        fn size_hint(&self) -> SizeHint {
            let mut hint = SizeHint::new();
            hint.set_lower(self.declared);
            hint
        }
    }

    const MIB: usize = 1024 * 1024;

    fn mebibytes(left: usize) -> Pieces {
        Pieces {
            left,
            piece: Bytes::from(vec![b' '; MIB]),
            declared: 0,
        }
    }

    fn read_now(body: Pieces, budget: &Budget) -> Result<(Vec<u8>, Share), u16> {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap()
            .block_on(read(body, budget))
            .map_err(|answer| answer.status())
    }

    #[test]
    fn a_body_is_bounded_whether_it_says_its_length_or_not() {
        let budget = Budget::default();
        assert_eq!(read_now(mebibytes(10), &budget).unwrap().0.len(), 10 * MIB);
        assert_eq!(read_now(mebibytes(11), &budget).unwrap_err(), 413);
        // Refused by what it says: not a byte of it is asked for.
        let declared = Pieces {
            declared: 10 * MIB as u64 + 1,
            ..mebibytes(0)
        };
        assert_eq!(read_now(declared, &budget).unwrap_err(), 413);
    }

    #[test]
    fn all_bodies_share_one_budget_and_give_it_back() {
        let budget = Budget::default();
        let mut held: Vec<_> = (0..6)
            .map(|_| read_now(mebibytes(10), &budget).unwrap())
            .collect();
        assert_eq!(read_now(mebibytes(5), &budget).unwrap_err(), 503);
        let rest = read_now(mebibytes(4), &budget).unwrap();
        assert_eq!(read_now(mebibytes(1), &budget).unwrap_err(), 503);
        held.pop();
        assert!(read_now(mebibytes(10), &budget).is_ok());
        drop((held, rest));
        assert_eq!(budget.left.get(), BODIES_MAX_BYTES);
    }
}
