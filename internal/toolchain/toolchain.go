// Package toolchain knows how the tools of projects fetch dependencies and run tests, and from which hosts they fetch. It
// proposes setup and gate; a person decides.
//
// It runs no code of the project: it asks the tools for the user's own settings, in the folder /. Everything here is safe
// for concurrent use.
package toolchain

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/internal/ecosystem"
	"github.com/ralph-pool/ralph/internal/ecosystem/match"
	"github.com/ralph-pool/ralph/internal/suite"
)

// Proposal describes what the checks of a project need in a sandbox.
type Proposal struct {
	Tool  string   // "go", "npm"
	Setup []string // shell lines that fetch dependencies; empty: there are none
	Note  string   // explanation of Setup for its reader; may be empty
	Gate  []string // shell lines that test the project; empty: unknown

	// Unlocked is the lock file that Setup or Gate creates in every run because the project has none, and MakeLock the
	// command that creates it. Empty: no lock file is missing.
	Unlocked, MakeLock string

	image ecosystem.Image
	// Named are hosts that files of the project name. They are not trusted.
	Named       []Named
	asks        []ecosystem.Ask
	asked, bare []string // see ecosystem.Ecosystem
}

// table is the list of ecosystems to use.
type table []ecosystem.Ecosystem

func known() table { return ecosystem.All() }

const (
	deepest      = 2  // levels below the top that are searched
	maxProposals = 20 // maximum number of proposals
)

// Propose examines the files in the top folder of a project. If these give nothing to propose, it examines the folders up to
// two levels below. All lines are for a shell in the top folder.
func Propose(top string) ([]Proposal, error) { return known().propose(top) }

func (all table) propose(top string) ([]Proposal, error) {
	found, folders, err := all.proposeIn(top, ".")
	if err != nil || useful(found) {
		return found, err
	}
	for range deepest {
		var next []string
		for _, dir := range folders {
			here, below, err := all.proposeIn(top, dir)
			if err != nil {
				continue // the user may not be allowed to read it
			}
			if useful(here) { // then folders below belong to it
				found = append(found, here...)
			} else {
				next = append(next, below...)
			}
		}
		folders = next
	}
	return found[:min(len(found), maxProposals)], nil
}

func useful(proposals []Proposal) bool {
	return slices.ContainsFunc(proposals, func(p Proposal) bool { return len(p.Setup)+len(p.Gate) > 0 })
}

// proposeIn examines one folder. It also returns the folders in it that may belong to the project itself.
func (all table) proposeIn(top, dir string) (out []Proposal, folders []string, err error) {
	entries, err := os.ReadDir(filepath.Join(top, dir))
	if err != nil {
		return nil, nil, err
	}
	var files []string
	for _, e := range entries {
		at := path.Join(dir, e.Name())
		switch {
		case e.Type().IsRegular():
			files = append(files, e.Name())
		case e.IsDir() && !strings.HasPrefix(e.Name(), ".") && !match.Within(at+"/x", match.Foreign):
			folders = append(folders, at)
		}
	}
	here := os.DirFS(filepath.Join(top, dir))
	there := func(c ecosystem.Clue) bool { return found(here, c) }
	for _, e := range ecosystem.Recognise(all, files, there) {
		i := slices.IndexFunc(e.Tools, func(t ecosystem.Tool) bool {
			return len(t.Setup)+len(t.Gate) > 0 && !slices.ContainsFunc(t.Unless, there)
		})
		if i < 0 || e.Alone && len(out) > 0 { // a Makefile beside another tool is not a second project
			continue
		}
		t := e.Tools[i]
		p := Proposal{
			Tool: t.Name, Setup: within(dir, choose(here, t.Setup)), Note: t.Note, Gate: within(dir, choose(here, t.Gate)), image: t.Image,
			asks: t.Hosts, asked: e.Asked, bare: e.Bare, Named: registryHosts(here, dir, e.Registries),
		}
		if pinned := t.Image.Pinned; pinned != nil {
			if text, err := fs.ReadFile(here, t.Image.PinFile); err == nil && pinned(text) != nil {
				p.image.Lines = pinned(text)
			}
		}
		if len(t.Lock) > 0 && !there(ecosystem.Clue{Files: t.Lock}) {
			p.Unlocked, p.MakeLock = path.Join(dir, t.Lock[0]), within(dir, []string{t.MakeLock})[0]
		}
		out = append(out, p)
	}
	return out, folders, nil
}

// Image returns what an image needs to run the lines of all proposals.
func Image(proposals []Proposal) (all ecosystem.Image) {
	add := func(list *[]string, more []string) {
		for _, m := range more {
			if !slices.Contains(*list, m) {
				*list = append(*list, m)
			}
		}
	}
	for _, p := range proposals {
		add(&all.Packages, p.image.Packages)
		add(&all.Lines, p.image.Lines)
		run := Programs(slices.Concat(p.Setup, p.Gate))
		add(&all.Missing, slices.DeleteFunc(slices.Clone(p.image.Missing), func(m string) bool { return !slices.Contains(run, m) }))
	}
	return all
}

// within makes lines run in a folder below the top.
func within(dir string, lines []string) []string {
	if dir == "." {
		return lines
	}
	for i, line := range lines {
		if strings.Contains(line, ";") || strings.Contains(line, "||") {
			line = "(" + line + ")"
		}
		lines[i] = "(cd " + suite.Quote(dir) + " && " + line + ")"
	}
	return lines
}

// choose returns the first line that fits.
func choose(top fs.FS, lines []ecosystem.Line) []string {
	there := func(c ecosystem.Clue) bool { return found(top, c) }
	for _, l := range lines {
		if slices.ContainsFunc(l.Unless, there) || slices.ContainsFunc(l.If, func(c ecosystem.Clue) bool { return !there(c) }) {
			continue
		}
		if l.Shell == "" {
			return nil
		}
		return []string{l.Shell}
	}
	return nil
}

// found reports whether a project has the clue.
func found(top fs.FS, c ecosystem.Clue) bool {
	var names []string
	for _, pattern := range c.Files {
		found, _ := fs.Glob(top, pattern) // fails only for malformed patterns, and ours are constant
		names = append(names, found...)
	}
	return slices.ContainsFunc(names, func(name string) bool {
		if info, err := fs.Stat(top, name); err != nil || !info.Mode().IsRegular() || info.Size() > 1<<20 {
			return false
		}
		text, err := fs.ReadFile(top, name)
		return err == nil && (len(c.Words) == 0 || slices.ContainsFunc(c.Words, func(w string) bool { return strings.Contains("\n"+string(text), w) }))
	})
}

// Programs returns the programs with which the commands in the lines begin.
func Programs(lines []string) []string {
	var out []string
	for _, line := range lines {
		for _, part := range strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(";&|", r) }) {
			for word := range strings.FieldsSeq(strings.Trim(part, " ()")) {
				if name, _, set := strings.Cut(word, "="); set && name != "" && !strings.ContainsAny(name, `"'$/`) {
					continue // NAME=VALUE before the program
				}
				if plainName(word) && !slices.Contains(builtins, word) && !slices.Contains(out, word) {
					out = append(out, word)
				}
				break
			}
		}
	}
	return out
}

func plainName(word string) bool {
	return !strings.ContainsFunc(word, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_.+", r)
	}) && filepath.Base(word) == word && word != "." && word != ".."
}

//nolint:gochecknoglobals // read-only table
var builtins = strings.Fields("cd exec export set test true false echo printf if then else fi for do done while until case esac . source " +
	"command eval exit return read trap umask unset ulimit wait")
