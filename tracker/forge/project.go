// Package forge is what the trackers of forges share. A [Project] does what is the same on all of them: reports, commands,
// reviews, follow-ups, and who may direct ralph ([People]). A tracker embeds it and gives it the [Calls] that differ. Package
// transport is below it.
//
// Everything here is safe for concurrent use.
package forge

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge/transport"
)

// Config says which project a tracker is of, as whom it logs in, and which issues count. Project, MarkerKey and one of Token and
// App are needed.
type Config struct {
	tracker.Settings
	HTTP transport.Config // clock, transport and timeouts; the rest comes from the settings
}

// Calls are the requests to the API of one forge that a [Project] makes.
type Calls struct {
	// WhoAmI is the account that ralph uses.
	WhoAmI func(ctx context.Context) (Account, error)
	// Read reads an issue; its error says why that is not possible.
	Read func(ctx context.Context, key string) error
	// Home reads the project.
	Home func(ctx context.Context) (Home, error)
	// Comments gives the public comments on an issue to take, one by one, each once, until it fails.
	Comments func(ctx context.Context, number int, take func(Comment) error) error
	// Poster writes the comments of an account on an issue, or on a request.
	Poster func(number int, request bool, account int64) Poster
	// React adds a reaction to a comment, unless the comment is gone. It is idempotent.
	React func(ctx context.Context, comment string, r Reaction) error
	// Marked tells which of some comments ralph's account has reacted to, or are gone.
	Marked func(ctx context.Context, ids []string) (map[string]bool, error)
	// Requests lists requests, oldest first. It may list more than the query asks for.
	Requests func(ctx context.Context, q RequestQuery) ([]Request, error)
	// Request reads one request.
	Request func(ctx context.Context, number int) (Request, error)
	// Threads are the review threads of a request that nobody has resolved.
	Threads func(ctx context.Context, request int) ([]Thread, error)
	// ReplyToThread adds a comment to a review thread.
	ReplyToThread func(ctx context.Context, request int, thread, body string) error
	// MergeLater and KeepOpen are those of tracker.AutoMerger, for a request of ralph's own.
	MergeLater func(ctx context.Context, request int, commit string) (refused string, err error)
	KeepOpen   func(ctx context.Context, request int) error
}

// Project is one project on a forge: what trackers do in the same way on all forges. A tracker embeds it. It is safe for
// concurrent use. Make one with [NewProject].
type Project struct {
	Settings tracker.Settings
	Stack    *transport.Stack
	People   *People
	Inbox    *Inbox
	Profile  Profile

	calls   Calls
	signer  Signer
	writing *semaphore.Weighted // one report, change or request at a time
	mu      sync.Mutex
	self    Account // zero: not asked for yet; guarded by mu
}

// Profile is what differs between forges beside their calls.
type Profile struct {
	Title   string              // of the forge
	Name    string              // of the project, with that of its owner or groups
	Scope   string              // names the project and its host in the marks of reports
	Request string              // how the forge writes the number of a request, such as "pull request #"
	GitUser string              // that git logs in as, with the token
	Source  tracker.TokenSource // of the token
	// Harmless makes a text that the forge takes for no command to itself; nil: it has no such commands.
	Harmless func(text string) string
}

// NewProject makes the project of settings that [tracker.Settings.CheckForge] has accepted.
func NewProject(s tracker.Settings, stack *transport.Stack, f Profile, people *People, c Calls) *Project {
	people.Bots, people.Now, people.Log = s.TrustedBots, stack.Clock().Now, s.Log
	people.listing, people.known = semaphore.NewWeighted(1), map[int64]verdict{}
	p := &Project{Settings: s, Stack: stack, Profile: f, People: people, calls: c, writing: semaphore.NewWeighted(1)}
	p.signer = Signer{Key: s.MarkerKey, Scope: f.Scope}
	p.Inbox = &Inbox{people: people, marked: c.Marked, head: p.ownHead, open: map[string]Comment{}, done: map[string]bool{}}
	return p
}

