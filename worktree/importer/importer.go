// Package importer imports commits and files from a sandbox. Its caller is package worktree.
//
// The host trusts nothing in a sandbox and reads none of its files. A script runs git in the sandbox, with the agent's
// rights, and prints a few lines and one pack (see [Script]). The host parses this output as data ([Read]). It checks size
// and shape of every object as the bytes arrive, before git sees them. Then git checks the objects in a quarantine folder:
// every object to which they refer must be in the pack or in the history that the run was given. Only after that the
// objects are moved into the user's repository ([Quarantine.Accept]). This package moves no ref.
//
// The package is safe for concurrent use, except that a Quarantine belongs to one goroutine.
package importer

import (
	"bufio"
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/ralph-pool/ralph/worktree/git"
)

// ErrTooBig means that an import would exceed its Caps.
var ErrTooBig = errors.New("too big to be imported")

// Caps limits one import. Zero values mean the defaults.
type Caps struct {
	Objects int   // number of objects; default 1,000,000
	Size    int64 // bytes of all objects, unpacked; default 4 GiB
	Blob    int64 // bytes of one file; default 512 MiB
	Files   int   // new files among the uncommitted changes; default 20,000. The others are listed and stay in the worktree
	Paths   int   // paths in the files of one commit; default 5,000,000
	Depth   int   // depth of nested folders; default 250

	PathBytes int64 // bytes of all paths in the files of one commit; default 512 MiB
}

// WithDefaults replaces zero values by the defaults.
func (c Caps) WithDefaults() Caps {
	return Caps{
		Objects: cmp.Or(c.Objects, 1_000_000), Size: cmp.Or(c.Size, 4<<30), Blob: cmp.Or(c.Blob, 512<<20),
		Files: cmp.Or(c.Files, 20_000),
		Paths: cmp.Or(c.Paths, 5_000_000), Depth: cmp.Or(c.Depth, 250), PathBytes: cmp.Or(c.PathBytes, 512<<20),
	}
}

// WithinFreeSpace returns the caps with their defaults, lowered to the free disk space at the places that an import writes to. For an
// agent on the host (host), which has the user's rights, only the space is a limit.
func (c Caps) WithinFreeSpace(host bool, places ...string) Caps {
	c = c.WithDefaults()
	if host {
		c = Caps{
			Objects:   math.MaxInt32,
			Size:      math.MaxInt64,
			Blob:      math.MaxInt64,
			Files:     math.MaxInt32,
			Paths:     math.MaxInt32,
			Depth:     c.Depth,
			PathBytes: 1 << 50,
		}
	}
	bytes, _ := FreeSpace(places...)
	c.Size = min(c.Size, bytes)
	c.Blob = min(c.Blob, c.Size)
	return c
}

// ChangesEnv is the script's variable with the folder of all files that git has not made; unset: the worktree. The folder
// shows the same names as the worktree and may be read-only.
const ChangesEnv = "RALPH_CHANGES"

//go:embed inside.sh
var script string

// Values of Script.Scope.
const (
	All     = "all"
	Branch  = "branch"  // no commits outside of the branch
	Commits = "commits" // no uncommitted changes
	Files   = "files"   // only uncommitted changes; the agent's repository is not used
)

// Script describes the command that runs in the sandbox.
type Script struct {
	Scope  string   // All, Branch, Commits or Files
	Refuse []string // IDs of contents; files with such content are not saved
	GitDir string   // the private repository
	Branch string   // its branch
	Last   string   // the last imported commit
	Blob   int64    // files above this size in bytes are not saved
	Files  int      // number of new files that are saved
	Sparse bool     // the checkout is sparse
	Depth  int      // depth of nested folders that are saved
	Given  []string // object folders with the history that the run was given
	Known  []string // commits that need not be sent
}

