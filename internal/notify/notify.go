// Package notify tells people about the outcomes of issues: through a program, a signed webhook, Slack or e-mail.
//
// Sending never delays runs. Pending messages are files on disk, up to a limit. They are sent again until the channel
// accepts them, after a crash by the next process. So each message is sent at least once, always with the same id. Messages
// that exceed the limit, are rejected for good or are too old are dropped and logged. A message that cannot be stored is sent
// once from memory: it may be about the full disk.
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

// Reasons for messages, besides the outcomes of runs.
const (
	OnHuman   = "human"   // a person has to look at the issue: no run continues it
	OnProblem = "problem" // the backlog cannot be worked or is not polled
)

// CheckOn returns an error if s is not a reason for messages.
func CheckOn(s string) error {
	all := []string{OnHuman, OnProblem}
	for _, o := range journal.Outcomes() {
		all = append(all, string(o))
	}
	if !slices.Contains(all, s) {
		return errors.New("must be one of " + strings.Join(all, ", "))
	}
	return nil
}

// Message is the content that channels send. Fields are never removed or renamed.
type Message struct {
	ID      string    `json:"id"` // the run's id, or random; the same for each attempt
	Time    time.Time `json:"time"`
	On      []string  `json:"on"` // reasons: an outcome, OnHuman, OnProblem
	Project string    `json:"project,omitempty"`
	Issue   string    `json:"issue,omitempty"`
	Title   string    `json:"title,omitempty"`
	Run     string    `json:"run,omitempty"`
	Branch  string    `json:"branch,omitempty"`
	Reason  string    `json:"reason,omitempty"`

	IssueURL   string `json:"issue_url,omitempty"` // for the local tracker the file's path
	RequestURL string `json:"request_url,omitempty"`
	RunURL     string `json:"run_url,omitempty"` // page on the dashboard
	ProjectURL string `json:"project_url,omitempty"`

	Text string `json:"text"` // summary in one line
}

// Channel delivers messages to people.
type Channel interface {
	Name() string
	// Place is the destination. It may be a secret: only a digest of it is stored.
	Place() string
	// Send sends one message. An error that wraps errFinal is not retried. Errors show no secrets.
	Send(ctx context.Context, m Message) error
}

// errFinal marks a permanent failure.
var errFinal = errors.New("not tried again")

// Time limits and pauses of a channel.
const (
	sendTime = 30 * time.Second
	first    = 2 * time.Second  // before the second attempt; doubles each time
	longest  = 15 * time.Minute // maximum between attempts
	endTime  = 10 * time.Second
	lookTime = time.Minute // interval of checks for messages that other processes left
)

// Config configures a Notifier.
type Config struct {
	Channels  []Channel
	On        []string            // reasons to send: outcomes, OnHuman, OnProblem
	Project   string              // the backlog's name
	Dashboard string              // address of the dashboard; empty: no links to it
	Outbox    string              // folder of pending messages, may be shared by processes; empty: nothing is sent
	Clean     func(string) string // redacts and cleans text; default: none
	Log       *slog.Logger        // default: none
}

// Notifier sends messages. Its methods are safe for concurrent use. Close it when done.
type Notifier struct {
	c      Config
	lanes  []*lane // one for each channel
	loops  sync.WaitGroup
	cancel context.CancelCauseFunc

	mu     sync.Mutex
	closed bool              // guarded by mu
	last   map[string]string // guarded by mu; the last line of each kind of problem
}

// lane is a channel with its pending messages. One goroutine uses it, except wake, box and unstored.
type lane struct {
	Channel
	box        outbox
	wakeup     chan struct{}        // wakes the goroutine
	deliveries map[string]*delivery // pending messages by file name
	unstored   chan Message         // messages that could not be stored
}

// delivery is the state of sending one message.
type delivery struct {
	n    int
	due  time.Time // time of the next attempt
	sent bool      // sent, but its file could not be removed
}

// New starts a notifier. Without channels or an outbox it sends nothing.
func New(c Config) *Notifier {
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	if c.Clean == nil {
		c.Clean = func(s string) string { return s }
	}
	n := &Notifier{c: c, last: map[string]string{}}
	var ctx context.Context
	ctx, n.cancel = context.WithCancelCause(context.Background())
	if c.Outbox == "" {
		return n
	}
	for _, channel := range c.Channels {
		l := &lane{channel, newOutbox(c.Outbox, channel), make(chan struct{}, 1), map[string]*delivery{}, make(chan Message, queued)}
		n.lanes = append(n.lanes, l)
		n.loops.Go(func() { n.send(ctx, l) })
	}
	return n
}