// Identity is the account that ralph uses. It is asked for once.
func (p *Project) Identity(ctx context.Context) (Account, error) {
	p.mu.Lock()
	self := p.self
	p.mu.Unlock()
	if self.ID != 0 {
		return self, nil
	}
	self, err := p.calls.WhoAmI(ctx)
	if err != nil {
		return Account{}, fmt.Errorf("find out who ralph is on %s: %w", p.Profile.Title, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.self = self
	return self, nil
}

// Begin waits until nobody else writes, and returns ralph's account. The caller calls release.
func (p *Project) Begin(ctx context.Context) (self Account, release func(), err error) {
	if err := p.writing.Acquire(ctx, 1); err != nil {
		return self, nil, context.Cause(ctx)
	}
	release = func() { p.writing.Release(1) }
	if self, err = p.Identity(ctx); err != nil {
		release()
	}
	return self, release, err
}

// CallsLeft implements [tracker.Limited].
func (p *Project) CallsLeft() map[string]int { return p.Stack.CallsLeft() }

// Close ends connections. No call may be under way.
func (p *Project) Close() error { return p.Stack.Close() }

// GitCredentials implements tracker.Credentials with the token of the API.
func (p *Project) GitCredentials(ctx context.Context) (user, secret string, err error) {
	token, err := p.Profile.Source.Token(ctx)
	if err != nil {
		return "", "", fmt.Errorf("get a token for git: %w", err)
	}
	return p.Profile.GitUser, token.Secret, nil
}

// Mark implements tracker.Marker.
func (p *Project) Mark(key string) string {
	number, _ := Number(key) // nobody reports on any other
	return p.signer.Mark(number)
}

// Report writes the report as one comment, or edits that comment.
func (p *Project) Report(ctx context.Context, key string, r tracker.Report) error {
	number, ok := Number(key)
	if !ok {
		return NotFound(key)
	}
	self, release, err := p.Begin(ctx)
	if err != nil {
		return err
	}
	defer release()
	r.Body = p.harmless(r.Body)
	return p.Below(ctx, key, p.signer.Report(ctx, number, r, p.calls.Poster(number, false, self.ID)))
}

func (p *Project) harmless(text string) string {
	if p.Profile.Harmless == nil {
		return text
	}
	return p.Profile.Harmless(text)
}

// Below explains an error about a part of an issue. A part that is missing means a missing issue only when the issue
// itself cannot be read either, and so does one that is elsewhere.
func (p *Project) Below(ctx context.Context, key string, err error) error {
	if !transport.Missing(err) && !transport.Elsewhere(err) {
		return err
	}
	if look := p.calls.Read(ctx, key); look != nil {
		return look
	}
	return err
}

// Comments are what people wrote on an issue, oldest first, without commands and ralph's own texts. Of people who may not direct
// ralph only the names are kept: what they write may be long.
func (p *Project) Comments(ctx context.Context, number int) ([]tracker.Comment, error) {
	var list []Comment
	err := p.calls.Comments(ctx, number, func(c Comment) error {
		if IsCommand(c.Body) {
			return nil
		}
		if IsOwn(c.Body) { // whichever installation wrote it
			if self, err := p.Identity(ctx); err != nil || c.By.ID == self.ID {
				return err
			}
		}
		stranger, err := p.People.stranger(ctx, c.By)
		if stranger {
			c.Body = ""
		}
		list = append(list, c)
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(list, func(a, b Comment) int { return a.At.Compare(b.At) })
	trusted, err := p.People.Trusted(ctx, LatestFirst(list, func(c Comment) Account { return c.By }))
	if err != nil {
		return nil, err
	}
	var out []tracker.Comment
	for _, c := range list {
		if !trusted[c.By.ID] {
			c.Body = ""
		}
		out = append(out, tracker.Comment{Author: c.By.Name, Body: c.Body, Created: c.At, Trusted: trusted[c.By.ID]})
	}
	return out, nil
}

// Wants applies the filters for author and milestone.
func (p *Project) Wants(author, milestone string) bool {
	if m := p.Settings.Milestone; m != "" && !strings.EqualFold(milestone, m) {
		return false
	}
	same := func(a string) bool { return strings.EqualFold(a, author) }
	return len(p.Settings.Authors) == 0 || slices.ContainsFunc(p.Settings.Authors, same)
}

// LatestFirst are the accounts behind a list that has the oldest first: the latest words count most.
func LatestFirst[T any](list []T, by func(T) Account) []Account {
	accounts := make([]Account, 0, len(list))
	for _, v := range slices.Backward(list) {
		accounts = append(accounts, by(v))
	}
	return accounts
}

// Later is the later of two times.
func Later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
