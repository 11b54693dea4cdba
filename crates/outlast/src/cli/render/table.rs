//! Tables.

use std::io::Write;

/// Writes lines in columns that are as wide as their widest cell.
pub fn write_table<const N: usize>(
    out: &mut impl Write,
    head: &[String; N],
    lines: &[[String; N]],
) -> std::io::Result<()> {
    let mut widths = [0usize; N];
    for line in std::iter::once(head).chain(lines) {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = (*width).max(cell.chars().count());
        }
    }
    for line in std::iter::once(head).chain(lines) {
        let cells: Vec<String> =
            line.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        writeln!(out, "{}", cells.join("  ").trim_end())?;
    }
    Ok(())
}
