//! Work on a slice, on as many threads as the machine has.

use std::num::NonZero;

/// Cuts `items` into one run a thread, of `chunk_min` items at least, and gives `work`
/// each run with the index of its first item. Results are in the order of the runs, so
/// that what they are put together to does not depend on the machine.
pub(crate) fn by_chunks<T: Sync, R: Send>(
    items: &[T],
    chunk_min: usize,
    work: impl Fn(usize, &[T]) -> R + Sync,
) -> Vec<R> {
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    let chunk = items.len().div_ceil(threads).max(chunk_min).max(1);
    let work = &work;
    std::thread::scope(|scope| {
        let workers: Vec<_> = items
            .chunks(chunk)
            .enumerate()
            .map(|(index, part)| scope.spawn(move || work(index * chunk, part)))
            .collect();
        workers
            .into_iter()
            .filter_map(|worker| worker.join().ok())
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::by_chunks;

    #[test]
    fn every_item_is_worked_on_once_and_in_order() {
        let items: Vec<usize> = (100..200).collect();
        let parts = by_chunks(&items, 7, |first, part| {
            let indexed = part.iter().enumerate();
            indexed.map(|(at, item)| (first + at, *item)).collect()
        });
        let all: Vec<(usize, usize)> = parts.into_iter().flat_map(|part: Vec<_>| part).collect();
        assert_eq!(all, (0..100).zip(100..200).collect::<Vec<_>>());
        assert!(by_chunks(&[0_u8; 0], 0, |_, _| ()).is_empty());
    }
}
