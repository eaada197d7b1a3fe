//! Work on the two halves of a long list by two threads.
//!
//! Results come in the order of the list, so that nothing shows how it was
//! parted. What is computed must not depend on it either.

use std::sync::Mutex;
use std::thread;

/// Less is not worth a thread: starting one takes as long as the work on some
/// tens of runs.
const PART_MIN: usize = 1_000;

/// Calls `work` on both halves of `items`, or on all of them where there is little
/// to do or no thread can be had; the results in the order of the list. `weight`
/// is how many runs or spans all items have to do with.
///
/// # Panics
/// Where `work` does.
pub(crate) fn halves<T: Sync, R: Send>(
    items: &[T],
    weight: usize,
    work: impl Fn(&[T]) -> R + Sync,
) -> Vec<R> {
    if weight < 2 * PART_MIN || items.len() < 2 {
        return vec![work(items)];
    }
    let (first, second) = items.split_at(items.len() / 2);
    thread::scope(|scope| {
        let other = thread::Builder::new().spawn_scoped(scope, || work(second));
        let mut found = vec![work(first)];
        found.push(match other.map(thread::ScopedJoinHandle::join) {
            Ok(Ok(second)) => second,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(_) => work(second),
        });
        found
    })
}

/// One result for each item, in their order; parted like [`halves`].
///
/// # Panics
/// Where `one` does.
pub(crate) fn each<T: Sync, R: Send>(
    items: &[T],
    weight: usize,
    one: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let parts = halves(items, weight, |part| {
        part.iter().map(&one).collect::<Vec<R>>()
    });
    parts.into_iter().flatten().collect()
}

/// Does two things that have nothing to do with each other, at the same time where
/// they are worth a thread; `weight` as for [`halves`].
///
/// # Panics
/// Where one of them does.
pub(crate) fn both<A, B: Send>(
    weight: usize,
    first: impl FnOnce() -> A,
    second: impl FnOnce() -> B + Send,
) -> (A, B) {
    if weight < 2 * PART_MIN {
        return (first(), second());
    }
    // Whoever takes it does it: the thread, or this one where there is none.
    let second = Mutex::new(Some(second));
    let take = || second.lock().ok().and_then(|mut held| held.take());
    let (first, done) = thread::scope(|scope| {
        let work = || take().map(|second| second());
        let other = thread::Builder::new().spawn_scoped(scope, work);
        let first = first();
        match other.map(thread::ScopedJoinHandle::join) {
            Ok(Ok(done)) => (first, done),
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(_) => (first, None),
        }
    });
    match done.or_else(|| take().map(|second| second())) {
        Some(second) => (first, second),
        None => unreachable!("whoever took the work gave its result or panicked"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_list() {
        for length in [0, 1, 2 * PART_MIN - 1, 2 * PART_MIN, 2 * PART_MIN + 1] {
            let items: Vec<usize> = (0..length).collect();
            let found = halves(&items, length, <[usize]>::to_vec);
            assert_eq!(found.len(), if length < 2 * PART_MIN { 1 } else { 2 });
            assert_eq!(found.concat(), items);
        }
    }

    #[test]
    fn both_results_come_whatever_the_weight() {
        for weight in [0, 2 * PART_MIN] {
            assert_eq!(both(weight, || 1, || "b"), (1, "b"));
        }
    }

    #[test]
    #[should_panic(expected = "the last item")]
    fn a_panic_of_the_other_thread_is_one_of_the_caller() {
        let items: Vec<usize> = (0..2 * PART_MIN).collect();
        let last = items.len() - 1;
        halves(&items, items.len(), |part| {
            assert!(!part.contains(&last), "the last item");
        });
    }
}
