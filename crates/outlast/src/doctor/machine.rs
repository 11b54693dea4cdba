//! The machine's name among those that share a store.

use std::path::Path;

use super::check::Check;

/// Looks for the name that the local provider keeps beside its sandboxes.
pub fn check(data_dir: &Path) -> Check {
    let file = data_dir.join("sandboxes/.machine");
    match std::fs::read_to_string(&file) {
        Ok(id) if id.is_empty() => Check::problem(
            "machine",
            format!("{} is empty", file.display()),
            "remove it; another one is drawn",
        ),
        Ok(id) => Check::ok(
            "machine",
            format!(
                "{id}: its local runs are driven by processes with this data directory, which is never to be copied \
                     to another machine with its sandboxes"
            ),
        ),
        Err(error)
            if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) =>
        {
            Check::ok("machine", "no id yet: the first run draws one")
        }
        Err(error) => Check::unknown("machine", format!("cannot read {}: {error}", file.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::Level;
    use super::*;

    #[test]
    fn every_state_of_the_file() {
        let dir = tempfile::tempdir().expect("dir");
        assert_eq!(check(dir.path()).level, Level::Ok);
        std::fs::create_dir(dir.path().join("sandboxes")).expect("sandboxes");
        let file = dir.path().join("sandboxes/.machine");
        std::fs::write(&file, "").expect("file");
        assert_eq!(check(dir.path()).level, Level::Problem);
        std::fs::write(&file, "80be").expect("file");
        assert!(check(dir.path()).finding.starts_with("80be"));
        std::fs::remove_file(&file).expect("remove");
        std::fs::create_dir(&file).expect("no file");
        assert_eq!(check(dir.path()).level, Level::Warning);
    }
}
