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

// Filters returns the names of the filters that run a program.
func (c Config) Filters() (names []string) {
	for _, s := range c {
		section, name, key := s.Split()
		if section == "filter" && slices.Contains([]string{"clean", "smudge", "process"}, key) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// CheckOut writes the files of a commit to the empty work tree, and last its index. Filters run only while the work tree
// has nothing but files of trusted, because a filter's program may be a file that the commit changes, however the
// configuration spells its path. Other contents of the commit stay as git stores them. No filter runs if the commit changes
// which filters apply or where Git LFS loads from, or if trusted is empty.
func (g Runner) CheckOut(ctx context.Context, config Config, index, trusted, commit string) error {
	tempIndex := index + ".part"
	g = g.With("GIT_INDEX_FILE="+tempIndex, noSplitIndex)
	readTree := []string{"read-tree", "--reset", "-u"}
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
		if _, err := g.Output(ctx, append(readTree, trusted)...); err != nil {
			return fmt.Errorf("check out the files: %w", err)
		}
		// With one tree, git would compare the files with unfiltered content.
		readTree = append(readTree, trusted)
	}
	if !filtered || commit != trusted {
		if _, err := plain.Output(ctx, append(readTree, commit)...); err != nil {
			return fmt.Errorf("check out the files: %w", err)
		}
	}
	return os.Rename(tempIndex, index)
}

// CheckOutChanges writes a commit's files to the empty work tree that differ from an index, unfiltered, and updates the
// index.
func (g Runner) CheckOutChanges(ctx context.Context, config Config, index, commit string) error {
	g = g.With("GIT_INDEX_FILE="+index, noSplitIndex).With(config.WithoutPrograms()...)
	if _, err := g.Output(ctx, "read-tree", "-m", "-u", commit); err != nil {
		return fmt.Errorf("check out the files: %w", err)
	}
	return nil
}

// noSplitIndex makes git write an index as one file: the second part of a split index would be in the user's git directory.
const noSplitIndex = "GIT_CONFIG_PARAMETERS='core.splitIndex=false'"

// sameAttributes reports whether two commits have the same files that select filters and the origin of Git LFS.
func (g Runner) sameAttributes(ctx context.Context, a, b string) (bool, error) {
	patterns := g.With("GIT_LITERAL_PATHSPECS=0") // otherwise git takes the patterns for two file names
	return patterns.Test(ctx, "diff-tree", "--quiet", "-r", "--no-ext-diff", "--no-textconv", "--end-of-options",
		a, b, "--", ":(icase,glob)**/.gitattributes", ":(icase,glob)**/.lfsconfig")
}

// OwnFilters is for updates of the checkout at top that bring in an agent's files. Of the configured programs only Git LFS
// may run, if it is configured with its standard commands. The environment safe disables all others; disabled lists the
// filters among them.
func (g Runner) OwnFilters(config Config, top string) (safe, disabled []string) {
	lfs := g.hasLFS(config, top)
	disabledConfig := Config{}
	for _, s := range config {
		section, name, key := s.Split()
		if section == "filter" && key != "required" && !(lfs && isStandardLFS(s.Value)) && !slices.Contains(disabled, name) {
			disabled = append(disabled, name)
		}
	}
	for _, s := range config {
		if section, name, _ := s.Split(); section != "filter" || slices.Contains(disabled, name) {
			disabledConfig = append(disabledConfig, s)
		}
	}
	return disabledConfig.WithoutPrograms(), disabled
}

// isStandardLFS reports whether a command is one of the standard commands of Git LFS.
func isStandardLFS(command string) bool {
	rest, ok := strings.CutPrefix(command, "git-lfs ")
	if !ok {
		rest, ok = strings.CutPrefix(command, "git lfs ")
	}
	return ok && slices.Contains([]string{
		"clean -- %f", "smudge -- %f", "smudge --skip -- %f", "filter-process", "filter-process --skip",
	}, rest)
}

// hasLFS reports whether Git LFS is outside the user's checkouts and is not configured to run other programs.
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

// Filtered returns one path that differs between two commits and goes through one of the filters. It returns .gitattributes
// if the commits differ in their attributes, and "" if no path is filtered. index is a path for a temporary file.
func (g Runner) Filtered(ctx context.Context, filters []string, index, from, to string) (path string, err error) {
	if len(filters) == 0 {
		return "", nil
	}
	same, err := g.sameAttributes(ctx, from, to)
	if err != nil || !same {
		return ".gitattributes", err
	}
	defer func() { err = errors.Join(err, os.Remove(index)) }()
	if _, err := g.With("GIT_INDEX_FILE="+index, noSplitIndex).Output(ctx, "read-tree", from); err != nil {
		return "", err
	}
	paths, err := g.Run(ctx, "", "diff-tree", "-r", "-z", "--name-only", "--no-renames", "--no-ext-diff", "--end-of-options", from, to, "--")
	if err != nil {
		return "", err
	}
	return g.FilteredOf(ctx, filters, index, paths)
}

// FilteredOf returns the first of the NUL-terminated paths that an index's attributes send through one of the filters, or
// "".
func (g Runner) FilteredOf(ctx context.Context, filters []string, index, paths string) (string, error) {
	out, err := g.With("GIT_INDEX_FILE="+index, noSplitIndex).Run(ctx, paths, "check-attr", "--cached", "-z", "--stdin", "filter")
	if err != nil {
		return "", err
	}
	fields := strings.Split(out, "\x00") // path, attribute and value for each path
	for i := 0; i+2 < len(fields); i += 3 {
		if slices.Contains(filters, fields[i+2]) {
			return fields[i], nil
		}
	}
	return "", nil
}
