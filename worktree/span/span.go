// Package span reads ranges of commits: those that a tip contains and a base does not. Its callers are packages of
// worktree.
//
// A [Reader] is safe for concurrent use, and a [Span] never changes after it was read.
package span

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/message"
)

// Commit is one commit of a run.
type Commit struct {
	SHA     string `json:"sha"`
	Subject string `json:"subject"` // shortened if it is very long
}

// Person is somebody whom a commit names. Role is "author", "committer", or the key of a trailer such as "Reviewed-by".
type Person struct{ Role, Name string }

// Span lists the commits that are in Tip and not in Base.
type Span struct {
	Base, Tip     string
	Commits       []Commit            // oldest first
	Parents       map[string][]string // parents of each of Commits
	ForgeCommands map[string]bool     // commits whose message would act on a forge
	Controls      map[string]bool     // commits with control characters in message or names
	People        []Person            // each once

	named            map[Person]bool   // set of People
	trees            map[string]string // trees of the tip and of the commits where the span begins
	hasOtherEncoding bool              // a commit is in another encoding than UTF-8
}

// Reader reads spans of one repository, and caches recent short ones: commits do not change.
type Reader struct {
	Git git.Runner

	mu    sync.Mutex
	cache map[[2]string]Span // guarded by mu
}

const (
	maxCachedSpans   = 64
	maxCachedCommits = 500 // and people, in one span
)

// commitFields is the number of fields in the format of a commit.
const commitFields = 9

// peopleFormat is the part of the format that names people.
const peopleFormat = "%an <%ae>%x1f%cn <%ce>%x1f%(trailers:only,unfold,separator=%x1e)"

// Read lists the commits of tip that are neither in base nor in others.
func (r *Reader) Read(ctx context.Context, base, tip string, others ...string) (Span, error) {
	s := Span{Base: base, Tip: tip}
	if base == tip {
		return s, nil
	}
	if known, ok := r.lookup(base, tip); ok && len(others) == 0 {
		return known, nil
	}
	commits := []string{"--end-of-options", base + ".." + tip}
	for _, other := range others {
		commits = append(commits, "^"+other)
	}
	// Without an output encoding, git prints the message as it is stored.
	format := "--format=%m%H%x00%T%x00%P%x00%e%x00" + strings.ReplaceAll(peopleFormat, "%x1f", "%x00") + "%x00%s%x00%B"
	args := append(logArgs(), "-z", "--encoding=", format, "--topo-order", "--reverse", "--boundary")
	// Read one message at a time: all together may be long.
	if err := r.Git.Read(ctx, "", s.parse, slices.Concat(args, commits, []string{"--"})...); err != nil {
		return Span{}, fmt.Errorf("list commits: %w", err)
	}
	if len(others) == 0 && len(s.Commits)+len(s.People) <= maxCachedCommits {
		r.store(s)
	}
	return s, nil
}

func logArgs() []string {
	return []string{"log", "--no-color", "--no-decorate", "--no-notes", "--no-mailmap", "--no-show-signature", "--no-ext-diff",
		"--no-textconv", "--no-patch"}
}

func (r *Reader) lookup(base, tip string) (Span, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, ok := r.cache[[2]string{base, tip}]
	return s, ok
}

func (r *Reader) store(s Span) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cache == nil || len(r.cache) >= maxCachedSpans {
		r.cache = map[[2]string]Span{}
	}
	r.cache[[2]string{s.Base, s.Tip}] = s
}

// People lists the people named by the commits that are in tip and not in base.
func (r *Reader) People(ctx context.Context, base, tip string) ([]Person, error) {
	s, err := r.Read(ctx, base, tip)
	if err != nil || !s.hasOtherEncoding {
		return s.People, err
	}
	s.People, s.named = nil, map[Person]bool{} // do not change the cached span
	err = r.Git.Lines(ctx, func(line []byte) {
		if parts := strings.SplitN(string(line), "\x1f", 3); len(parts) == 3 {
			s.addPeople(parts[0], parts[1], parts[2])
		}
	}, append(logArgs(), "--encoding=UTF-8", "--format="+peopleFormat, "--end-of-options", base+".."+tip, "--")...)
	return s.People, err
}

// Related reports whether two commits have a common ancestor. Otherwise no branch can be merged into the other.
func (r *Reader) Related(ctx context.Context, a, b string) (bool, error) {
	if s, ok := r.lookup(a, b); ok && s.trees[a] != "" {
		return true, nil
	}
	return r.Git.Test(ctx, "merge-base", "--end-of-options", a, b)
}

// Lost reports whether base lacks a commit that tip contains because it is built on the commit former, an earlier tip of base.
func (r *Reader) Lost(ctx context.Context, former, base, tip string) (bool, error) {
	kept, err := r.Git.Contains(ctx, base, former)
	if kept || git.ExitCode(err) == 128 { // the former commit does not exist here
		return false, nil
	}
	if err != nil {
		return false, err
	}
	forks, err := r.Git.Output(ctx, "merge-base", "--all", "--end-of-options", former, tip)
	if err != nil && git.ExitCode(err) != 1 { // 1: no history in common
		return false, err
	}
	for _, fork := range strings.Fields(forks) {
		if kept, err := r.Git.Contains(ctx, base, fork); err != nil || !kept {
			return err == nil, err
		}
	}
	return false, nil
}

