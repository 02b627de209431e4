// Package notify tells people what became of issues: by a program of theirs, a signed webhook, Slack or e-mail.
//
// Telling never holds up what it is about. Each channel has a queue with a bound and tries again when a message is not taken;
// what does not fit, or is not taken in the end, is left out and logged. Messages that wait are on disk, so that the next process
// sends them when this one dies: at least once, with the same id.
package notify

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ralph-pool/ralph/internal/retry"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/report"
)

// What messages may be about, besides the outcomes of runs.
const (
	OnHuman   = "human"   // an issue that a person has to look at: no run goes on with it
	OnProblem = "problem" // a backlog that cannot be worked, or is not looked at
)

// CheckOn refuses what messages cannot be about.
func CheckOn(s string) error {
	all := []string{OnHuman, OnProblem}
	for _, o := range journal.Outcomes() {
		all = append(all, string(o))
	}
	if !slices.Contains(all, s) {
		return errors.New("is none of " + strings.Join(all, ", "))
	}
	return nil
}

// Message is what channels send. Fields are only ever added.
type Message struct {
	ID      string    `json:"id"` // the run's, or random; the same each time that the message is sent
	Time    time.Time `json:"time"`
	On      []string  `json:"on"` // why it is sent: an outcome, OnHuman, OnProblem
	Project string    `json:"project,omitempty"`
	Issue   string    `json:"issue,omitempty"`
	Title   string    `json:"title,omitempty"`
	Run     string    `json:"run,omitempty"`
	Branch  string    `json:"branch,omitempty"`
	Reason  string    `json:"reason,omitempty"`
	Text    string    `json:"text"` // all of it in one line
}

// Channel is a way to people.
type Channel interface {
	Name() string
	// Place is where messages go. It may be a secret: only a digest of it is stored.
	Place() string
	// Send sends one message. An error that is errFinal is not tried again; none shows a secret.
	Send(ctx context.Context, m Message) error
}

// errFinal marks a failure that does not pass by itself.
var errFinal = errors.New("not tried again")

// The bounds of a channel.
const (
	queued   = 64
	attempts = 6
	sendTime = 30 * time.Second
	first    = 2 * time.Second // before the second attempt; doubles
	endTime  = 10 * time.Second
	lookTime = time.Minute // between looks for messages that others have left
)

// Config is a notifier's set-up.
type Config struct {
	Channels []Channel
	On       []string            // outcomes, OnHuman, OnProblem
	Project  string              // what people call the backlog
	Outbox   string              // folder for messages that wait; others may share it. Empty: they wait in memory
	Clean    func(string) string // redacts and cleans text; default: none
	Log      *slog.Logger        // default: none
}

// Notifier sends messages. Its methods are safe for concurrent use. Close ends it.
type Notifier struct {
	c      Config
	lanes  []lane // of the channels
	loops  sync.WaitGroup
	cancel context.CancelCauseFunc

	mu     sync.Mutex
	closed bool   // guarded by mu
	last   string // guarded by mu; the problem that was told last
}

// lane is one channel with what waits for it.
type lane struct {
	Channel
	box   outbox
	queue chan entry
}

// New starts a notifier. Without channels it does nothing.
func New(c Config) *Notifier {
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	if c.Clean == nil {
		c.Clean = func(s string) string { return s }
	}
	n := &Notifier{c: c}
	var ctx context.Context
	ctx, n.cancel = context.WithCancelCause(context.Background())
	for _, channel := range c.Channels {
		l := lane{channel, newOutbox(c.Outbox, channel), make(chan entry, queued)}
		n.lanes = append(n.lanes, l)
		n.loops.Go(func() { n.send(ctx, l) })
	}
	return n
}

// send sends what is queued, and at times what others have left, until the queue is closed and empty.
func (n *Notifier) send(ctx context.Context, l lane) {
	look := time.NewTicker(lookTime)
	defer look.Stop()
	n.sendLeft(ctx, l)
	for {
		select {
		case e, open := <-l.queue:
			if !open {
				return
			}
			n.sendOne(ctx, l, e, attempts)
		case <-look.C:
			n.sendLeft(ctx, l)
		}
	}
}

// sendLeft sends what processes that have died, or had no time for it, have left. Each is tried once at a look, so that one that
// nobody takes does not hold up those of this process.
func (n *Notifier) sendLeft(ctx context.Context, l lane) {
	if l.box.dir == "" {
		return
	}
	old, err := sweep(l.box.dir)
	if old > 0 {
		n.c.Log.Warn("notifications left out: older than a week", "number", old)
	}
	names, nerr := l.box.names()
	if err = errors.Join(err, nerr); err != nil {
		n.c.Log.Warn("notifications not looked for", "error", err)
	}
	for _, name := range names {
		if ctx.Err() != nil {
			return
		}
		switch e, ok, err := l.box.take(name); {
		case err != nil:
			n.c.Log.Warn("notification not read", "channel", l.Name(), "file", name, "error", err)
		case ok:
			n.sendOne(ctx, l, e, 1)
		}
	}
}

