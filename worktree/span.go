package worktree

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Commit is one of the agent's commits.
type Commit struct {
	SHA     string `json:"sha"`
	Subject string `json:"subject"`
}

// span is the commits that tip has and base has not.
type span struct {
	base, tip string
	commits   []Commit            // oldest first
	parents   map[string][]string // of each of them
}

// readSpan lists base..tip, from the commits themselves, without what the others have.
func (r *Repo) readSpan(ctx context.Context, base, tip string, others ...string) (span, error) {
	s := span{base: base, tip: tip}
	if base == tip {
		return s, nil
	}
	if len(others) == 0 {
		if line, ok := r.objects.readLine(base, tip); ok {
			return line, nil
		}
	}
	commits := []string{"--end-of-options", base + ".." + tip}
	for _, other := range others {
		commits = append(commits, "^"+other)
	}
	args := []string{"log", "-z", "--format=%H%x1f%P%x1f%s", "--topo-order", "--reverse", "--no-color",
		"--no-decorate", "--no-notes", "--no-mailmap", "--no-show-signature", "--no-ext-diff", "--no-textconv",
		"--no-patch"}
	out, err := r.git.out(ctx, slices.Concat(args, commits, []string{"--"})...)
	if err != nil {
		return span{}, fmt.Errorf("list commits: %w", err)
	}
	s.commits, s.parents, err = parseLog(out)
	return s, err
}

func parseLog(out string) ([]Commit, map[string][]string, error) {
	var commits []Commit
	parents := map[string][]string{}
	for record := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
		if record == "" {
			continue
		}
		parts := strings.SplitN(record, "\x1f", 3)
		if len(parts) != 3 || !isObjectName(parts[0]) {
			return nil, nil, fmt.Errorf("git log: cannot read record %q", printable(record))
		}
		commits = append(commits, Commit{SHA: parts[0], Subject: strings.ToValidUTF8(parts[2], "\uFFFD")})
		parents[parts[0]] = strings.Fields(parts[1])
	}
	return commits, parents, nil
}

// edge reports whether commit is the tip, one of the span, or a parent of one of them: then the tip contains it.
func (s span) edge(commit string) bool {
	if commit == s.tip {
		return true
	}
	for c, parents := range s.parents {
		if c == commit {
			return true
		}
		for _, p := range parents {
			if p == commit {
				return true
			}
		}
	}
	return false
}

// spanHas reports whether the span's tip contains commit; git is asked only when the span does not show it.
func (r *Repo) spanHas(ctx context.Context, s span, commit string) (bool, error) {
	if s.edge(commit) {
		return true, nil
	}
	return r.git.contains(ctx, s.tip, commit)
}

// countNew counts the commits of the span that before has not.
func (r *Repo) countNew(ctx context.Context, s span, before string) (int, error) {
	if before == s.tip || len(s.commits) == 0 {
		return 0, nil
	}
	if before == s.base {
		return len(s.commits), nil
	}
	if _, inside := s.parents[before]; inside {
		return len(s.commits) - len(s.reach(before)), nil
	}
	out, err := r.git.out(ctx, "rev-list", "--count", s.tip, "^"+before, "^"+s.base, "--")
	if err != nil {
		return 0, fmt.Errorf("count commits: %w", err)
	}
	return strconv.Atoi(out)
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

// sameTree reports whether two commits hold the same files.
func (r *Repo) sameTree(ctx context.Context, a, b string) (bool, error) {
	out, err := r.git.out(ctx, "rev-parse", "--verify", a+"^{tree}")
	if err != nil {
		return false, err
	}
	other, err := r.git.out(ctx, "rev-parse", "--verify", b+"^{tree}")
	return out == other, err
}
