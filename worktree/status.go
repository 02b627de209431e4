package worktree

import (
	"context"
	"fmt"
	"strings"
)

// look is what a worktree looks like at one moment.
type look struct {
	head    string // what stands for the commit HEAD is at, see reword; empty when HEAD is unborn
	at      string // the commit HEAD is at
	branch  string // short name of the branch HEAD is on; "(detached)" when on none
	changes []change
	// partial: what the agent was at could not be had, so that head is not it.
	partial bool
}

// change is one path that differs from HEAD.
type change struct {
	path      string
	untracked bool
	// unsaved: the file differs from the index; otherwise the index has all of it.
	unsaved bool
	gitlink bool // a submodule, or a repository that was added as one
}

// nested reports an untracked repository inside the worktree, which git lists as one path with a final slash.
func (c change) nested() bool { return c.untracked && strings.HasSuffix(c.path, "/") }

// status looks at a worktree without changing anything, and without starting git in repositories nested in it: their
// configuration is an agent's.
func (g git) status(ctx context.Context) (look, error) {
	out, err := g.run(ctx, "", "status", "--porcelain=v2", "-z", "--branch", "--untracked-files=all",
		"--no-renames", "--ignore-submodules=dirty", "--no-ahead-behind")
	if err != nil {
		return look{}, err
	}
	return parseStatus(out)
}

// parseStatus reads `git status --porcelain=v2 -z --branch`. A record it does not know is an error: what is not
// understood could be work that would be lost.
func parseStatus(out string) (look, error) {
	var l look
	records := strings.Split(out, "\x00")
	for i := 0; i < len(records); i++ {
		record := records[i]
		if record == "" {
			continue
		}
		kind, rest, _ := strings.Cut(record, " ")
		fields := 0 // before the path
		switch kind {
		case "#":
			l.header(rest)
			continue
		case "?":
			l.changes = append(l.changes, change{path: rest, untracked: true, unsaved: true})
			continue
		case "1":
			fields = 7
		case "2":
			fields = 8
			i++ // the old path
		case "u":
			fields = 9
		default:
			return look{}, fmt.Errorf("git status: unknown record %q", printable(record))
		}
		parts := strings.SplitN(rest, " ", fields+1)
		if len(parts) != fields+1 || len(parts[0]) != 2 || parts[fields] == "" {
			return look{}, fmt.Errorf("git status: cannot read record %q", printable(record))
		}
		l.changes = append(l.changes, change{
			path: parts[fields], unsaved: kind == "u" || parts[0][1] != '.', gitlink: strings.HasPrefix(parts[1], "S"),
		})
	}
	return l, nil
}

func (l *look) header(text string) {
	name, value, _ := strings.Cut(text, " ")
	switch {
	case name == "branch.oid" && isObjectName(value):
		l.head = value
	case name == "branch.head":
		l.branch = value
	}
}
