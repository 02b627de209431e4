package loop

import (
	"slices"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/agents"
)

func messageParts(text ...string) []agents.Event {
	var events []agents.Event
	for _, t := range text {
		id, rest, _ := strings.Cut(t, "|")
		events = append(events, agents.Event{Kind: agents.EventMessage, Message: id, Text: rest})
	}
	return events
}

func TestSignalCountsInTheLatestMessage(t *testing.T) {
	t.Parallel()
	signals := []string{DefaultSignal, "ALL DONE"}
	for _, tt := range []struct {
		name string
		said []string
		want string
	}{
		{"nothing said", nil, ""},
		{"in the only message", []string{"1|ok " + DefaultSignal + " bye"}, DefaultSignal},
		{"second of the configured", []string{"1|ALL DONE"}, "ALL DONE"},
		{"exact substring, case counts", []string{"1|all done <promise>complete</promise>"}, ""},
		{"split over the blocks of one message", []string{"1|<promise>COM", "1|PLETE</prom", "1|ise>"}, DefaultSignal},
		{"split over two messages is none", []string{"1|<promise>COM", "2|PLETE</promise>"}, ""},
		{"later message withdraws it", []string{"1|" + DefaultSignal, "2|oh, wait"}, ""},
		{"later message without prose withdraws it", []string{"1|" + DefaultSignal, "2|"}, ""},
		{"later text of the same message does not", []string{"1|" + DefaultSignal, "1| and thanks"}, DefaultSignal},
		{"withdrawn and given again", []string{"1|" + DefaultSignal, "2|wait", "3|ALL DONE"}, "ALL DONE"},
		{"overlapping start", []string{"1|<promise><promise>COMPLETE</promise>"}, DefaultSignal},
	} {
		c := newCompletion(signals)
		for _, e := range messageParts(tt.said...) {
			c.add(e)
		}
		if got := c.signal(); got != tt.want {
			t.Errorf("%s: signal %q, want %q", tt.name, got, tt.want)
		}
	}
}

// FuzzSignal: a signal is found however a message is split, and never without one.
func FuzzSignal(f *testing.F) {
	f.Add("aab", "aaab", uint8(2))
	f.Add("abab", "abaabab", uint8(3))
	f.Fuzz(func(t *testing.T, signal, message string, size uint8) {
		if signal == "" {
			return
		}
		c := newCompletion([]string{signal})
		for piece := range slices.Chunk([]byte(message), 1+int(size)) {
			c.add(agents.Event{Message: "1", Text: string(piece)})
		}
		if found, want := c.signal() != "", strings.Contains(message, signal); found != want {
			t.Errorf("%q in %q: %v, want %v", signal, message, found, want)
		}
	})
}

func TestMessageIsBounded(t *testing.T) {
	t.Parallel()
	c := newCompletion([]string{DefaultSignal})
	c.add(agents.Event{Message: "1", Text: DefaultSignal})
	for range 1000 {
		c.add(agents.Event{Message: "1", Text: strings.Repeat("é", 1000)})
	}
	if got := c.message(); len(got) > messageKept || strings.Trim(got, "é") != "" {
		t.Errorf("%d bytes kept of the message", len(got))
	}
	if c.signal() == "" {
		t.Error("a signal at the start of a long message got lost")
	}
}

func TestAnswer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		message, want string
		ok            bool
	}{
		{"<no-change>it is fixed</no-change>", "it is fixed", true},
		{"<no-change> two\nlines </no-change>", "two\nlines", true},
		{"say <no-change> if so: <no-change>fixed</no-change>", "fixed", true},
		{"<no-change>a</no-change> <no-change>b</no-change>", "b", true},
		{"<no-change>\x1b[31mred\x1b[0m\u202e\u200b</no-change>", "[31mred[0m", true},
		{"</no-change><no-change>", "", false},
		{"<no-change>open", "", false},
		{"", "", false},
	} {
		got, ok := taggedAnswer(tt.message, "no-change")
		if got != tt.want || ok != tt.ok {
			t.Errorf("answer(%q) = %q, %t; want %q, %t", tt.message, got, ok, tt.want, tt.ok)
		}
	}
	long, _ := taggedAnswer("<q>"+strings.Repeat("x", 1<<20)+"</q>", "q")
	if len(long) > answerKept {
		t.Errorf("%d bytes of an answer kept", len(long))
	}
}

// FuzzCompletion: however a message is split, the result is the same as in one piece, and as that of a plain search.
func FuzzCompletion(f *testing.F) {
	f.Add("ok <promise>COMPLETE</promise>", DefaultSignal, uint8(3))
	f.Add("aaaaab", "aab", uint8(1))
	f.Add("<p<p>", "<p>", uint8(2))
	f.Add("é€\xff", "€", uint8(1))
	f.Fuzz(func(t *testing.T, text, signal string, step uint8) {
		if signal == "" || step == 0 {
			return
		}
		whole, split := newCompletion([]string{signal}), newCompletion([]string{signal})
		whole.add(agents.Event{Message: "1", Text: text})
		for rest := text; rest != ""; {
			n := min(int(step), len(rest))
			split.add(agents.Event{Message: "1", Text: rest[:n]})
			rest = rest[n:]
		}
		if want := strings.Contains(text, signal); (whole.signal() != "") != want || (split.signal() != "") != want {
			t.Errorf("%q in %q: whole %q, split %q, want %t", signal, text, whole.signal(), split.signal(), want)
		}
		if whole.message() != split.message() {
			t.Errorf("message differs: %q and %q", whole.message(), split.message())
		}
	})
}