// Fork returns the commit at which tip forked from base.
func (r *Reader) Fork(ctx context.Context, base, tip string) (string, error) {
	if s, ok := r.lookup(base, tip); ok && s.trees[base] != "" {
		return base, nil
	}
	fork, err := r.Git.Output(ctx, "merge-base", "--end-of-options", base, tip)
	return strings.TrimSpace(fork), err
}

// Unchanged reports whether the files of tip equal those of the commit at which it forked from base. If they have no common
// history, it returns git's error, with an exit status other than 0 and 1.
func (r *Reader) Unchanged(ctx context.Context, base, tip string) (bool, error) {
	if s, ok := r.lookup(base, tip); ok && s.trees[base] != "" { // it forked at base
		return s.trees[base] == s.trees[tip], nil
	}
	return r.Git.Test(ctx, "diff", "--quiet", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none", base+"..."+tip, "--")
}

// parse parses the output of git log.
func (s *Span) parse(r *bufio.Reader) error {
	s.Parents, s.ForgeCommands, s.Controls, s.trees = map[string][]string{}, map[string]bool{}, map[string]bool{}, map[string]string{}
	s.named = map[Person]bool{}
	for {
		var parts [commitFields]string // no field contains the byte that ends it
		for i := range parts {
			part, err := r.ReadString(0)
			if errors.Is(err, io.EOF) && i == 0 && part == "" {
				return nil
			}
			if err != nil {
				return fmt.Errorf("git log: read commit %q: %w", git.Printable(parts[0]), err)
			}
			parts[i] = strings.TrimSuffix(part, "\x00")
		}
		if err := s.addCommit(parts); err != nil {
			return err
		}
	}
}

// addCommit adds one commit of git log.
func (s *Span) addCommit(parts [commitFields]string) error {
	name := parts[0][min(1, len(parts[0])):]
	if !git.IsObject(name) {
		return fmt.Errorf("git log: cannot read commit %q", git.Printable(parts[0][:min(len(parts[0]), 100)]))
	}
	outside := parts[0][0] == '-'
	if outside || name == s.Tip {
		s.trees[name] = parts[1]
	}
	if outside {
		return nil
	}
	s.Commits = append(s.Commits, Commit{SHA: name, Subject: message.Clip(parts[7])})
	s.Parents[name] = strings.Fields(parts[2])
	s.hasOtherEncoding = s.hasOtherEncoding || parts[3] != "" && !strings.EqualFold(parts[3], "utf-8")
	s.addPeople(parts[4], parts[5], parts[6])
	s.ForgeCommands[name] = message.ActsOnForge(parts[3], parts[8])
	s.Controls[name] = message.Controls(parts[3], parts[4]+" "+parts[5], parts[8])
	return nil
}

// addPeople adds the people of one commit.
func (s *Span) addPeople(author, committer, trailers string) {
	add := func(role, name string) {
		if p := (Person{strings.Clone(role), strings.Clone(name)}); !s.named[p] { // each once: an agent may name any number
			s.named[p] = true
			s.People = append(s.People, p)
		}
	}
	add("author", author)
	add("committer", committer)
	for trailer := range strings.SplitSeq(trailers, "\x1e") {
		if key, name, _ := strings.Cut(trailer, ":"); strings.HasSuffix(strings.ToLower(key), "-by") {
			add(key+":", strings.TrimSpace(name))
		}
	}
}

// Reach returns the commits of the span that from contains, including from.
func (s Span) Reach(from string) map[string]bool {
	seen := map[string]bool{}
	for todo := []string{from}; len(todo) > 0; {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		parents, inside := s.Parents[at]
		if !inside || seen[at] {
			continue
		}
		seen[at] = true
		todo = append(todo, parents...)
	}
	return seen
}

// provesContains reports whether the span proves that commit is in the tip's history: it is the tip, a commit of the span,
// or a parent of one.
func (s Span) provesContains(commit string) bool {
	if commit == s.Tip || s.Parents[commit] != nil {
		return true
	}
	for _, parents := range s.Parents {
		if slices.Contains(parents, commit) {
			return true
		}
	}
	return false
}

// Has reports whether the span's tip contains commit. It only runs git if the span does not prove it.
func (r *Reader) Has(ctx context.Context, s Span, commit string) (bool, error) {
	if s.provesContains(commit) {
		return true, nil
	}
	return r.Git.Contains(ctx, s.Tip, commit)
}

// CountNew counts the commits of the span that before does not contain.
func (r *Reader) CountNew(ctx context.Context, s Span, before string) (int, error) {
	switch {
	case before == s.Tip || len(s.Commits) == 0:
		return 0, nil
	case before == s.Base:
		return len(s.Commits), nil
	case s.Parents[before] != nil:
		return len(s.Commits) - len(s.Reach(before)), nil
	}
	fresh, err := r.Read(ctx, s.Base, s.Tip, before)
	return len(fresh.Commits), err
}

// Names returns the IDs of the commits, oldest first.
func (s Span) Names() []string {
	names := make([]string, len(s.Commits))
	for i, c := range s.Commits {
		names[i] = c.SHA
	}
	return names
}
