// Package toolchain knows how the tools of projects fetch what a project depends on and run its tests, and where from. It
// proposes; a person decides. Its caller is internal/cli, for `ralph init` and `ralph doctor`.
//
// It runs no code of the project: the tools are asked for the user's own settings in an empty folder. Everything here is
// safe for concurrent use.
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
)

// Proposal is what the checks of a project need in a sandbox.
type Proposal struct {
	Tool  string   // "go", "npm"
	Dir   string   // the folder, with slashes from the top; ".": the top
	Setup []string // shell lines that fetch what it depends on; none: it depends on nothing
	Gate  []string // shell lines that test it; none: there is no telling
	asks  []ask
}

// tool is how a package manager or build tool is used. Lines are chosen by the files in the top folder of the project.
type tool struct {
	setup []choice
	gate  []choice
	asks  []ask
}

// choice is a line for projects with one of the files, whose text has one of the words; without files, for all. A word that
// begins with a line end also fits the first line.
type choice struct {
	files, words []string         // files are patterns of fs.Glob
	when         func(fs.FS) bool // nil: always
	line         string           // empty: no line is needed
}

const (
	deepest = 2  // levels below the top that are looked at
	most    = 20 // folders below the top with something to propose
)

// Propose looks at the files in the top folder of a project and, where these give nothing to propose, in the folders up to two
// levels below it. All lines are for a shell in the top folder.
func Propose(top string) ([]Proposal, error) {
	found, folders, err := proposeIn(top, ".")
	if err != nil || useful(found) {
		return found, err
	}
	for range deepest {
		var next []string
		for _, dir := range folders {
			here, below, err := proposeIn(top, dir)
			if err != nil {
				continue // it may not be the user's to read
			}
			if useful(here) { // then what is below is a part of it
				found = append(found, here...)
			} else {
				next = append(next, below...)
			}
		}
		folders = next
	}
	return found[:min(len(found), most)], nil
}

func useful(proposals []Proposal) bool {
	return slices.ContainsFunc(proposals, func(p Proposal) bool { return len(p.Setup)+len(p.Gate) > 0 })
}

// proposeIn looks at one folder, and lists those in it that may be the project's own.
func proposeIn(top, dir string) (out []Proposal, folders []string, err error) {
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
	for _, found := range ecosystem.Recognise(files) {
		if found.Name == "generic" && len(out) > 0 {
			continue // a Makefile beside the project's own tool is no second project
		}
		for _, t := range found.Tools {
			use, ok := tools()[t.Name]
			if !ok {
				continue
			}
			here := os.DirFS(filepath.Join(top, dir))
			out = append(out, Proposal{Tool: t.Name, Dir: dir, asks: use.asks, Setup: within(dir, choose(here, use.setup)), Gate: within(dir, choose(here, use.gate))})
			break // the tools of an ecosystem do the same in different ways
		}
	}
	return out, folders, nil
}

// within has lines run in a folder below the top.
func within(dir string, lines []string) []string {
	if dir == "." {
		return lines
	}
	if strings.ContainsFunc(dir, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_./", r)
	}) || strings.HasPrefix(dir, "-") {
		dir = "'./" + strings.ReplaceAll(dir, "'", `'\''`) + "'"
	}
	for i, line := range lines {
		if strings.Contains(line, ";") || strings.Contains(line, "||") {
			line = "(" + line + ")"
		}
		lines[i] = "(cd " + dir + " && " + line + ")"
	}
	return lines
}

// choose is the line of the first choice that fits.
func choose(top fs.FS, choices []choice) []string {
	for _, c := range choices {
		if c.fits(top) {
			if c.line == "" {
				return nil
			}
			return []string{c.line}
		}
	}
	return nil
}

func (c choice) fits(top fs.FS) bool {
	if c.when != nil && !c.when(top) {
		return false
	}
	if len(c.files) == 0 {
		return true
	}
	var names []string
	for _, pattern := range c.files {
		found, _ := fs.Glob(top, pattern) // a pattern of ours is well-formed
		names = append(names, found...)
	}
	return slices.ContainsFunc(names, func(name string) bool {
		if info, err := fs.Stat(top, name); err != nil || !info.Mode().IsRegular() || info.Size() > 1<<20 {
			return false
		}
		text, err := fs.ReadFile(top, name)
		return err == nil && (len(c.words) == 0 || slices.ContainsFunc(c.words, func(w string) bool { return strings.Contains("\n"+string(text), w) }))
	})
}

// Programs are the programs that shell lines begin with, as far as their first words tell.
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
