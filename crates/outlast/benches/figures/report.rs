//! One line for each figure.

use std::time::Duration;

/// Prints a figure with the aim that it is measured against.
pub fn figure(name: &str, value: f64, unit: &str, aim: &str) {
    let digits = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
    let aim = if aim.is_empty() { String::new() } else { format!("   (aim {aim})") };
    println!("{name:<58} {value:>12.digits$} {unit}{aim}");
}

pub fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// The value below which this share of the sorted values lies.
pub fn percentile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    values[((last as f64) * share).round() as usize]
}
