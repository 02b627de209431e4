package compose

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"unicode"

	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/pool/backlog"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/report"
	"github.com/ralph-pool/ralph/tracker"
)

// Issue reads the issue that a person typed: a key, or a name that the tracker resolves.
func (p *Parts) Issue(ctx context.Context, typed string) (tracker.Issue, error) {
	issue, err := p.Backlog.Get(ctx, p.Key(ctx, typed))
	if !errors.Is(err, tracker.ErrNotFound) {
		return issue, err
	}
	return issue, exit.Classified(p.Nearest(ctx, &backlog.UnknownKeyError{Key: typed}))
}

// Nearest completes a [backlog.UnknownKeyError] with a similar key, which may be that of a closed issue. If the key itself has
// runs, the issue did exist and is gone.
func (p *Parts) Nearest(ctx context.Context, err error) error {
	unknown, ok := errors.AsType[*backlog.UnknownKeyError](err)
	if !ok {
		return err
	}
	key := KeyOfFile(unknown.Key)
	if runs, _ := p.Journal.Find(ctx, journal.Query{Key: key, Kind: journal.KindIssue, Latest: true}); len(runs) > 0 {
		unknown.Nearest = unknown.Key
	} else if unknown.Nearest == "" {
		list, _ := p.Backlog.List(ctx, tracker.Query{}) // an error only costs the hint
		unknown.Nearest = p.withClosed(ctx, list).Nearest(unknown.Key)
	}
	return err
}

// withClosed adds to the open issues those that have runs, and the closed ones of a backlog of files.
func (p *Parts) withClosed(ctx context.Context, list tracker.Listing) tracker.Listing {
	runs, _ := p.Journal.Find(ctx, journal.Query{Latest: true, Kind: journal.KindIssue}) // an error only costs the hint
	for _, r := range runs {
		list.Issues = append(list.Issues, tracker.Issue{Key: r.Key})
	}
	if _, files := tracker.As[tracker.Namer](p.Backlog); files {
		list.Issues = append(list.Issues, closedIssues(ctx, p.Backlog, p.LocalDir)...)
	}
	return list
}

// KeyOfFile returns the key in what a person typed: the name of a local issue's file may come with folder and ending.
func KeyOfFile(key string) string {
	return strings.TrimSuffix(key[strings.LastIndexByte(key, '/')+1:], ".md")
}

// Key returns the key of the issue that a person typed, or typed as a key if there is no such issue.
func (p *Parts) Key(ctx context.Context, typed string) string {
	if n, ok := tracker.As[tracker.Namer](p.Backlog); ok {
		if key, ok := n.KeyOf(ctx, typed); ok {
			return key
		}
	}
	return KeyOfFile(typed)
}

// Names returns a function from keys to the names that people use and may type. It reads the backlog once, at its first call.
func (p *Parts) Names(ctx context.Context) func(key string) string {
	known := sync.OnceValue(func() map[string]string {
		n, ok := tracker.As[tracker.Namer](p.Backlog)
		if !ok {
			return nil
		}
		return n.Names(context.WithoutCancel(ctx))
	})
	return func(key string) string { return distinct(cmp.Or(known()[key], key), key) }
}

// InCommand returns the word for an issue in a command line: its name, or its key if a shell would need quotes for the name.
func InCommand(name, key string) string {
	if strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") != "" {
		return key
	}
	return name
}

// distinct returns a name for display. If cleaning changes it, the key follows: another name may look the same.
func distinct(name, key string) string {
	odd := func(r rune) bool { return r != ' ' && unicode.IsSpace(r) }
	if shown := screen.CleanLine(name); shown != name || strings.TrimSpace(name) != name || strings.ContainsFunc(name, odd) {
		return strings.TrimSpace(shown) + " (" + key + ")"
	}
	return name
}

// ErrNoRuns reports that an issue has no runs in the journal.
var ErrNoRuns = errors.New("no runs on record")

// RunsOf returns the runs of an issue, oldest first. An issue without runs is an error, ErrNoRuns.
func (p *Parts) RunsOf(ctx context.Context, key string) ([]journal.Record, error) {
	runs, err := p.Journal.Find(ctx, journal.Query{Key: p.Key(ctx, key)})
	if err == nil && len(runs) == 0 { // the issue may be gone from the backlog
		runs, err = p.Journal.Find(ctx, journal.Query{Key: tracker.Key(KeyOfFile(key))})
	}
	if err != nil {
		return nil, err
	}
	if len(runs) == 0 {
		issue, err := p.Issue(ctx, key)
		if err != nil {
			return nil, err
		}
		next := cmp.Or(p.branchOf(ctx, issue.Key), "; `ralph work --dry-run` says whether it would be worked")
		return nil, fmt.Errorf("%s: %w%s", key, ErrNoRuns, next)
	}
	return runs, nil
}

// branchOf names the branch of an issue without records, as the end of an error: the journal was lost, or is on another machine.
func (p *Parts) branchOf(ctx context.Context, key string) string {
	base, err := p.FindBase(ctx)
	if err != nil {
		return ""
	}
	branches, err := p.Repo.Branches(ctx, base)
	if err != nil {
		return ""
	}
	for _, b := range branches {
		if b.Key == key && b.Name != "" && b.Ahead > 0 {
			return fmt.Sprintf(" in %s, but %s has %s; look with: %s; merge with: ralph merge %s",
				p.State, b.Name, screen.Plural(b.Ahead, "commit"), report.GitCommand("log", base.Name+".."+b.Name), key)
		}
	}
	return ""
}
