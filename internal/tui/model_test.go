package tui

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal"
)

var start = time.Date(2026, 11, 1, 12, 0, 0, 0, time.Local)

// viewer is a model with its display, and a board that receives events.
type viewer struct {
	t     testing.TB
	m     tea.Model
	board board
	now   time.Time
	asked []string // calls of the actions
}

func newViewer(t testing.TB, width, height int) *viewer {
	v := &viewer{t: t, now: start}
	v.m = model{
		ctx: t.Context(), title: "ralph work", leaveQuestion: "Leave the view?", paint: newStyles(false),
		Actions: Actions{
			Name: func(r Run) string { return r.Key },
			Cost: func(u agents.Usage) string { return fmt.Sprintf("$%.2f", u.CostUSD) },
			Stop: func(_ context.Context, r Run) error {
				v.asked = append(v.asked, "stop "+r.ID)
				return nil
			},
			Diff: func(_ context.Context, r Run) (string, error) {
				if r.Key == "bb" {
					return "", errors.New("bb: its runs have left no commits")
				}
				return "diff --git a/x b/x\n@@ -1 +1 @@\n-a\x1b[2J\n+\tb\n", nil
			},
		},
	}
	v.send(tea.WindowSizeMsg{Width: width, Height: height})
	v.frame(0)
	return v
}

// send sends the model a message, and then the results of its commands.
func (v *viewer) send(msg tea.Msg) {
	v.t.Helper()
	var then tea.Cmd
	v.m, then = v.m.Update(msg)
	if then == nil {
		return
	}
	if got := then(); got != tea.Quit() {
		v.send(got)
	}
}

func (v *viewer) frame(after time.Duration) {
	v.t.Helper()
	v.now = v.now.Add(after)
	v.send(frame{v.board.snapshot(), v.now})
}

func (v *viewer) event(run string, e journal.Event) {
	if e.Time.IsZero() {
		e.Time = v.now
	}
	e.Run, e.Key = run, run
	v.board.event("", e, strings.TrimSpace(string(e.Kind)+" "+e.Text))
}

// keys presses keys: single characters or names.
func (v *viewer) keys(keys ...string) {
	v.t.Helper()
	named := map[string]string{"up": "\x1b[A", "down": "\x1b[B", "enter": "\r", "esc": "\x1b", "pgup": "\x1b[5~", "end": "\x1b[F"}
	for _, k := range keys {
		if s, ok := named[k]; ok {
			k = s
		}
		for _, msg := range decode([]byte(k)) {
			v.send(msg)
		}
	}
}

func (v *viewer) want(lines ...string) {
	v.t.Helper()
	if diff := cmp.Diff(strings.Join(lines, "\n"), v.m.View().Content); diff != "" {
		v.t.Errorf("-want +got\n%s\nwhole:\n%s", diff, v.m.View().Content)
	}
}

func (v *viewer) shows(text string, shown bool) {
	v.t.Helper()
	if strings.Contains(v.m.View().Content, text) != shown {
		v.t.Errorf("%q is shown: %v, want %v\n%s", text, !shown, shown, v.m.View().Content)
	}
}

func usd(n float64) *agents.Usage { return &agents.Usage{CostUSD: n} }

// two adds two runs.
func two(v *viewer) {
	v.event("aaaa", journal.Event{Kind: journal.EventStarted, Title: "Fix the login page"})
	v.event("bb", journal.Event{Kind: journal.EventStage, Stage: journal.StageWork})
	v.frame(65 * time.Second)
	v.event("aaaa", journal.Event{Kind: journal.EventIteration, Iteration: 2})
	v.event("aaaa", journal.Event{Kind: journal.EventAgent, Text: "Bash\nls \x1b[2J" + strings.Repeat("a long command ", 10)})
	v.event("bb", journal.Event{Kind: journal.EventUsage, Usage: usd(0.4)})
	v.event("bb", journal.Event{Kind: journal.EventReview, Usage: usd(0.1)})
	v.event("bb", journal.Event{Kind: journal.EventGate, Place: journal.PlaceCheckout, Text: "make"})
	v.frame(0)
}

