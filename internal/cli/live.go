package cli

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool/journal"
)

// live is a block of lines at the end of a terminal: what each run is doing now. Whatever else is printed stands above it.
type live struct {
	out  *checkedWriter
	size func() (width, height int)
	ui   *printer
	name func(key string) string

	mu   sync.Mutex
	rows []*liveRow // guarded by mu; in the order in which the runs started
	done chan struct{}
	over sync.WaitGroup
	end  sync.Once
}

type liveRow struct {
	run, key    string
	started     time.Time
	doing, last string
	used        agents.Usage
}

// startLive begins a block; nil where standard error is no terminal that a person looks at.
func startLive(ui *printer, name func(string) string) *live {
	f, ok := ui.host.Stderr.(*os.File)
	if !ok || !ui.terminal || ui.quiet || ui.verbose || ui.host.getenv("TERM") == "dumb" {
		return nil
	}
	l := &live{out: ui.err, ui: ui, name: name, done: make(chan struct{}), size: func() (int, int) {
		width, height, err := term.GetSize(int(f.Fd()))
		if err != nil {
			return 80, 24
		}
		return width, height
	}}
	l.over.Go(func() {
		tick := time.NewTicker(250 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-l.done:
				l.out.block(nil)
				return
			case <-tick.C:
				l.out.block(l.lines(time.Now()))
			}
		}
	})
	return l
}

// stop takes the block away. It may be called again.
func (l *live) stop() {
	if l != nil {
		l.end.Do(func() { close(l.done) })
		l.over.Wait()
	}
}

// event learns what a run is doing.
func (l *live) event(e journal.Event) {
	if l == nil || e.Run == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.rows, func(r *liveRow) bool { return r.run == e.Run })
	if e.Kind == journal.EventEnded || e.Kind == journal.EventDeferred {
		if i >= 0 {
			l.rows = slices.Delete(l.rows, i, i+1)
		}
		return
	}
	if i < 0 {
		l.rows = append(l.rows, &liveRow{run: e.Run, key: e.Key, started: e.Time})
		i = len(l.rows) - 1
	}
	r := l.rows[i]
	switch e.Kind {
	case journal.EventStage:
		r.doing, r.last = string(e.Stage), ""
	case journal.EventIteration:
		r.doing, r.last = fmt.Sprintf("iteration %d", e.Iteration), ""
	case journal.EventSetup, journal.EventGate:
		if e.Check == nil {
			r.last = fmt.Sprintf("%s%s %s", e.Kind, map[journal.Place]string{journal.PlaceBase: " on the base:", journal.PlaceCheckout: " on a clean checkout:"}[e.Place], e.Text)
		} else {
			r.last = ""
		}
	case journal.EventAgent, journal.EventNote:
		r.last = e.Text
	case journal.EventUsage, journal.EventReview:
		if e.Kind == journal.EventReview {
			r.last = e.Text
		}
		if e.Usage != nil {
			r.used = r.used.Add(*e.Usage)
		}
	}
}

// lines are the block as it is now: as much as the terminal has room for.
func (l *live) lines(now time.Time) []string {
	width, height := l.size()
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	longest := 0
	for _, r := range l.rows {
		longest = max(longest, len([]rune(l.name(r.key))))
	}
	for i, r := range l.rows {
		if most := max(height/2, 3); i == most-1 && len(l.rows) > most {
			out = append(out, fmt.Sprintf("  and %d more", len(l.rows)-i))
			break
		}
		spent := ""
		if r.used != (agents.Usage{}) {
			spent = "  " + cost(r.used)
		}
		line := fmt.Sprintf("  %-*s  %s  %s%s", min(longest, 30), shorten(cleanLine(l.name(r.key)), 30), cmp.Or(r.doing, "starting"),
			age(now.Sub(r.started).Truncate(time.Second)), spent)
		if r.last != "" {
			line += "  " + cleanLine(r.last)
		}
		out = append(out, l.ui.paint(dim, shorten(line, max(width-1, 20))))
	}
	return out
}

// erase is the control sequence that takes a block of n lines away.
func erase(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("\x1b[%dA\r\x1b[J", n)
}

// block replaces the lines at the end of the terminal.
func (c *checkedWriter) block(lines []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.w == nil || slices.Equal(lines, c.below) {
		return
	}
	text := erase(len(c.below))
	if len(lines) > 0 { // a wide character makes a line longer than it seems: it is cut, and not wrapped
		text += "\x1b[?7l" + strings.Join(lines, "\n") + "\n\x1b[?7h"
	}
	c.below = lines
	_, _ = c.w.Write([]byte(text)) // the next line that matters says what is wrong
}

// above takes the block away for what is written next; the next look shows it again.
func (c *checkedWriter) above(b []byte) []byte {
	if len(c.below) == 0 {
		return b
	}
	b = append([]byte(erase(len(c.below))), b...)
	c.below = nil
	return b
}
