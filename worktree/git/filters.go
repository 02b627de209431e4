package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/internal/proc"
)

// Filters are the names of the filters that run a program.
func (c Config) Filters() (names []string) {
	for _, s := range c {
		section, name, key := s.Split()
		if section == "filter" && slices.Contains([]string{"clean", "smudge", "process"}, key) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// CheckOut writes the files of a commit into the work tree, which is empty, and at last its index. Filters run only while
// nothing but files of trusted is there: their programs may be files that the commit changes, however the configuration
// spells that. What the commit has besides trusted stays as git stores it. When it changes which filters apply or where
// they load from, or trusted is empty, none runs at all.
func (g Runner) CheckOut(ctx context.Context, config Config, index, trusted, commit string) error {
	part := index + ".part"
	g = g.With("GIT_INDEX_FILE="+part, wholeIndex)
	read := []string{"read-tree", "--reset", "-u"}
	plain := g.With(config.WithoutPrograms()...)
	filtered := trusted != "" && len(config.Filters()) > 0
	if filtered && commit != trusted {
		same, err := g.sameAttributes(ctx, trusted, commit)
		if err != nil && !Failed(err) {
			return err
		}
		filtered = same
	}
	if filtered {
		if _, err := g.Out(ctx, append(read, trusted)...); err != nil {
			return fmt.Errorf("check out the files: %w", err)
		}
		// With two trees git leaves alone what is the same in both. With one it would compare with unfiltered content.
		read = append(read, trusted)
	}
	if !filtered || commit != trusted {
		if _, err := plain.Out(ctx, append(read, commit)...); err != nil {
			return fmt.Errorf("check out the files: %w", err)
		}
	}
	return os.Rename(part, index)
}

// CheckOutChanges writes into the work tree, which is empty, what a commit has besides the files of an index, and brings the
// index up to date. No filter runs.
func (g Runner) CheckOutChanges(ctx context.Context, config Config, index, commit string) error {
	g = g.With("GIT_INDEX_FILE="+index, wholeIndex).With(config.WithoutPrograms()...)
	if _, err := g.Out(ctx, "read-tree", "-m", "-u", commit); err != nil {
		return fmt.Errorf("check out the files: %w", err)
	}
	return nil
}

// wholeIndex has git write an index in one file: the other one would be in the user's git directory.
const wholeIndex = "GIT_CONFIG_PARAMETERS='core.splitIndex=false'"

// sameAttributes reports that two commits have the same files that say which filters apply and where Git LFS loads from.
func (g Runner) sameAttributes(ctx context.Context, a, b string) (bool, error) {
	patterns := g.With("GIT_LITERAL_PATHSPECS=0") // else these are the names of two files
	return patterns.Yes(ctx, "diff-tree", "--quiet", "-r", "--no-ext-diff", "--no-textconv", "--end-of-options",
		a, b, "--", ":(icase,glob)**/.gitattributes", ":(icase,glob)**/.lfsconfig")
}

// OwnFilters is for changes of the checkout at top that bring an agent's files: of the programs in the configuration only
// Git LFS may run, where it is configured by its plain commands. The environment safe switches off all others; named are the
// filters among them.
func (g Runner) OwnFilters(config Config, top string) (safe, named []string) {
	lfs := g.hasLFS(config, top)
	off := Config{}
	for _, s := range config {
		section, name, key := s.Split()
		if section == "filter" && key != "required" && !(lfs && plainLFS(s.Value)) && !slices.Contains(named, name) {
			named = append(named, name)
		}
	}
	for _, s := range config {
		if section, name, _ := s.Split(); section != "filter" || slices.Contains(named, name) {
			off = append(off, s)
		}
	}
	return off.WithoutPrograms(), named
}

// plainLFS reports a command as Git LFS configures it.
func plainLFS(command string) bool {
	rest, ok := strings.CutPrefix(command, "git-lfs ")
	if !ok {
		rest, ok = strings.CutPrefix(command, "git lfs ")
	}
	return ok && slices.Contains([]string{
		"clean -- %f", "smudge -- %f", "smudge --skip -- %f", "filter-process", "filter-process --skip",
	}, rest)
}

// hasLFS reports that Git LFS is a program outside the user's checkouts and runs no other that the configuration names.
func (g Runner) hasLFS(config Config, top string) bool {
	for _, s := range config {
		section, name, _ := s.Split()
		name = strings.ToLower(name)
		if section == "lfs" && (strings.HasPrefix(name, "extension.") || strings.HasPrefix(name, "customtransfer.")) {
			return false
		}
	}
	program, err := proc.Lookup("git-lfs", "", g.env)
	if err != nil {
		return false
	}
	for _, top := range append(g.UserCheckouts(), top) {
		for _, path := range []string{program, Resolved(program)} {
			if rel, err := filepath.Rel(Resolved(top), path); err == nil && filepath.IsLocal(rel) {
				return false
			}
		}
	}
	return true
}

// Filtered returns one of the paths that differ between two commits and go through one of the filters, or the reason why
// all of them may; empty when none does. index is a path for a temporary file.
func (g Runner) Filtered(ctx context.Context, filters []string, index, from, to string) (path string, err error) {
	if len(filters) == 0 {
		return "", nil
	}
	same, err := g.sameAttributes(ctx, from, to)
	if err != nil || !same {
		return ".gitattributes", err
	}
	defer func() { err = errors.Join(err, os.Remove(index)) }()
	if _, err := g.With("GIT_INDEX_FILE="+index, wholeIndex).Out(ctx, "read-tree", from); err != nil {
		return "", err
	}
	paths, err := g.Run(ctx, "", "diff-tree", "-r", "-z", "--name-only", "--no-renames", "--no-ext-diff", "--end-of-options", from, to, "--")
	if err != nil {
		return "", err
	}
	return g.FilteredOf(ctx, filters, index, paths)
}

// FilteredOf returns the first of some paths, each with a NUL after it, that goes through one of the filters by the attributes
// of an index; empty when none does.
func (g Runner) FilteredOf(ctx context.Context, filters []string, index, paths string) (string, error) {
	out, err := g.With("GIT_INDEX_FILE="+index, wholeIndex).Run(ctx, paths, "check-attr", "--cached", "-z", "--stdin", "filter")
	if err != nil {
		return "", err
	}
	fields := strings.Split(out, "\x00") // path, attribute and value of each
	for i := 0; i+2 < len(fields); i += 3 {
		if slices.Contains(filters, fields[i+2]) {
			return fields[i], nil
		}
	}
	return "", nil
}
