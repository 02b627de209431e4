// Package forge implements the parts of a tracker that are the same on all forges. A [Project] writes reports, reads commands
// and reviews, lists follow-ups, and decides who may direct ralph ([People]). Each tracker of a forge embeds a Project and
// supplies the API requests that differ as [Calls]. Package transport carries these requests.
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

// Config selects the project, the login and the issues of a tracker. It requires Project, MarkerKey, and either Token or App.
type Config struct {
	tracker.Settings
	HTTP transport.Config // clock, transport and timeouts; New derives the other fields from the settings
}

// Calls are the API requests that a [Project] makes, implemented for one forge.
type Calls struct {
	// WhoAmI returns the account that ralph uses.
	WhoAmI func(ctx context.Context) (Account, error)
	// Read checks that an issue is readable; its error is the reason why it is not.
	Read func(ctx context.Context, key string) error
	// Home reads the project.
	Home func(ctx context.Context) (Home, error)
	// Comments passes each public comment on an issue to visit once, until visit fails.
	Comments func(ctx context.Context, number int, visit func(Comment) error) error
	// Poster returns access to an account's comments on an issue or request.
	Poster func(number int, request bool, account int64) Poster
	// React adds a reaction to a comment, unless the comment is gone. It is idempotent.
	React func(ctx context.Context, comment string, r Reaction) error
	// Marked reports which of these comments have a reaction of ralph's account or are deleted.
	Marked func(ctx context.Context, ids []string) (map[string]bool, error)
	// Requests lists requests, oldest first. It may return more than the query selects.
	Requests func(ctx context.Context, q RequestQuery) ([]Request, error)
	// Request reads one request.
	Request func(ctx context.Context, number int) (Request, error)
	// Threads returns the unresolved review threads of a request.
	Threads func(ctx context.Context, request int) ([]Thread, error)
	// ReplyToThread adds a comment to a review thread.
	ReplyToThread func(ctx context.Context, request int, thread, body string) error
	// MergeLater and KeepOpen implement the methods of tracker.AutoMerger for one of ralph's requests.
	MergeLater func(ctx context.Context, request int, commit string) (refused string, err error)
	KeepOpen   func(ctx context.Context, request int) error
}

// Project is one project on a forge, with the behaviour that all forges have in common. Trackers embed it. It is safe for
// concurrent use. Make one with [NewProject].
type Project struct {
	Settings tracker.Settings
	Stack    *transport.Stack
	People   *People
	Inbox    *Inbox
	Profile  Profile

	calls     Calls
	signer    Signer
	writeLock *semaphore.Weighted // one report, change or request at a time
	mu        sync.Mutex
	self      Account // zero until it is known; guarded by mu
}

// Profile describes the differences between forges, apart from Calls.
type Profile struct {
	Title   string              // display name of the forge
	Name    string              // full name of the project, including the owner or groups
	Scope   string              // project and host, as part of the marks of reports
	Request string              // the forge's prefix of a request number, such as "pull request #"
	GitUser string              // user name for git, with the token as the password
	Source  tracker.TokenSource // source of the token
	// Neutralize disables commands to the forge in a text; nil: the forge has no such commands.
	Neutralize func(text string) string
}

// NewProject makes a project from settings that passed [tracker.Settings.CheckForge].
func NewProject(s tracker.Settings, stack *transport.Stack, f Profile, people *People, c Calls) *Project {
	people.Bots, people.Now, people.Log = s.TrustedBots, stack.Clock().Now, s.Log
	people.listLock, people.verdicts = semaphore.NewWeighted(1), map[int64]verdict{}
	p := &Project{Settings: s, Stack: stack, Profile: f, People: people, calls: c, writeLock: semaphore.NewWeighted(1)}
	p.signer = Signer{Key: s.MarkerKey, Scope: f.Scope}
	p.Inbox = &Inbox{people: people, marked: c.Marked, headBranch: p.ownHead, openCommands: map[string]Comment{}, answered: map[string]bool{}}
	return p
}

// Identity returns the account that ralph uses. It asks the forge once.
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

// Begin waits for the exclusive right to write and returns ralph's account. The caller must call release.
func (p *Project) Begin(ctx context.Context) (self Account, release func(), err error) {
	if err := p.writeLock.Acquire(ctx, 1); err != nil {
		return self, nil, context.Cause(ctx)
	}
	release = func() { p.writeLock.Release(1) }
	if self, err = p.Identity(ctx); err != nil {
		release()
	}
	return self, release, err
}

// CallsLeft implements [tracker.Limited].
func (p *Project) CallsLeft() map[string]int { return p.Stack.CallsLeft() }

// Close closes the connections. No call may be in progress.
func (p *Project) Close() error { return p.Stack.Close() }

// GitCredentials implements tracker.Credentials with the API token.
func (p *Project) GitCredentials(ctx context.Context) (user, secret string, err error) {
	token, err := p.Profile.Source.Token(ctx)
	if err != nil {
		return "", "", fmt.Errorf("get a token for git: %w", err)
	}
	return p.Profile.GitUser, token.Secret, nil
}

// Mark implements tracker.Marker.
func (p *Project) Mark(key string) string {
	number, _ := Number(key) // ralph reports only on valid keys
	return p.signer.Mark(number)
}

// Report writes the report as one comment, or edits the existing one.
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
	r.Body = p.escape(r.Body)
	return p.ExplainPart(ctx, key, p.signer.Report(ctx, number, r, p.calls.Poster(number, false, self.ID)))
}

func (p *Project) escape(text string) string {
	if p.Profile.Neutralize == nil {
		return text
	}
	return p.Profile.Neutralize(text)
}

// ExplainPart explains an error about a part of an issue. If the part is missing or has moved, and the issue itself cannot be read
// either, the error is that of the issue.
func (p *Project) ExplainPart(ctx context.Context, key string, err error) error {
	if !transport.Missing(err) && !transport.IsMoved(err) {
		return err
	}
	if look := p.calls.Read(ctx, key); look != nil {
		return look
	}
	return err
}

// Comments returns people's comments on an issue, oldest first, without commands and ralph's own texts. Comments of people who
// may not direct ralph have no Body, since their texts may be long.
func (p *Project) Comments(ctx context.Context, number int) ([]tracker.Comment, error) {
	var list []Comment
	err := p.calls.Comments(ctx, number, func(c Comment) error {
		if IsCommand(c.Body) {
			return nil
		}
		if IsOwn(c.Body) { // of any installation
			if self, err := p.Identity(ctx); err != nil || c.By.ID == self.ID {
				return err
			}
		}
		stranger, err := p.People.isStranger(ctx, c.By)
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

// MatchesFilters reports whether an issue passes the filters for author and milestone.
func (p *Project) MatchesFilters(author, milestone string) bool {
	if m := p.Settings.Milestone; m != "" && !strings.EqualFold(milestone, m) {
		return false
	}
	same := func(a string) bool { return strings.EqualFold(a, author) }
	return len(p.Settings.Authors) == 0 || slices.ContainsFunc(p.Settings.Authors, same)
}

// LatestFirst returns the accounts of a list in reverse order. The list has the oldest first, and the latest items count most.
func LatestFirst[T any](list []T, by func(T) Account) []Account {
	accounts := make([]Account, 0, len(list))
	for _, v := range slices.Backward(list) {
		accounts = append(accounts, by(v))
	}
	return accounts
}

// Later returns the later of two times.
func Later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
