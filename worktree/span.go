package worktree

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/message"
)

// Commit is one commit of a run.
type Commit struct {
	SHA     string `json:"sha"`
	Subject string `json:"subject"` // clipped when it is very long
}

// span is the commits that tip has and base has not.
type span struct {
	base, tip string
	commits   []Commit            // oldest first
	parents   map[string][]string // of each of them
	acting    map[string]bool     // those whose message has to be rewritten; see Tree.Finish
}

// readSpan lists the commits of tip that neither base nor the others have.
func (r *Repo) readSpan(ctx context.Context, base, tip string, others ...string) (span, error) {
	s := span{base: base, tip: tip}
	if base == tip {
		return s, nil
	}
	commits := []string{"--end-of-options", base + ".." + tip}
	for _, other := range others {
		commits = append(commits, "^"+other)
	}
	// Without an output encoding the message comes as it is stored.
	args := []string{"log", "-z", "--encoding=", "--format=%H%x1f%P%x1f%e%x1f%s%x1f%B", "--topo-order", "--reverse", "--no-color",
		"--no-decorate", "--no-notes", "--no-mailmap", "--no-show-signature", "--no-ext-diff", "--no-textconv", "--no-patch"}
	// One message in memory at a time: all of them together may be long.
	if err := r.git.Read(ctx, "", s.parse, slices.Concat(args, commits, []string{"--"})...); err != nil {
		return span{}, fmt.Errorf("list commits: %w", err)
	}
	return s, nil
}

// parse reads the output of git log.
func (s *span) parse(r *bufio.Reader) error {
	s.parents, s.acting = map[string][]string{}, map[string]bool{}
	for {
		record, err := r.ReadString(0)
		end := errors.Is(err, io.EOF)
		if err != nil && !end {
			return err
		}
		if record = strings.TrimSuffix(record, "\x00"); record != "" {
			if err := s.add(record); err != nil {
				return err
			}
		}
		if end {
			return nil
		}
	}
}

// add takes one commit of git log.
func (s *span) add(record string) error {
	parts := strings.SplitN(record, "\x1f", 5)
	if len(parts) != 5 || !git.IsObject(parts[0]) {
		return fmt.Errorf("git log: cannot read record %q", git.Printable(record[:min(len(record), 100)]))
	}
	name := strings.Clone(parts[0]) // it would keep the message
	s.commits = append(s.commits, Commit{SHA: name, Subject: message.Clip(parts[3])})
	s.parents[name] = strings.Fields(strings.Clone(parts[1]))
	if message.Acts(parts[2], parts[4]) {
		s.acting[name] = true
	}
	return nil
}

// reach is the commits of the span that from contains, itself included.
func (s span) reach(from string) map[string]bool {
	seen := map[string]bool{}
	for todo := []string{from}; len(todo) > 0; {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		parents, inside := s.parents[at]
		if !inside || seen[at] {
			continue
		}
		seen[at] = true
		todo = append(todo, parents...)
	}
	return seen
}

// edge reports that the span shows commit to be in the tip's history: it is the tip, one of the span or a parent of one.
func (s span) edge(commit string) bool {
	if commit == s.tip || s.parents[commit] != nil {
		return true
	}
	for _, parents := range s.parents {
		if slices.Contains(parents, commit) {
			return true
		}
	}
	return false
}

// spanHas reports whether the span's tip contains commit. git is asked only when the span does not show it.
func (r *Repo) spanHas(ctx context.Context, s span, commit string) (bool, error) {
	if s.edge(commit) {
		return true, nil
	}
	return r.git.Contains(ctx, s.tip, commit)
}

// countNew counts the commits of the span that before has not.
func (r *Repo) countNew(ctx context.Context, s span, before string) (int, error) {
	switch {
	case before == s.tip || len(s.commits) == 0:
		return 0, nil
	case before == s.base:
		return len(s.commits), nil
	case s.parents[before] != nil:
		return len(s.commits) - len(s.reach(before)), nil
	}
	fresh, err := r.readSpan(ctx, s.base, s.tip, before)
	return len(fresh.commits), err
}

// commitNames are the names of the commits, oldest first.
func (s span) commitNames() []string {
	names := make([]string, len(s.commits))
	for i, c := range s.commits {
		names[i] = c.SHA
	}
	return names
}