// send sends pending messages, and regularly those that other processes left, until the notifier is closed. Then it tries
// every message once more.
func (n *Notifier) send(ctx context.Context, l *lane) {
	for {
		closed := n.isClosed() // no message is added after that
		n.sendUnstored(ctx, l, closed)
		n.sendDue(ctx, l, closed)
		if closed || ctx.Err() != nil {
			return
		}
		next := lookTime
		if len(l.unstored) > 0 {
			next = 0
		}
		for _, t := range l.deliveries {
			next = min(next, time.Until(t.due))
		}
		select {
		case <-l.wakeup:
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

// sendUnstored tries the oldest message that could not be stored, once, and with all every one. A channel that hangs would otherwise
// keep those that are stored for long.
func (n *Notifier) sendUnstored(ctx context.Context, l *lane, all bool) {
	for more := true; more && len(l.unstored) > 0; more = all {
		m := <-l.unstored
		if err := l.deliver(ctx, m); err != nil {
			n.dropped(l, m, err)
		}
	}
}

// deliver tries to send a message, within the time limit.
func (l *lane) deliver(ctx context.Context, m Message) error {
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	return l.Send(ctx, m)
}

func (n *Notifier) dropped(l *lane, m Message, why error) {
	n.c.Log.Warn("notification dropped", "channel", l.Name(), "issue", m.Issue, "error", why)
}

// sendDue tries each message that is due. With all it tries every pending message.
func (n *Notifier) sendDue(ctx context.Context, l *lane, all bool) {
	old, err := sweep(l.box.dir)
	if old > 0 {
		n.c.Log.Warn("notifications dropped: older than a week", "number", old)
	}
	names, nerr := l.box.names()
	if err = errors.Join(err, nerr); err != nil {
		n.c.Log.Warn("notifications not looked for", "error", err)
	}
	maps.DeleteFunc(l.deliveries, func(name string, _ *delivery) bool { return !slices.Contains(names, name) })
	for _, name := range names {
		d := l.deliveries[name]
		if d == nil {
			d = &delivery{}
			l.deliveries[name] = d
		}
		if ctx.Err() == nil && (all || !d.due.After(time.Now())) && n.sendOne(ctx, l, name, d) {
			delete(l.deliveries, name)
		}
	}
}

// sendOne tries a message once and reports whether it is no longer pending.
func (n *Notifier) sendOne(ctx context.Context, l *lane, name string, d *delivery) (over bool) {
	e, ok, err := l.box.lockAndRead(name)
	if err != nil {
		n.c.Log.Warn("notification not read", "channel", l.Name(), "file", name, "error", err)
	}
	if !ok { // another process is sending it
		d.due = time.Now().Add(lookTime)
		return err != nil
	}
	if !d.sent {
		err = l.deliver(ctx, e.Message)
	}
	if err != nil && (ctx.Err() != nil || !errors.Is(err, errFinal)) {
		if d.scheduleRetry(); d.n == 1 && ctx.Err() == nil {
			n.c.Log.Warn("notification not sent yet", "channel", l.Name(), "issue", e.Issue, "error", err)
		}
		e.unlock()
		return false
	}
	if err != nil {
		n.dropped(l, e.Message, err)
	}
	if err := e.done(); err != nil {
		d.scheduleRetry()
		d.sent = true
		n.c.Log.Warn("notification not removed", "channel", l.Name(), "file", e.path, "error", err)
		return false
	}
	return true
}

// scheduleRetry records a failure and schedules the next attempt.
func (d *delivery) scheduleRetry() {
	d.due = time.Now().Add(min(longest, first<<min(d.n, 20)))
	d.n++
}

// Ended sends a message about the end of a run, given the run's last event. It waits only for the disk. Repeated calls for
// one run produce messages with the same id.
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
	n.enqueue(m)
}

// page returns the address of a project page on the dashboard, or "" without a dashboard.
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

// textLimit is the maximum number of characters of a title or reason, so that a message fits into its file.
const textLimit = 2000

func (n *Notifier) text(s string) string { return shortened(n.c.Clean(s), textLimit) }

// sentence summarises a message in one line.
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

// Problem sends a message about why the backlog is not worked. It ignores a reason equal to the previous one. An empty
// reason means that the backlog is worked again. It waits only for the disk.
func (n *Notifier) Problem(line string) { n.problem("the backlog", " is not worked: ", line) }

// Refused sends a message about why the latest configuration is not used, like Problem. Without a project it is that of the service.
func (n *Notifier) Refused(line string) {
	n.problem("the service", ": configuration refused; the last good one stays: ", line)
}

func (n *Notifier) problem(about, kind, line string) {
	n.mu.Lock()
	known := n.last[kind] == line
	n.last[kind] = line
	n.mu.Unlock()
	if known || line == "" {
		return
	}
	line = n.text(line)
	text := cmp.Or(n.c.Project, about) + kind + shortened(line, 400)
	n.enqueue(Message{Time: time.Now(), On: []string{OnProblem}, Reason: line, Text: text})
}

// enqueue adds a message to all channels if one of its reasons is configured.
func (n *Notifier) enqueue(m Message) {
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
		if err := l.box.add(m); err != nil && !n.keep(l, m, err) {
			n.dropped(l, m, err)
			continue
		}
		l.wake()
	}
}

// keep keeps a message that could not be stored in memory, and reports whether there is room.
func (n *Notifier) keep(l *lane, m Message, why error) bool {
	if errors.Is(why, errFull) {
		return false
	}
	select {
	case l.unstored <- m:
		n.c.Log.Warn("notification not stored: sent once from memory", "channel", l.Name(), "issue", m.Issue, "error", why)
		return true
	default:
		return false
	}
}

func (l *lane) wake() {
	select {
	case l.wakeup <- struct{}{}:
	default:
	}
}

// Close tries each pending message once more, for ten seconds at most, and stops the notifier. The next notifier sends the rest.
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
