package gitlab

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge"
	"github.com/ralph-pool/ralph/tracker/gitlab/gitlabtest"
	"github.com/ralph-pool/ralph/tracker/trackertest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	trackertest.Run(t, trackertest.Harness{New: seeded, Many: 230, Commands: true, WithToken: withToken})
}

func TestConformanceOlderGitLab(t *testing.T) {
	t.Parallel()
	trackertest.Run(t, trackertest.Harness{Many: 230, Commands: true, New: func(t *testing.T, seeds []trackertest.Seed) trackertest.Backlog {
		r := newRig(t)
		r.server.WithoutKeyset()
		return r.seed(t, seeds)
	}})
}

func withToken(t *testing.T, source tracker.TokenSource) tracker.Tracker {
	return newRig(t, func(c *forge.Config) { c.Token = source })
}

func seeded(t *testing.T, seeds []trackertest.Seed) trackertest.Backlog {
	return newRig(t, func(c *forge.Config) { c.StateDir = t.TempDir() }).seed(t, seeds)
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
		for _, n := range r.project.Notes(r.ralph, number(key)) {
			mark, text, found := strings.Cut(n, "\n")
			if !found || !strings.HasPrefix(mark, "<!-- ralph:report ") {
				t.Errorf("a note of ralph's has no marker: %q", n)
			}
			out = append(out, text)
		}
		return out
	}
	b.Talk, b.Turns = r.talk(), r.turns()
	b.Version = func(_ *testing.T, key string) string { return fmt.Sprint(r.project.Writes(number(key))) }
	return b
}

func (r *rig) turns() map[trackertest.Turn]func(string) {
	project := func(change func(*gitlabtest.Project)) func(string) {
		return func(string) { r.project.SetProject(change) }
	}
	return map[trackertest.Turn]func(string){
		trackertest.Deleted: func(key string) {
			r.project.SetIssue(number(key), func(i *gitlabtest.Issue) { i.Deleted = true })
		},
		trackertest.Renamed: func(string) {
			if r.project.Path() == path {
				r.project.MoveTo(path + "-2")
			}
		},
		trackertest.Hidden:   project(func(p *gitlabtest.Project) { p.Hidden = true }),
		trackertest.NoIssues: project(func(p *gitlabtest.Project) { p.NoIssues = true }),
		trackertest.Revoked:  func(string) { r.server.Revoke(secret) },
		trackertest.Archived: project(func(p *gitlabtest.Project) { p.Archived = true }),
	}
}

func (r *rig) talk() *trackertest.Talk {
	who := func(trusted bool) *gitlabtest.User {
		if trusted {
			return r.ada
		}
		return r.eve
	}
	note := func(id string) int { return number(id[strings.LastIndexByte(id, '/')+1:]) }
	return &trackertest.Talk{
		Again: func(t *testing.T) tracker.Tracker { return r.tracker(t) },
		Say: func(_ *testing.T, trusted bool, number int, request bool, body string) string {
			if request {
				return fmt.Sprintf("merge_requests/%d/notes/%d", number, r.project.NoteOn(number, who(trusted), body))
			}
			return fmt.Sprintf("issues/%d/notes/%d", number, r.project.Comment(who(trusted), number, body, false))
		},
		Remark: func(_ *testing.T, trusted bool, request int, body string) string {
			return r.project.Discuss(request, gitlabtest.Thread{By: who(trusted), Body: body, Resolvable: true, Path: "a.go", Line: 3})
		},
		Reply: func(_ *testing.T, trusted bool, request int, thread, body string) string {
			return fmt.Sprintf("merge_requests/%d/notes/%d", request, r.project.Answer(request, thread, who(trusted), body))
		},
		React: func(_ *testing.T, id, emoji string) { r.project.Award(r.ada, note(id), emoji) },
		Signs: func(_ *testing.T, id string) (signs []string) {
			for _, a := range r.project.Awards(note(id)) {
				if emoji, ours := strings.CutSuffix(a, " by ralph"); ours {
					signs = append(signs, emoji)
				}
			}
			return signs
		},
		Texts: func(_ *testing.T, number int, request bool) []string {
			if request {
				return r.project.MergeNotes(r.ralph, number)
			}
			return r.project.Notes(r.ralph, number)
		},
		Thread: func(_ *testing.T, request int, thread string) []string { return r.project.Said(request, thread) },
		Foreign: func(*testing.T) int {
			return r.project.AddMerge(gitlabtest.Merge{Title: "Mine", Source: "ralph/9", Target: "main", Author: r.ada})
		},
	}
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

func number(key string) int {
	n, _ := forge.Number(key) // a key of this test's
	return n
}
