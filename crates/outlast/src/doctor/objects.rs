//! Object storage.

use std::path::Path;
use std::time::Duration;

use outlast_session::objects::{Objects, ObjectsError};
use outlast_store::Ports;

use super::check::Check;
use super::directory::{DirectoryFacts, There};
use crate::local::bucket_environment;

/// How long it may take to answer.
const PATIENCE: Duration = Duration::from_secs(15);

const NAME: &str = "objects";
const WHERE: &str = "[objects] place, or OUTLAST_OBJECTS, names it";

/// Writes, reads and deletes an object there. Makes no directory.
pub async fn check(
    place: Option<&str>,
    embedded: bool,
    data_directory: &DirectoryFacts,
    ports: &Ports,
) -> Check {
    let own = data_directory.path.join("objects").to_string_lossy().into_owned();
    let (place, told) = match place {
        Some(place) => (place, place),
        None => (own.as_str(), "a directory in the data directory"),
    };
    let directory = Objects::directory_of(place);
    if let Some(hindrance) = data_directory.hindrance().filter(|_| place == own) {
        return Check::unknown(NAME, hindrance);
    }
    if let Some(directory) = directory {
        let facts = DirectoryFacts::of(Path::new(directory));
        match (&facts.there, &facts.writable) {
            (There::Other(why), _) => return Check::problem(NAME, why, WHERE),
            (_, Err(why)) => {
                return Check::problem(NAME, format!("{told} cannot be written: {why}"), WHERE);
            }
            (There::Nothing { .. }, Ok(())) => {
                return Check::ok(NAME, format!("{told}; the first run makes it"));
            }
            (There::Directory { .. }, Ok(())) => {}
        }
    }
    let tried = tokio::select! {
        biased;
        tried = try_out(place, ports) => tried.map_err(|error| error.to_string()),
        () = ports.clock.sleep(PATIENCE) => Err(format!("it does not answer within {} s", PATIENCE.as_secs())),
    };
    match tried {
        Err(error) => Check::problem(NAME, format!("{told}: {error}"), WHERE),
        Ok(()) if directory.is_some() && !embedded => {
            let advice = format!("name one that every host of the database reaches; {WHERE}");
            Check::warning(
                NAME,
                format!("{told}: what is in it, other machines can read only if they share it"),
                advice,
            )
        }
        Ok(()) => Check::ok(NAME, format!("{told}; written, read and deleted an object")),
    }
}

async fn try_out(place: &str, ports: &Ports) -> Result<(), ObjectsError> {
    let objects = Objects::open(place, bucket_environment())?;
    // Not below a prefix: a directory of that name would stay.
    let key = format!("doctor-{}", ports.entropy.hex_id());
    objects.put(&key, "tried out".into()).await?;
    let read = objects.get(&key, 1024).await;
    objects.delete(&key).await?;
    read.map(drop)
}
