package loop

import (
	"io"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/loop/needle"
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
	signals int // how many of the needles are signals; the others end an answer
	needles []*needle.Needle
	id      string // of the latest message
	started bool
	found   int // index of the first needle in it; len(needles): none
	text    *proc.Tail
}

func newCompletion(signals []string) *completion {
	all := append(slices.Clone(signals), "</"+tagQuestion+">", "</"+tagNoChange+">")
	c := &completion{signals: len(signals), found: len(all), text: proc.NewTail(messageKept)}
	for _, s := range all {
		c.needles = append(c.needles, needle.New(s))
	}
	return c
}

// add takes a piece of prose. A new message withdraws the signal of an earlier one.
func (c *completion) add(e agents.Event) {
	if !c.started || e.Message != c.id {
		c.started, c.id, c.found = true, e.Message, len(c.needles)
		c.text = proc.NewTail(messageKept)
		for i := range c.needles {
			c.needles[i].Reset()
		}
	}
	_, _ = io.WriteString(c.text, e.Text)
	for i := range c.found {
		if c.needles[i].Feed(e.Text) {
			c.found = i
			break
		}
	}
}

// signal is the one that stands now; empty: none.
func (c *completion) signal() string {
	if c.found >= c.signals {
		return ""
	}
	return c.needles[c.found].String()
}

// complete is the signal, or the end of an answer, that stands now; empty: the agent is not done.
func (c *completion) complete() string {
	if c.found == len(c.needles) {
		return ""
	}
	return c.needles[c.found].String()
}

func (c *completion) message() string { return c.text.String() }

// answer is the text between <tag> and </tag> in the agent's message, made safe to show.
func answer(message, tag string) (string, bool) {
	text, ok := lastPair(message, tag)
	if !ok {
		return "", false
	}
	return cut(strings.TrimSpace(clean(text)), answerKept), true
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
