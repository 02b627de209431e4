// Package span reads the commits that one commit has and another has not. Its callers are packages of worktree.
//
// A [Reader] is safe for concurrent use, and a [Span] is not changed once it was read.
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
	Subject string `json:"subject"` // clipped when it is very long
}

// Person is somebody whom a commit names: as "author", "committer", or by the key of a trailer, such as "Reviewed-by".
type Person struct{ Role, Name string }

// Span is the commits that Tip has and Base has not.
type Span struct {
	Base, Tip string
	Commits   []Commit            // oldest first
	Parents   map[string][]string // of each of them
	Acting    map[string]bool     // those whose message would act on a forge
	Controls  map[string]bool     // those with control characters in message or names
	People    []Person            // each once

	named   map[Person]bool   // all of People
	trees   map[string]string // of the tip and of the commits that the span begins at
	foreign bool              // a commit is in another encoding than UTF-8
}

// Reader reads spans of one repository, and keeps the last ones that are not long: commits do not change.
type Reader struct {
	Git git.Runner

	mu   sync.Mutex
	kept map[[2]string]Span // guarded by mu
}

const (
	keptSpans   = 64
	keptCommits = 500 // and people, of one span
)

// fields is how many parts the format of a commit has.
const fields = 9

// people is the part of a format that names people.
const people = "%an <%ae>%x1f%cn <%ce>%x1f%(trailers:only,unfold,separator=%x1e)"

// Read lists the commits of tip that neither base nor the others have.
func (r *Reader) Read(ctx context.Context, base, tip string, others ...string) (Span, error) {
	s := Span{Base: base, Tip: tip}
	if base == tip {
		return s, nil
	}
	if known, ok := r.known(base, tip); ok && len(others) == 0 {
		return known, nil
	}
	commits := []string{"--end-of-options", base + ".." + tip}
	for _, other := range others {
		commits = append(commits, "^"+other)
	}
	// Without an output encoding the message comes as it is stored.
	format := "--format=%m%H%x00%T%x00%P%x00%e%x00" + strings.ReplaceAll(people, "%x1f", "%x00") + "%x00%s%x00%B"
	args := append(log(), "-z", "--encoding=", format, "--topo-order", "--reverse", "--boundary")
	// One message in memory at a time: all of them together may be long.
	if err := r.Git.Read(ctx, "", s.parse, slices.Concat(args, commits, []string{"--"})...); err != nil {
		return Span{}, fmt.Errorf("list commits: %w", err)
	}
	if len(others) == 0 && len(s.Commits)+len(s.People) <= keptCommits {
		r.keep(s)
	}
	return s, nil
}

func log() []string {
	return []string{"log", "--no-color", "--no-decorate", "--no-notes", "--no-mailmap", "--no-show-signature", "--no-ext-diff",
		"--no-textconv", "--no-patch"}
}

func (r *Reader) known(base, tip string) (Span, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, ok := r.kept[[2]string{base, tip}]
	return s, ok
}

func (r *Reader) keep(s Span) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.kept == nil || len(r.kept) >= keptSpans {
		r.kept = map[[2]string]Span{}
	}
	r.kept[[2]string{s.Base, s.Tip}] = s
}

// People are those whom the commits name that tip has and base has not.
func (r *Reader) People(ctx context.Context, base, tip string) ([]Person, error) {
	s, err := r.Read(ctx, base, tip)
	if err != nil || !s.foreign {
		return s.People, err
	}
	s.People, s.named = nil, map[Person]bool{} // the one that is kept stays
	err = r.Git.Lines(ctx, func(line []byte) {
		if parts := strings.SplitN(string(line), "\x1f", 3); len(parts) == 3 {
			s.name(parts[0], parts[1], parts[2])
		}
	}, append(log(), "--encoding=UTF-8", "--format="+people, "--end-of-options", base+".."+tip, "--")...)
	return s.People, err
}

// Related reports whether two commits have a common ancestor: without one, no branch can be merged into the other.
func (r *Reader) Related(ctx context.Context, a, b string) (bool, error) {
	if s, ok := r.known(a, b); ok && s.trees[a] != "" {
		return true, nil
	}
	return r.Git.Yes(ctx, "merge-base", "--end-of-options", a, b)
}

// Fork is the commit at which tip left base.
func (r *Reader) Fork(ctx context.Context, base, tip string) (string, error) {
	if s, ok := r.known(base, tip); ok && s.trees[base] != "" {
		return base, nil
	}
	fork, err := r.Git.Out(ctx, "merge-base", "--end-of-options", base, tip)
	return strings.TrimSpace(fork), err
}

// Unchanged reports whether the files of tip are those of the commit at which it left base. The error is git's, with another exit
// status than 0 and 1, where they have no history in common.
func (r *Reader) Unchanged(ctx context.Context, base, tip string) (bool, error) {
	if s, ok := r.known(base, tip); ok && s.trees[base] != "" { // it left base at base
		return s.trees[base] == s.trees[tip], nil
	}
	return r.Git.Yes(ctx, "diff", "--quiet", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none", base+"..."+tip, "--")
}

// parse reads the output of git log.
func (s *Span) parse(r *bufio.Reader) error {
	s.Parents, s.Acting, s.Controls, s.trees = map[string][]string{}, map[string]bool{}, map[string]bool{}, map[string]string{}
	s.named = map[Person]bool{}
	for {
		var parts [fields]string // none of them can have the byte that ends it
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
		if err := s.add(parts); err != nil {
			return err
		}
	}
}

// add takes one commit of git log.
func (s *Span) add(parts [fields]string) error {
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
	s.foreign = s.foreign || parts[3] != "" && !strings.EqualFold(parts[3], "utf-8")
	s.name(parts[4], parts[5], parts[6])
	s.Acting[name] = message.Acts(parts[3], parts[8])
	s.Controls[name] = message.Controls(parts[3], parts[4]+" "+parts[5], parts[8])
	return nil
}

// name notes the people of one commit.
func (s *Span) name(author, committer, trailers string) {
	add := func(role, name string) {
		if p := (Person{strings.Clone(role), strings.Clone(name)}); !s.named[p] { // an agent may name any number
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

// Reach is the commits of the span that from contains, itself included.
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

// edge reports that the span shows commit to be in the tip's history: it is the tip, one of the span or a parent of one.
func (s Span) edge(commit string) bool {
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

// Has reports whether the span's tip contains commit. git is asked only when the span does not show it.
func (r *Reader) Has(ctx context.Context, s Span, commit string) (bool, error) {
	if s.edge(commit) {
		return true, nil
	}
	return r.Git.Contains(ctx, s.Tip, commit)
}

// CountNew counts the commits of the span that before has not.
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

// Names are the names of the commits, oldest first.
func (s Span) Names() []string {
	names := make([]string, len(s.Commits))
	for i, c := range s.Commits {
		names[i] = c.SHA
	}
	return names
}
