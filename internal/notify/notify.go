// Package notify tells people what became of issues: by a program of theirs, a signed webhook, Slack or e-mail.
//
// Telling never holds up what it is about. What waits for a channel is on disk, up to a bound, and is tried again until it is taken:
// by this process, or by the next one when this one dies. So each message is sent at least once, always with the same id. What does
// not fit, is refused for good, or is too old is left out and logged.
package notify

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

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

	IssueURL   string `json:"issue_url,omitempty"` // of the local tracker the file's path
	RequestURL string `json:"request_url,omitempty"`
	RunURL     string `json:"run_url,omitempty"` // on the dashboard
	ProjectURL string `json:"project_url,omitempty"`

	Text string `json:"text"` // all of it in one line
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
	sendTime = 30 * time.Second
	first    = 2 * time.Second  // before the second attempt; doubles
	longest  = 15 * time.Minute // between attempts
	endTime  = 10 * time.Second
	lookTime = time.Minute // between looks for messages that others have left
)

// Config is a notifier's set-up.
type Config struct {
	Channels  []Channel
	On        []string            // outcomes, OnHuman, OnProblem
	Project   string              // what people call the backlog
	Dashboard string              // its address; empty: messages have no link to it
	Outbox    string              // folder for messages that wait; others may share it. Empty: nothing is sent
	Clean     func(string) string // redacts and cleans text; default: none
	Log       *slog.Logger        // default: none
}

// Notifier sends messages. Its methods are safe for concurrent use. Close ends it.
type Notifier struct {
	c      Config
	lanes  []*lane // of the channels
	loops  sync.WaitGroup
	cancel context.CancelCauseFunc

	mu     sync.Mutex
	closed bool   // guarded by mu
	last   string // guarded by mu; the problem that was told last
}

// lane is one channel with what waits for it. All but poke and box is of one goroutine.
type lane struct {
	Channel
	box   outbox
	poke  chan struct{}   // look now
	tries map[string]*try // of what waits, by file
}

// try is how far the sending of a message has come.
type try struct {
	n    int
	due  time.Time // of the next attempt
	sent bool      // but its file could not be removed
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
	if c.Outbox == "" {
		return n
	}
	for _, channel := range c.Channels {
		l := &lane{channel, newOutbox(c.Outbox, channel), make(chan struct{}, 1), map[string]*try{}}
		n.lanes = append(n.lanes, l)
		n.loops.Go(func() { n.send(ctx, l) })
	}
	return n
}

// send sends what waits, and at times what others have left, until the notifier is closed; then it tries everything once more.
func (n *Notifier) send(ctx context.Context, l *lane) {
	for {
		closed := n.isClosed() // nothing comes after that
		n.look(ctx, l, closed)
		if closed || ctx.Err() != nil {
			return
		}
		next := lookTime
		for _, t := range l.tries {
			next = min(next, time.Until(t.due))
		}
		select {
		case <-l.poke:
		case <-time.After(next):
		case <-ctx.Done():
		}
	}
}

func (n *Notifier) isClosed() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.closed
}

// look tries each message that is due, or each that waits.
func (n *Notifier) look(ctx context.Context, l *lane, all bool) {
	old, err := sweep(l.box.dir)
	if old > 0 {
		n.c.Log.Warn("notifications left out: older than a week", "number", old)
	}
	names, nerr := l.box.names()
	if err = errors.Join(err, nerr); err != nil {
		n.c.Log.Warn("notifications not looked for", "error", err)
	}
	maps.DeleteFunc(l.tries, func(name string, _ *try) bool { return !slices.Contains(names, name) })
	for _, name := range names {
		t := l.tries[name]
		if t == nil {
			t = &try{}
			l.tries[name] = t
		}
		if ctx.Err() == nil && (all || !t.due.After(time.Now())) && n.sendOne(ctx, l, name, t) {
			delete(l.tries, name)
		}
	}
}

// sendOne tries a message once, and reports whether it waits no more.
func (n *Notifier) sendOne(ctx context.Context, l *lane, name string, t *try) (over bool) {
	e, ok, err := l.box.take(name)
	if err != nil {
		n.c.Log.Warn("notification not read", "channel", l.Name(), "file", name, "error", err)
	}
	if !ok { // another process sends it
		t.due = time.Now().Add(lookTime)
		return err != nil
	}
	if !t.sent {
		within, cancel := context.WithTimeout(ctx, sendTime)
		err = l.Send(within, e.Message)
		cancel()
	}
	if err != nil && (ctx.Err() != nil || !errors.Is(err, errFinal)) {
		if t.again(); t.n == 1 && ctx.Err() == nil {
			n.c.Log.Warn("notification not sent yet", "channel", l.Name(), "issue", e.Issue, "error", err)
		}
		e.leave()
		return false
	}
	if err != nil {
		n.c.Log.Warn("notification left out", "channel", l.Name(), "issue", e.Issue, "error", err)
	}
	if err := e.done(); err != nil {
		t.again()
		t.sent = true
		n.c.Log.Warn("notification not removed", "channel", l.Name(), "file", e.path, "error", err)
		return false
	}
	return true
}

// again notes a failure.
func (t *try) again() {
	t.due = time.Now().Add(min(longest, first<<min(t.n, 20)))
	t.n++
}

// Ended tells of the end of a run, by its last event. It waits for the disk, and for nothing else. Of a run that was told before, a
// message has the same id.
func (n *Notifier) Ended(e journal.Event) {
	on := []string{string(e.Outcome)}
	if e.Final && e.Outcome != journal.Succeeded {
		on = append(on, OnHuman)
	}
	m := Message{Time: e.Time, On: on, Issue: e.Key, Title: n.text(e.Title), Run: e.Run, Branch: e.Branch}
	m.IssueURL, m.RequestURL, m.RunURL = n.text(e.URL), n.text(e.Request), n.page("runs", e.Run)
	if e.Reason != nil {
		m.Reason = n.text(report.Reason(*e.Reason))
	}
	m.Text = sentence(n.c.Project, m, e.Outcome)
	n.tell(m)
}

// page is the address of a page of the project on the dashboard; empty: it is not known.
func (n *Notifier) page(parts ...string) string {
	if n.c.Dashboard == "" || n.c.Project == "" {
		return ""
	}
	address := strings.TrimRight(n.c.Dashboard, "/") + "/p"
	for _, part := range append([]string{n.c.Project}, parts...) {
		address += "/" + url.PathEscape(part)
	}
	return address
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

// tell has a message sent that somebody wants.
func (n *Notifier) tell(m Message) {
	if !slices.ContainsFunc(m.On, func(on string) bool { return slices.Contains(n.c.On, on) }) {
		return
	}
	m.ID, m.Project, m.ProjectURL = cmp.Or(m.Run, rand.Text()), n.c.Project, n.page()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return
	}
	for _, l := range n.lanes {
		if err := l.box.add(m); err != nil {
			n.c.Log.Warn("notification left out", "channel", l.Name(), "issue", m.Issue, "error", err)
			continue
		}
		l.wake()
	}
}

func (l *lane) wake() {
	select {
	case l.poke <- struct{}{}:
	default:
	}
}

// Close tries once more what waits, for ten seconds at most, and ends. What waits then is for the next notifier.
func (n *Notifier) Close() {
	n.mu.Lock()
	n.closed = true
	for _, l := range n.lanes {
		l.wake()
	}
	n.mu.Unlock()
	late := time.AfterFunc(endTime, func() { n.cancel(errors.New("ralph ends")) })
	n.loops.Wait()
	late.Stop()
	n.cancel(nil)
}
