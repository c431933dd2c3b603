//! Sorting few rows by the steps that PostgreSQL sorts by.
//!
//! Rows that compare equal may come in any order, but whoever moves a database sees the order that
//! PostgreSQL left them in. Its sort is not stable, yet always the same for the same rows: Bentley and
//! McIlroy's quicksort ("Engineering a Sort Function", 1993) behind a look whether the rows are in order
//! already (sort_template.h). Few rows are sorted by the same steps; many are not, for its worst case
//! is quadratic.

use std::cmp::Ordering;

use archipel_sql::error::Result;
use archipel_sql::interrupt;

/// More rows than these are sorted stably.
const FEW_ROWS_MAX: usize = 1024;

/// So many rows are sorted in one piece; of more, sorted pieces are sorted together, which is a merge,
/// so that a long sort can be ended.
const ROWS_AT_ONCE: usize = 1 << 19;

/// Sorts rows; few that are equal come as PostgreSQL leaves them, many as they came. Fails where the
/// statement shall end.
pub(crate) fn sort_rows<T, F: Fn(&T, &T) -> Ordering>(rows: &mut [T], compare: F) -> Result<()> {
    if rows.len() <= FEW_ROWS_MAX {
        quicksort(rows, &compare);
        return Ok(());
    }
    let mut piece = ROWS_AT_ONCE;
    loop {
        for rows in rows.chunks_mut(piece) {
            interrupt::check()?;
            rows.sort_by(&compare);
        }
        if piece >= rows.len() {
            return Ok(());
        }
        piece *= 2;
    }
}

fn quicksort<T, F: Fn(&T, &T) -> Ordering>(mut rows: &mut [T], compare: &F) {
    loop {
        if rows.windows(2).all(|pair| compare(&pair[0], &pair[1]).is_le()) {
            return;
        }
        if rows.len() < 7 {
            insertion_sort(rows, compare);
            return;
        }
        let middle = pivot(rows, compare);
        rows.swap(0, middle);
        let (less, greater) = partition(rows, compare);
        let (left, rest) = std::mem::take(&mut rows).split_at_mut(less);
        let equal = rest.len() - greater;
        let (_, right) = rest.split_at_mut(equal);
        // The larger part next, so that the nesting stays logarithmic.
        let (small, large) = if less <= greater { (left, right) } else { (right, left) };
        quicksort(small, compare);
        rows = large;
    }
}

fn insertion_sort<T, F: Fn(&T, &T) -> Ordering>(rows: &mut [T], compare: &F) {
    for end in 1..rows.len() {
        let mut at = end;
        while at > 0 && compare(&rows[at - 1], &rows[at]).is_gt() {
            rows.swap(at - 1, at);
            at -= 1;
        }
    }
}

/// The row that the others are compared with: of many, a median of medians.
fn pivot<T, F: Fn(&T, &T) -> Ordering>(rows: &[T], compare: &F) -> usize {
    let count = rows.len();
    let (mut low, mut middle, mut high) = (0, count / 2, count - 1);
    if count > 40 {
        let step = count / 8;
        low = median(rows, [low, low + step, low + 2 * step], compare);
        middle = median(rows, [middle - step, middle, middle + step], compare);
        high = median(rows, [high - 2 * step, high - step, high], compare);
    }
    if count > 7 {
        middle = median(rows, [low, middle, high], compare);
    }
    middle
}

fn median<T, F: Fn(&T, &T) -> Ordering>(rows: &[T], [a, b, c]: [usize; 3], compare: &F) -> usize {
    let order = |one: usize, other: usize| compare(&rows[one], &rows[other]);
    // Which of two that are equal it is matters: these are PostgreSQL's questions.
    if order(a, b).is_lt() {
        if order(b, c).is_lt() {
            b
        } else if order(a, c).is_lt() {
            c
        } else {
            a
        }
    } else if order(b, c).is_gt() {
        b
    } else if order(a, c).is_lt() {
        a
    } else {
        c
    }
}

/// Brings the rows less than the first to the front and the greater ones to the end; how many they are.
fn partition<T, F: Fn(&T, &T) -> Ordering>(rows: &mut [T], compare: &F) -> (usize, usize) {
    let count = rows.len();
    // Equal rows gather at both ends: before `front`, and from `back` on.
    let (mut front, mut low, mut high, mut back) = (1, 1, count - 1, count - 1);
    loop {
        while low <= high {
            match compare(&rows[low], &rows[0]) {
                Ordering::Greater => break,
                Ordering::Equal => {
                    rows.swap(front, low);
                    front += 1;
                }
                Ordering::Less => {}
            }
            low += 1;
        }
        while low <= high {
            match compare(&rows[high], &rows[0]) {
                Ordering::Less => break,
                Ordering::Equal => {
                    rows.swap(high, back);
                    back -= 1;
                }
                Ordering::Greater => {}
            }
            high -= 1;
        }
        if low > high {
            break;
        }
        rows.swap(low, high);
        low += 1;
        high -= 1;
    }
    // Then they go to the middle.
    let moved = front.min(low - front);
    for place in 0..moved {
        rows.swap(place, low - moved + place);
    }
    let moved = (back - high).min(count - back - 1);
    for place in 0..moved {
        rows.swap(low + place, count - moved + place);
    }
    (low - front, back - high)
}

#[cfg(test)]
mod tests {
    use super::sort_rows;

    #[test]
    fn equal_rows_come_as_postgresql_leaves_them() {
        // tenk1's first ten rows of the regression tests, by unique1 % 4.
        let mut rows = [4, 2, 1, 6, 9, 8, 5, 3, 7, 0];
        sort_rows(&mut rows, |a, b| (a % 4).cmp(&(b % 4))).expect("nobody ends it");
        assert_eq!(rows, [0, 8, 4, 5, 9, 1, 6, 2, 3, 7]);
    }

    #[test]
    fn rows_of_several_pieces_are_sorted_and_equal_ones_keep_their_order() {
        let count = 2 * super::ROWS_AT_ONCE + 12_345;
        let mut rows: Vec<usize> = (0..count).map(|row| (row * 7919 % 1_000) * count + row).collect();
        let mut sorted = rows.clone();
        sorted.sort_unstable();
        sort_rows(&mut rows, |a, b| (a / count).cmp(&(b / count))).expect("nobody ends it");
        assert!(rows == sorted);
    }

    #[test]
    fn every_count_of_rows_is_sorted() {
        for count in 0..200_usize {
            for distinct in [1, 2, 7, 1000] {
                let mut rows: Vec<usize> = (0..count).map(|row| row * 7919 % 1009 % distinct).collect();
                let mut sorted = rows.clone();
                sorted.sort_unstable();
                sort_rows(&mut rows, usize::cmp).expect("nobody ends it");
                assert_eq!(rows, sorted);
            }
        }
    }
}
