//! How cost grows with size.

/// The slope of the line through points (size, cost) as logarithms that lies nearest to them by least
/// squares: 1 where the cost is proportional to the size, 2 where it grows with its square.
pub fn slope(points: &[(f64, f64)]) -> f64 {
    let logs = || points.iter().map(|(x, y)| (x.ln(), y.max(1e-9).ln()));
    let n = points.len() as f64;
    let (mean_x, mean_y) = logs().fold((0.0, 0.0), |sum, (x, y)| (sum.0 + x / n, sum.1 + y / n));
    let (over, under) = logs().fold((0.0, 0.0), |(over, under), (x, y)| {
        let x = x - mean_x;
        (over + x * (y - mean_y), under + x * x)
    });
    over / under
}

#[cfg(test)]
mod tests {
    use super::slope;

    #[test]
    fn powers_are_found() {
        for power in [0.0, 1.0, 1.5, 2.0] {
            let cost = |x: f64| (x, 3.0 * x.powf(power));
            let points = [10.0, 100.0, 1_000.0, 4_000.0].map(cost);
            assert!((slope(&points) - power).abs() < 1e-9);
        }
    }

    #[test]
    fn one_size_out_of_line_shows() {
        let found = slope(&[(10.0, 10.0), (100.0, 100.0), (1_000.0, 1_000.0), (4_000.0, 16_000.0)]);
        assert!(found > 1.1);
    }
}
