// Package importer takes commits and files out of a sandbox. Its caller is package worktree.
//
// Nothing in a sandbox is believed and nothing of it is read from disk. A script runs git there, with the rights of the
// agent, and prints a few lines and one pack (see [Script]). The host reads that as data ([Read]): it checks the size and
// the shape of every object as the bytes arrive, before git sees them, then has git check the objects in a quarantine
// folder, where every object that one of them names must be in the pack or in the history that the run was given. Only
// then the objects move into the user's repository ([Quarantine.Accept]). No ref moves here.
//
// Everything here is safe for concurrent use, except one Quarantine by two goroutines.
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

// ErrTooBig says that an import would exceed its Caps.
var ErrTooBig = errors.New("too big to be imported")

// Caps bound one import. Zero values are the defaults.
type Caps struct {
	Objects int   // number of objects; default 1,000,000
	Size    int64 // bytes of all of them, unpacked; default 4 GiB
	Blob    int64 // bytes of one file; default 512 MiB
	Files   int   // new files among the uncommitted changes; default 20,000. The rest is named and stays in the worktree
	Paths   int   // paths in the files of one commit; default 5,000,000
	Depth   int   // folders inside each other; default 250

	PathBytes int64 // bytes of all paths in the files of one commit; default 512 MiB
}

// WithDefaults replaces zero values.
func (c Caps) WithDefaults() Caps {
	return Caps{
		Objects: cmp.Or(c.Objects, 1_000_000), Size: cmp.Or(c.Size, 4<<30), Blob: cmp.Or(c.Blob, 512<<20),
		Files: cmp.Or(c.Files, 20_000),
		Paths: cmp.Or(c.Paths, 5_000_000), Depth: cmp.Or(c.Depth, 250), PathBytes: cmp.Or(c.PathBytes, 512<<20),
	}
}

// Now are the caps with their defaults, as far as there is room in the places where an import writes. For an agent that works on the
// host as the user only the room is a limit.
func (c Caps) Now(host bool, places ...string) Caps {
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
	bytes, _ := Room(places...)
	c.Size = min(c.Size, bytes)
	c.Blob = min(c.Blob, c.Size)
	return c
}

// ChangesEnv names the variable of the script with the folder that has all files which git has not made; unset: the worktree. It
// shows the same names as the worktree, and may be read-only.
const ChangesEnv = "RALPH_CHANGES"

//go:embed inside.sh
var script string

// What a script sends.
const (
	All     = "all"
	Branch  = "branch"  // without commits outside of the branch
	Commits = "commits" // without uncommitted changes
	Files   = "files"   // uncommitted changes only; the agent's repository is not used
)

// Script is the command that runs in the sandbox.
type Script struct {
	What   string   // All, Branch, Commits or Files
	Refuse []string // files with this content are left out of the uncommitted changes
	GitDir string   // the private repository
	Branch string   // its branch
	Last   string   // the last imported commit
	Blob   int64    // files above this size are left out
	Files  int      // so many new files are saved
	Sparse bool     // the checkout is sparse
	Depth  int      // so many folders inside each other are saved
	Given  []string // object folders with the history that the run was given
	Known  []string // commits that need not be sent
}

// Argv is the script with its arguments.
func (s Script) Argv() []string {
	sparse := "no"
	if s.Sparse {
		sparse = "yes"
	}
	argv := []string{
		"/bin/sh", "-c", script, "ralph-import", s.What, strings.Join(s.Refuse, "\n"), s.GitDir, s.Branch,
		s.Last, strconv.FormatInt(s.Blob, 10), strconv.Itoa(s.Files), sparse, strconv.Itoa(s.Depth),
		strconv.Itoa(len(s.Given)),
	}
	return append(append(argv, s.Given...), s.Known...)
}

// Env is the environment of the script: nothing of the user's but what decides what files look like.
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

// Report is what the script says before the pack. All of it may be a lie.
type Report struct {
	Tip    string   // the commit that the branch is to move to
	Lost   string   // a commit that was named as the tip and cannot be had; empty: none
	Tree   string   // the files as they are; empty when they are those of Tip
	Others []string // commits of other branches, tags and stashes that Tip does not have
	Notes  []string // files that are not in Tree, and why
	Empty  bool     // no pack follows
}

const (
	lineLimit  = 8 << 10 // bytes of one line of a report
	linesLimit = 100
)

// readReport reads the lines before the pack.
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
