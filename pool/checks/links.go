package checks

import (
	"context"
	"path"
	"strings"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/worktree/diff"
	"github.com/ralph-pool/ralph/worktree/git"
)

// linkMode is the mode of a symbolic link in a tree.
const linkMode = "120000"

// addLinks records new and changed links that leave the repository: programs that follow them use files that no diff shows.
func addLinks(ctx context.Context, g git.Runner, changes []diff.File, out *journal.Watch) error {
	var links []diff.File
	var entries []diff.Entry
	for _, f := range changes {
		if f.New.Mode == linkMode && (f.New != f.Old || f.OldPath != "") {
			links, entries = append(links, f), append(entries, f.New)
		}
	}
	// In parts, each of which is small enough to be read.
	targets := map[string][]byte{}
	for len(entries) > 0 {
		part := entries[:min(len(entries), 4096)]
		texts, err := diff.Texts(ctx, g, part, diff.Limit{Each: 8 << 10, All: textLimit().All})
		if err != nil {
			return err
		}
		for _, e := range part {
			targets[e.ID] = texts[e.ID]
		}
		entries = entries[len(part):]
	}
	for _, f := range links {
		if len(out.Findings) < maxListed && leaves(f.Path, string(targets[f.New.ID])) {
			out.Findings = append(out.Findings, f.Path+": is a link that may lead out of the repository")
		}
	}
	return nil
}

// leaves reports whether a link's target may be outside of the repository's files. Behind a folder, which may be a link itself, the
// names alone do not say where .. leads.
func leaves(link, target string) bool {
	if path.IsAbs(target) {
		return true
	}
	down := false
	for part := range strings.SplitSeq(target, "/") {
		switch {
		case part == "..":
			if down {
				return true
			}
		case strings.EqualFold(part, ".git"):
			return true
		case part != "" && part != ".":
			down = true
		}
	}
	to := path.Join(path.Dir(link), target)
	return to == ".." || strings.HasPrefix(to, "../")
}
