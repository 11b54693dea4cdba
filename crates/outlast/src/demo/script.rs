//! What the demo agent does: about twenty seconds of work.

/// One step.
pub(super) enum Step {
    /// Reasoning, word by word.
    Think(&'static str),
    /// Text, word by word.
    Say(&'static str),
    /// A file, written into the workspace.
    Write { path: &'static str, content: &'static str },
    /// A command, run in the workspace.
    Shell(&'static str),
}

pub(super) const SCRIPT: &[Step] = &[
    Step::Think(
        "The user wants a word counter. A small shell script will do, with a test beside it. I look around first. ",
    ),
    Step::Say("I will write a small word counter with a test. First I look at what is here. "),
    Step::Shell("ls -la"),
    Step::Say("Now the program: it reads text and prints the most frequent words. "),
    Step::Write {
        path: "wordcount.sh",
        content: "#!/bin/sh\n# Prints the most frequent words of its input, most frequent first.\n\
                  tr -cs '[:alpha:]' '\\n' | tr '[:upper:]' '[:lower:]' | sort | uniq -c | sort -k1,1nr -k2 | head -n \"${1:-10}\"\n",
    },
    Step::Write {
        path: "test/sample.txt",
        content: "The tab closed. The agent worked on.\nThe host died. The agent worked on.\n",
    },
    Step::Say("And a test for it, which I run at once. "),
    Step::Write {
        path: "test/run.sh",
        content: "#!/bin/sh\nset -e\ncd \"$(dirname \"$0\")/..\"\n\
                  top=$(sh wordcount.sh 1 < test/sample.txt | awk '{print $2 \":\" $1}')\n\
                  [ \"$top\" = the:4 ] || { echo \"expected the:4, got $top\"; exit 1; }\necho \"1 test passed\"\n",
    },
    Step::Shell("sh test/run.sh"),
    Step::Think(
        "The test passes. Input without any word should print nothing instead of a blank line. I check that. ",
    ),
    Step::Shell("printf '123 456' | sh wordcount.sh 3 | wc -l"),
    Step::Say("An input without words prints one empty entry. I fix that and run the test again. "),
    Step::Write {
        path: "wordcount.sh",
        content: "#!/bin/sh\n# Prints the most frequent words of its input, most frequent first.\n\
                  tr -cs '[:alpha:]' '\\n' | grep . | tr '[:upper:]' '[:lower:]' | sort | uniq -c | sort -k1,1nr -k2 | head -n \"${1:-10}\"\n",
    },
    Step::Shell("sh test/run.sh && printf '123 456' | sh wordcount.sh 3 | wc -l"),
    Step::Say(
        "Done: wordcount.sh counts words, test/run.sh proves it, and an input without words prints nothing. ",
    ),
];
