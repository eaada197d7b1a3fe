//! Work on the two halves of a long list by two threads.
//!
//! Results come in the order of the list, so that nothing shows how it was
//! parted. What is computed must not depend on it either.

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
    #[should_panic(expected = "the last item")]
    fn a_panic_of_the_other_thread_is_one_of_the_caller() {
        let items: Vec<usize> = (0..2 * PART_MIN).collect();
        let last = items.len() - 1;
        halves(&items, items.len(), |part| {
            assert!(!part.contains(&last), "the last item");
        });
    }
}
