//! A stream of events. Reads strictly: anything that is not exactly of the promised form fails the test.

use std::io::{BufRead, BufReader, ErrorKind};
use std::time::Instant;

use serde_json::Value;

use super::answer::Answer;
use super::body::{Body, End, PATIENCE};

/// An event, with its offset and its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub id: String,
    pub json: String,
}

/// What comes over a stream.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    Event(Event),
    /// A comment, between events of SSE.
    Comment(String),
    /// An empty line, between events of NDJSON.
    Blank,
    /// A named event, between events of the native stream.
    Named(String, Value),
}

impl Item {
    /// Whether it tells that everything stored was sent.
    pub fn is_caught_up(&self) -> bool {
        match self {
            Item::Comment(text) => text.starts_with(": caught-up "),
            Item::Named(name, _) => name == "caught-up",
            Item::Blank => true,
            Item::Event(_) => false,
        }
    }
}

fn event_of(item: &Item) -> Option<Event> {
    match item {
        Item::Event(event) => Some(event.clone()),
        _ => None,
    }
}

/// A response that is a stream.
#[derive(Debug)]
pub struct Stream {
    lines: BufReader<Body>,
    /// A line that has not come whole.
    line: Vec<u8>,
    /// The lines of a frame that has not come whole.
    frame: Vec<String>,
    ndjson: bool,
    /// Everything that has come.
    pub items: Vec<Item>,
    /// How it ended, if it has.
    pub end: Option<End>,
}

impl Stream {
    /// The stream of an answer, which must be one.
    #[track_caller]
    pub fn of(answer: Answer) -> Stream {
        let status = answer.status;
        if status != 200 {
            panic!("{status}: {}", answer.text());
        }
        let kind = answer.header("content-type").unwrap_or_default().to_owned();
        let ndjson = match kind.as_str() {
            "text/event-stream" => false,
            "application/x-ndjson" => true,
            other => panic!("no stream: {other:?}"),
        };
        let lines = BufReader::with_capacity(64 * 1024, answer.body);
        Stream { lines, line: Vec::new(), frame: Vec::new(), ndjson, items: Vec::new(), end: None }
    }

    /// The next thing that comes; none at the end.
    #[track_caller]
    pub fn next(&mut self) -> Option<Item> {
        self.read().expect("something comes")
    }

    /// Reads on to what is wanted; none at the end.
    #[track_caller]
    #[allow(clippy::disallowed_methods, reason = "tests run on real time")]
    pub fn find<T>(&mut self, what: &str, wanted: impl Fn(&Item) -> Option<T>) -> Option<T> {
        let start = Instant::now();
        while let Some(item) = self.next() {
            if let Some(found) = wanted(&item) {
                return Some(found);
            }
            // Heartbeats come for ever.
            assert!(start.elapsed() < PATIENCE, "read for {PATIENCE:?} in vain: {what}; {:?}", self.events());
        }
        None
    }

    #[track_caller]
    fn expect<T>(&mut self, what: &str, wanted: impl Fn(&Item) -> Option<T>) -> T {
        let found = self.find(what, wanted);
        found.unwrap_or_else(|| panic!("ended ({:?}) without {what}: {:?}", self.end, self.items))
    }

    /// The next event; none at the end.
    #[track_caller]
    pub fn next_event(&mut self) -> Option<Event> {
        self.find("an event", event_of)
    }

    /// Reads on to the event that contains the text.
    #[track_caller]
    pub fn wait_for(&mut self, needle: &str) -> Event {
        self.expect(needle, |item| event_of(item).filter(|event| event.json.contains(needle)))
    }

    /// Reads on to what tells that everything stored was sent.
    #[track_caller]
    pub fn wait_until_caught_up(&mut self) {
        self.expect("the marker", |item| item.is_caught_up().then_some(()));
    }

    /// Reads on to the named event.
    #[track_caller]
    pub fn wait_for_named(&mut self, wanted: &str) -> Value {
        self.expect(wanted, |item| match item {
            Item::Named(name, data) if name == wanted => Some(data.clone()),
            _ => None,
        })
    }

    /// Reads to the end.
    #[track_caller]
    pub fn rest(&mut self) -> End {
        self.find("the end", |_| None::<()>);
        self.end.expect("ended")
    }

    /// Reads to the clean end, and gives all events that came.
    #[track_caller]
    pub fn whole(mut self) -> Vec<Event> {
        assert_eq!(self.rest(), End::Clean, "{:?}", self.items.last());
        self.events()
    }

    /// The events that came.
    pub fn events(&self) -> Vec<Event> {
        self.items.iter().filter_map(event_of).collect()
    }

    /// An error where nothing comes in time.
    fn read(&mut self) -> std::io::Result<Option<Item>> {
        loop {
            if self.end.is_some() {
                return Ok(None);
            }
            match self.lines.read_until(b'\n', &mut self.line) {
                Ok(_) if self.line.ends_with(b"\n") => {}
                Ok(_) => {
                    let rest = String::from_utf8_lossy(&self.line).into_owned();
                    assert!(
                        rest.is_empty() && self.frame.is_empty(),
                        "ends within a frame: {rest:?} {:?}",
                        self.frame
                    );
                    self.end = Some(End::Clean);
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                    self.end = Some(End::Cut);
                    continue;
                }
                Err(error) => return Err(error),
            }
            let line = String::from_utf8(std::mem::take(&mut self.line)).expect("utf-8");
            let line = line.strip_suffix('\n').expect("a line").to_owned();
            let item = if self.ndjson { Some(of_line(&line)) } else { self.of_sse(line) };
            if let Some(item) = item {
                self.items.push(item.clone());
                return Ok(Some(item));
            }
        }
    }

    fn of_sse(&mut self, line: String) -> Option<Item> {
        if !line.is_empty() {
            self.frame.push(line);
            return None;
        }
        let frame = std::mem::take(&mut self.frame);
        let frame: Vec<&str> = frame.iter().map(String::as_str).collect();
        Some(match frame.as_slice() {
            [comment] if comment.starts_with(": ") => Item::Comment((*comment).to_owned()),
            [id, data] if id.starts_with("id: ") => Item::Event(Event {
                id: id["id: ".len()..].to_owned(),
                json: data.strip_prefix("data: ").expect("data").to_owned(),
            }),
            [name, data] if name.starts_with("event: ") => Item::Named(
                name["event: ".len()..].to_owned(),
                serde_json::from_str(data.strip_prefix("data: ").expect("data")).expect("json"),
            ),
            other => panic!("no frame of a stream: {other:?}"),
        })
    }
}

fn of_line(line: &str) -> Item {
    if line.is_empty() {
        return Item::Blank;
    }
    let (id, json) = line
        .strip_prefix("{\"id\":\"")
        .and_then(|rest| rest.split_once("\",\"chunk\":"))
        .unwrap_or_else(|| panic!("no line of a stream: {line}"));
    Item::Event(Event { id: id.to_owned(), json: json.strip_suffix('}').expect("brace").to_owned() })
}

/// Events as `outlast logs --json` prints them.
pub fn lines(events: &[Event]) -> String {
    events.iter().map(|Event { id, json }| format!("{{\"id\":\"{id}\",\"chunk\":{json}}}\n")).collect()
}
