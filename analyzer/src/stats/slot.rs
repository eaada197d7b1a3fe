//! Order and drift in paired differences: `d_i = μ + β s_i + γ t_i + ε_i`.
//!
//! s = +1 where the control ran first and −1 where the candidate did; t runs from
//! −½ at the first pair to +½ at the last, so γ is what the difference drifted by
//! over the whole experiment and β half of what the order is worth. Ordinary least
//! squares; intervals with Student's t at n − 3 (n − 2 without an order term).
//! Source: any text on linear models, e.g. Draper and Smith, chapter 5. Where all
//! pairs have one order β is undefined; n < 5, or no residual variance: no interval.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// A term with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Term {
    /// Estimate, in the unit of the differences.
    pub value: f64,
    /// 95 % interval; `None` where nothing is left to judge it by.
    pub interval: Option<(f64, f64)>,
}

/// The fitted terms.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// β; `None` where all pairs ran in one order.
    pub order: Option<Term>,
    /// γ; `None` for fewer than three pairs.
    pub drift: Option<Term>,
    /// What the terms leave, in the order of the pairs.
    pub residuals: Vec<f64>,
}

/// Fewest pairs with which intervals are given.
const N_MIN: usize = 5;

/// Fits (order, difference) of finite differences in the order of time.
#[must_use]
pub fn fit(pairs: &[(f64, f64)]) -> Fit {
    let n = pairs.len();
    let span = n.saturating_sub(1).max(1) as f64;
    let time = |index: usize| index as f64 / span - 0.5;
    let one_order = pairs
        .windows(2)
        .all(|two| two[0].0.total_cmp(&two[1].0).is_eq());
    let columns: Vec<Vec<f64>> = match (n, one_order) {
        (0..=2, _) => vec![vec![1.0; n]],
        (_, true) => vec![vec![1.0; n], (0..n).map(time).collect()],
        (_, false) => vec![
            vec![1.0; n],
            (0..n).map(time).collect(),
            pairs.iter().map(|(order, _)| *order).collect(),
        ],
    };
    let y: Vec<f64> = pairs.iter().map(|(_, difference)| *difference).collect();
    let Some((inverse, terms)) = solve(&columns, &y) else {
        return Fit {
            order: None,
            drift: None,
            residuals: y,
        };
    };
    let fitted = |row: usize| -> f64 {
        let columns = columns.iter().zip(&terms);
        columns.map(|(column, term)| column[row] * term).sum()
    };
    let residuals: Vec<f64> = y
        .iter()
        .enumerate()
        .map(|(row, y)| y - fitted(row))
        .collect();
    let freedom = n.saturating_sub(columns.len());
    let squares: f64 = residuals.iter().map(|one| one * one).sum();
    let term = |place: usize| {
        let value = *terms.get(place)?;
        let variance = inverse[place][place] * squares / freedom.max(1) as f64;
        let judged = n >= N_MIN && freedom > 0 && variance > 0.0;
        let half = judged.then(|| t_975(freedom) * variance.sqrt());
        Some(Term {
            value,
            interval: half.map(|half| (value - half, value + half)),
        })
    };
    Fit {
        order: term(2),
        drift: term(1),
        residuals,
    }
}

/// Student's t at 97.5 %.
fn t_975(freedom: usize) -> f64 {
    StudentsT::new(0.0, 1.0, freedom as f64).map_or(f64::INFINITY, |t| t.inverse_cdf(0.975))
}

/// (XᵀX)⁻¹ and the coefficients, by Gauss and Jordan; `None` for a singular matrix.
fn solve(columns: &[Vec<f64>], y: &[f64]) -> Option<(Vec<Vec<f64>>, Vec<f64>)> {
    let k = columns.len();
    let dot = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
    let mut rows: Vec<Vec<f64>> = (0..k)
        .map(|i| {
            let products = (0..k).map(|j| dot(&columns[i], &columns[j]));
            let unit = (0..k).map(|j| f64::from(u8::from(i == j)));
            products.chain(unit).collect()
        })
        .collect();
    for pivot in 0..k {
        let best =
            (pivot..k).max_by(|a, b| rows[*a][pivot].abs().total_cmp(&rows[*b][pivot].abs()))?;
        rows.swap(pivot, best);
        let scale = rows[pivot][pivot];
        // Sums of n squares of numbers of at most 1: anything this small is none.
        if scale.abs() < 1e-9 {
            return None;
        }
        rows[pivot].iter_mut().for_each(|value| *value /= scale);
        let own = rows[pivot].clone();
        for (index, row) in rows
            .iter_mut()
            .enumerate()
            .filter(|(index, _)| *index != pivot)
        {
            debug_assert_ne!(index, pivot);
            let factor = row[pivot];
            row.iter_mut()
                .zip(&own)
                .for_each(|(value, own)| *value -= factor * own);
        }
    }
    let inverse: Vec<Vec<f64>> = rows.iter().map(|row| row[k..].to_vec()).collect();
    let right: Vec<f64> = columns.iter().map(|column| dot(column, y)).collect();
    let terms = inverse.iter().map(|row| dot(row, &right)).collect();
    Some((inverse, terms))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exact_model_is_found_exactly() {
        // d = 7 + 2 s + 4 t over five pairs, t = −½, −¼, 0, ¼, ½.
        let orders = [1.0, -1.0, -1.0, 1.0, 1.0];
        let pairs: Vec<(f64, f64)> = orders
            .iter()
            .enumerate()
            .map(|(i, s)| (*s, 7.0 + 2.0 * s + 4.0 * (i as f64 / 4.0 - 0.5)))
            .collect();
        let found = fit(&pairs);
        assert!((found.order.unwrap().value - 2.0).abs() < 1e-12);
        assert!((found.drift.unwrap().value - 4.0).abs() < 1e-12);
        assert!(found.residuals.iter().all(|one| one.abs() < 1e-12));
    }

    #[test]
    fn one_order_has_no_order_term_and_two_pairs_no_drift() {
        let found = fit(&[(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)]);
        assert_eq!(found.order, None);
        assert!((found.drift.unwrap().value - 2.0).abs() < 1e-12);
        assert_eq!(fit(&[(1.0, 1.0), (-1.0, 2.0)]).drift, None);
        assert!(fit(&[]).residuals.is_empty());
    }
}
