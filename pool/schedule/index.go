package schedule

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree/diff"
	"github.com/ralph-pool/ralph/worktree/git"
)

// Index finds the files that issues and branches change, and caches the result. It is safe for concurrent use.
type Index struct {
	Git    git.Runner
	Prefix string // prefix of ralph's branches, whose names end in the key of an issue
	Remote string // remote whose branches count, too; empty: none

	mu      sync.Mutex
	base    string              // guarded by mu; a commit
	files   *Files              // guarded by mu; of base
	touched map[string][]string // guarded by mu; by the tip of a branch: the files that it changes on top of base
}

// Snapshot is an Index's view of base and branches at one time.
type Snapshot struct {
	Files *Files            // of the base
	Tips  map[string]string // of the branches, by the key of their issue
	base  string
	index *Index
}

// Read reads the files of the base and the tips of the branches.
func (x *Index) Read(ctx context.Context, base string) (Snapshot, error) {
	s := Snapshot{Tips: map[string]string{}, base: base, index: x}
	prefixes := []string{"refs/heads/" + x.Prefix}
	if x.Remote != "" { // a local branch is newer, so it comes last
		prefixes = []string{"refs/remotes/" + x.Remote + "/" + x.Prefix, prefixes[0]}
	}
	for _, prefix := range prefixes {
		refs, err := x.Git.Refs(ctx, prefix[:strings.LastIndex(prefix, "/")+1])
		if err != nil {
			return s, err
		}
		for ref, tip := range refs {
			if key, ok := strings.CutPrefix(ref, prefix); ok {
				s.Tips[key] = tip
			}
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.base != base {
		all, err := diff.List(ctx, x.Git, base)
		if err != nil {
			return s, err
		}
		x.base, x.files, x.touched = base, NewFiles(slices.Collect(maps.Keys(all))), map[string][]string{}
	}
	s.Files = x.files
	return s, nil
}

// Branch returns the files that the branch of an issue changes; none if it has no branch or shares no history with the base.
func (s Snapshot) Branch(ctx context.Context, key string) (Area, error) {
	tip, x := s.Tips[key], s.index
	if tip == "" {
		return Area{}, nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	paths, known := x.touched[tip]
	if !known || x.base != s.base {
		var err error
		if paths, err = diff.Touched(ctx, x.Git, s.base, tip); err != nil && !git.Failed(err) {
			return Area{}, err
		}
		if x.base == s.base {
			x.touched[tip] = paths
		}
	}
	return Area{Paths: paths}, nil
}

// Issue returns the files that an issue names. declared means that somebody has listed them; otherwise they are a guess.
func (s Snapshot) Issue(i tracker.Issue) (area Area, declared bool) {
	list := i.Touches
	if list == nil {
		if list, declared = Declared(i.Body); !declared {
			return s.Files.Named(i.Title + "\n" + i.Body), false
		}
	}
	return s.Files.Patterns(list), true
}

// Backlog is the state of a backlog. Fields may be zero.
type Backlog struct {
	Queue  []tracker.Issue       // could be worked now, in order
	Listed []tracker.Issue       // as the tracker lists them
	Taken  []string              // keys of issues that the caller works or is about to work
	Held   func(key string) bool // reports whether a listed or open issue is being worked
	Open   map[string]time.Time  // keys of finished, unmerged work, with the time when it was finished
	// Read reads an issue that is being worked but not listed, for example because its request is followed up. If it is nil, such
	// an issue counts for no label.
	Read func(ctx context.Context, key string) (tracker.Issue, error)
}

// Facts returns the facts of a backlog, without its limits.
func (s Snapshot) Facts(ctx context.Context, b Backlog) (f Facts, err error) {
	f.Files = s.Files
	for _, i := range b.Queue {
		area, declared := s.Issue(i)
		f.Queue = append(f.Queue, Issue{
			Key:      i.Key,
			Area:     area,
			Declared: declared,
			Priority: i.Priority,
			Created:  i.Created,
			Labels:   i.Labels,
		})
	}
	texts, on := map[string]tracker.Issue{}, map[string]bool{}
	for _, i := range b.Listed {
		texts[i.Key] = i
		on[i.Key] = b.Held != nil && b.Held(i.Key)
	}
	for key := range b.Open {
		on[key] = b.Held != nil && b.Held(key)
	}
	for _, key := range b.Taken {
		on[key] = true
	}
	for _, key := range slices.Sorted(maps.Keys(on)) {
		since, open := b.Open[key]
		if !open && !on[key] {
			continue
		}
		work := Work{Key: key, Since: since}
		if work.Area, err = s.Branch(ctx, key); err != nil {
			return f, err
		}
		if open {
			f.Open = append(f.Open, work)
		}
		if on[key] {
			issue, listed := texts[key]
			if !listed && b.Read != nil {
				if issue, err = b.Read(ctx, key); err != nil {
					return f, err
				}
			}
			said, _ := s.Issue(issue)
			work.Area, work.Labels = work.Area.And(said), issue.Labels
			f.InProgress = append(f.InProgress, work)
		}
	}
	return f, nil
}

// And returns the union of two areas.
func (a Area) And(b Area) Area {
	return Area{Paths: slices.Concat(a.Paths, b.Paths), Patterns: slices.Concat(a.Patterns, b.Patterns)}
}