func TestTable(t *testing.T) {
	t.Parallel()
	t.Run("80 columns", func(t *testing.T) {
		t.Parallel()
		v := newViewer(t, 80, 24)
		v.want("── ralph work · 0 working · 0s ────────────────────────────────────── ? keys ──", "  nothing is being worked now", "")
		two(v)
		v.want("── ralph work · 2 working · $0.50 · 1m05s ─────────────────────────── ? keys ──",
			"› aaaa  iteration 2   1m05s         Bash ls [2Ja long command a long command a…",
			"  bb    work          1m05s  $0.50  gate on a clean checkout: make", "")
		v.event("bb", journal.Event{Kind: journal.EventGate, Place: journal.PlaceCheckout, Text: "make", Check: &loop.Check{}})
		v.event("aaaa", journal.Event{Kind: journal.EventEnded, Outcome: journal.Succeeded, Usage: usd(1)})
		v.frame(2 * time.Hour)
		v.want("── ralph work · 1 working · 1 succeeded · $1.50 · 2h01m ───────────── ? keys ──", "› bb  work          2h01m  $0.50", "")
		v.event("bb", journal.Event{Kind: journal.EventDeferred})
		v.event("cc", journal.Event{Kind: journal.EventEnded, Outcome: journal.Failed})
		v.frame(0)
		v.want("── ralph work · 0 working · 1 succeeded · 1 unsuccessful · $1.50 · 2h01m ──────", "  nothing is being worked now", "")
	})
	t.Run("40 columns", func(t *testing.T) {
		t.Parallel()
		v := newViewer(t, 40, 24)
		two(v)
		v.want("── 2 working · $0.50 · 1m05s ──────────", "› aaaa  iter 2     1m05s",
			"    Bash ls [2Ja long command a long c…", "  bb    work       1m05s  $0.50", "    gate on a clean checkout: make", "")
	})
	t.Run("130 columns", func(t *testing.T) {
		t.Parallel()
		v := newViewer(t, 130, 24)
		two(v)
		v.shows("iteration 2   1m05s         Fix the login page  Bash ls", true)
	})
	t.Run("more than fit", func(t *testing.T) {
		t.Parallel()
		v := newViewer(t, 80, 10)
		for i := range 9 {
			v.event(fmt.Sprint("r", i), journal.Event{Kind: journal.EventStarted})
		}
		v.frame(0)
		v.shows("› r0", true)
		v.shows("  and 5 more", true)
		for range 8 {
			v.keys("down")
		}
		v.shows("› r8", true)
		v.shows("r0", false)
	})
}

func TestKeys(t *testing.T) {
	t.Parallel()
	v := newViewer(t, 80, 24)
	v.keys("enter", "d", "s", "up", "down") // there is no run yet
	two(v)
	v.keys("?")
	v.shows("↑↓ choose", true)
	v.keys("?")
	v.shows("↑↓ choose", false)

	v.keys("enter")
	v.shows("── log of aaaa ─", true)
	v.shows("12:01:05  agent Bash", true)
	v.event("aaaa", journal.Event{Kind: journal.EventAgent, Text: "what came last"})
	v.frame(time.Second)
	v.shows("12:01:05  agent what came last", true)
	v.keys("esc")
	v.shows("log of", false)

	v.keys("j", "d")
	v.shows("bb: its runs have left no commits", true)
	v.keys("q", "k", "d")
	v.shows("── diff of aaaa ─", true)
	v.shows("\n-a[2J\n+    b\n", true)
	v.event("aaaa", journal.Event{Kind: journal.EventEnded, Outcome: journal.Succeeded})
	v.frame(0)
	v.shows("── diff of aaaa ─", true) // it stays until the user closes it
	v.keys("d")
	v.shows("› bb", true)

	v.keys("s")
	v.shows("Stop bb? Its work is kept. y/n", true)
	v.send(tea.WindowSizeMsg{Width: 20, Height: 24})
	v.shows("  Stop bb? Its… y/n", true)
	v.send(tea.WindowSizeMsg{Width: 80, Height: 24})
	v.keys("n")
	v.keys("s", "y")
	v.shows("bb is asked to end", true)
	if diff := cmp.Diff([]string{"stop bb"}, v.asked); diff != "" {
		t.Error(diff)
	}
	v.keys("q")
	v.shows("Leave the view? y/n", true)
	v.keys("x")
	v.shows("Leave the view?", false)
	v.keys("q", "y")
	if m, ok := v.m.(model); !ok || !m.left || v.m.View().Content != "" {
		t.Errorf("the view is not left: %q", v.m.View().Content)
	}
}

// A log that the user has scrolled stays in place; at its end it follows.
func TestScroll(t *testing.T) {
	t.Parallel()
	v := newViewer(t, 80, 20)
	say := func(from, to int) {
		for i := from; i < to; i++ {
			v.event("a", journal.Event{Kind: journal.EventAgent, Text: fmt.Sprintf("line %d.", i)})
		}
		v.frame(0)
	}
	say(0, 100)
	v.keys("enter")
	v.shows("agent line 99.", true)
	v.keys("pgup", "up")
	v.shows("agent line 99.", false)
	v.shows("line 80.", true)
	say(100, 130)
	v.shows("line 80.", true)
	v.keys("end")
	v.shows("line 129.", true)
	say(130, 131)
	v.shows("line 130.", true)
	v.keys("g")
	v.shows("line 0.", true)
	say(131, 2000)
	v.keys("end")
	v.shows("line 1999.", true)
	if n := len(v.board.rows[0].log); n > 2*logMax {
		t.Errorf("%d lines are kept", n)
	}
}

