//! The partial quicksort of Redis. Where elements are equal, its order is observable.
//!
//! This is the quicksort of Jon L. Bentley and M. Douglas McIlroy, "Engineering a Sort Function" (1993), which leaves parts alone
//! that lie outside the wanted range.

use std::cmp::Ordering;
use std::ops::Range;

/// Sorts so that the elements at the positions in `wanted` are those that a full sort would put there.
pub fn sort_range<T>(items: &mut [T], wanted: Range<usize>, compare: impl Fn(&T, &T) -> Ordering) {
    let mut parts = vec![(0, items.len())];
    while let Some((start, end)) = parts.pop() {
        let (less, greater) = split(&mut items[start..end], &compare);
        for (start, end) in [(start, start + less), (end - greater, end)] {
            if end - start > 1 && start < wanted.end && wanted.start < end {
                parts.push((start, end));
            }
        }
    }
}

/// Moves the elements that are less than one of them to the front, and those that are greater to the end. Returns how many there
/// are of both. Sorts a short slice completely, and returns zeros.
fn split<T>(items: &mut [T], compare: &impl Fn(&T, &T) -> Ordering) -> (usize, usize) {
    let n = items.len();
    if n < 7 {
        for end in 1..n {
            let mut at = end;
            while at > 0 && compare(&items[at - 1], &items[at]).is_gt() {
                items.swap(at, at - 1);
                at -= 1;
            }
        }
        return (0, 0);
    }
    let middle = pivot(items, compare);
    items.swap(0, middle);
    // The elements equal to the first are gathered at both ends; `low..high` is not compared yet.
    let (mut equal_low, mut low, mut high, mut equal_high) = (1, 1, n, n);
    loop {
        while low < high {
            match compare(&items[low], &items[0]) {
                Ordering::Greater => break,
                Ordering::Equal => {
                    items.swap(equal_low, low);
                    equal_low += 1;
                }
                Ordering::Less => {}
            }
            low += 1;
        }
        while low < high {
            match compare(&items[high - 1], &items[0]) {
                Ordering::Less => break,
                Ordering::Equal => {
                    equal_high -= 1;
                    items.swap(high - 1, equal_high);
                }
                Ordering::Greater => {}
            }
            high -= 1;
        }
        if low >= high {
            break;
        }
        items.swap(low, high - 1);
        low += 1;
        high -= 1;
    }
    let (less, greater) = (low - equal_low, equal_high - high);
    swap_blocks(items, 0, low, equal_low.min(less));
    swap_blocks(items, low, n, greater.min(n - equal_high));
    (less, greater)
}

/// Swaps the `len` elements from `start` on with those before `end`.
fn swap_blocks<T>(items: &mut [T], start: usize, end: usize, len: usize) {
    for at in 0..len {
        items.swap(start + at, end - len + at);
    }
}

/// Returns the position of an element near the median.
fn pivot<T>(items: &[T], compare: &impl Fn(&T, &T) -> Ordering) -> usize {
    let median = |a: usize, b: usize, c: usize| {
        let is_less = |a: usize, b: usize| compare(&items[a], &items[b]).is_lt();
        match is_less(a, b) {
            true if is_less(b, c) => b,
            true if is_less(a, c) => c,
            true => a,
            false if is_less(c, b) => b,
            false if is_less(a, c) => a,
            false => c,
        }
    };
    let n = items.len();
    let (low, middle, high) = (0, n / 2, n - 1);
    match n {
        ..=7 => middle,
        8..=40 => median(low, middle, high),
        _ => {
            let d = n / 8;
            median(
                median(low, low + d, low + 2 * d),
                median(middle - d, middle, middle + d),
                median(high - 2 * d, high - d, high),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_wanted_positions_are_those_of_a_full_sort(
            items in prop::collection::vec(0u8..50, 0..200), a in 0usize..200, b in 0usize..200,
        ) {
            let wanted = a.min(b).min(items.len())..a.max(b).min(items.len());
            let (mut partial, mut full) = (items.clone(), items);
            sort_range(&mut partial, wanted.clone(), Ord::cmp);
            full.sort();
            prop_assert_eq!(&partial[wanted.clone()], &full[wanted]);
            partial.sort();
            prop_assert_eq!(partial, full);
        }
    }
}
