package loop

import (
	"io"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/neutral"
	"github.com/ralph-pool/ralph/internal/proc"
)

const (
	messageKept = 64 << 10 // bytes kept of the latest message
	answerKept  = 4 << 10  // bytes of a question or a reason
)

// Tags of the answers that the agent can give instead of the completion signal.
const (
	tagQuestion = "needs-info"
	tagNoChange = "no-change"
)

// completion tracks the agent's prose: the end of its latest message, and whether that message has a completion signal or an
// answer. It belongs to the goroutine that decodes.
type completion struct {
	signals   int      // number of signals at the start of marks; the rest are the end tags of answers
	marks     []string // strings to look for
	longest   int      // bytes of the longest mark
	id        string   // ID of the latest message
	started   bool
	foundMark int    // index of the first mark found in the message; len(marks): none
	tail      string // last bytes of the message, which may be the beginning of a mark
	text      *proc.Tail
}

func newCompletion(signals []string) *completion {
	marks := append(slices.Clone(signals), "</"+tagQuestion+">", "</"+tagNoChange+">")
	c := &completion{signals: len(signals), marks: marks, foundMark: len(marks), text: proc.NewTail(messageKept)}
	for _, m := range marks {
		c.longest = max(c.longest, len(m))
	}
	return c
}

// add adds a part of the prose. A new message withdraws the signal of an earlier one.
func (c *completion) add(e agents.Event) {
	if !c.started || e.Message != c.id {
		c.started, c.id, c.foundMark, c.tail = true, e.Message, len(c.marks), ""
		c.text = proc.NewTail(messageKept)
	}
	_, _ = io.WriteString(c.text, e.Text)
	text := c.tail + e.Text
	if i := slices.IndexFunc(c.marks[:c.foundMark], func(m string) bool { return strings.Contains(text, m) }); i >= 0 {
		c.foundMark = i
	}
	c.tail = strings.Clone(text[max(0, len(text)-c.longest+1):])
}

// signal returns the completion signal in the latest message; empty: none.
func (c *completion) signal() string {
	if c.foundMark >= c.signals {
		return ""
	}
	return c.marks[c.foundMark]
}

// endMark returns the signal, or the end tag of an answer, in the latest message; empty: the agent is not done.
func (c *completion) endMark() string {
	if c.foundMark == len(c.marks) {
		return ""
	}
	return c.marks[c.foundMark]
}

func (c *completion) message() string { return c.text.String() }

// taggedAnswer returns the text between <tag> and </tag> in the agent's message, made safe to show.
func taggedAnswer(message, tag string) (string, bool) {
	text, ok := lastTagged(message, tag)
	if !ok {
		return "", false
	}
	return neutral.Shorten(strings.TrimSpace(neutral.Terminal(text)), answerKept), true
}

// lastTagged returns the text between the last </tag> and the last <tag> before it.
func lastTagged(text, tag string) (string, bool) {
	end := strings.LastIndex(text, "</"+tag+">")
	if end < 0 {
		return "", false
	}
	open := "<" + tag + ">"
	start := strings.LastIndex(text[:end], open)
	if start < 0 {
		return "", false
	}
	return text[start+len(open) : end], true
}
