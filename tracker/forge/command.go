package forge

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge/transport"
)

const (
	// LookBack is the maximum age of a comment that is read as a command.
	LookBack = 14 * 24 * time.Hour
	// MaxNewComments is the maximum number of new comments read at a time, newest first, so that outsiders cannot raise the cost.
	MaxNewComments = 500
)

// Reaction marks a comment as answered. The spelling is the same on all forges.
type Reaction string

const (
	ReactionTakenUp Reaction = "eyes"
	ReactionRefused Reaction = "confused"
)

// Comment is a comment, a review comment or a review.
type Comment struct {
	ID      string // unique in the project; stored in markers and claims
	Number  int    // number of the issue or request
	Request bool
	By      Account
	Body    string // in an Inbox the result of [CommandIn]
	At      time.Time
}

// Inbox finds commands in comments and remembers which of them are answered. It is safe for concurrent use.
type Inbox struct {
	people *People
	// marked reports which comments are answered or deleted.
	marked func(ctx context.Context, ids []string) (map[string]bool, error)
	// headBranch returns the head branch of a request of ralph's own account, and "" for any other request.
	headBranch func(ctx context.Context, request int) (string, error)

	mu           sync.Mutex
	openCommands map[string]Comment // known commands without an answer; guarded by mu
	answered     map[string]bool    // guarded by mu
}

// Find adds recent comments and returns the unanswered commands, oldest first. Comments of people who may not direct ralph
// cost no request.
func (c *Inbox) Find(ctx context.Context, lately []Comment, prefix string) ([]tracker.Command, error) {
	all := c.addRecent(lately)
	trusted, err := c.people.Trusted(ctx, LatestFirst(all, func(s Comment) Account { return s.By }))
	if err != nil {
		return nil, err
	}
	var ids []string
	all = slices.DeleteFunc(all, func(s Comment) bool {
		if !trusted[s.By.ID] {
			c.forgetCommand(s.ID)
			return true
		}
		ids = append(ids, s.ID)
		return false
	})
	if len(ids) == 0 {
		return nil, nil
	}
	answered, err := c.marked(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("see which commands have an answer: %w", err)
	}
	var out []tracker.Command
	for _, s := range all {
		key, relevant := fmt.Sprint(s.Number), !answered[s.ID]
		if s.Request && relevant {
			head, err := c.headBranch(ctx, s.Number)
			if err != nil && !transport.Missing(err) {
				return nil, fmt.Errorf("read request %d, which has a command: %w", s.Number, err)
			}
			key, relevant = strings.CutPrefix(head, prefix)
		}
		if !relevant || key == "" {
			c.Done(s.ID)
			continue
		}
		cmd := tracker.Command{ID: s.ID, Key: key, By: s.By.Name, At: s.At}
		if s.Request {
			cmd.Request = s.Number
		}
		cmd.Verb, cmd.Text, _ = tracker.ParseCommand(s.Body)
		out = append(out, cmd)
	}
	return out, nil
}

// addRecent adds the commands in recent comments to the open ones and returns all open ones, oldest first.
func (c *Inbox) addRecent(recent []Comment) []Comment {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range recent {
		switch _, _, ok := tracker.ParseCommand(s.Body); {
		case !ok:
			delete(c.openCommands, s.ID) // its author may have edited a command away
		case !c.answered[s.ID]:
			c.openCommands[s.ID] = s
		}
	}
	return slices.SortedFunc(maps.Values(c.openCommands), func(a, b Comment) int { return cmp.Or(a.At.Compare(b.At), strings.Compare(a.ID, b.ID)) })
}

func (c *Inbox) forgetCommand(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.openCommands, id)
}

// Done marks a command as answered.
func (c *Inbox) Done(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.openCommands, id)
	c.answered[id] = true
}

// replyMark returns the first line of a reply.
func replyMark(to string) string { return replyPrefix + to + " -->" }

const replyPrefix = "<!-- ralph:reply to="

// replyBody returns the text of a reply to a comment, or to a thread that a commit addresses.
func replyBody(to, text string) string {
	mark := replyMark(to) + "\n"
	return mark + tracker.Fit(text, MaxText-len(mark))
}

// repliesTo reports whether a text is a reply to something. The caller checks that ralph's account wrote it.
func repliesTo(text, to string) bool { return strings.HasPrefix(text, replyMark(to)) }

// reply posts a reply unless there is one. If two machines post at once, the older reply remains.
func reply(ctx context.Context, to, text string, p Poster) error {
	match := func(body string) bool { return repliesTo(body, to) }
	found, err := p.Find(ctx, match)
	if err != nil || len(found) > 0 {
		return err
	}
	failed := p.Create(ctx, replyBody(to, text))
	if failed != nil && !transport.Uncertain(failed) {
		return failed
	}
	if found, err = p.Find(ctx, match); err != nil {
		return err
	}
	if len(found) == 0 {
		return failed
	}
	for _, second := range found[1:] {
		if err := p.Delete(ctx, second.ID); err != nil && !transport.Missing(err) {
			return fmt.Errorf("delete a second reply: %w", err)
		}
	}
	return nil
}

// Remark is a comment in a review thread.
type Remark struct {
	By   Account
	Body string
	At   time.Time
}

// Thread is an unresolved review thread.
type Thread struct {
	ID      string
	Where   string // such as "main.go:12"
	Remarks []Remark
}

