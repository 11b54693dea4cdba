//! The event types of AG-UI (protocol and wire names: docs.ag-ui.com/concepts/events).

macro_rules! kinds {
    ($($variant:ident => $text:literal,)*) => {
        /// The `type` of an event.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "the names are the protocol's")]
        pub enum EventKind {
            $($variant,)*
        }

        impl EventKind {
            /// Every type.
            pub const ALL: &'static [EventKind] = &[$(EventKind::$variant,)*];

            /// The `type` on the wire.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(EventKind::$variant => $text,)*
                }
            }

            /// Reads a `type`.
            pub fn parse(text: &str) -> Option<EventKind> {
                match text {
                    $($text => Some(EventKind::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

kinds! {
    RunStarted => "RUN_STARTED",
    RunFinished => "RUN_FINISHED",
    RunError => "RUN_ERROR",
    StepStarted => "STEP_STARTED",
    StepFinished => "STEP_FINISHED",
    TextMessageStart => "TEXT_MESSAGE_START",
    TextMessageContent => "TEXT_MESSAGE_CONTENT",
    TextMessageEnd => "TEXT_MESSAGE_END",
    TextMessageChunk => "TEXT_MESSAGE_CHUNK",
    ToolCallStart => "TOOL_CALL_START",
    ToolCallArgs => "TOOL_CALL_ARGS",
    ToolCallEnd => "TOOL_CALL_END",
    ToolCallChunk => "TOOL_CALL_CHUNK",
    ToolCallResult => "TOOL_CALL_RESULT",
    ReasoningStart => "REASONING_START",
    ReasoningEnd => "REASONING_END",
    ReasoningMessageStart => "REASONING_MESSAGE_START",
    ReasoningMessageContent => "REASONING_MESSAGE_CONTENT",
    ReasoningMessageEnd => "REASONING_MESSAGE_END",
    ReasoningMessageChunk => "REASONING_MESSAGE_CHUNK",
    ReasoningEncryptedValue => "REASONING_ENCRYPTED_VALUE",
    StateSnapshot => "STATE_SNAPSHOT",
    StateDelta => "STATE_DELTA",
    MessagesSnapshot => "MESSAGES_SNAPSHOT",
    ActivitySnapshot => "ACTIVITY_SNAPSHOT",
    ActivityDelta => "ACTIVITY_DELTA",
    Raw => "RAW",
    Custom => "CUSTOM",
}

impl EventKind {
    /// Whether the event ends a log.
    pub fn is_terminal(self) -> bool {
        matches!(self, EventKind::RunFinished | EventKind::RunError)
    }
}