// Argv returns the command line of the script.
func (s Script) Argv() []string {
	sparse := "no"
	if s.Sparse {
		sparse = "yes"
	}
	argv := []string{
		"/bin/sh", "-c", script, "ralph-import", s.Scope, strings.Join(s.Refuse, "\n"), s.GitDir, s.Branch,
		s.Last, strconv.FormatInt(s.Blob, 10), strconv.Itoa(s.Files), sparse, strconv.Itoa(s.Depth),
		strconv.Itoa(len(s.Given)),
	}
	return append(append(argv, s.Given...), s.Known...)
}

// Env returns the environment of the script. Of the user's configuration it has only the settings that affect file
// contents.
func Env(config git.Config, filters bool) []string {
	more := []git.Setting{
		{
			Name:  "core.commitGraph",
			Value: "false",
		}, {Name: "core.multiPackIndex", Value: "false"}, {Name: "pack.useBitmaps", Value: "false"},
		{
			Name:  "diff.ignoreSubmodules",
			Value: "dirty",
		}, {Name: "core.checkStat", Value: "minimal"}, {Name: "core.trustctime", Value: "false"},
	}
	for _, s := range config {
		section, _, _ := s.Split()
		if s.Plain() || filters && section == "filter" {
			more = append(more, s)
		}
	}
	more = append(more, git.Setting{Name: "core.protectHFS", Value: "true"}, git.Setting{Name: "core.protectNTFS", Value: "true"},
		git.Setting{Name: "core.safecrlf", Value: "false"}, git.Setting{Name: "advice.graftFileDeprecated", Value: "false"})
	return append(git.HardenedEnv(more...), "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_ATTR_NOSYSTEM=1", "GIT_NO_REPLACE_OBJECTS=1", "GIT_GRAFT_FILE=/dev/null", "GIT_LITERAL_PATHSPECS=1",
		"GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0")
}

// Report is the script's output before the pack. All of it may be false.
type Report struct {
	Tip    string   // new tip of the branch
	Lost   string   // a commit that was named as the tip and cannot be read; empty: none
	Tree   string   // tree object of the files; empty if they equal those of Tip
	Others []string // commits of other branches, tags and stashes that are not in Tip
	Notes  []string // files that are not in Tree, with the reason
	Empty  bool     // no pack follows
}

const (
	lineLimit  = 8 << 10 // bytes of one line of a report
	linesLimit = 100
)

// readReport parses the lines before the pack.
func readReport(r *bufio.Reader) (Report, error) {
	var rep Report
	for i := range linesLimit {
		line, err := readLine(r)
		if err != nil {
			return rep, fmt.Errorf("read the sandbox's report: %w", err)
		}
		name, value, _ := strings.Cut(line, " ")
		if i == 0 {
			if line != "ralph 1" {
				return rep, fmt.Errorf("read the sandbox's report: it begins with %q", git.Printable(line[:min(len(line), 100)]))
			}
			continue
		}
		switch name {
		case "tip", "lost", "tree", "other":
			if !git.IsObject(value) {
				return rep, fmt.Errorf("read the sandbox's report: %q is not the name of an object",
					git.Printable(value[:min(len(value), 100)]))
			}
			if name == "other" {
				rep.Others = append(rep.Others, value)
			} else {
				*map[string]*string{"tip": &rep.Tip, "lost": &rep.Lost, "tree": &rep.Tree}[name] = value
			}
		case "note":
			rep.Notes = append(rep.Notes, git.Printable(value))
		case "none", "pack":
			if rep.Tip == "" {
				return rep, errors.New("read the sandbox's report: it names no commit")
			}
			rep.Empty = name == "none"
			return rep, nil
		default:
			return rep, fmt.Errorf("read the sandbox's report: unknown line %q", git.Printable(line[:min(len(line), 100)]))
		}
	}
	return rep, errors.New("read the sandbox's report: too many lines")
}

func readLine(r *bufio.Reader) (string, error) {
	var b strings.Builder
	for {
		part, err := r.ReadSlice('\n')
		b.Write(part)
		switch {
		case err == nil:
			return strings.TrimSuffix(b.String(), "\n"), nil
		case b.Len() > lineLimit:
			return "", errors.New("a line is too long")
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			return "", io.ErrUnexpectedEOF
		default:
			return "", err
		}
	}
}
