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
	messageKept = 64 << 10 // bytes of the latest message that are kept
	answerKept  = 4 << 10  // bytes of a question or a reason
)

// With these tags the agent answers in place of the completion signal.
const (
	tagQuestion = "needs-info"
	tagNoChange = "no-change"
)

// completion follows the agent's prose: whether a completion signal or an answer stands in its latest message, and the
// end of that message. It belongs to the goroutine that decodes.
type completion struct {
	signals int      // how many of the marks are signals; the others end an answer
	marks   []string // that are looked for
	longest int      // bytes of a mark
	id      string   // of the latest message
	started bool
	found   int    // index of the first mark in it; len(marks): none
	last    string // the last bytes of it, in which a mark may have begun
	text    *proc.Tail
}

func newCompletion(signals []string) *completion {
	marks := append(slices.Clone(signals), "</"+tagQuestion+">", "</"+tagNoChange+">")
	c := &completion{signals: len(signals), marks: marks, found: len(marks), text: proc.NewTail(messageKept)}
	for _, m := range marks {
		c.longest = max(c.longest, len(m))
	}
	return c
}

// add takes a piece of prose. A new message withdraws the signal of an earlier one.
func (c *completion) add(e agents.Event) {
	if !c.started || e.Message != c.id {
		c.started, c.id, c.found, c.last = true, e.Message, len(c.marks), ""
		c.text = proc.NewTail(messageKept)
	}
	_, _ = io.WriteString(c.text, e.Text)
	text := c.last + e.Text
	if i := slices.IndexFunc(c.marks[:c.found], func(m string) bool { return strings.Contains(text, m) }); i >= 0 {
		c.found = i
	}
	c.last = strings.Clone(text[max(0, len(text)-c.longest+1):])
}

// signal is the one that stands now; empty: none.
func (c *completion) signal() string {
	if c.found >= c.signals {
		return ""
	}
	return c.marks[c.found]
}

// complete is the signal, or the end of an answer, that stands now; empty: the agent is not done.
func (c *completion) complete() string {
	if c.found == len(c.marks) {
		return ""
	}
	return c.marks[c.found]
}

func (c *completion) message() string { return c.text.String() }

// answer is the text between <tag> and </tag> in the agent's message, made safe to show.
func answer(message, tag string) (string, bool) {
	text, ok := lastPair(message, tag)
	if !ok {
		return "", false
	}
	return neutral.Shorten(strings.TrimSpace(neutral.Terminal(text)), answerKept), true
}

// lastPair is the text between the last </tag> and the last <tag> before it.
func lastPair(text, tag string) (string, bool) {
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