func (n *Notifier) sendOne(ctx context.Context, l lane, e entry, most int) {
	err := deliver(ctx, l, e.Message, most)
	if again := ctx.Err() != nil || most == 1 && !errors.Is(err, errFinal); err != nil && again && e.leave() {
		return // the next process sends it, or the next look
	}
	if err != nil {
		n.c.Log.Warn("notification not sent", "channel", l.Name(), "issue", e.Issue, "error", err)
	}
	if err := e.done(); err != nil {
		n.c.Log.Warn("notification not removed", "channel", l.Name(), "file", e.path, "error", err)
	}
}

// deliver tries until the message is taken, the failure is final, or it was tried that often.
func deliver(ctx context.Context, channel Channel, m Message, most int) error {
	for n, pause := 1, first; ; n, pause = n+1, 2*pause {
		within, cancel := context.WithTimeout(ctx, sendTime)
		err := channel.Send(within, m)
		cancel()
		if err == nil || errors.Is(err, errFinal) || n == most {
			return err
		}
		if serr := retry.Sleep(ctx, pause); serr != nil {
			return errors.Join(err, serr)
		}
	}
}

// Observe tells of the end of a run. It waits for the disk, and for nothing else.
func (n *Notifier) Observe(e journal.Event) {
	if e.Kind != journal.EventEnded {
		return
	}
	on := []string{string(e.Outcome)}
	if e.Final && e.Outcome != journal.Succeeded {
		on = append(on, OnHuman)
	}
	m := Message{Time: e.Time, On: on, Issue: e.Key, Title: n.text(e.Title), Run: e.Run, Branch: e.Branch}
	if e.Reason != nil {
		m.Reason = n.text(report.Reason(*e.Reason))
	}
	m.Text = sentence(n.c.Project, m, e.Outcome)
	n.tell(m)
}

// textLimit is how many characters of a title or a reason are sent, so that a message fits into its file.
const textLimit = 2000

func (n *Notifier) text(s string) string { return shortened(n.c.Clean(s), textLimit) }

// sentence is a message in one line.
func sentence(project string, m Message, outcome journal.Outcome) string {
	text := m.Issue
	if project != "" {
		text = project + "/" + m.Issue
	}
	if m.Title != "" {
		text += " (" + shortened(m.Title, 100) + ")"
	}
	text += ": " + string(outcome)
	if m.Reason != "" {
		text += ", " + shortened(m.Reason, 300)
	}
	if slices.Contains(m.On, OnHuman) {
		text += "; a person is needed"
	}
	return text
}

func shortened(s string, limit int) string {
	if r := []rune(s); len(r) > limit {
		return string(r[:limit-1]) + "…"
	}
	return s
}

// Problem tells why the backlog is not worked, once for each reason in a row; empty: it is worked. It waits for
// the disk, and for nothing else.
func (n *Notifier) Problem(line string) {
	n.mu.Lock()
	known := n.last == line
	n.last = line
	n.mu.Unlock()
	if known || line == "" {
		return
	}
	line = n.text(line)
	text := cmp.Or(n.c.Project, "the backlog") + " is not worked: " + shortened(line, 400)
	n.tell(Message{Time: time.Now(), On: []string{OnProblem}, Reason: line, Text: text})
}

// tell queues a message that somebody wants.
func (n *Notifier) tell(m Message) {
	if !slices.ContainsFunc(m.On, func(on string) bool { return slices.Contains(n.c.On, on) }) {
		return
	}
	m.ID, m.Project = cmp.Or(m.Run, rand.Text()), n.c.Project
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return
	}
	for _, l := range n.lanes {
		e, err := l.box.add(m)
		if err != nil && !errors.Is(err, errFull) {
			n.c.Log.Warn("notification not kept on disk", "channel", l.Name(), "issue", m.Issue, "error", err)
			err = nil
		}
		if err == nil {
			select {
			case l.queue <- e:
			default:
				err = errors.Join(errFull, e.done())
			}
		}
		if err != nil {
			n.c.Log.Warn("notification left out", "channel", l.Name(), "issue", m.Issue, "error", err)
		}
	}
}

// Close sends what waits, for ten seconds at most, and ends. What waits then is left in the outbox.
func (n *Notifier) Close() {
	n.mu.Lock()
	if !n.closed {
		n.closed = true
		for _, l := range n.lanes {
			close(l.queue)
		}
	}
	n.mu.Unlock()
	late := time.AfterFunc(endTime, func() { n.cancel(errors.New("ralph ends")) })
	n.loops.Wait()
	late.Stop()
	n.cancel(nil)
}
