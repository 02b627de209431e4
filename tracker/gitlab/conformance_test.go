package gitlab

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/gitlab/gitlabtest"
	"github.com/ralph-pool/ralph/tracker/trackertest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	trackertest.Run(t, trackertest.Harness{New: seeded, Many: 230})
}

func TestConformanceOlderGitLab(t *testing.T) {
	t.Parallel()
	trackertest.Run(t, trackertest.Harness{Many: 230, New: func(t *testing.T, seeds []trackertest.Seed) trackertest.Backlog {
		r := newRig(t)
		r.server.WithoutKeyset()
		return r.seed(t, seeds)
	}})
}

func seeded(t *testing.T, seeds []trackertest.Seed) trackertest.Backlog {
	return newRig(t, func(c *Config) { c.CacheDir = t.TempDir() }).seed(t, seeds)
}

// seed names the blockers of an issue in its text, as people do where links cannot block.
func (r *rig) seed(t *testing.T, seeds []trackertest.Seed) trackertest.Backlog {
	t.Helper()
	b := trackertest.Backlog{Tracker: withoutCommas{r.Tracker}}
	for _, s := range seeds {
		i := gitlabtest.Issue{Title: s.Title, Description: s.Body, Labels: s.Labels, Closed: s.Closed, Created: s.Created, Author: r.eve}
		if s.Author != "" {
			i.Author = r.ada
		}
		if s.Priority > 0 {
			i.Weight = 0
			i.Labels = append(slices.Clone(s.Labels), fmt.Sprintf("P%d", s.Priority-1))
		}
		for n, blocker := range s.BlockedBy {
			if n == 0 {
				i.Description += "\n\nBlocked by "
			} else {
				i.Description += ", "
			}
			i.Description += "#" + b.Keys[blocker]
		}
		b.Keys = append(b.Keys, fmt.Sprint(r.project.AddIssue(i)))
	}
	b.Reports = func(t *testing.T, key string) []string {
		var out []string
		for _, n := range r.project.Notes(r.ralph, atoi(key)) {
			text, _, found := strings.Cut(n, "\n\n<!-- ralph:report ")
			if !found {
				t.Errorf("a note of ralph's has no marker: %q", n)
			}
			out = append(out, text)
		}
		return out
	}
	b.Version = func(_ *testing.T, key string) string { return fmt.Sprint(r.project.Writes(atoi(key))) }
	return b
}

// withoutCommas spells the suite's label "type: x, y" as GitLab's labels can be spelt, and hides the label that carries
// the suite's priority.
type withoutCommas struct{ tracker.Tracker }

func (w withoutCommas) Unwrap() tracker.Tracker { return w.Tracker }

func (w withoutCommas) Change(ctx context.Context, key string, c tracker.Change) error {
	add := slices.Clone(c.AddLabels)
	for n := range add {
		add[n] = strings.ReplaceAll(add[n], ",", ";")
	}
	c.AddLabels = add
	return w.Tracker.Change(ctx, key, c)
}

func (w withoutCommas) Get(ctx context.Context, key string) (tracker.Issue, error) {
	i, err := w.Tracker.Get(ctx, key)
	i.Labels = suiteLabels(i.Labels)
	return i, err
}

func (w withoutCommas) List(ctx context.Context, q tracker.Query) (tracker.Listing, error) {
	l, err := w.Tracker.List(ctx, q)
	for n := range l.Issues {
		l.Issues[n].Labels = suiteLabels(l.Issues[n].Labels)
	}
	return l, err
}

func suiteLabels(labels []string) []string {
	var out []string
	for _, l := range labels {
		if len(l) == 2 && l[0] == 'P' {
			continue
		}
		out = append(out, strings.ReplaceAll(l, ";", ","))
	}
	return out
}