// AnsweredWith reports whether ralph's account has replied to the thread with the commit.
func (t Thread) AnsweredWith(commit string, self int64) bool {
	return slices.ContainsFunc(t.Remarks, func(r Remark) bool { return r.By.ID == self && repliesTo(r.Body, commit) })
}

// Unanswered selects the threads in which a person who may direct ralph has commented since ralph's last reply. It returns
// them as feedback of at most limit bytes; threads that do not fit wait for a later call. Commands do not count.
func (p *People) Unanswered(ctx context.Context, threads []Thread, self int64, limit int) (text string, ids []string, last time.Time, err error) {
	var remarks []Remark
	for n, t := range threads {
		from := 1 + lastIndex(t.Remarks, func(r Remark) bool { return r.By.ID == self && strings.HasPrefix(r.Body, replyPrefix) })
		threads[n].Remarks = slices.DeleteFunc(slices.Clone(t.Remarks[from:]), func(r Remark) bool { return IsCommand(r.Body) })
		remarks = append(remarks, threads[n].Remarks...)
	}
	trusted, err := p.Trusted(ctx, LatestFirst(remarks, func(r Remark) Account { return r.By }))
	if err != nil {
		return "", nil, last, err
	}
	var b strings.Builder
	for _, t := range threads {
		part, at := "", time.Time{}
		for _, r := range t.Remarks {
			if trusted[r.By.ID] {
				part += fmt.Sprintf("\n%s:\n%s\n", r.By.Name, tracker.Cut(r.Body, MaxPart))
				at = r.At
			}
		}
		if part == "" || b.Len()+len(part) > limit {
			continue
		}
		b.WriteString("\n" + t.Where + part)
		ids = append(ids, t.ID)
		last = Later(last, at)
	}
	return b.String(), ids, last, nil
}

func lastIndex[T any](list []T, match func(T) bool) int {
	for n, v := range slices.Backward(list) {
		if match(v) {
			return n
		}
	}
	return -1
}

const maxCommand = 16 << 10 // bytes of a comment that are searched for a command

// IsCommand reports whether a comment begins with a command.
func IsCommand(text string) bool {
	_, _, is := tracker.ParseCommand(tracker.Cut(text, maxCommand))
	return is
}

// CommandIn returns the part of a comment that an [Inbox] needs: "" for a comment without a command.
func CommandIn(text string) string {
	if !IsCommand(text) {
		return ""
	}
	return Start(text, maxCommand)
}

// Start returns a copy of at most n bytes of a text, so that the rest of it can be freed.
func Start(text string, n int) string { return strings.Clone(tracker.Cut(text, n)) }

// Answer replies first and reacts to the comment afterwards: after a crash in between, the repeated call finds the reply.
func (p *Project) Answer(ctx context.Context, c tracker.Command, a tracker.Answer) error {
	self, release, err := p.Begin(ctx)
	if err != nil {
		return err
	}
	defer release()
	number := c.Request
	if number == 0 {
		number, _ = Number(c.Key)
	}
	if a.Text != "" {
		if err := reply(ctx, c.ID, p.escape(a.Text), p.calls.Poster(number, c.Request != 0, self.ID)); err != nil {
			return fmt.Errorf("reply on #%d: %w", number, err)
		}
	}
	if c.Elsewhere {
		return nil
	}
	reaction := ReactionTakenUp
	if a.Refused {
		reaction = ReactionRefused
	}
	if err := p.calls.React(ctx, c.ID, reaction); err != nil {
		return fmt.Errorf("mark a comment on #%d as answered: %w", number, err)
	}
	p.Inbox.Done(c.ID)
	return nil
}

// Review implements tracker.Commander.
func (p *Project) Review(ctx context.Context, head string) (f tracker.FollowUp, err error) {
	r, err := p.OwnRequest(ctx, head)
	if err != nil || r.Number == 0 {
		return f, err
	}
	f = r.FollowUp()
	f.Feedback, f.Threads, f.At, err = p.Unanswered(ctx, r.Number, MaxFeedback)
	return f, err
}

// Unanswered returns the threads of a request that ralph has to answer, as feedback of at most limit bytes.
func (p *Project) Unanswered(ctx context.Context, request, limit int) (text string, ids []string, last time.Time, err error) {
	self, err := p.Identity(ctx)
	if err != nil {
		return "", nil, last, err
	}
	threads, err := p.calls.Threads(ctx, request)
	if err != nil {
		return "", nil, last, fmt.Errorf("read the review threads of %s%d: %w", p.Profile.Request, request, err)
	}
	return p.People.Unanswered(ctx, threads, self.ID, limit)
}

// Addressed implements tracker.Commander.
func (p *Project) Addressed(ctx context.Context, request int, ids []string, commit string) error {
	self, release, err := p.Begin(ctx)
	if err != nil {
		return err
	}
	defer release()
	threads, err := p.calls.Threads(transport.WithoutCache(ctx), request)
	for _, t := range threads {
		if err == nil && slices.Contains(ids, t.ID) && !t.AnsweredWith(commit, self.ID) {
			err = p.calls.ReplyToThread(ctx, request, t.ID, replyBody(commit, "Addressed in "+commit+"."))
		}
	}
	if err != nil {
		return fmt.Errorf("answer the review threads of %s%d: %w", p.Profile.Request, request, err)
	}
	return nil
}