func TestElapsed(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 59 * time.Second: "59s", 43900 * time.Millisecond: "44s", 61 * time.Second: "1m01s", 3600 * time.Second: "1h00m", 47 * time.Hour: "47h00m", 100 * time.Hour: "4d04h",
	} {
		if got := elapsed(d); got != want {
			t.Errorf("elapsed(%s) = %q, want %q", d, got, want)
		}
	}
}

// While the runs cannot be read, the view says of which time its rows are, and their clocks stand still.
func TestRowsOfALostServiceAreOld(t *testing.T) {
	t.Parallel()
	v := newViewer(t, 80, 24)
	v.event("aaaa", journal.Event{Kind: journal.EventStarted})
	v.frame(5 * time.Second)
	v.board.away = v.now
	v.frame(time.Hour)
	v.shows("1 working at "+v.board.away.Local().Format(time.TimeOnly), true)
	row := func(clock string) bool { return regexp.MustCompile(`aaaa .* ` + clock).MatchString(v.m.View().Content) }
	if !row("5s") {
		t.Errorf("the clock of the row goes on\n%s", v.m.View().Content)
	}
	v.board.away = time.Time{}
	v.frame(0)
	v.shows("1 working", true)
	if !row("1h00m") {
		t.Errorf("the clock of the row stands still\n%s", v.m.View().Content)
	}
}

// Long lines above the view break between words. A long word is left for the terminal to wrap, so that it can be copied.
func TestLinesAboveBreakBetweenWords(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"one two three":                          "one two three",
		"one two three four five six":            "one two three|four five six",
		"see https://example.com/a/long/address": "see https://example.com/a/long/address",
		"seven " + strings.Repeat("x", 60):       "seven|" + strings.Repeat("x", 16) + "|" + strings.Repeat("x", 16) + "|" + strings.Repeat("x", 16) + "|" + strings.Repeat("x", 12),
	} {
		if got := strings.Join(rowsOf(line, 16), "|"); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

// FuzzHostile: whatever issues and agents write, no line is wider than the terminal, and the terminal acts on nothing in it.
func FuzzHostile(f *testing.F) {
	f.Add("\x1b[2J\x1b]0;t\x07", "日本語 👩\u200d💻 e\u0301\u0301\u0301\u0301\u0301", 40, 10)
	f.Add("\u202eabc\u2066", "שלום\r\n\tعليكم", 81, 30)
	f.Add("title", "first\n"+strings.Repeat("x", 60), 30, 20)
	f.Add("\xff\xfe", strings.Repeat("❤\ufe0f", 100), 1, 1)
	f.Fuzz(func(t *testing.T, title, text string, width, height int) {
		width, height = 10+abs(width)%300, 1+abs(height)%100
		v := newViewer(t, width, height)
		v.m = func(m model) model {
			m.Name = func(Run) string { return title }
			return m
		}(v.m.(model))
		v.event("a", journal.Event{Kind: journal.EventStarted, Title: title})
		v.event("a", journal.Event{Kind: journal.EventAgent, Text: text})
		v.frame(time.Second)
		check := func() {
			t.Helper()
			content := v.m.View().Content
			for line := range strings.SplitSeq(content, "\n") {
				if n := ansi.StringWidthWc(line); n >= max(width, 11) {
					t.Errorf("%d of %d columns: %q", n, width, line)
				}
				if strings.ContainsFunc(line, unicode.IsControl) || strings.ContainsAny(line, "\u202e\u2066\u200b\u200d") {
					t.Errorf("hostile: %q", line)
				}
			}
		}
		check()
		v.keys("enter")
		check()
		v.keys("esc", "s")
		check()
		v.send(diffResult{Run{"", "a", "a"}, text, false})
		v.send(noted(text))
		check()
	})
}

func abs(n int) int { return max(n, -max(n, -1<<62)) }

// FuzzDecode: the decoder ends for every input and returns only known keys.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{"\x1b[A", "\x1b[1;5A", "\x1b", "\x1bOH", "ä\x00\x7f", "\x1b[", "\x1b\x1b[B"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, k := range decode(b) {
			if k.String() == "" {
				t.Errorf("a key without a name: %#v", k)
			}
		}
	})
}

// The reason why there is no diff is shown to its end, which contains a command.
func TestWhyNoDiffIsWhole(t *testing.T) {
	t.Parallel()
	v := newViewer(t, 40, 20)
	v.event("bb", journal.Event{Kind: journal.EventStarted})
	v.frame(0)
	v.keys("d")
	v.send(diffResult{Run{"", "bb", "bb"}, "bb is being worked; none of its commits has been imported yet; follow it with: ralph logs -f bb", true})
	v.shows("\nbb is being worked; none of its commits\nhas been imported yet; follow it with:\nralph logs -f bb\n", true)
}
