package retest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/internal/ecosystem"
	"github.com/ralph-pool/ralph/internal/suite"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/worktree/diff"
	"github.com/ralph-pool/ralph/worktree/git"
)

// maxFiles is the maximum number of files whose tests run.
const maxFiles = 50

// textLimit returns the maximum number of bytes that are read of each test file and of all.
func textLimit() diff.Limit { return diff.Limit{Each: 1 << 20, All: 64 << 20} }

// change is the input of a plan.
type change struct {
	files    []diff.File
	texts    map[string][]byte // of the tip's test files and of suite.RootsAbove, by object
	tipFiles map[string]diff.Entry
	large    bool // texts is not complete
	// helpers has helpers of tests whose names do not show that. They belong to the tests.
	helpers map[string]bool
}

// read compares a tip with the commit that it changes.
func read(ctx context.Context, g git.Runner, base, tip string) (c change, err error) {
	if c.files, err = diff.Files(ctx, g, base, tip); err != nil {
		return c, err
	}
	if c.tipFiles, err = diff.List(ctx, g, tip); err != nil {
		return c, err
	}
	var entries []diff.Entry
	for _, f := range c.files {
		if isTest(f.Path) {
			entries = append(entries, f.New)
			for _, root := range suite.RootsAbove(f.Path) {
				entries = append(entries, c.tipFiles[root])
			}
		}
	}
	c.texts, err = diff.Texts(ctx, g, entries, textLimit())
	if errors.Is(err, diff.ErrTooMuch) {
		c.large, err = true, nil
	}
	return c, err
}

// file returns the text of a file of the tip, as far as it was read, and whether the tip has the file.
func (c change) file(name string) ([]byte, bool) {
	e, there := c.tipFiles[name]
	return c.texts[e.ID], there
}

func isTest(file string) bool {
	role, _ := suite.RoleOf(file, nil)
	return role == ecosystem.Test
}

func helpers(w *journal.Watch) map[string]bool {
	found := map[string]bool{}
	if w != nil {
		for _, f := range w.Files {
			if f.Helper {
				found[f.Path] = true
			}
		}
	}
	return found
}

// plan has the commands to run and the edits that prepare the base for them.
type plan struct {
	runs      []command
	edits     []diff.Edit // bring the tip's tests to the base, and remove tests that the tip lacks
	whyExempt string      // why there is nothing to prove; empty: there is
	whyNot    string      // why it cannot be tried; empty: it can
	note      string      // a note for people if there are no runs, so that the gate decides
}

// command is a command that runs tests.
type command struct {
	ecosystem.Retest
	files []string
}

// plan decides what has to run. own is the user's command; empty: use that of the language.
func (c change) plan(lines suite.Lines, own string) (p plan) {
	var tests, unknown []string
	code, removed, inline := false, false, false
	for _, f := range c.files {
		helper := c.helpers[f.Path]
		before := helper || isTest(f.Path)
		if f.OldPath != "" {
			before = helper || isTest(f.OldPath)
		}
		now := f.New.Exists() && (helper || isTest(f.Path))
		switch {
		case now || before && !f.New.Exists():
			p.edits = append(p.edits, overlay(f, now)...)
			removed = removed || !now
		case before: // renamed to a file that is no test
			p.edits, removed = append(p.edits, diff.Edit{Path: f.OldPath}), true
		}
		role, _ := suite.RoleOf(f.Path, nil)
		code = code || !now && role == ecosystem.None && !suite.IsDocument(f.Path)
		inline = inline || role == ecosystem.None && suite.HasInline(f.Path)
		text := c.texts[f.New.ID]
		switch {
		case !now || helper || !strings.HasPrefix(f.New.Mode, "100"):
		case own != "":
			tests = append(tests, f.Path)
		case suite.HoldsTests(f.Path, text):
			if run, ok := suite.RerunOf(f.Path, text, lines, c.file); ok {
				p.runs = append(p.runs, command{run, []string{f.Path}})
			} else {
				unknown = append(unknown, f.Path)
			}
		}
	}
	if len(tests) > 0 {
		var words []string
		for _, file := range tests {
			words = append(words, suite.Quote(file))
		}
		p.runs = []command{{ecosystem.Retest{Line: strings.ReplaceAll(own, "{files}", strings.Join(words, " "))}, tests}}
	}
	switch {
	case c.large:
		p.whyNot = "the change is too large to examine"
	case len(unknown) > 0:
		p.whyNot = "no command is known for the tests of " + strings.Join(unknown[:min(3, len(unknown))], ", ")
	case len(p.runs) > maxFiles || len(tests) > maxFiles:
		p.whyNot = fmt.Sprintf("more than %d files with tests have changed", maxFiles)
	case len(p.runs) > 0:
	case !code && len(p.edits) == 0:
		p.whyExempt = "it changes neither code nor tests"
	case removed:
		p.note = "it removes tests, and neither adds nor changes one"
	case len(p.edits) > 0:
		p.note = "it changes data or helpers of tests, but no test"
	case inline:
		p.note = "its tests are in the same files as its code, so they cannot run without it"
	default:
		p.note = "it neither adds nor changes a test"
	}
	return p
}

// overlay brings one test file of the tip to the base.
func overlay(f diff.File, now bool) (edits []diff.Edit) {
	if f.OldPath != "" && isTest(f.OldPath) {
		edits = append(edits, diff.Edit{Path: f.OldPath})
	}
	if now {
		return append(edits, diff.Edit{Path: f.Path, Entry: f.New})
	}
	return append(edits, diff.Edit{Path: f.Path})
}

// howItEnded returns how a command ended.
func (c command) howItEnded(got loop.Check) journal.TestOutcome {
	has := func(texts []string) bool {
		return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(got.Tail, text) })
	}
	switch {
	case got.TimedOut:
		return journal.TestsTimedOut
	case got.ExitCode == 126, got.ExitCode == 127, got.ExitCode != 0 && c.Unstarted != nil && c.Unstarted().MatchString(got.Tail):
		return journal.TestsNotStarted
	case slices.Contains(c.Empty, got.ExitCode), got.ExitCode == 0 && has(c.Idle), got.ExitCode != 0 && has(c.Unfound):
		return journal.TestsNone
	case got.ExitCode == 0:
		return journal.TestsPassed
	case has(c.Unbuilt):
		return journal.TestsNotBuilt
	}
	return journal.TestsFailed
}

// upToReason cuts output after the line that says why the command could not run tests.
func (c command) upToReason(output string) string {
	if c.Unstarted == nil {
		return output
	}
	at := c.Unstarted().FindStringIndex(output)
	if at == nil {
		return output
	}
	line, _, _ := strings.Cut(output[at[1]:], "\n")
	return output[:at[1]+len(line)]
}
